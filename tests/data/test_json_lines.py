"""Graphs as JSON lines: what is read, every reason to refuse a line, and the way back."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ihgnn_cli.data import load_dataset
from ihgnn_cli.data.dataset import GraphDataset, LabelSource, ReadingNotes
from ihgnn_cli.data.json_graph import GraphError, check_entry, id_of, parse_graph
from ihgnn_cli.data.jsonl import Collected, read_jsonl, write_jsonl
from ihgnn_cli.data.problems import MAX_LINE, MAX_PROBLEMS
from ihgnn_cli.errors import DataError

DOCUMENTED = '{"node_labels": ["C", "C", "O"], "edges": [[0, 1], [1, 2]], "class": "alcohol"}'


def graph(**changes: object) -> dict[str, Any]:
    """0 - 1 - 2 with a class and node labels; keys with the value `...` are left out."""
    base = {"node_labels": [5, 5, 7], "edges": [[0, 1], [1, 2]], "class": 1, **changes}
    return {key: value for key, value in base.items() if value is not ...}


def write(path: Path, *lines: str | bytes | dict[str, Any]) -> Path:
    texts = [json.dumps(line) if isinstance(line, dict) else line for line in lines]
    path.write_bytes(b"".join((t.encode() if isinstance(t, str) else t) + b"\n" for t in texts))
    return path


def of(*graphs: dict[str, Any], classes: bool = True) -> GraphDataset:
    collected = Collected(classes)
    for each in graphs:
        collected.add(parse_graph(json.dumps(each)))
    return collected.dataset("set")


# What is read


def test_the_documented_example_as_columns(tmp_path) -> None:
    dataset = read_jsonl(write(tmp_path / "set.jsonl", DOCUMENTED))
    assert (dataset.name, len(dataset)) == ("set", 1)
    assert dataset.edge_index().tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert (dataset.node_label.tolist(), dataset.label_values) == ([0, 0, 1], ("C", "O"))
    assert (dataset.graph_class.tolist(), dataset.class_values) == ([0], ("alcohol",))
    assert dataset.label_source is LabelSource.LABELS
    assert dataset.notes == ReadingNotes()


def test_nodes_are_counted_from_0_in_each_graph() -> None:
    dataset = of(graph(edges=[[0, 2]]), graph(edges=[]), graph(edges=[[0, 1]]))
    assert dataset.node_ptr.tolist() == [0, 3, 6, 9]
    assert dataset.edge_index().tolist() == [[0, 2, 6, 7], [2, 0, 7, 6]]


def test_values_are_kept_and_sorted_by_their_kind() -> None:
    dataset = of(graph(node_labels=[10, -3, 9], **{"class": 2}), graph(**{"class": -10}))
    assert dataset.label_values == (-3, 5, 7, 9, 10)
    assert dataset.node_label.tolist() == [4, 0, 3, 1, 1, 2]
    assert (dataset.class_values, dataset.graph_class.tolist()) == ((-10, 2), [1, 0])
    assert of(graph(node_labels=["9", "10", "β"])).label_values == ("10", "9", "β")


def test_graphs_without_labels_have_degrees_and_a_number_of_nodes() -> None:
    bare = of(graph(node_labels=..., num_nodes=4))
    assert [bare.label_values[position] for position in bare.node_label] == [1, 2, 1, 0]
    assert bare.label_source is LabelSource.DEGREE
    counted = of(graph(node_labels=..., node_attributes=[[1], [2], [3.5]]))
    assert counted.node_attributes is not None
    assert counted.node_attributes.tolist() == [[1], [2], [3.5]]
    assert counted.node_attributes.dtype == np.float32
    for key in ("node_labels", "node_attributes", "edge_labels"):  # null is absent
        same = of(graph(node_labels=..., num_nodes=4) | {key: None})
        assert same.fingerprint == bare.fingerprint


def test_edge_labels_and_attributes_hold_for_both_directions() -> None:
    given_edges = {
        "edges": [[2, 1], [0, 1]],
        "edge_labels": ["b", "a"],
        "edge_attributes": [2, 1.5],
    }
    dataset = of(graph(**given_edges), graph(edges=[]), graph(edges=[], edge_labels=[]))
    assert dataset.edge_label is not None
    assert dataset.edge_attributes is not None
    assert (dataset.edge_label.tolist(), dataset.edge_label_values) == ([0, 0, 1, 1], ("a", "b"))
    assert dataset.edge_attributes.tolist() == [[1.5], [1.5], [2], [2]]
    loops = of(graph(edges=[[0, 0], [0, 1], [0, 1]], edge_labels=[1, 1, 2]))
    assert loops.notes == ReadingNotes(self_loops=1, duplicate_edges=1, conflicting_duplicates=1)


def test_ids_and_other_keys_go_along_and_change_nothing(tmp_path, caplog) -> None:
    mine = graph(id={"mine": [1]}, comment="x")
    dataset = read_jsonl(write(tmp_path / "a.jsonl", graph(), mine))
    assert dataset.ids == (None, {"mine": [1]})
    assert dataset.notes.ignored_keys == ("comment",)
    assert dataset.fingerprint == of(graph(), graph()).fingerprint
    load_dataset(str(tmp_path / "a.jsonl"))
    assert "ignoring 'comment', not part of the format" in caplog.text


@pytest.mark.parametrize(
    "lines",
    [
        ("", DOCUMENTED, "  ", ""),
        (b"\xef\xbb\xbf" + DOCUMENTED.encode(),),
        (DOCUMENTED + "\r",),
    ],
    ids=["blank lines", "byte order mark", "Windows"],
)
def test_what_editors_add_changes_nothing(tmp_path, lines) -> None:
    expected = read_jsonl(write(tmp_path / "plain.jsonl", DOCUMENTED)).fingerprint
    path, told = write(tmp_path / "other.jsonl", *lines), []
    assert read_jsonl(path, told.append).fingerprint == expected
    assert sum(told) == path.stat().st_size


def test_classes_are_in_all_graphs_or_in_none(tmp_path) -> None:
    bare = write(tmp_path / "bare.jsonl", graph(**{"class": ...}))
    assert read_jsonl(bare, classes=False).graph_class.tolist() == [-1]
    some = write(tmp_path / "some.jsonl", graph(), graph(**{"class": ...}))
    for path, line in ((bare, 1), (some, 2)):
        with pytest.raises(DataError) as caught:
            read_jsonl(path, classes=path is bare)
        assert caught.value.problems[0].line == line
        assert "no class" in str(caught.value)


# What is refused


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("[1]", "not a JSON object"),
        ("{", "not JSON"),
        ('{"edges": [], "edges": []}', "'edges' appears twice"),
        ("[" * 100_000, "not JSON"),
        ('{"edges": [], "num_nodes": ' + "9" * 5000 + "}", "not JSON"),
        (b"\xff\xfe{", "not JSON"),
        (graph(node_labels=..., node_label=[5, 5, 7]), "Did you mean node_labels?"),
        (graph(node_labels=..., labels=[5, 5, 7]), "Rename 'labels' to node_labels"),
        (graph(edges=..., bonds=[[0, 1]]), "Rename 'bonds' to edges"),
        (graph(**{"class": 1.0}), "class 1.0. Use an integer or a string"),
        (graph(**{"class": True}), "class true"),
        (graph(**{"class": [1, 2]}), "class [1, 2]"),
        (graph(node_labels=[5, 5, 7.5]), "node_labels 7.5"),
        (graph(node_labels=[5, "5", 7]), "mixes integers and strings"),
        (graph(node_labels="CCO"), "node_labels is not a list"),
        ('{"node_labels": ["\\ud800"], "edges": []}', "unpaired surrogate"),
        (graph(edge_labels=[1]), "1 edge_labels for 2 edges"),
        (graph(edge_attributes=[[1]]), "1 edge_attributes for 2 edges"),
        (graph(node_attributes=[1, 2, 3, 4]), "4 node_attributes for 3 nodes"),
        (graph(node_attributes=[[1], [1, 2], [1]]), "node_attributes [1, 2]"),
        (graph(node_attributes=[[], [], []]), "node_attributes []"),
        (graph(node_attributes=[["1"], [1], [1]]), 'node_attributes ["1"]'),
        (graph(node_attributes=[[True], [1], [1]]), "node_attributes [true]"),
        (graph(node_attributes=[[1e39], [1], [1]]), "up to 3.4e38"),
        (graph(node_attributes=[[2**1024], [1], [1]]), "up to 3.4e38"),
        (graph(edge_attributes=[1, -(10**4000)]), "up to 3.4e38"),
        (graph(node_attributes=[[float("nan")], [1], [1]]), "NaN is not a JSON number"),
        (
            '{"node_labels": [5], "edges": [], "id": [1e999]}',
            "id holds a number that is not finite",
        ),
        (graph(edges=...), "no edges"),
        (graph(edges={}), "edges is not a list"),
        (graph(edges=[[0, 3]]), "edge [0, 3] in a graph of 3 nodes"),
        (graph(edges=[[-1, 0]]), "edge [-1, 0] in a graph of 3 nodes"),
        (graph(edges=[[0, 2**1024]]), "in a graph of 3 nodes"),
        (graph(edges=[[0, 1, 2]]), "edge [0, 1, 2]. Write two node numbers"),
        (graph(edges=[[0, True]]), "edge [0, true]"),
        (graph(edges=[5]), "edge 5"),
        (graph(node_labels=[], edges=[]), "a graph without nodes"),
        (graph(num_nodes=4), "num_nodes is 4 for 3 nodes"),
        (graph(num_nodes=3.0), "num_nodes is not an integer"),
        (graph(node_labels=..., num_nodes=10**8), "At most 10,000,000"),
        (graph(node_labels=...), "no node_labels. Add them, or num_nodes"),
    ],
)
def test_a_line_that_is_no_graph_is_refused(tmp_path, line, said) -> None:
    path = write(tmp_path / "set.jsonl", DOCUMENTED, line)
    with pytest.raises(DataError) as caught:
        read_jsonl(path, classes=False)
    problem = caught.value.problems[0]
    assert (problem.file, problem.line) == ("set.jsonl", 2)
    assert said in str(problem)


@pytest.mark.parametrize(
    ("second", "said"),
    [
        (graph(**{"class": "1"}), "class: strings here, integers in graphs before"),
        (graph(node_labels=["5", "5", "7"]), "node_labels: strings here, integers"),
        (graph(node_labels=..., num_nodes=3), "node_labels: nothing here, integers"),
        (graph(node_attributes=[[1, 2]] * 3), "2 numbers here, 0 numbers in graphs before"),
        (graph(edge_labels=[1, 2]), "edge_labels: integers here, nothing"),
    ],
)
def test_all_graphs_are_of_one_kind(second, said) -> None:
    with pytest.raises(GraphError, match=said):
        of(graph(), second)


def test_the_first_problems_are_told_and_reading_stops(tmp_path) -> None:
    with pytest.raises(DataError) as caught:
        read_jsonl(write(tmp_path / "two.jsonl", "x", graph(), "y"))
    assert [each.line for each in caught.value.problems] == [1, 3]
    path = write(tmp_path / "many.jsonl", *["bad"] * 1000)
    with pytest.raises(DataError) as caught:
        read_jsonl(path)
    assert len(caught.value.problems) == MAX_PROBLEMS + 1
    path.write_bytes(b" " * (MAX_LINE + 5))
    for content, said in ((path.read_bytes(), "a line of more than"), (b"a\0b", "not plain text")):
        path.write_bytes(content)
        with pytest.raises(DataError, match=said):
            read_jsonl(path)
    path.write_text("\n\n")
    with pytest.raises(DataError, match="no graphs found"):
        read_jsonl(path)


def test_an_entry_that_is_not_text_is_checked_alike() -> None:
    assert check_entry(graph(edges=[(0, 1)])).edges == [(0, 1)]
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    for entry in (None, [1], graph(node_labels=deep), graph(id=deep)):
        with pytest.raises(GraphError):
            check_entry(entry)
    found = [id_of(each) for each in ('{"id": 7', '{"id": "a"}', {"id": [float("inf")]}, object())]
    assert found == [None, "a", None, None]


# The way back


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_written_graphs_are_read_as_they_were(data: st.DataObject) -> None:
    labels, edge_labels = data.draw(st.booleans()), data.draw(st.booleans())
    graphs = []
    for _ in range(data.draw(st.integers(1, 4))):
        nodes = data.draw(st.integers(1, 5))
        ends = st.tuples(*[st.integers(0, nodes - 1)] * 2).map(list)
        edges = data.draw(st.lists(ends, max_size=6))
        kinds = data.draw(st.lists(st.sampled_from("CNO"), min_size=nodes, max_size=nodes))
        own = {"node_labels": kinds} if labels else {"node_labels": ..., "num_nodes": nodes}
        own |= {"edge_labels": [data.draw(st.integers(0, 2)) for _ in edges]} if edge_labels else {}
        graphs.append(graph(edges=edges, **own))
    dataset = of(*graphs)
    path = Path(f"{id(data)}.jsonl")
    try:
        write_jsonl(dataset, path)
        again = read_jsonl(path)
    finally:
        path.unlink(missing_ok=True)
    assert again.fingerprint == dataset.fingerprint


def test_directions_that_differ_are_written_separately(tmp_path) -> None:
    dataset = of(graph(edges=[[0, 1], [1, 0]], edge_labels=[1, 2], id="mine"))
    write_jsonl(dataset, tmp_path / "out.jsonl")
    again = read_jsonl(tmp_path / "out.jsonl")
    assert (again.fingerprint, again.ids) == (dataset.fingerprint, ("mine",))
