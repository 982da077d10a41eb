"""Golden vectors: the graphs and answers that travel with an exported file."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tiny_models import (
    ALL,
    LARGE_STAR,
    PATH,
    SINGLE,
    SMALL,
    STAR,
    TRIANGLE,
    dataset,
    untrained,
    with_distances,
)

from ihgnn_cli.data.dataset import GraphDataset
from ihgnn_cli.data.edge_labels import with_edge_labels
from ihgnn_cli.data.features import Features
from ihgnn_cli.data.json_graph import check_graph
from ihgnn_cli.deploy.form import Form, Layout
from ihgnn_cli.deploy.golden import Golden, golden_path, read_golden
from ihgnn_cli.deploy.golden_vectors import NEAR_TIES, TOO_LARGE, candidates, golden_vectors
from ihgnn_cli.deploy.inputs import inputs_for
from ihgnn_cli.deploy.onnx_model import OUTPUTS
from ihgnn_cli.deploy.reference import Reference
from ihgnn_cli.errors import InputError
from ihgnn_cli.files import sha256_of
from ihgnn_cli.inference.vocabulary import encode_graphs
from ihgnn_cli.models.settings import Variant
from ihgnn_cli.training.checkpoint import Checkpoint

DATA = dataset(*[PATH, STAR, TRIANGLE] * 4, SINGLE)


def golden_of(checkpoint: Checkpoint, data: GraphDataset, form: Form) -> Golden:
    chosen = candidates(checkpoint, data, form)
    return golden_vectors(checkpoint, chosen, form, OUTPUTS, model="model.onnx", sha256="0" * 64)


@pytest.mark.parametrize("form", [Form(), Form(nodes=9), Form(Layout.SPARSE)])
@pytest.mark.parametrize(
    ("features", "labelled", "bins"),
    [
        (Features.LABELS, True, 0),
        (Features.BOTH, True, 0),
        (Features.LABELS, False, 0),
        (Features.LABELS, True, 3),
    ],
)
def test_graphs_inputs_and_answers_of_each_case_agree(
    form: Form, features: Features, labelled: bool, bins: int
) -> None:
    data = dataset(*[PATH, STAR, TRIANGLE] * 4, SINGLE, labelled=labelled)
    data = with_edge_labels(with_distances(data), bins=bins)
    checkpoint = untrained(data, features=features, members=2)
    card = checkpoint.card
    golden = golden_of(checkpoint, data, form)
    unusual = "unknown labels" if labelled else "degree above all seen"
    for name in ("smallest graph", "largest graph", "graph without edges", "identical graphs"):
        assert name in {each.name for each in golden.cases}
    assert unusual in {each.name for each in golden.cases}
    for case in golden.cases:
        encoded = encode_graphs(card, [check_graph(each) for each in case.graphs]).dataset
        again = inputs_for(form.layout, card, encoded, np.arange(len(encoded)), size=form.nodes)
        assert case.inputs.keys() == again.keys()
        for name, values in case.inputs.items():
            np.testing.assert_array_equal(values, again[name], err_msg=f"{case.name}, {name}")
        expected = Reference(checkpoint).outputs(encoded)
        certain = [name for name, each in expected.items() if not np.isnan(each).any()]
        assert list(case.outputs) == certain
        assert len(certain) >= 4
        for name, values in case.outputs.items():
            np.testing.assert_allclose(values, expected[name], atol=1e-5)
        best = expected["probabilities"].argmax(axis=1)
        assert case.classes == tuple(card.class_values[each] for each in best)


def test_the_file_is_read_back_as_it_was(tmp_path: Path) -> None:
    model = tmp_path / "model.onnx"
    model.write_bytes(b"a model")
    written = replace(
        golden_of(untrained(DATA), DATA, Form()), model_sha256=sha256_of(model), left_out=()
    )
    golden_path(model).write_text(written.text(), encoding="utf-8")
    found = read_golden(model)
    assert [each.as_plain() for each in found.cases] == [each.as_plain() for each in written.cases]
    assert (found.model, found.layout, found.tolerance) == ("model.onnx", "padded", 1e-4)
    for mine, theirs in zip(found.cases, written.cases, strict=True):
        for name, values in mine.outputs.items():
            np.testing.assert_array_equal(values, theirs.outputs[name])


def test_files_that_do_not_belong_together_are_refused(tmp_path: Path) -> None:
    model = tmp_path / "model.onnx"
    model.write_bytes(b"a model")
    with pytest.raises(InputError, match=r"model\.golden\.json is missing"):
        read_golden(model)
    beside = golden_path(model)
    beside.write_text(golden_of(untrained(DATA), DATA, Form()).text(), encoding="utf-8")
    with pytest.raises(InputError, match="belongs to another file"):
        read_golden(model)
    plain = json.loads(beside.read_text(encoding="utf-8"))
    beside.write_text(json.dumps({**plain, "format": 2}), encoding="utf-8")
    with pytest.raises(InputError, match="has format 2"):
        read_golden(model)
    for damaged in ("{", "[]", '{"format": 1}', json.dumps({**plain, "cases": [{}]})):
        beside.write_text(damaged, encoding="utf-8")
        with pytest.raises(InputError, match="is damaged"):
            read_golden(model)


def test_graphs_whose_order_is_chance_are_not_chosen() -> None:
    # Without separation the nodes of a complete graph are equal in the last layer, and only there.
    complete = ([0, 1, 2, 0, 1], [(i, j) for i in range(5) for j in range(i)])
    tying = replace(SMALL, variant=Variant.NO_SEPARATION, sort_key="last-layer")
    data = dataset(complete, complete, PATH, SINGLE)
    checkpoint = untrained(data, tying)
    golden = golden_of(checkpoint, data, Form())
    edges = {name: [len(each["edges"]) for each in case.graphs] for name, case in by_name(golden)}
    assert edges["largest graph"] == [len(PATH[1])]
    assert len(complete[1]) not in edges["mixed sizes"]
    data = dataset(complete, complete)
    golden = golden_of(untrained(data, tying), data, Form())
    assert {"name": "largest graph", "reason": NEAR_TIES} in golden.left_out


def by_name(golden: Golden) -> list[tuple[str, object]]:
    return [(each.name, each) for each in golden.cases]


def test_the_file_stays_small(monkeypatch: pytest.MonkeyPatch) -> None:
    cycle = ([node % 3 for node in range(300)], [(i, (i + 1) % 300) for i in range(300)])
    data = dataset(PATH, STAR, cycle)
    checkpoint = untrained(data, max_nodes=300)
    golden = golden_of(checkpoint, data, Form())
    assert len(golden.text()) < 1_100_000
    cases = dict(by_name(golden))
    assert len(cases["largest graph"].graphs[0]["node_labels"]) == 5
    assert cases["largest graph"].description == (
        "the largest graph of the data (of those graphs that are small enough for this file)"
    )
    sparse = dict(by_name(golden_of(checkpoint, data, Form(Layout.SPARSE))))
    assert len(sparse["largest graph"].graphs[0]["node_labels"]) == 300
    # A fixed size makes every case large: those of the largest graphs stay.
    golden = golden_of(checkpoint, data, Form(nodes=600))
    assert len(golden.cases) == 1
    assert {each["reason"] for each in golden.left_out} == {TOO_LARGE}
    assert not golden_of(checkpoint, data, Form(nodes=3000)).cases


def test_other_models_answer_with_an_unknown_label_of_their_own_kind() -> None:
    for values, unknown in (((3, 7, 5), 8), (("c", "z", "aa"), "aa?")):
        data = replace(dataset(*ALL[:5]), label_values=values)
        golden = golden_of(untrained(data), data, Form())
        case = dict(by_name(golden))["unknown labels"]
        assert unknown in {each for graph in case.graphs for each in graph["node_labels"]}


def test_a_degree_that_no_graph_had_is_among_the_cases() -> None:
    data = dataset(PATH, TRIANGLE, LARGE_STAR, labelled=False)
    case = dict(by_name(golden_of(untrained(data), data, Form())))["degree above all seen"]
    assert case.graphs[0]["num_nodes"] == 7
    assert sum(0 in edge for edge in case.graphs[0]["edges"]) == 6  # up to 5 were seen
