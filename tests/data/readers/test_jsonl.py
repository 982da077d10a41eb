"""Graphs as JSON lines: what is read, every reason to refuse a line, and the way back."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ihgnn_cli.data.dataset import GraphDataset, LabelSource, ReadingNotes
from ihgnn_cli.data.readers.json_graph import parse_graph
from ihgnn_cli.data.readers.jsonl import read_jsonl, write_jsonl
from ihgnn_cli.data.readers.tu import read_tu
from ihgnn_cli.data.readers.tu_files import open_tu
from ihgnn_cli.errors import DataError, InputError, Problem

WriteTU = Callable[..., Path]
Read = Callable[..., GraphDataset]

DOCUMENTED = '{"node_labels": ["C", "C", "O"], "edges": [[0, 1], [1, 2]], "class": "alcohol"}'


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "set.jsonl"


@pytest.fixture
def read(path: Path) -> Read:
    """Write lines, given as text, bytes or objects, and read them as a data set."""

    def write_and_read(*lines: str | bytes | dict[str, Any]) -> GraphDataset:
        path.write_bytes(b"".join(as_bytes(line) + b"\n" for line in lines))
        return read_jsonl(path)

    return write_and_read


def as_bytes(line: str | bytes | dict[str, Any]) -> bytes:
    text = json.dumps(line) if isinstance(line, dict) else line
    return text.encode() if isinstance(text, str) else text


def graph(**changes: object) -> dict[str, object]:
    """0 - 1 - 2 with a class and node labels."""
    return {"node_labels": [5, 5, 7], "edges": [[0, 1], [1, 2]], "class": 1, **changes}


def without(*keys: str, **changes: object) -> dict[str, object]:
    return {key: value for key, value in graph(**changes).items() if key not in keys}


def problems(read: Read, *lines: str | bytes | dict[str, Any]) -> tuple[Problem, ...]:
    with pytest.raises(DataError) as caught:
        read(*lines)
    return caught.value.problems


# What is read.


def test_the_documented_example(read: Read) -> None:
    dataset = read(DOCUMENTED)
    assert (dataset.name, len(dataset)) == ("set", 1)
    assert dataset.edge_index().tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert (dataset.node_label.tolist(), dataset.label_values) == ([0, 0, 1], ("C", "O"))
    assert (dataset.graph_class.tolist(), dataset.class_values) == ([0], ("alcohol",))
    assert dataset.label_source is LabelSource.LABELS


def test_an_edge_that_stands_once_is_undirected_and_nothing_to_tell(read: Read) -> None:
    dataset = read(graph(edges=[[2, 0]]))
    assert dataset.edge_index().tolist() == [[0, 2], [2, 0]]
    assert dataset.notes == ReadingNotes()


def test_nodes_are_counted_from_0_in_each_graph(read: Read) -> None:
    dataset = read(graph(edges=[[0, 2]]), graph(edges=[]), graph(edges=[[0, 1]]))
    assert dataset.node_ptr.tolist() == [0, 3, 6, 9]
    assert dataset.edge_index().tolist() == [[0, 2, 6, 7], [2, 0, 7, 6]]


def test_integers_are_kept_and_sorted_as_integers(read: Read) -> None:
    dataset = read(graph(node_labels=[10, -3, 9], **{"class": 2}), graph(**{"class": -10}))
    assert dataset.label_values == (-3, 5, 7, 9, 10)
    assert dataset.node_label.tolist() == [4, 0, 3, 1, 1, 2]
    assert (dataset.class_values, dataset.graph_class.tolist()) == ((-10, 2), [1, 0])


def test_strings_are_kept_and_sorted_as_strings(read: Read) -> None:
    dataset = read(graph(node_labels=["9", "10", "β"], **{"class": "ja"}))
    assert dataset.label_values == ("10", "9", "β")
    assert dataset.node_label.tolist() == [1, 0, 2]


def test_without_node_labels_the_degree_is_the_label(read: Read) -> None:
    dataset = read(without("node_labels", num_nodes=4))
    assert [dataset.label_values[position] for position in dataset.node_label] == [1, 2, 1, 0]
    assert dataset.label_source is LabelSource.DEGREE


def test_node_attributes_can_stand_for_the_number_of_nodes(read: Read) -> None:
    dataset = read(without("node_labels", node_attributes=[[1], [2], [3.5]]))
    assert dataset.num_nodes == 3
    assert dataset.node_attributes is not None
    assert dataset.node_attributes.tolist() == [[1], [2], [3.5]]
    assert dataset.node_attributes.dtype == np.float32


def test_edge_labels_and_attributes_hold_for_both_directions(read: Read) -> None:
    dataset = read(
        graph(edges=[[2, 1], [0, 1]], edge_labels=["b", "a"], edge_attributes=[[2, 0], [1, 0]])
    )
    assert dataset.edge_index().tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert dataset.edge_label is not None
    assert dataset.edge_attributes is not None
    assert (dataset.edge_label.tolist(), dataset.edge_label_values) == ([0, 0, 1, 1], ("a", "b"))
    assert dataset.edge_attributes.tolist() == [[1, 0], [1, 0], [2, 0], [2, 0]]


def test_graphs_without_edges_say_nothing_of_edge_labels(read: Read) -> None:
    dataset = read(
        graph(edges=[]),
        graph(edges=[[0, 1]], edge_labels=[4]),
        graph(edges=[], edge_labels=[]),
    )
    assert dataset.edge_label_values == (4,)


def test_self_loops_and_duplicates_are_counted(read: Read) -> None:
    dataset = read(graph(edges=[[0, 0], [0, 1], [0, 1]], edge_labels=[1, 1, 2]))
    assert dataset.notes == ReadingNotes(self_loops=1, duplicate_edges=1, conflicting_duplicates=1)


@pytest.mark.parametrize("key", ["node_labels", "node_attributes", "edge_labels"])
def test_null_is_the_same_as_absent(read: Read, key: str) -> None:
    assert (
        read(without("node_labels", num_nodes=3, **{key: None})).fingerprint
        == read(without("node_labels", num_nodes=3)).fingerprint
    )


def test_an_id_goes_along_and_changes_nothing(read: Read) -> None:
    assert read(graph(id={"mine": [1]})).fingerprint == read(graph()).fingerprint
    assert parse_graph(as_bytes(graph(id={"mine": [1]}))).id == {"mine": [1]}
    assert parse_graph(as_bytes(graph())).id is None


@pytest.mark.parametrize(
    "lines",
    [
        ("", DOCUMENTED, "  ", ""),
        (b"\xef\xbb\xbf" + DOCUMENTED.encode(),),
        (DOCUMENTED + "\r",),
        (b"\xef\xbb\xbf", DOCUMENTED),
    ],
    ids=["blank lines", "byte order mark", "Windows line end", "byte order mark and blank line"],
)
def test_what_editors_add_changes_nothing(read: Read, lines: tuple[str | bytes, ...]) -> None:
    assert read(*lines).fingerprint == read(DOCUMENTED).fingerprint


def test_every_byte_is_told_to_the_progress(path: Path) -> None:
    path.write_text(f"{DOCUMENTED}\n\n{DOCUMENTED}")
    told: list[int] = []
    read_jsonl(path, told.append)
    assert sum(told) == path.stat().st_size


def test_a_single_attribute_may_be_a_number() -> None:
    numbers = parse_graph(json.dumps(graph(node_attributes=[1, 2.5, 3], edge_attributes=[1.4, 99])))
    lists = graph(node_attributes=[[1], [2.5], [3]], edge_attributes=[[1.4], [99]])
    assert numbers == parse_graph(json.dumps(lists))


def test_one_line_alone_needs_no_class() -> None:
    parsed = parse_graph(json.dumps(without("class")))
    assert (parsed.num_nodes, parsed.edges) == (3, [(0, 1), (1, 2)])
    assert parsed.graph_class is None


# What is refused.

ONE_EACH = "Give one for each, in order."
TWO_NUMBERS = "Write two node numbers, [0, 1]."
RANGE = "Nodes are counted from 0 to 2."
VALUE = "Use an integer or a string."
FINITE = "Use equally long lists of finite numbers."
SAME = "Use the same throughout the file."

REFUSED: dict[str, tuple[str | bytes | dict[str, Any], str, str]] = {
    "a list": ("[1]", "not a JSON object.", "Write {...} with node_labels and edges."),
    "misspelt key": (
        without("node_labels", node_label=[5, 5, 7]),
        "unknown key 'node_label'.",
        "Did you mean node_labels?",
    ),
    "key in capitals": (without("class", Class=1), "unknown key 'Class'.", "Did you mean class?"),
    "label for class": (without("class", label=1), "no class.", "Rename 'label' to class."),
    "labels for node_labels": (
        without("node_labels", labels=[5, 5, 7]),
        "no node_labels.",
        "Rename 'labels' to node_labels.",
    ),
    "bonds for edges": (without("edges", bonds=[[0, 1]]), "no edges.", "Rename 'bonds' to edges."),
    "no class": (without("class"), "no class.", 'Add "class": an integer or a string.'),
    "class null": (graph(**{"class": None}), "no class.", 'Add "class": an integer or a string.'),
    "class float": (graph(**{"class": 1.0}), "class 1.0.", VALUE),
    "class bool": (graph(**{"class": True}), "class true.", VALUE),
    "class list": (graph(**{"class": [1, 2]}), "class [1, 2].", VALUE),
    "label bool": (graph(node_labels=[5, 5, True]), "node_labels true.", VALUE),
    "label float": (graph(node_labels=[5, 5, 7.5]), "node_labels 7.5.", VALUE),
    "label null": (graph(node_labels=[5, 5, None]), "node_labels null.", VALUE),
    "edge label bool": (graph(edge_labels=[False, 1]), "edge_labels false.", VALUE),
    "labels mixed": (
        graph(node_labels=[5, "5", 7]),
        "node_labels mixes integers and strings.",
        "Use one kind throughout the file.",
    ),
    "labels no list": (
        graph(node_labels="CCO"),
        "node_labels is not a list.",
        'Write "node_labels": [...].',
    ),
    "too few edge labels": (graph(edge_labels=[1]), "1 edge_labels for 2 edges.", ONE_EACH),
    "too few edge attributes": (
        graph(edge_attributes=[[1]]),
        "1 edge_attributes for 2 edges.",
        ONE_EACH,
    ),
    "too many node attributes": (
        graph(node_attributes=[[1], [1], [1], [1]]),
        "4 node_attributes for 3 nodes.",
        ONE_EACH,
    ),
    "ragged attributes": (
        graph(node_attributes=[[1], [1, 2], [1]]),
        "node_attributes [1, 2].",
        FINITE,
    ),
    "empty attributes": (graph(node_attributes=[[], [], []]), "node_attributes [].", FINITE),
    "attribute no list": (graph(node_attributes=["1", 2, 3]), 'node_attributes "1".', FINITE),
    "one number for lists": (graph(edge_attributes=[[1, 2], 3]), "edge_attributes [3].", FINITE),
    "attribute text": (graph(node_attributes=[["1"], [1], [1]]), 'node_attributes ["1"].', FINITE),
    "attribute bool": (
        graph(node_attributes=[[True], [1], [1]]),
        "node_attributes [true].",
        FINITE,
    ),
    "attribute NaN": (
        graph(node_attributes=[[float("nan")], [1], [1]]),
        "not JSON (NaN is not a JSON number).",
        "Use finite numbers.",
    ),
    "attribute infinite": (
        graph(edge_attributes=[[1], [float("-inf")]]),
        "not JSON (-Infinity is not a JSON number).",
        "Use finite numbers.",
    ),
    "id beyond 64 bits": (
        '{"node_labels": [5], "edges": [], "class": 1, "id": [1e999]}',
        "id holds a number that is not finite.",
        "Use finite numbers.",
    ),
    "infinite id": (
        graph(id={"made": [float("inf")]}),
        "not JSON (Infinity is not a JSON number).",
        "Use finite numbers.",
    ),
    "attribute beyond 32 bits": (
        graph(node_attributes=[[1e39], [1], [1]]),
        "node_attributes [1e+39].",
        "Use numbers up to 3.4e38, the largest 32-bit float.",
    ),
    "no edges": (
        without("edges"),
        "no edges.",
        'Add "edges": [[0, 1], ...], or [] for a graph without.',
    ),
    "edges no list": (graph(edges={}), "edges is not a list.", 'Write "edges": [...].'),
    "edge too far": (graph(edges=[[0, 3]]), "edge [0, 3] in a graph of 3 nodes.", RANGE),
    "edge negative": (graph(edges=[[-1, 0]]), "edge [-1, 0] in a graph of 3 nodes.", RANGE),
    "edge of three": (graph(edges=[[0, 1, 2]]), "edge [0, 1, 2].", TWO_NUMBERS),
    "edge of bool": (graph(edges=[[0, True]]), "edge [0, true].", TWO_NUMBERS),
    "edge of float": (graph(edges=[[0, 1.0]]), "edge [0, 1.0].", TWO_NUMBERS),
    "edge no list": (graph(edges=[5]), "edge 5.", TWO_NUMBERS),
    "no nodes": (graph(node_labels=[], edges=[]), "a graph without nodes.", "Remove the line."),
    "negative num_nodes": (
        without("node_labels", num_nodes=-1, edges=[]),
        "a graph without nodes.",
        "Remove the line.",
    ),
    "num_nodes disagrees": (
        graph(num_nodes=4),
        "num_nodes is 4 for 3 nodes.",
        "Make them agree.",
    ),
    "num_nodes float": (graph(num_nodes=3.0), "num_nodes is not an integer.", "Count the nodes."),
    "num_nodes bool": (graph(num_nodes=True), "num_nodes is not an integer.", "Count the nodes."),
    "no number of nodes": (
        without("node_labels"),
        "no node_labels.",
        "Add them, or num_nodes for a graph without labels.",
    ),
    "class of another kind": (
        graph(**{"class": "1"}),
        "class: strings here, integers in graphs before.",
        SAME,
    ),
    "labels of another kind": (
        graph(node_labels=["5", "5", "7"]),
        "node_labels: strings here, integers in graphs before.",
        SAME,
    ),
    "labels in some graphs only": (
        without("node_labels", num_nodes=3),
        "node_labels: nothing here, integers in graphs before.",
        SAME,
    ),
    "attributes in some graphs only": (
        graph(node_attributes=[[1, 2], [1, 2], [1, 2]]),
        "node_attributes: 2 numbers here, 0 numbers in graphs before.",
        SAME,
    ),
    "edge labels in some graphs only": (
        graph(edge_labels=[1, 2]),
        "edge_labels: integers here, nothing in graphs before.",
        SAME,
    ),
}


@pytest.mark.parametrize(("line", "message", "remedy"), REFUSED.values(), ids=REFUSED)
def test_a_mistake_is_told_with_its_line_and_remedy(
    read: Read, line: str | bytes | dict[str, Any], message: str, remedy: str
) -> None:
    assert problems(read, graph(), "", line, graph()) == (Problem("set.jsonl", 3, message, remedy),)


@pytest.mark.parametrize(
    "line",
    [
        b"{",
        b"{'class': 1}",
        b'{"class": 1} {}',
        b'"\xff"',
        b"[" * 100_000,
        b'{"class": ' + b"9" * 5000 + b"}",
    ],
    ids=["cut off", "single quotes", "two objects", "no UTF-8", "deep", "number without end"],
)
def test_what_is_not_json_is_told_with_its_line(read: Read, line: bytes) -> None:
    [problem] = problems(read, graph(), line)
    assert (problem.file, problem.line) == ("set.jsonl", 2)
    assert problem.message.startswith("not JSON (")
    assert problem.remedy.endswith("Write one JSON object per line.")


@pytest.mark.parametrize(
    "changes",
    [
        {"node_labels": ["a", "b", "\ud800"]},
        {"edge_labels": ["a", "\ud800"]},
        {"class": "\ud800"},
    ],
    ids=["node label", "edge label", "class"],
)
def test_half_a_character_is_refused_in_words_that_can_be_shown(
    read: Read, changes: dict[str, Any]
) -> None:
    [problem] = problems(read, graph(**changes))
    assert problem.line == 1
    assert str(problem).encode()


@pytest.mark.parametrize("num_nodes", [2**62, 10**30])
def test_more_nodes_than_can_be_numbered_are_refused(read: Read, num_nodes: int) -> None:
    [problem] = problems(read, without("node_labels", num_nodes=num_nodes, edges=[]))
    assert problem.file == "set.jsonl"


def test_a_width_that_changes_between_graphs(read: Read) -> None:
    narrow, wide = [[1], [1], [1]], [[1, 2], [1, 2], [1, 2]]
    [problem] = problems(read, graph(node_attributes=narrow), graph(node_attributes=wide))
    assert problem.line == 2
    assert problem.message == "node_attributes: 2 numbers here, 1 number in graphs before."


def test_the_same_mistake_on_many_lines_is_one_problem_with_its_lines(read: Read) -> None:
    wrong = [graph(edges=[[0, 3 + number]]) for number in range(30)]
    [problem, other] = problems(read, graph(), *wrong, "{")
    assert (problem.line, problem.also, problem.count) == (2, tuple(range(3, 12)), 30)
    assert problem.message == "edge [0, 3] in a graph of 3 nodes."
    assert problem.where == "set.jsonl, line 2 (likewise 3, 4, 5, 6, 7, 8, 9, 10, 11 and 20 more)"
    assert (other.line, other.count) == (32, 1)


def test_the_place_in_broken_json_is_one_column(read: Read) -> None:
    [problem] = problems(read, '{"node_labels": [5 5]}')
    assert problem.message == "not JSON (Expecting ',' delimiter at column 20)."


def test_other_keys_are_ignored_and_remembered(read: Read) -> None:
    dataset = read(graph(weight=18.0), graph(name="water", weight=1), graph(**{"\ud800": 1}))
    assert dataset.notes.ignored_keys == ("\\ud800", "name", "weight")
    assert dataset.fingerprint == read(graph(), graph(), graph()).fingerprint


def test_ids_are_kept_and_written_again(read: Read, tmp_path: Path) -> None:
    dataset = read(graph(id="a"), graph(), graph(id={"b": [1]}))
    assert dataset.ids == ("a", None, {"b": [1]})
    assert dataset.select([2, 0]).ids == ({"b": [1]}, "a")
    assert again(dataset, tmp_path).ids == dataset.ids
    assert dataset.fingerprint == read(graph(), graph(), graph()).fingerprint
    assert read(graph()).ids == ()


def test_for_prediction_no_graph_needs_a_class(path: Path) -> None:
    path.write_bytes(b"\n".join(map(as_bytes, [without("class"), without("class")])))
    dataset = read_jsonl(path, classes=False)
    assert (dataset.graph_class.tolist(), dataset.class_values) == ([-1, -1], ())
    lines = [graph(), without("class"), graph(), without("class")]
    path.write_bytes(b"\n".join(map(as_bytes, lines)))
    with pytest.raises(DataError) as caught:
        read_jsonl(path, classes=False)
    [problem] = caught.value.problems
    assert (problem.line, problem.also, problem.message) == (2, (4,), "no class.")


@pytest.mark.parametrize("lines", [(), ("", "  ")])
def test_a_file_without_graphs(read: Read, lines: tuple[str, ...]) -> None:
    assert problems(read, *lines) == (
        Problem("set.jsonl", None, "no graphs found.", "Write one JSON object per line."),
    )


def test_a_line_alone_is_refused_without_a_file_name() -> None:
    with pytest.raises(InputError, match=r"^no node_labels\. Add them") as caught:
        parse_graph('{"x": 1}')
    assert not isinstance(caught.value, DataError)


# The way back.


def again(dataset: GraphDataset, folder: Path) -> GraphDataset:
    path = folder / "written.jsonl"
    write_jsonl(dataset, path)
    return read_jsonl(path)


def test_a_line_is_written_as_documented(read: Read, path: Path, tmp_path: Path) -> None:
    write_jsonl(read(DOCUMENTED), str(tmp_path / "out.jsonl"))
    assert (tmp_path / "out.jsonl").read_bytes() == DOCUMENTED.encode() + b"\n"


ALONE = {"node_labels": ["C"], "edges": [], "class": "β"}
ROUND_TRIPS: dict[str, list[dict[str, Any]]] = {
    "integers": [graph(), graph(node_labels=[-1, 10**12, 9], **{"class": -7})],
    "strings": [{**ALONE, "node_labels": ["β", "", '"\n'], "edges": [[0, 2]]}, ALONE],
    "node attributes": [graph(node_attributes=[[0.1, 1], [1e-45, -0.0], [3.4e38, 1 / 3]])],
    "edge labels": [graph(edge_labels=["b", "a"]), graph(edges=[], edge_labels=[])],
    "edge attributes": [graph(edges=[]), graph(edge_attributes=[[0.1], [0.2]])],
    "degree": [without("node_labels", num_nodes=4), without("node_labels", num_nodes=3)],
    "attributes and degree": [without("node_labels", node_attributes=[[1], [2], [3]])],
    "everything": [
        graph(
            node_attributes=[[1], [2], [3]],
            edges=[[2, 0], [1, 2], [0, 1]],
            edge_labels=[3, 1, 2],
            edge_attributes=[[0.1, 1], [0.2, 2], [0.3, 3]],
        )
    ],
    "an edge in both directions with two labels": [
        graph(edges=[[0, 1], [1, 0], [1, 2]], edge_labels=[1, 2, 3])
    ],
    "an edge in both directions with two attributes": [
        graph(edges=[[0, 1], [1, 0], [1, 2]], edge_attributes=[[1], [2], [3]])
    ],
    "a label that only a self-loop has": [graph(edges=[[0, 0], [0, 1]], edge_labels=[1, 2])],
}


@pytest.mark.parametrize("lines", ROUND_TRIPS.values(), ids=ROUND_TRIPS)
def test_what_was_read_is_written_and_read_again(
    read: Read, tmp_path: Path, lines: list[dict[str, Any]]
) -> None:
    dataset = read(*lines)
    assert again(dataset, tmp_path).fingerprint == dataset.fingerprint


# Graph 1 is the path 1 - 2 - 3, graph 2 the node 4.
TU = {"A": "1, 2\n2, 1\n2, 3\n3, 2\n", "graph_indicator": "1\n1\n1\n2\n", "graph_labels": "2\n-1\n"}


@pytest.mark.parametrize(
    "parts",
    [
        {},
        {"node_labels": "7\n0\n7\n-3\n"},
        {"node_labels": "0, 1\n1, 0\n0, 1\n1, 1\n"},
        {"node_labels": "2, 0\n10, 0\n2, 0\n-1, 0\n"},
        {"node_attributes": "0.1, 2\n1e-3, 2\n3, 2\n4, 2\n"},
        {"edge_labels": "1\n1\n2\n2\n", "edge_attributes": "0.5\n0.5\n0.25\n0.25\n"},
        {"edge_labels": "1\n2\n3\n4\n"},
        {"A": "", "edge_labels": ""},
    ],
    ids=[
        "degree",
        "node labels",
        "joint labels",
        "joint labels of different lengths",
        "node attributes",
        "edge labels and attributes",
        "edge labels by direction",
        "edge labels without edges",
    ],
)
def test_a_tu_data_set_becomes_json_lines(
    write_tu: WriteTU, tmp_path: Path, parts: dict[str, str]
) -> None:
    dataset = read_tu(open_tu(write_tu(**{**TU, **parts})))
    assert again(dataset, tmp_path).fingerprint == dataset.fingerprint


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("round-trip")


@st.composite
def any_graphs(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Graphs that each list their edges once, with the same optional keys throughout."""
    keys = draw(
        st.sets(
            st.sampled_from(["node_labels", "node_attributes", "edge_labels", "edge_attributes"])
        )
    )
    value = draw(
        st.sampled_from([st.integers(), st.text(st.characters(codec="utf-8"), max_size=3)])
    )
    row = st.tuples(*[st.floats(width=32, allow_nan=False, allow_infinity=False)] * 2)
    graphs = []
    for _ in range(draw(st.integers(1, 3))):
        size = draw(st.integers(1, 4))
        pairs = [[low, high] for high in range(size) for low in range(high)]
        edges = draw(st.lists(st.sampled_from(pairs), unique_by=tuple)) if pairs else []
        entry = {"num_nodes": size, "edges": edges, "class": draw(value)}
        for key in sorted(keys):
            count = size if key.startswith("node") else len(edges)
            each = value if key.endswith("labels") else row
            entry[key] = draw(st.lists(each, min_size=count, max_size=count))
        graphs.append(entry)
    return graphs


@settings(deadline=None, derandomize=True, max_examples=60)
@given(any_graphs())
def test_any_graphs_come_back_the_same(folder: Path, graphs: list[dict[str, Any]]) -> None:
    path = folder / "set.jsonl"
    path.write_bytes(b"".join(as_bytes(entry) + b"\n" for entry in graphs))
    dataset = read_jsonl(path)
    assert again(dataset, folder).fingerprint == dataset.fingerprint


def test_a_key_that_stands_twice_is_refused() -> None:
    with pytest.raises(InputError, match="the key 'class' appears twice"):
        parse_graph('{"node_labels": [1], "edges": [], "class": 1, "class": 2}')


def test_a_short_line_cannot_ask_for_all_memory() -> None:
    with pytest.raises(InputError, match="At most 10,000,000"):
        parse_graph('{"num_nodes": 200000000, "edges": [], "class": 1}')


def test_utf_16_is_named(tmp_path: Path) -> None:
    path = tmp_path / "wide.jsonl"
    path.write_text('{"node_labels": [1], "edges": [], "class": 1}\n', encoding="utf-16")
    with pytest.raises(DataError, match="not plain text") as caught:
        read_jsonl(path)
    assert len(caught.value.problems) == 1
