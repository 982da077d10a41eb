"""Explanations: what a node's row adds to the prediction, and theta."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from ihgnn_cli.data import load_dataset
from ihgnn_cli.data.batching.batches import GraphStore
from ihgnn_cli.data.features import Features
from ihgnn_cli.data.recode import UNKNOWN
from ihgnn_cli.data.splits import holdout
from ihgnn_cli.errors import InputError
from ihgnn_cli.inference import explanation
from ihgnn_cli.inference.explanation import explain_graph, layer_weights
from ihgnn_cli.models.card import describe
from ihgnn_cli.models.settings import Variant
from ihgnn_cli.training.checkpoint import Checkpoint, build
from ihgnn_cli.training.classifier import TorchClassifier
from ihgnn_cli.training.config import configure

CPU = torch.device("cpu")
MUTAG = load_dataset("MUTAG")
GRAPH = 5


def classifier(
    seeds: tuple[int, ...] = (0,), model: str | None = None, **settings: object
) -> TorchClassifier:
    small = {"width": 4, "layers": 2, **settings}
    if model is None:
        small["hidden"] = 8
    config = configure(overrides=small, model=model)
    card = describe("MUTAG", MUTAG, Features.LABELS, holdout(MUTAG.graph_class, 0))
    weights = build(config, card.inputs, list(seeds)).state_dict()
    return TorchClassifier(Checkpoint(config, card, weights, len(seeds), None), CPU)


def log_odds(p: float) -> float:
    return float(np.log(p / (1 - p)))


@pytest.mark.parametrize("settings", [{}, {"readout_relu": True, "sort_order": "descending"}])
def test_a_change_is_the_prediction_with_a_row_of_the_readout_at_zero(settings) -> None:
    model = classifier(**settings)
    found = explain_graph(model, MUTAG, MUTAG, GRAPH)
    whole = model.probabilities(MUTAG, np.array([GRAPH]))[0]
    predicted = int(whole.argmax())
    assert found.predicted == MUTAG.class_values[predicted]
    assert found.truth == MUTAG.class_values[MUTAG.graph_class[GRAPH]]
    assert found.probability == pytest.approx(whole[predicted], abs=1e-6)
    # The same by hand: sorted rows, one of them zero, concatenated, through the classifier.
    net = model.checkpoint.model(CPU)
    with torch.no_grad():
        store = GraphStore(MUTAG, Features.LABELS, MUTAG.max_nodes, None, CPU)
        h = net.embed(store.batch([np.array([GRAPH])]).rows)[0][0]
        order = h[:, -1].argsort(descending=settings.get("sort_order") == "descending")
        rows = torch.zeros(MUTAG.max_nodes, h.shape[1])
        rows[: len(h)] = h[order]
        for each in found.positions:
            # Or another node with the same row: ties are anybody's.
            torch.testing.assert_close(h[order[each.position]], h[each.node])
            without = rows.clone()
            without[each.position] = 0
            read = without.relu() if settings.get("readout_relu") else without
            hidden = net.classifier.first(read.flatten()[None, None])[0, 0].relu()
            p = net.classifier.second(hidden[None, None])[0, 0].softmax(0)[predicted]
            expected = log_odds(float(whole[predicted])) - log_odds(float(p))
            assert each.change == pytest.approx(expected, abs=1e-4)
    changes = [abs(each.change) for each in found.positions]
    assert changes == sorted(changes, reverse=True)


def test_labels_and_degrees_are_the_data_sets_own() -> None:
    found = explain_graph(classifier(), MUTAG, MUTAG, GRAPH)
    start = int(MUTAG.node_ptr[GRAPH])
    for each in found.positions:
        assert each.label == MUTAG.label_values[MUTAG.node_label[start + each.node]]
        assert each.degree == MUTAG.degree[start + each.node]


@pytest.mark.parametrize("relu", [False, True])
def test_summed_nodes_have_no_positions(relu: bool) -> None:
    model = classifier(variant=Variant.NO_CONCAT, readout_relu=relu)
    found = explain_graph(model, MUTAG, MUTAG, GRAPH)
    assert {each.position for each in found.positions} == {None}
    whole = model.probabilities(MUTAG, np.array([GRAPH]))[0]
    assert found.probability == pytest.approx(whole.max(), abs=1e-6)
    net = model.checkpoint.model(CPU)
    with torch.no_grad():
        store = GraphStore(MUTAG, Features.LABELS, MUTAG.max_nodes, None, CPU)
        h = net.embed(store.batch([np.array([GRAPH])]).rows)[0][0]
        for each in found.positions:
            summed = h.sum(0) - h[each.node]
            read = summed.relu() if relu else summed
            hidden = net.classifier.first(read[None, None])[0, 0].relu()
            p = net.classifier.second(hidden[None, None])[0, 0].softmax(0)[int(whole.argmax())]
            expected = log_odds(float(whole.max())) - log_odds(float(p))
            assert each.change == pytest.approx(expected, abs=1e-3)


def test_of_several_models_the_mean_is_explained() -> None:
    model = classifier(seeds=(0, 1, 2))
    found = explain_graph(model, MUTAG, MUTAG, GRAPH)
    assert found.probability == pytest.approx(
        model.probabilities(MUTAG, np.array([GRAPH]))[0].max(), abs=1e-6
    )


def test_theta_is_there_where_the_variant_has_it() -> None:
    assert layer_weights(classifier(seeds=(0, 1))) == pytest.approx([1 / 3] * 3)
    assert layer_weights(classifier(variant=Variant.NO_ADAPTIVE)) is None


@pytest.mark.parametrize("graph", [-1, 188])
def test_a_graph_that_is_not_there_is_refused(graph: int) -> None:
    with pytest.raises(InputError, match="0 to 187"):
        explain_graph(classifier(), MUTAG, MUTAG, graph)


@pytest.mark.parametrize("seeds", [(0,), (0, 1)])
def test_of_another_model_a_node_is_left_without_its_features(seeds: tuple[int, ...]) -> None:
    model = classifier(seeds, "gin")
    found = explain_graph(model, MUTAG, MUTAG, GRAPH)
    whole = model.probabilities(MUTAG, np.array([GRAPH]))[0]
    predicted = int(whole.argmax())
    assert found.predicted == MUTAG.class_values[predicted]
    assert found.probability == pytest.approx(whole[predicted], abs=1e-6)
    start, end = MUTAG.node_ptr[GRAPH : GRAPH + 2]
    assert sorted(each.node for each in found.positions) == list(range(end - start))
    assert {each.position for each in found.positions} == {None}
    for each in (found.positions[0], found.positions[-1]):
        label = MUTAG.node_label.copy()
        label[start + each.node] = UNKNOWN
        bare = model.probabilities(replace(MUTAG, node_label=label), np.array([GRAPH]))[0]
        expected = log_odds(float(whole[predicted])) - log_odds(float(bare[predicted]))
        assert each.change == pytest.approx(expected, abs=1e-4)
    changes = [abs(each.change) for each in found.positions]
    assert changes == sorted(changes, reverse=True)
    assert layer_weights(model) is None


def test_copies_of_a_graph_in_parts_say_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    model = classifier(model="h2gcn")
    whole = explain_graph(model, MUTAG, MUTAG, GRAPH).positions
    monkeypatch.setattr(explanation, "_COPIED_AT_ONCE", 200)
    parts = {each.node: each for each in explain_graph(model, MUTAG, MUTAG, GRAPH).positions}
    assert len(parts) == len(whole)
    for each in whole:
        assert parts[each.node].change == pytest.approx(each.change, abs=1e-5)
