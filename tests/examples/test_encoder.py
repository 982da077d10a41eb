"""The encoder in JavaScript reads, refuses and encodes graphs as the one in Python does."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_models import ALL, KITE, LARGE_STAR, dataset, with_distances

from ihgnn_cli.data.dataset import GraphDataset
from ihgnn_cli.data.edge_labels import with_edge_labels
from ihgnn_cli.data.features import Features
from ihgnn_cli.data.json_graph import GraphError, parse_graph
from ihgnn_cli.data.splits import Split
from ihgnn_cli.deploy.inputs import padded_inputs, sparse_inputs
from ihgnn_cli.deploy.metadata import FORMAT, Metadata
from ihgnn_cli.inference.vocabulary import check_fits, encode_graphs, unknown_nodes
from ihgnn_cli.models.card import ModelCard, describe
from ihgnn_cli.models.spec import Layout

HERE = Path(__file__).parent
Encode = Callable[[list[dict[str, Any]]], list[dict[str, Any]]]
SETTINGS = {"name": "ihgnn", "variant": "full", "width": 8, "layers": 1, "hidden": 4}


def metadata(
    card: ModelCard, layout: Layout = Layout.PADDED, nodes: int | str = "nodes"
) -> dict[str, Any]:
    inputs = {"node_labels": ("int64", ["batch", nodes])}
    return Metadata(card, layout, 1, SETTINGS, None).as_plain(inputs, {})


@pytest.fixture
def encode(run_node) -> Encode:
    """What the encoder makes of each job: lines, and perhaps the metadata of a model."""

    def run(jobs: list[dict[str, Any]]) -> list[dict[str, Any]]:
        folder = HERE.parents[1] / "examples" / "node"
        done = run_node(HERE / "encode.mjs", folder.as_uri(), input=json.dumps(jobs))
        assert done.returncode == 0, done.stderr
        found: list[dict[str, Any]] = json.loads(done.stdout)
        return found

    return run


GOOD = [
    '{"node_labels": ["C", "C", "O"], "edges": [[0, 1], [1, 2]], "class": "alcohol"}',
    '{"node_labels": [1], "edges": []}',
    ' {"num_nodes": 3, "edges": [[0, 0], [0, 1], [1, 0], [0, 1]], "id": {"a": [1.5, null]}}\r',
    '{"node_labels": [123456789012345678901234567890, -0], "edges": [], "a": "x", "\\u00e9": 1}',
    '{"node_attributes": [[1, 2.5], [3e3, -4]], "edges": [[0, 1]], "num_nodes": 2}',
    '{"node_labels": ["\\ud83d\\ude00", "é"], "edges": [], "edge_labels": [], "class": null}',
    '{"node_labels": [1, 2], "edges": [[1, 0]], "edge_labels": [7], "edge_attributes": [[0.5]]}',
    '{"node_labels": [1, 2], "edges": [[1, 0]], "node_attributes": [1, -2.5], '
    '"edge_attributes": [3e1]}',
    '{"node_labels": [1], "edges": [], "__proto__": 5, "toString": 1}',
]
BAD = [
    "[1, 2]",
    "7.5",
    "null",
    '{"node_labels": [1, "a"], "edges": []}',
    '{"node_labels": [1.0], "edges": []}',
    '{"node_labels": [true], "edges": []}',
    '{"node_labels": [null], "edges": []}',
    '{"node_labels": ["\\ud800"], "edges": []}',
    '{"node_labels": "CCO", "edges": []}',
    '{"node_labels": [], "edges": []}',
    '{"node_labels": [1]}',
    '{"node_labels": [1], "bonds": []}',
    '{"node_labels": [1], "edges": null}',
    '{"atoms": [1], "edges": []}',
    '{"edges": []}',
    '{"node_label": [1], "edges": []}',
    '{"node_labels": [1], "edgs": []}',
    '{"node_labels": [1], "edges": [], "node_atributes": [[1]]}',
    '{"node_labels": [1], "edges": [[0, 1]]}',
    '{"node_labels": [1, 2], "edges": [[0, -1]]}',
    '{"node_labels": [1, 2], "edges": [[0, 1, 0]]}',
    '{"node_labels": [1, 2], "edges": [[0, 1.0]]}',
    '{"node_labels": [1, 2], "edges": [["0", 1]]}',
    '{"node_labels": [1, 2], "edges": [[true, 1]]}',
    '{"node_labels": [1, 2], "edges": [0, 1]}',
    '{"node_labels": [1, 2], "edges": {"0": 1}}',
    '{"node_labels": [1, 2], "edges": [[0, 123456789012345678901234567890]]}',
    '{"node_labels": [1], "node_labels": [2], "edges": []}',
    '{"node_labels": [1], "edges": [], "id": {"a": 1, "a": 2}}',
    '{"node_labels": [1], "edges": [], "id": 1e999}',
    '{"node_labels": [1], "edges": [], "id": [{"a": -1e999}]}',
    '{"node_labels": [1], "edges": [], "id": NaN}',
    '{"node_labels": [1], "edges": [], "class": 1.5}',
    '{"node_labels": [1], "edges": [], "class": [1]}',
    '{"node_labels": [1], "edges": [], "num_nodes": 2}',
    '{"node_labels": [1], "edges": [], "num_nodes": true}',
    '{"num_nodes": 10000001, "edges": []}',
    '{"num_nodes": 0, "edges": []}',
    '{"num_nodes": -1, "edges": []}',
    '{"node_attributes": [[1], [1, 2]], "edges": []}',
    '{"node_attributes": [[]], "edges": []}',
    '{"node_attributes": ["1"], "edges": []}',
    '{"node_attributes": [[1, 2], 3], "edges": []}',
    '{"node_attributes": [["1"]], "edges": []}',
    '{"node_attributes": [[false]], "edges": []}',
    '{"node_attributes": [[1e+39]], "edges": []}',
    '{"node_attributes": [[-Infinity]], "edges": []}',
    '{"node_attributes": [[1, 2], [-1e+300, 1, "a"]], "edges": []}',
    '{"node_labels": [1, 2], "node_attributes": [[1]], "edges": []}',
    '{"node_labels": [1, 2], "edges": [[0, 1]], "edge_labels": [1, 2]}',
    '{"node_labels": [1, 2], "edges": [[0, 1]], "edge_attributes": []}',
    '{"node_labels": [1, 2], "edges": [[0, 1]], "edge_labels": [1.5]}',
    '{"node_labels": ["' + "é" * 50 + '", 1], "edges": [["' + "é" * 50 + '", 1]]}',
]
NOT_JSON = [
    "",
    "{",
    "{}x",
    "{'node_labels': [1]}",
    '{"node_labels": [01], "edges": []}',
    '{"node_labels": [1,], "edges": []}',
    '{"node_labels": [1], "edges": [],}',
    '{"node_labels": ["a\tb"], "edges": []}',
    '{"node_labels": ["\\x"], "edges": []}',
    '{"node_labels": [.5], "edges": []}',
    '{"node_labels": [1.], "edges": []}',
    '{"node_labels": [+1], "edges": []}',
    '{"node_labels": [1] "edges": []}',
    '\ufeff{"node_labels": [1], "edges": []}',
]


def test_good_lines_are_accepted(encode: Encode) -> None:
    found = encode([{"lines": [line]} for line in GOOD])
    for line, made in zip(GOOD, found, strict=True):
        graph = parse_graph(line)
        expected = {"numNodes": graph.num_nodes, "ignored": list(graph.ignored)}
        assert made == {"graphs": [expected]}, line


def test_bad_lines_are_refused_as_in_python(encode: Encode) -> None:
    lines = [*BAD, *NOT_JSON]
    found = encode([{"lines": [line]} for line in lines])
    for line, made in zip(lines, found, strict=True):
        with pytest.raises(GraphError):
            parse_graph(line)
        assert made.get("problem"), line  # each has its own words
        if line in NOT_JSON:
            assert made["problem"].startswith("not JSON ("), line


def card_of(data: GraphDataset, features: Features, max_nodes: int = 6) -> ModelCard:
    return replace(describe("tiny", data, features, Split([0], [1], [2])), max_nodes=max_nodes)


LINES = [
    '{"node_labels": ["a", "b", "c"], "edges": [[2, 0], [0, 1], [1, 0], [1, 1]], '
    '"node_attributes": [[0.1, 2], [3, 4], [5, 6]]}',
    '{"node_labels": ["?"], "edges": [], "node_attributes": [[7, 1e-3]]}',
    '{"node_labels": ["c", "b", "a", "a"], "edges": [[0, 3], [3, 1], [3, 2]], '
    '"node_attributes": [[1, 1], [2, 2], [3, 3], [4, 4]]}',
]


@pytest.mark.parametrize("features", list(Features))
@pytest.mark.parametrize("labelled", [True, False])
def test_both_layouts_have_the_arrays_of_python(
    encode: Encode, features: Features, labelled: bool
) -> None:
    card = card_of(dataset(*ALL, KITE, LARGE_STAR, labelled=labelled), features)
    forms = [(Layout.PADDED, "nodes"), (Layout.SPARSE, "nodes"), (Layout.PADDED, 5)]
    jobs = [{"metadata": metadata(card, *form), "lines": LINES} for form in forms]
    data = encode_graphs(card, [parse_graph(line) for line in LINES]).dataset
    chosen = np.arange(len(LINES))
    for (layout, nodes), found in zip(forms, encode(jobs), strict=True):
        if layout == Layout.SPARSE:
            expected = sparse_inputs(card, data, chosen)
        else:
            size = nodes if isinstance(nodes, int) else None
            expected = padded_inputs(card, data, chosen, size)
        assert found["inputs"].keys() == expected.keys()
        for name, array in expected.items():
            made = found["inputs"][name]
            assert made["type"] == array.dtype.name
            assert made["shape"] == list(array.shape)
            assert made["data"] == array.flatten().tolist(), name
        assert found["unknown"] == unknown_nodes(card, data).tolist()


BONDS = [
    '{"node_labels": ["a", "b", "c"], "edges": [[2, 0], [0, 1], [1, 0], [1, 1], [1, 2]], '
    '"edge_labels": ["r", "p", "p", "r", "q"]}',
    '{"node_labels": ["a"], "edges": []}',
]
MISTAKEN = [
    '{"node_labels": ["a", "b"], "edges": [[0, 1]]}',
    '{"node_labels": ["a", "b"], "edges": [[0, 1]], "edge_labels": ["s"]}',
    '{"node_labels": ["a", "b"], "edges": [[0, 1], [1, 0]], "edge_labels": ["p", "r"]}',
]


@pytest.mark.parametrize("use", [True, False])
def test_edge_labels_are_read_and_refused_as_in_python(encode: Encode, use: bool) -> None:
    data = replace(dataset(*ALL, edge_labels=True), uses_edge_labels=False)
    card = card_of(with_edge_labels(data, use=use, background="q"), Features.LABELS)
    about = [metadata(card, layout) for layout in Layout]
    encoded = encode_graphs(card, [parse_graph(line) for line in BONDS]).dataset
    assert encoded.num_edges == 2
    assert about[0]["format"] == FORMAT
    jobs = [{"metadata": each, "lines": BONDS} for each in about]
    for layout, found in zip(Layout, encode(jobs), strict=True):
        made = sparse_inputs if layout == Layout.SPARSE else padded_inputs
        expected = made(card, encoded, np.arange(2))
        assert found["inputs"].keys() == expected.keys()
        for name, array in expected.items():
            assert found["inputs"][name]["data"] == array.flatten().tolist(), name
    mistaken = MISTAKEN if use else MISTAKEN[2:]
    found = encode([{"metadata": about[0], "lines": [line]} for line in mistaken])
    for line, answer in zip(mistaken, found, strict=True):
        with pytest.raises(GraphError) as raised:
            check_fits(card, parse_graph(line))
        assert answer == {"problem": raised.value.message, "remedy": raised.value.remedy}


BINS = [
    '{"node_labels": ["a", "b", "c"], "edges": [[2, 0], [0, 1], [1, 0], [1, 1], [1, 2]], '
    '"edge_labels": ["r", "p", "p", "r", "q"], '
    '"edge_attributes": [[0.1], [0.1000001], [0.1000001], [7], [-3]]}',
    '{"node_labels": ["a"], "edges": []}',
]
WITHOUT_BINS = [
    '{"node_labels": ["a", "b"], "edges": [[0, 1]], "edge_labels": ["p"]}',
    '{"node_labels": ["a", "b"], "edges": [[0, 1]], "edge_labels": ["p"], '
    '"edge_attributes": [[1, 2]]}',
    '{"node_labels": ["a", "b"], "edges": [[0, 1], [1, 0]], "edge_labels": ["p", "p"], '
    '"edge_attributes": [[1], [2]]}',
    '{"node_labels": ["a", "b"], "edges": [[0, 1]], "edge_labels": ["s"], '
    '"edge_attributes": [[1]]}',
    '{"node_labels": ["a", "b"], "edges": [[0, 1]], "edge_attributes": [[1]]}',
]


# 0.1 and 0.1000000001 are the same 32-bit float.
SAME_EDGE = (
    '{"node_labels": ["a", "b"], "edges": [[0, 1], [1, 0]], "edge_labels": ["p", "r"], '
    '"edge_attributes": [[0.1], [0.1000000001]]}'
)
TWO_ATTRIBUTES = SAME_EDGE.replace("0.1000000001", "0.1001")


def test_what_the_model_does_not_read_is_not_compared_as_in_python(encode: Encode) -> None:
    data = replace(with_distances(dataset(*ALL, edge_labels=True)), uses_edge_labels=False)
    card = card_of(with_edge_labels(data, bins=2), Features.LABELS)
    about = metadata(card, Layout.SPARSE)
    check_fits(card, parse_graph(SAME_EDGE))
    accepted, refused = encode(
        [{"metadata": about, "lines": [line]} for line in (SAME_EDGE, TWO_ATTRIBUTES)]
    )
    assert accepted["inputs"]["edge_index"]["data"] == [0, 1, 1, 0]
    with pytest.raises(GraphError, match="has two attributes") as raised:
        check_fits(card, parse_graph(TWO_ATTRIBUTES))
    assert refused == {"problem": raised.value.message, "remedy": raised.value.remedy}


@pytest.mark.parametrize("use", [True, False])
def test_edge_bins_are_read_and_refused_as_in_python(encode: Encode, use: bool) -> None:
    data = replace(with_distances(dataset(*ALL, edge_labels=True)), uses_edge_labels=False)
    card = card_of(with_edge_labels(data, use=use, background="q", bins=2), Features.LABELS)
    about = [metadata(card, layout) for layout in Layout]
    encoded = encode_graphs(card, [parse_graph(line) for line in BINS]).dataset
    assert encoded.edge_type is not None
    assert len(set(encoded.edge_type.tolist())) == 2
    jobs = [{"metadata": each, "lines": BINS} for each in about]
    for layout, found in zip(Layout, encode(jobs), strict=True):
        made = sparse_inputs if layout == Layout.SPARSE else padded_inputs
        for name, array in made(card, encoded, np.arange(2)).items():
            assert found["inputs"][name]["data"] == array.flatten().tolist(), name
    mistaken = WITHOUT_BINS if use else WITHOUT_BINS[:3]
    found = encode([{"metadata": about[0], "lines": [line]} for line in mistaken])
    for line, answer in zip(mistaken, found, strict=True):
        with pytest.raises(GraphError) as raised:
            check_fits(card, parse_graph(line))
        assert answer == {"problem": raised.value.message, "remedy": raised.value.remedy}


def test_a_label_in_a_bin_that_it_never_had_is_refused_as_in_python(encode: Encode) -> None:
    data = replace(with_distances(dataset(*ALL, edge_labels=True)), uses_edge_labels=False)
    card = card_of(with_edge_labels(data, use=True, bins=2), Features.LABELS)
    card = replace(card, edge_label_values=("p,0", "p,1", "q,0"))
    about = metadata(card, Layout.SPARSE)
    lines = [
        '{"node_labels": ["a", "b"], "edges": [[0, 1]], "edge_labels": ["q"], '
        f'"edge_attributes": [[{attribute}]]}}'
        for attribute in (1, 1.37, 1234.5)
    ]
    found = encode([{"metadata": about, "lines": [line]} for line in lines])
    for line, answer in zip(lines, found, strict=True):
        with pytest.raises(GraphError, match=r"edge label q with .* \(bin 1\)") as raised:
            check_fits(card, parse_graph(line))
        assert answer == {"problem": raised.value.message, "remedy": raised.value.remedy}


def test_labels_match_by_their_text(encode: Encode) -> None:
    card = replace(card_of(dataset(*ALL), Features.LABELS), label_values=(6, 8))
    about = metadata(card, Layout.SPARSE)
    lines = ['{"node_labels": [6, 8, 9], "edges": []}', '{"node_labels": ["8", "08"], "edges": []}']
    (found,) = encode([{"metadata": about, "lines": lines}])
    assert found["inputs"]["node_labels"]["data"] == [0, 1, -2, 1, -2]
    assert found["unknown"] == [1, 1]


def test_what_the_model_reads_and_the_graph_lacks_is_refused_as_in_python(encode: Encode) -> None:
    bare = '{"num_nodes": 2, "edges": [[0, 1]]}'
    three = '{"node_attributes": [[1, 2, 3]], "edges": []}'
    cases = [(Features.LABELS, bare), (Features.ATTRIBUTES, bare), (Features.ATTRIBUTES, three)]
    cards = [card_of(dataset(*ALL), features) for features, _ in cases]
    found = encode(
        [
            {"metadata": metadata(card), "lines": [line]}
            for card, (_, line) in zip(cards, cases, strict=True)
        ]
    )
    for card, (_, line), refused in zip(cards, cases, found, strict=True):
        with pytest.raises(GraphError) as raised:
            check_fits(card, parse_graph(line))
        assert refused == {"problem": raised.value.message, "remedy": raised.value.remedy}


def test_a_graph_that_does_not_fit_into_a_padded_model_is_refused(encode: Encode) -> None:
    card = card_of(dataset(*ALL, labelled=False), Features.LABELS)
    fixed = metadata(card, nodes=2)
    free = metadata(card)
    three, many = '{"num_nodes": 3, "edges": []}', '{"num_nodes": 20725, "edges": []}'
    found = encode([{"metadata": fixed, "lines": [three]}, {"metadata": free, "lines": [many]}])
    assert found[0]["problem"].endswith(
        "3 nodes, and the model was exported for up to 2 (--max-nodes)."
    )
    assert found[1]["problem"] == "A graph padded to 20,725 nodes takes 2.0 GiB."
