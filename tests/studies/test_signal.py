"""References, permutation test, 1-WL ceiling and twins, and the sentence they end in."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from graph_makers import HEXAGON, KITE, TRIANGLE, TWO_TRIANGLES, dataset_of
from scipy import sparse
from sklearn.metrics import roc_auc_score

from ihgnn_cli.data import load_dataset
from ihgnn_cli.data.dataset import GraphDataset
from ihgnn_cli.data.edge_labels import with_edge_labels
from ihgnn_cli.data.splits import Fold, Split
from ihgnn_cli.data.twins import colorings
from ihgnn_cli.studies.fold_scores import Scores
from ihgnn_cli.studies.folds import make_folds
from ihgnn_cli.studies.signal import permutation
from ihgnn_cli.studies.signal import references as module
from ihgnn_cli.studies.signal.ceiling import (
    Ceiling,
    TwinAccuracy,
    Twins,
    accuracy_by_twins,
    ceiling,
    twins,
)
from ihgnn_cli.studies.signal.features import GraphFeatures
from ihgnn_cli.studies.signal.kernel_svm import KernelSVM
from ihgnn_cli.studies.signal.permutation import (
    RIDGE,
    PermutationTest,
    Permuted,
    p_value,
    permutation_test,
)
from ihgnn_cli.studies.signal.references import (
    Reference,
    below_majority_share,
    best_reference,
    left_out_note,
    references,
    stored_references,
)
from ihgnn_cli.studies.signal.signal import Signal

KEYS = ["majority", "forest", "logistic", "logistic-wl", "svm-wl"]
PARTS = [np.arange(0, 4), np.arange(4, 9), np.arange(9, 12)]


@pytest.fixture(autouse=True)
def _few_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TREES", 10)


def paths(count: int) -> GraphDataset:
    """Paths of two nodes in class 0 and of five nodes in class 1."""
    two, five = ([0, 1], [(0, 1)]), ([0, 1, 0, 1, 2], [(0, 1), (1, 2), (2, 3), (3, 4)])
    return dataset_of([two, five] * (count // 2))


def labelled_paths(count: int) -> GraphDataset:
    """Paths of six nodes with random labels; class 1 has more nodes of label 0."""
    random = np.random.default_rng(0)
    edges = [(node, node + 1) for node in range(5)]
    labels = random.integers(0, 3, (count, 6))
    zeros = (labels == 0).sum(axis=1)
    classes = (zeros > np.median(zeros)).astype(int).tolist()
    return dataset_of([(each, edges) for each in labels.tolist()], classes)


def fold(train: Sequence[int], validation: Sequence[int], test: Sequence[int]) -> Fold:
    return Fold((Split(*map(np.array, (train, validation, test))),))


def test_histograms_count_labels_degrees_nodes_and_edges() -> None:
    data = dataset_of([([0, 1, 1], [(0, 1), (1, 2)]), ([2], [])], [0, 1], edge_labels=[0, 2])
    # Labels 0, 1, 2; degrees 0, 1, 2; nodes; edges.
    expected = [[1, 2, 0, 0, 2, 1, 3, 2], [0, 0, 1, 1, 0, 0, 1, 0]]
    assert GraphFeatures(data).histograms.tolist() == expected
    used = GraphFeatures(with_edge_labels(data, use=True)).histograms
    assert used[:, -2:].tolist() == [[1, 1], [0, 0]]
    degrees = GraphFeatures(paths(2).with_degree_labels())  # counted once
    assert degrees.histograms.tolist() == [[2, 0, 2, 1], [2, 3, 5, 4]]


def test_colour_counts_are_those_of_colours_that_two_graphs_share() -> None:
    # Both have nodes with the labels 0 and 1, and one end with label 0 beside a node with label 1.
    shared = GraphFeatures(paths(2)).logarithms.toarray()
    assert shared == pytest.approx(np.log([[2, 2, 2], [3, 3, 2]]))
    kernel = GraphFeatures(paths(4)).subtrees(3)
    assert (kernel @ kernel.T).diagonal() == pytest.approx(np.ones(4))


def test_references_learn_from_graphs_outside_the_test_part() -> None:
    data = paths(24)
    found = references(GraphFeatures(data), make_folds(data, 0, folds=3), 0)
    assert [each.key for each in found] == KEYS
    assert [each.scores.accuracy for each in found] == [0.5, 1, 1, 1, 1]
    assert [each.scores.roc_auc for each in found] == [0.5, 1, 1, 1, 1]
    assert best_reference(found, data).key == "forest"  # the first of equals
    alike = dataset_of([([0], [])] * 5, [0, 0, 1, 1, 1])
    parts = [fold([0, 1], [2], [3, 4]), fold([2, 3], [4], [0, 1])]
    majority = references(GraphFeatures(alike), parts, 0)[0]
    assert (majority.predictions, majority.scores.accuracy) == (((0, 0), (1, 1)), 0)


def test_classes_of_test_graphs_change_no_prediction() -> None:
    data = labelled_paths(24)
    parts = make_folds(data, 0, folds=3)
    before = references(GraphFeatures(data), parts, 0)
    for at, part in enumerate(parts):
        poisoned = data.graph_class.copy()
        poisoned[part.test] = 1 - poisoned[part.test]
        after = references(GraphFeatures(replace(data, graph_class=poisoned)), [part], 0)
        assert [each.predictions[0] for each in after] == [each.predictions[at] for each in before]


def test_training_graphs_of_one_class_predict_it() -> None:
    data = dataset_of([([0], []), ([1], []), ([0], []), ([1], [])], [0, 0, 1, 1])
    found = references(GraphFeatures(data), [fold([0], [1], [2, 3]), fold([2], [3], [0, 1])], 0)
    assert {each.predictions for each in found} == {((0, 0), (1, 1))}


def test_without_a_common_colour_the_logistic_regression_is_the_majority_class() -> None:
    data = dataset_of([([label], []) for label in range(12)], [0, 1, 1] * 4)
    found = references(GraphFeatures(data), make_folds(data, 0, folds=2), 0)
    by_key = {each.key: each for each in found}
    assert by_key["logistic-wl"].predictions == by_key["majority"].predictions


@pytest.mark.filterwarnings("ignore:The least populated class")
def test_the_svm_chooses_rounds_in_inner_folds_of_its_own_graphs() -> None:
    truth = np.array([0, 1] * 10 + [2])  # the single graph of class 2 does not keep it from that
    useless = np.ones((21, 1))
    label = np.eye(3)[truth]
    late = sparse.csr_array(np.hstack([useless, label]))
    assert KernelSVM((1, 4))._chosen(late, truth) == (4, 1.0)
    early = sparse.csr_array(np.hstack([label, useless]))
    assert KernelSVM((3, 4))._chosen(early, truth) == (3, 1.0)
    few = KernelSVM((3, 4))._chosen(early[:4], np.array([0, 0, 0, 1]))
    assert few == (4, 1.0)  # too few to choose


def test_edge_attributes_have_a_reference_of_their_own() -> None:
    # The class is the length of the only edge.
    data = dataset_of([([0, 1], [(0, 1)])] * 12)
    lengths = np.tile([1.5, 1.5, 4.0, 4.0], 6).astype(np.float32)[:, None]
    data = replace(data, edge_attributes=lengths)
    found = references(GraphFeatures(data), [fold(range(4, 10), range(10, 12), range(4))], 0)
    assert [each.key for each in found] == [*KEYS, "forest-edges"]
    assert (found[1].scores.accuracy, found[-1].scores.accuracy) == (0.5, 1)
    # Networks read edge attributes only in bins, and so do the references beside them.
    assert best_reference(found, data).key != "forest-edges"
    assert "only with --edge-bins" in (left_out_note(data) or "")
    constant = replace(data, edge_attributes=np.ones_like(lengths))
    assert "all edges have the same attribute" in (left_out_note(constant) or "")
    binned = with_edge_labels(data, bins=2)
    worse = [replace(each, scores=replace(each.scores, accuracy=0.5)) for each in found[:-1]]
    assert best_reference([*worse, found[-1]], binned).key == "forest-edges"
    assert left_out_note(binned) is None


def test_they_are_kept_in_a_file_for_the_same_data_folds_and_seed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = dataset_of([([0, 1], [(0, 1)])] * 12, edge_labels=[0, 1] * 6)
    parts = make_folds(data, 0, folds=2)
    path = tmp_path / "references.json"
    first = stored_references(path, data, parts, 0)
    computed = []
    monkeypatch.setattr(module, "references", lambda *_: computed.append(1) or first)
    assert stored_references(path, data, parts, 0) == first
    assert not computed
    stored_references(path, data, make_folds(data, 1, folds=2), 0)
    stored_references(path, with_edge_labels(data, use=True), parts, 0)
    stored_references(path, data, parts, 1)
    path.write_text("{")
    stored_references(path, data, parts, 1)
    assert len(computed) == 4


def test_the_p_value_counts_the_true_classes_as_one_shuffle() -> None:
    null = np.array([0.5, 0.6, 0.7, 0.8])
    assert p_value(0.9, null) == 1 / 5
    assert p_value(0.7, null) == 3 / 5  # reached by 0.7 and 0.8
    assert p_value(0.1, null) == 1


def test_shuffles_keep_the_class_counts_of_each_part() -> None:
    truth = np.array([0, 0, 1, 2, 0, 1, 1, 1, 1, 2, 2, 0])
    found = permutation._shuffled(truth, PARTS, 50, 0)
    assert found[:, 0].tolist() == truth.tolist()
    for part in PARTS:
        assert (np.sort(found[part], axis=0) == np.sort(truth[part])[:, None]).all()
    assert len(np.unique(found.T, axis=0)) > 25


def test_the_scores_of_a_part_are_those_of_ridge_regression_on_the_others() -> None:
    random = np.random.default_rng(0)
    features = random.normal(size=(12, 5))
    kernel, classes = features @ features.T, random.integers(0, 2, (12, 3))
    found = permutation._scores(kernel, classes, 2, PARTS)[0]
    for part in PARTS:
        rest = np.setdiff1d(np.arange(12), part)
        whole = kernel + 1
        matrix = whole[np.ix_(rest, rest)] + RIDGE * np.eye(len(rest))
        weights = np.linalg.solve(matrix, 2.0 * classes[rest] - 1)
        assert found[part] == pytest.approx(whole[np.ix_(part, rest)] @ weights, abs=1e-6)
        other = classes.copy()
        other[part] = 1 - other[part]  # classes of the part itself are not used
        assert (permutation._scores(kernel, other, 2, PARTS)[0][part] == found[part]).all()


@pytest.mark.parametrize("classes", [2, 3])
def test_areas_are_those_of_scikit_learn_averaged_over_parts(classes: int) -> None:
    random = np.random.default_rng(1)
    truth = np.concatenate([np.arange(len(part)) % classes for part in PARTS])
    scores = random.normal(size=(1 if classes == 2 else classes, 12, 1)).round(1)  # with ties
    kinds = [1] if classes == 2 else range(classes)
    expected = [
        np.mean(
            [
                roc_auc_score(truth[part] == kind, score[part, 0])
                for kind, score in zip(kinds, scores, strict=True)
            ]
        )
        for part in PARTS
    ]
    found = permutation._roc_auc(scores, truth[:, None], PARTS)
    assert found == pytest.approx([np.mean(expected)])


def test_a_planted_signal_is_found_and_shuffled_classes_have_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    planted = labelled_paths(40)
    parts = make_folds(planted, 0, folds=4)
    found = permutation_test(GraphFeatures(planted), parts, 99, 0)
    assert found.accuracy.p == found.roc_auc.p == 1 / 100
    assert found.roc_auc.value > 0.9 > found.roc_auc.null_high
    monkeypatch.setattr(permutation, "_TARGETS", 40 * 2 * 7)  # seven shuffles at a time
    assert permutation_test(GraphFeatures(planted), parts, 99, 0) == found
    random = np.random.default_rng(5).permutation(planted.graph_class)
    chance = replace(planted, graph_class=random)
    none = permutation_test(GraphFeatures(chance), make_folds(chance, 0, folds=4), 99, 0)
    assert none.accuracy.p > 0.05
    assert none.accuracy.value >= 0.5  # of the majority class


def test_large_data_is_tested_on_some_of_its_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(permutation, "MOST_GRAPHS", 12)
    graphs = labelled_paths(20)
    parts = make_folds(graphs, 0, folds=2)
    assert permutation_test(GraphFeatures(graphs), parts, 5, 0).graphs == 12
    chosen, places = permutation._drawn(parts, 0)
    for place, part in zip(places, parts, strict=True):
        assert set(chosen[place]) <= set(part.test)


def test_dhfr_md_has_signal_that_accuracy_hides(real_data: Path) -> None:
    graphs = load_dataset("DHFR_MD", data_root=real_data)
    found = permutation_test(GraphFeatures(graphs), make_folds(graphs, 0), 199, 0)
    majority = np.bincount(graphs.graph_class).max() / len(graphs)
    assert found.accuracy.value < majority + 0.01
    assert found.roc_auc.p == 1 / 200


def test_of_two_twins_of_different_class_one_is_wrong() -> None:
    data = dataset_of([TWO_TRIANGLES, HEXAGON, KITE], [0, 1, 1])
    assert ceiling(data, colorings(data)).rounds == pytest.approx([2 / 3] * 6)
    end = ([1, 0, 0, 0], [(0, 1), (1, 2), (2, 3)])
    inside = ([0, 1, 0, 0], [(0, 1), (1, 2), (2, 3)])
    told = dataset_of([end, inside], [0, 1])  # apart after one round
    assert ceiling(told, colorings(told)).rounds == (0.5, 1, 1, 1, 1, 1)


def test_twins_are_counted_by_class_and_the_ceiling_by_homophily() -> None:
    data = dataset_of([TWO_TRIANGLES, HEXAGON, HEXAGON, KITE], [0, 1, 1, 0])
    rounds = colorings(data)
    assert twins(data, rounds[-1]) == Twins(same_class=0.5, other_class=0.75)
    # One label: homophily 1. The kite: its nodes have (0, 1/2, 1/3, 0) neighbours of equal label.
    found = ceiling(data, rounds).bins
    by_bin = {each.low: (each.graphs, each.accuracy) for each in found if each.graphs}
    assert by_bin == {0.2: (1, 1.0), 0.9: (3, pytest.approx(2 / 3))}


def test_accuracy_is_told_apart_by_twins_in_training() -> None:
    data = dataset_of([TWO_TRIANGLES, HEXAGON, KITE, HEXAGON], [0, 1, 0, 1])
    folds = [fold((2,), (1,), (0, 3)), fold((0,), (3,), (1, 2))]
    # Fold 0 tests two graphs with a twin (graph 1), fold 1 one with (0 and 3) and one without.
    found = accuracy_by_twins(data, colorings(data)[-1], folds, [[1, 1], [1, 1]])
    assert found == TwinAccuracy(4, 3, pytest.approx(2 / 3), 0)


@pytest.mark.parametrize(
    ("name", "bound", "same", "other"),
    [("MUTAG", 100, 12.8, 0), ("BZR_MD", 89.2, 41.5, 29.7), ("IMDB-MULTI", 63.3, 76.6, 74.7)],
)
def test_ceilings_of_the_papers_data_sets(
    real_data: Path, name: str, bound: float, same: float, other: float
) -> None:
    data = load_dataset(name, data_root=real_data)
    rounds = colorings(data)
    assert round(100 * ceiling(data, rounds).rounds[-1], 1) == bound
    found = twins(data, rounds[-1])
    assert (round(100 * found.same_class, 1), round(100 * found.other_class, 1)) == (same, other)


def signal(test: PermutationTest | None, share: float = 0.68, forest: float = 0.66) -> Signal:
    """Of 400 graphs with a majority of 68 %; the majority class is not the first reference."""
    listed = [("forest", "random forest", forest), ("majority", "majority class", 0.68)]
    found = tuple(
        Reference(key, title, Scores(accuracy, 0, 0.5, 0.5, ()), ())
        for key, title, accuracy in listed
    )
    best = max(found, key=lambda each: each.scores.accuracy).key
    tested = TwinAccuracy(400, 0, None, 0.68)
    return Signal(share, found, best, Ceiling((1.0,), ()), Twins(0, 0), tested, test)


def permuted(accuracy: float, p: float, auc_p: float, fixed: int = 0) -> PermutationTest:
    auc = Permuted(0.7, auc_p, 0.5, 0.6)
    return PermutationTest(1000, 400, Permuted(accuracy, p, 0.68, 0.69), auc, {}, fixed)


@pytest.mark.parametrize(
    ("test", "said"),
    [
        (permuted(0.80, 0.001, 0.001), "There is signal: accuracy is better than with shuffled"),
        (permuted(0.68, 0.7, 0.001), "but accuracy hides it"),
        (permuted(0.685, 0.02, 0.001), "accuracy is 0.5 points above the majority class at most"),
        (permuted(0.69, 0.5, 0.2), "No signal was found"),
        (permuted(0.80, 0.03, 0.04), "No signal was found"),  # two tests: each at half the level
        (
            permuted(1.0, 1.0, float("nan"), fixed=390),
            "The permutation test cannot tell: 390 of 400 graphs are in test parts with a single",
        ),
        (permuted(0.69, 0.5, 0.2, fixed=1), "No signal was found"),
        (permuted(0.66, 0.7, 0.001), "accuracy is not above the majority class. Judge"),
        (None, "No reference is above the majority class."),
    ],
)
def test_the_conclusion_follows_from_accuracy_and_area(
    test: PermutationTest | None, said: str
) -> None:
    assert said in signal(test).conclusion


def test_the_conclusion_compares_with_the_majority_class_of_all_graphs() -> None:
    # Test parts with classes of 3 and 1, and of 1 and 3: the training graphs always have more of
    # the other class, so the reference is right for 1 in 4.
    truth, parts = [0, 0, 0, 1, 1, 1, 1, 0], ([0, 1, 2, 3], [4, 5, 6, 7])
    folds = [fold(other[:3], other[3:], part) for part, other in (parts, parts[::-1])]
    data = dataset_of([TRIANGLE, KITE] * 4, classes=truth)
    assert references(GraphFeatures(data), folds, 0)[0].scores.accuracy == 0.25
    note = below_majority_share(0.25, 0.5) or ""
    assert note.startswith("The majority class has 50.0 % of all graphs.")
    assert below_majority_share(0.6649, 0.665) is None
    assert signal(None, 0.713, forest=0.70).conclusion.startswith("No reference is above")
    assert "random forest, is 2.0 points above" in signal(None, forest=0.70).conclusion
    assert "accuracy is 1.0 points above" in signal(permuted(0.71, 0.01, 0.001), 0.70).conclusion
