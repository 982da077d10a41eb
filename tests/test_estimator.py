"""The classifier with scikit-learn's contract, in the hands of scikit-learn's own functions."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import joblib
import networkx as nx
import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from torch_geometric.data import Data
from torch_geometric.utils import to_networkx

import ihgnn_cli as ihgnn
from ihgnn_cli import IHGNNClassifier
from ihgnn_cli.data.edge_bins import EdgeBins
from ihgnn_cli.data.pyg import to_pyg
from ihgnn_cli.errors import InputError
from ihgnn_cli.inference.vocabulary import UnknownLabelsWarning

Graphs = list[Data]
Molecules = tuple[Graphs, "np.ndarray[Any, Any]"]


def small(**settings: Any) -> IHGNNClassifier:
    base = {"epochs": 2, "width": 4, "hidden": 8, "layers": 1, "batch_size": 64, "device": "cpu"}
    return IHGNNClassifier(**{**base, **settings})


@pytest.fixture(scope="module")
def molecules() -> Molecules:
    """MUTAG as lists of scikit-learn's kind, with words as classes."""
    dataset = ihgnn.load_dataset("MUTAG")
    graphs = list(to_pyg(dataset))
    return graphs, np.where(dataset.graph_class == 1, "mutagenic", "harmless")


def test_it_learns_mutag_and_answers_in_the_words_of_y(molecules: Molecules) -> None:
    graphs, y = molecules
    model = small(epochs=60, lr=0.01, width=16, hidden=32, layers=3, batch_size=32)
    assert model.fit(graphs, y) is model
    assert model.classes_.tolist() == ["harmless", "mutagenic"]
    assert model.score(graphs, y) > 0.8
    probabilities = model.predict_proba(graphs)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    assert (model.predict(graphs) == model.classes_[probabilities.argmax(axis=1)]).all()
    assert model.predict_proba([]).shape == (0, 2)


def test_without_validation_the_last_epoch_of_all_graphs_counts(molecules: Molecules) -> None:
    model = small(epochs=4).fit(*molecules)
    assert (model.n_iter_, model.best_epoch_) == (4, 4)
    assert len(model.checkpoint_.card.split.train) == 188
    assert np.isnan(model.history_[-1].validation_loss)


def test_with_validation_the_best_epoch_counts_and_patience_stops(molecules: Molecules) -> None:
    model = small(epochs=30, lr=0.05, validation_fraction=0.2, patience=2).fit(*molecules)
    split = model.checkpoint_.card.split
    assert (len(split.train), len(split.validation)) == (150, 38)
    best = max(model.history_, key=lambda each: (each.validation_accuracy, -each.validation_loss))
    assert model.best_epoch_ == best.epoch
    assert model.n_iter_ == best.epoch + 2 < 30


def test_scikit_learns_tools_take_it(molecules: Molecules) -> None:
    graphs, y = molecules
    model = small()
    assert is_classifier(model)
    scores = cross_val_score(model, graphs, y, cv=StratifiedKFold(2))
    assert scores.shape == (2,)
    assert np.isfinite(scores).all()
    search = GridSearchCV(model, {"lr": [0.01, 0.001]}, cv=2).fit(graphs, y)
    assert search.best_params_["lr"] in (0.01, 0.001)
    assert (
        search.predict(graphs[:3]).tolist() == search.best_estimator_.predict(graphs[:3]).tolist()
    )
    line = make_pipeline(FunctionTransformer(), model).fit(graphs, y)
    assert 0 <= line.score(graphs, y) <= 1


def test_clone_and_parameters(molecules: Molecules) -> None:
    model = small(lr=0.02).fit(*molecules)
    copied = clone(model)
    assert copied.get_params() == model.get_params()
    assert not hasattr(copied, "classes_")
    assert copied.set_params(lr=0.5).lr == 0.5
    with pytest.raises(ValueError, match="Invalid parameter"):
        copied.set_params(learning_rate=1)


def test_it_is_pickled_with_joblib_and_answers_the_same(molecules: Molecules) -> None:
    graphs, y = molecules
    model = small().fit(graphs, y)
    stream = io.BytesIO()
    joblib.dump(model, stream)
    stream.seek(0)
    again = joblib.load(stream)
    assert (again.predict_proba(graphs) == model.predict_proba(graphs)).all()


def test_the_random_state_is_the_seed(molecules: Molecules) -> None:
    graphs, y = molecules

    def answers(state: Any) -> list[list[float]]:
        found: list[list[float]] = (
            small(random_state=state).fit(graphs, y).predict_proba(graphs[:3]).tolist()
        )
        return found

    assert answers(1) == answers(1) != answers(2)
    assert answers(np.random.RandomState(5)) == answers(np.random.RandomState(5))
    assert answers(None) != answers(None)


@pytest.mark.parametrize(
    ("kind", "classes"),
    [
        (int, [0, 1]),
        (lambda each: 3 * each - 5, [-5, -2]),
        (bool, [False, True]),
        (lambda each: each / 2, [0.0, 0.5]),
        (lambda each: ("a", each), [("a", 0), ("a", 1)]),
        (np.int16, [0, 1]),
    ],
)
def test_classes_are_of_any_type_that_can_be_sorted(
    molecules: Molecules, kind: Callable[[int], Any], classes: list[Any]
) -> None:
    graphs = molecules[0][:40]
    y = [kind(number % 2) for number in range(40)]
    model = small().fit(graphs, y)
    assert model.classes_.tolist() == classes
    assert set(model.predict(graphs).tolist()) <= set(classes)


def test_graphs_of_networkx_are_understood_as_those_of_pyg(molecules: Molecules) -> None:
    graphs, y = molecules  # all labels occur, so that both have the same columns
    drawn = []
    for data in graphs:
        graph = to_networkx(data, to_undirected=True)
        labels = data.x.argmax(dim=1).tolist()
        nx.set_node_attributes(graph, dict(enumerate(labels)), "label")
        drawn.append(graph)
    one, other = small().fit(graphs, y), small().fit(drawn, y)
    np.testing.assert_array_equal(one.predict_proba(graphs), other.predict_proba(drawn))
    np.testing.assert_array_equal(one.predict_proba(drawn), other.predict_proba(graphs))


def test_it_learns_distances_in_bins_and_keeps_the_boundaries(tmp_path: Path) -> None:
    def pair(distance: float) -> dict[str, Any]:
        return {"node_labels": [0, 0], "edges": [[0, 1]], "edge_attributes": [[distance]]}

    near_and_far = [pair(each) for each in (1.0, 1.1, 3.0, 3.1)] * 5
    model = small(edge_bins=2, epochs=60, lr=0.01, batch_size=20)
    model.fit(near_and_far, ["near", "near", "far", "far"] * 5)
    assert model.checkpoint_.card.edge_bins == EdgeBins((float(np.float32(1.1)),))
    new = [pair(0.2), pair(9.0)]
    assert model.predict(new).tolist() == ["near", "far"]
    model.export(tmp_path / "model.onnx")
    found = ihgnn.load(tmp_path / "model.onnx").predict(new)
    assert [each.class_value for each in found] == ["near", "far"]
    with pytest.raises(InputError, match="reads one edge attribute, and there is none"):
        model.predict([{"node_labels": [0, 0], "edges": [[0, 1]]}])


def test_without_labels_degrees_are_labels_and_new_ones_are_unknown() -> None:
    graphs = [nx.path_graph(4) if number % 2 else nx.cycle_graph(4) for number in range(20)]
    y = [number % 2 for number in range(20)]
    model = small(epochs=40, lr=0.02).fit(graphs, y)
    assert model.checkpoint_.card.label_values == (1, 2)
    assert model.score(graphs, y) == 1.0
    with pytest.warns(UnknownLabelsWarning, match="degrees of 1 of 8 nodes"):
        assert model.predict([nx.star_graph(7)]).shape == (1,)
    with pytest.raises(InputError, match="allow_unknown=True"):
        model.predict([nx.complete_graph(5)])
    with pytest.warns(UnknownLabelsWarning, match="5 of 5 nodes"):
        assert model.predict([nx.complete_graph(5)], allow_unknown=True).shape == (1,)


def test_attributes_are_read_where_there_are_no_labels() -> None:
    graphs = []
    for number in range(20):
        graph = nx.path_graph(3)
        nx.set_node_attributes(graph, [0.5, float(number % 2)], "x")
        graphs.append(graph)
    y = [number % 2 for number in range(20)]
    model = small(epochs=60, lr=0.02).fit(graphs, y)
    assert model.checkpoint_.card.features == "attributes"
    assert model.score(graphs, y) == 1.0
    assert small(features="labels").fit(graphs, y).checkpoint_.card.features == "labels"


def test_it_is_exported_and_answers_the_same(molecules: Molecules, tmp_path: Path) -> None:
    graphs, y = molecules
    model = small().fit(graphs, y)
    model.export(tmp_path / "model.onnx")
    answers = ihgnn.load(tmp_path / "model.onnx", device="cpu").predict(graphs[:9])
    found = [list(each.probabilities.values()) for each in answers]
    np.testing.assert_allclose(found, model.predict_proba(graphs[:9]), atol=1e-5)
    assert set(answers[0].probabilities) == {"harmless", "mutagenic"}


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"patience": 3}, "patience needs graphs to validate: set validation_fraction"),
        ({"validation_fraction": 1.0}, "validation_fraction must be at least 0 and below 1"),
        ({"validation_fraction": 0.999}, "leaves none of 188 graphs to train on"),
        ({"epochs": 0}, "epochs must be at least 1"),
        ({"variant": "half"}, "variant must be one of"),
        ({"features": "both"}, "no node attributes"),
        ({"lr": 1e30}, "not a finite number"),
    ],
)
def test_what_cannot_be_is_refused_by_fit(
    molecules: Molecules, settings: dict[str, Any], said: str
) -> None:
    with pytest.raises(ihgnn.IhgnnError, match=said):
        small(**settings).fit(*molecules)


def test_messages_name_arguments(molecules: Molecules) -> None:
    with pytest.raises(InputError, match=r"^edge_bins ") as caught:
        small(edge_bins=4, variant="no-separation").fit(*molecules)
    assert "--" not in str(caught.value)


def test_bad_classes_and_an_unfitted_model_are_refused(molecules: Molecules) -> None:
    graphs = molecules[0][:4]
    with pytest.raises(InputError, match="y cannot be sorted"):
        small().fit(graphs, [1, "a", 1, "a"])
    with pytest.raises(InputError, match="y has 3 entries for 4 graphs"):
        small().fit(graphs, [1, 2, 3])
    with pytest.raises(InputError, match="same class"):
        small().fit(graphs, [1] * 4)
    with pytest.raises(NotFittedError):
        small().predict(graphs)


def test_a_graph_without_a_class_is_refused(molecules: Molecules) -> None:
    graphs, _ = molecules
    with pytest.raises(InputError, match="y holds NaN"):
        small().fit(graphs[:3], [0.0, 1.0, float("nan")])


def test_export_replaces_no_file_unless_it_is_forced(molecules: Molecules, tmp_path: Path) -> None:
    model = small(epochs=1).fit(*molecules)
    path = tmp_path / "model.onnx"
    path.write_text("mine")
    with pytest.raises(InputError, match="already exists"):
        model.export(path)
    assert path.read_text() == "mine"
    model.export(path, force=True)
    assert ihgnn.load(path).predict([{"node_labels": [0, 0], "edges": [[0, 1]]}])
