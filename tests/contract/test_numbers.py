"""Numbers that must stay, against the golden files."""

import json
from functools import cache

import numpy as np
import pytest
from contract import observed
from contract.observed import GOLDEN, Case, differences, stored


@cache
def arrays() -> dict[str, dict[str, np.ndarray]]:
    """The arrays of `ihgnn.npz` by case."""
    found: dict[str, dict[str, np.ndarray]] = {}
    with np.load(GOLDEN / "ihgnn.npz") as file:
        for name in file.files:
            case, _, rest = name.partition("/")
            found.setdefault(case, {})[rest] = file[name]
    return found


def case_of(name: str) -> Case:
    values = arrays()[name]
    parts: dict[str, dict[str, np.ndarray]] = {"graphs": {}, "weights": {}}
    for key, value in values.items():
        part, _, rest = key.partition("/")
        if part in parts:
            parts[part][rest] = value
    arguments = json.loads(str(values["arguments"]))
    return Case(arguments, parts["graphs"], parts["weights"], values["logits"])


def test_ihgnn_answers_as_before_with_weights_under_their_readable_names() -> None:
    assert len(arrays()) >= 16
    for name in arrays():
        case = case_of(name)
        found = observed.logits(case)
        assert np.abs(found - case.logits).max() < 1e-5, name


def test_the_order_of_nodes_and_the_other_graphs_of_a_batch_change_no_answer() -> None:
    case = case_of("full, paper")
    graphs = case.graphs
    nodes = np.random.default_rng(0).permutation(len(graphs["batch"]))
    order = nodes[np.argsort(graphs["batch"][nodes], kind="stable")]
    place = np.argsort(order)
    moved = {
        "x": graphs["x"][order],
        "edge_index": place[graphs["edge_index"]],
        "batch": graphs["batch"],
    }
    found = observed.logits(Case(case.arguments, moved, case.weights))
    assert np.abs(found - case.logits).max() < 1e-5
    keep = graphs["batch"] == 4
    first = int(np.argmax(keep))
    edges = graphs["edge_index"][:, keep[graphs["edge_index"][0]]] - first
    alone = {"x": graphs["x"][keep], "edge_index": edges, "batch": np.zeros(keep.sum(), np.int64)}
    found = observed.logits(Case(case.arguments, alone, case.weights))
    assert np.abs(found[0] - case.logits[4]).max() < 1e-5


@pytest.mark.parametrize("name", observed.DATA)
def test_data_sets_have_the_same_graphs(name: str) -> None:
    assert not differences(observed.data(observed.DATA[name]), stored("data.json")[name], 0)


@pytest.mark.parametrize("name", observed.PUBLISHED)
def test_published_data_sets_have_the_same_graphs(name: str, real_data, monkeypatch) -> None:
    monkeypatch.setenv("IHGNN_DATA", str(real_data))
    assert not differences(observed.data(name), stored("data.json")[name], 0)


@pytest.mark.parametrize("name", stored("homophily.json"))
def test_homophily_is_the_same(name: str) -> None:
    data, _, background = name.partition(", ")
    options = ("--background-edge-label", "none") if background else ()
    found = observed.homophily(observed.DATA[data], *options)
    assert not differences(found, stored("homophily.json")[name], 1e-9)


@pytest.mark.parametrize("name", observed.TRAININGS)
def test_the_first_two_epochs_are_the_same(name: str) -> None:
    found, before = observed.epochs(name), stored("training.json")[name]
    case = observed.TRAININGS[name]
    for part, tolerance in (("train", case.train), ("validation", case.validation)):
        columns = [
            {key: value for key, value in epoch.items() if key.startswith(part)} for epoch in before
        ]
        assert not differences(found, columns, tolerance)


def test_each_model_has_its_title_settings_and_grid() -> None:
    found = observed.models()
    assert not differences(found, stored("models.json"), 0)
    assert {name: set(each["settings"]) for name, each in found.items()} == {
        name: set(each["settings"]) for name, each in stored("models.json").items()
    }
