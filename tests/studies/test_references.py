"""References: on the folds of crossval, kept in a file, compared with a network graph by graph."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from graph_makers import dataset_of
from scipy import sparse

from ihgnn_cli.data.dataset import GraphDataset
from ihgnn_cli.data.edge_labels import with_edge_labels
from ihgnn_cli.data.splits.folds import Fold
from ihgnn_cli.data.splits.split import Split
from ihgnn_cli.studies import reference_models
from ihgnn_cli.studies import references as module
from ihgnn_cli.studies.beside import beside, final_scores
from ihgnn_cli.studies.fold_scores import Scores
from ihgnn_cli.studies.folds import make_folds
from ihgnn_cli.studies.graph_features import GraphFeatures
from ihgnn_cli.studies.grid import Configuration
from ihgnn_cli.studies.references import (
    Reference,
    best_reference,
    left_out_note,
    references,
    repeated_references,
    stored_references,
)
from ihgnn_cli.studies.units import Record, Stage, Unit, Validated, parsed
from ihgnn_cli.studies.units import Tested as Outcome

KEYS = ["majority", "forest", "logistic", "logistic-wl", "svm-wl"]


@pytest.fixture(autouse=True)
def _few_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reference_models, "TREES", 10)


def paths(count: int) -> GraphDataset:
    """Paths of two nodes in class 0 and of five nodes in class 1."""
    two, five = ([0, 1], [(0, 1)]), ([0, 1, 0, 1, 2], [(0, 1), (1, 2), (2, 3), (3, 4)])
    return dataset_of([two, five] * (count // 2))


def fold(train: Sequence[int], validation: Sequence[int], test: Sequence[int]) -> Fold:
    return Fold((Split(*map(np.array, (train, validation, test))),))


def test_histograms_count_labels_degrees_nodes_and_edges() -> None:
    features = GraphFeatures(dataset_of([([0, 1, 1], [(0, 1), (1, 2)]), ([2], [])], [0, 1]))
    # Labels 0, 1, 2; degrees 0, 1, 2; nodes; edges.
    expected = [[1, 2, 0, 0, 2, 1, 3, 2], [0, 0, 1, 1, 0, 0, 1, 0]]
    assert features.histograms.tolist() == expected


def test_edge_labels_are_counted_where_they_are_used() -> None:
    data = dataset_of([([0, 1, 1], [(0, 1), (1, 2)]), ([2], [])], [0, 1], edge_labels=[0, 2])
    used = GraphFeatures(with_edge_labels(data, use=True))
    assert used.histograms[:, -2:].tolist() == [[1, 1], [0, 0]]
    assert GraphFeatures(data).histograms.shape[1] == used.histograms.shape[1] - 2


def test_references_with_edge_labels_are_not_those_without(tmp_path: Path) -> None:
    # The class is the label of the only edge, which nothing else tells.
    data = dataset_of([([0, 1], [(0, 1)])] * 12, edge_labels=[0, 1] * 6)
    folds = [fold(range(4, 10), range(10, 12), range(4))]
    file = tmp_path / "references.json"
    without = stored_references(file, data, folds, 0)
    used = stored_references(file, with_edge_labels(data, use=True), folds, 0)
    assert best_reference(without, data).scores.accuracy == 0.5
    assert {each.key: each.scores.accuracy for each in used[1:]} == dict.fromkeys(KEYS[1:], 1.0)


def test_edge_attributes_have_a_reference_of_their_own() -> None:
    # The class is the length of the only edge.
    data = dataset_of([([0, 1], [(0, 1)])] * 12)
    lengths = np.tile([1.5, 1.5, 4.0, 4.0], 6).astype(np.float32)[:, None]
    data = replace(data, edge_attributes=lengths)
    counts = GraphFeatures(data).edge_attributes
    assert counts is not None
    assert counts[:, counts.any(axis=0)].tolist() == [[1, 0], [0, 1]] * 6
    found = references(GraphFeatures(data), [fold(range(4, 10), range(10, 12), range(4))], 0)
    assert [each.key for each in found] == [*KEYS, "forest-edges"]
    assert found[-1].scores.accuracy == 1
    assert found[1].scores.accuracy == 0.5
    # Networks read edge attributes only in bins, and so do the references beside them.
    assert best_reference(found, data).key != "forest-edges"
    assert "only with --edge-bins" in (left_out_note(data) or "")
    constant = replace(data, edge_attributes=np.ones_like(lengths))
    assert "all edges have the same attribute" in (left_out_note(constant) or "")
    binned = with_edge_labels(data, bins=2)
    worse = [replace(each, scores=replace(each.scores, accuracy=0.5)) for each in found[:-1]]
    assert best_reference([*worse, found[-1]], binned).key == "forest-edges"
    assert left_out_note(binned) is None


def test_degrees_that_are_labels_are_counted_once() -> None:
    features = GraphFeatures(paths(2).with_degree_labels())
    assert features.histograms.tolist() == [[2, 0, 2, 1], [2, 3, 5, 4]]


def test_colours_of_one_graph_only_are_no_feature_of_the_logistic_regression() -> None:
    features = GraphFeatures(paths(2))
    # Both have nodes with the labels 0 and 1, and one end with label 0 beside a node with label 1.
    assert features.logarithms.toarray() == pytest.approx(np.log([[2, 2, 2], [3, 3, 2]]))


def test_without_a_common_colour_the_logistic_regression_is_the_majority_class() -> None:
    data = dataset_of([([label], []) for label in range(12)], [0, 1, 1] * 4)
    found = references(GraphFeatures(data), make_folds(data, 0, folds=2), 0)
    by_key = {each.key: each for each in found}
    assert GraphFeatures(data).logarithms.shape[1] == 0
    assert by_key["logistic-wl"].predictions == by_key["majority"].predictions
    assert by_key["logistic-wl"].scores == by_key["majority"].scores


@pytest.mark.filterwarnings("ignore:The least populated class")
def test_a_graph_of_a_third_class_does_not_keep_the_svm_from_choosing() -> None:
    truth = np.array([0, 1] * 10 + [2])
    label = sparse.csr_array(np.eye(3)[truth])
    useless = sparse.csr_array(np.ones((21, 1)))
    chosen = reference_models._chosen([label, useless, useless, useless], truth, np.arange(21), 0)
    assert chosen == (0, 1.0)
    one = reference_models._chosen([label] * 4, np.array([0, 0, 0, 1]), np.arange(4), 0)
    assert one == (3, 1.0)  # too few to choose


def test_subtree_counts_have_length_1() -> None:
    kernel = GraphFeatures(paths(4)).subtrees(3)
    assert (kernel @ kernel.T).diagonal() == pytest.approx(np.ones(4))


def test_plain_classes_are_learned_by_all_but_the_majority_class() -> None:
    data = paths(24)
    found = references(GraphFeatures(data), make_folds(data, 0, folds=3), 0)
    assert [each.key for each in found] == KEYS
    assert [each.scores.accuracy for each in found] == [0.5, 1, 1, 1, 1]
    assert [each.scores.roc_auc for each in found] == [0.5, 1, 1, 1, 1]
    assert best_reference(found, data).key == "forest"  # the first of equals


def test_the_majority_class_is_that_of_the_graphs_outside_the_test_part() -> None:
    data = dataset_of([([0], [])] * 5, [0, 0, 1, 1, 1])
    found = references(
        GraphFeatures(data), [fold([0, 1], [2], [3, 4]), fold([2, 3], [4], [0, 1])], 0
    )[0]
    assert found.predictions == ((0, 0), (1, 1))
    assert found.scores.accuracy == 0


def test_training_graphs_of_one_class_predict_it() -> None:
    data = dataset_of([([0], []), ([1], []), ([0], []), ([1], [])], [0, 0, 1, 1])
    found = references(GraphFeatures(data), [fold([0], [1], [2, 3]), fold([2], [3], [0, 1])], 0)
    assert {each.predictions for each in found} == {((0, 0), (1, 1))}


def test_they_are_kept_in_a_file_for_the_same_data_folds_and_seed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = paths(12)
    folds = make_folds(data, 0, folds=2)
    path = tmp_path / "references.json"
    first = stored_references(path, data, folds, 0)
    computed = []
    monkeypatch.setattr(module, "references", lambda *_: computed.append(1) or first)
    assert stored_references(path, data, folds, 0) == first
    assert not computed
    stored_references(path, data, make_folds(data, 1, folds=2), 0)
    stored_references(path, data, folds, 0)
    stored_references(path, data, folds, 1)
    path.write_text("{")
    stored_references(path, data, folds, 1)
    assert len(computed) == 4


def record(number: int, run: int, tested: Outcome) -> Record:
    unit = Unit(Stage.FINAL, number, 0, Configuration(0.01, 32, 3), run)
    return Record(Validated(unit, 0, "", 1, False, None, 1, (1,), (0.5,), 0.1, 1, "cpu"), tested)


FOLDS = [fold([2], [3], [0, 1]), fold([0], [1], [2, 3])]
TRUTH = np.array([0, 1, 0, 1])
DATA = dataset_of([([0], [])] * 4, TRUTH.tolist())
RIGHT = Reference("svm-wl", "SVM", Scores(1, 0, 1, 1, (1, 1)), ((0, 1), (0, 1)))


def test_a_network_is_compared_with_the_best_reference_graph_by_graph() -> None:
    wrong = replace(RIGHT, key="majority", scores=replace(RIGHT.scores, accuracy=0.5))
    runs = [[(0, 1), (0, 0)], [(0, 0), (0, 0)]]  # [run][fold]
    final = [
        record(number, run, Outcome(2, 0.5, runs[run][number]))
        for run in (0, 1)
        for number in (0, 1)
    ]
    found = beside([wrong, RIGHT], final, FOLDS, DATA)
    assert found["best"] == "svm-wl"
    # Hits 1, 1/2, 1, 0 of the network and 1, 1, 1, 1 of the reference.
    assert found["difference"] == pytest.approx(-3 / 8)
    assert found["error"] == pytest.approx(np.std([0, 0.5, 0, 1], ddof=1) / 2)
    assert not found["above"]
    assert found["sentence"] == (
        "Not distinguishable from the best reference, SVM: -37.5 ± 23.9 points "
        "(paired over graphs, ± standard error; corrected resampled t-test, p = 0.667 after Holm's "
        "correction over 2 comparisons)."
    )
    # Folds: -1/4 and -1/2. t = -3/8 / sqrt((1/2 + 1) / 32) = -sqrt(3), one degree of freedom: 1/3.
    by_key = {each["key"]: each for each in found["methods"]}
    assert by_key["svm-wl"]["p"] == found["p"] == pytest.approx(1 / 3)
    assert found["comparisons"] == 2


def test_a_network_that_is_always_wrong_is_worse() -> None:
    final = [record(number, 0, Outcome(2, 0.0, (1, 0))) for number in (0, 1)]
    found = beside([RIGHT], final, FOLDS, DATA)
    assert (found["difference"], found["error"], found["p"]) == (-1, 0, None)
    assert found["sentence"] == (
        "Not tested against the best reference, SVM: -100.0 ± 0.0 points (paired over graphs, ± "
        "standard error; the difference is the same in all folds, or there is only one fold)."
    )


def test_repeats_are_averaged_per_graph_before_the_error_is_taken() -> None:
    """The same two folds twice: once all right, once all wrong."""
    final = [record(number, 0, Outcome(2, 1.0, (0, 1))) for number in (0, 1)]
    final += [record(number, 0, Outcome(2, 0.0, (1, 0))) for number in (2, 3)]
    twice = replace(
        RIGHT, predictions=RIGHT.predictions * 2, scores=replace(RIGHT.scores, folds=(1,) * 4)
    )
    found = beside([twice], final, FOLDS * 2, DATA)
    assert (found["difference"], found["error"]) == (-0.5, 0)  # every graph is right half the time


def test_each_repeat_has_references_of_its_own_seed(tmp_path: Path) -> None:
    data = paths(12)
    both = repeated_references(
        tmp_path, data, make_folds(data, 3, folds=2, repeats=2), 3, repeats=2
    )
    alone = [
        stored_references(tmp_path / name, data, make_folds(data, seed, folds=2), seed)
        for seed, name in ((3, "references.json"), (4, "references-repeat1.json"))
    ]
    for each, first, second in zip(both, *alone, strict=True):
        assert each.predictions == first.predictions + second.predictions
        assert each.scores.folds == first.scores.folds + second.scores.folds


def test_probabilities_of_final_runs_give_area_and_balanced_accuracy() -> None:
    likely = ((0.9, 0.1), (0.8, 0.2))
    final = [record(number, 0, Outcome(2, 0.5, (0, 0), probabilities=likely)) for number in (0, 1)]
    again = [parsed(each.line()) for each in final]
    assert again == final
    found = final_scores(again, FOLDS, TRUTH)
    assert found is not None
    assert (found.accuracy, found.balanced_accuracy, found.roc_auc) == (0.5, 0.5, 1)


def test_areas_of_repeats_are_joined_as_those_of_references_are() -> None:
    """The second fold of the first partition has graphs of one class, so no area."""
    truth = np.array([0, 1, 1, 1])
    folds = [fold([2], [3], [0, 1]), fold([0], [1], [2, 3]), *[fold([1], [2], [0, 3])] * 2]
    right, wrong = ((0.9, 0.1), (0.2, 0.8)), ((0.2, 0.8), (0.9, 0.1))
    outcomes = [right, right, wrong, right]
    final = [
        record(number, 0, Outcome(2, 0.5, (0, 1), probabilities=likely))
        for number, likely in enumerate(outcomes)
    ]
    found = final_scores(final, folds, truth, repeats=2)
    assert found is not None
    assert found.roc_auc == 0.75  # the mean of 1 and (0 + 1) / 2
    assert found.folds == (1, 0.5, 0, 1)


def test_final_runs_of_older_versions_have_no_area() -> None:
    line = json.loads(record(0, 0, Outcome(2, 0.5, (0, 0))).line())
    line["test"].pop("probabilities", None)
    old = parsed(json.dumps(line))
    assert final_scores([old], FOLDS, TRUTH) is None
