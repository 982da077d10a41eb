"""The sentence that `ihgnn signal` ends with."""

from dataclasses import replace

import numpy as np
import pytest
from graph_makers import KITE, TRIANGLE, dataset_of

from ihgnn_cli.data.splits.folds import Fold, draw_folds
from ihgnn_cli.data.splits.split import Split
from ihgnn_cli.studies.fold_scores import Scores
from ihgnn_cli.studies.graph_features import GraphFeatures
from ihgnn_cli.studies.permutation import PermutationTest, Permuted
from ihgnn_cli.studies.references import Reference, below_majority_share, references
from ihgnn_cli.studies.signal import Signal
from ihgnn_cli.studies.wl_ceiling import Ceiling, TwinAccuracy, Twins


def signal(test: PermutationTest | None, share: float = 0.68) -> Signal:
    """Of 400 graphs with a majority of 68 %."""
    listed = [("majority", "majority class", 0.68), ("forest", "random forest", 0.66)]
    found = tuple(
        Reference(key, title, Scores(accuracy, 0, 0.5, 0.5, ()), ())
        for key, title, accuracy in listed
    )
    best = max(found, key=lambda each: each.scores.accuracy).key
    tested = TwinAccuracy(400, 0, None, 0.68)
    return Signal(share, found, best, Ceiling((1.0,), ()), Twins(0, 0), tested, test)


def permuted(accuracy: float, p: float, auc_p: float, permutations: int = 1000) -> PermutationTest:
    return PermutationTest(
        permutations, 400, Permuted(accuracy, p, 0.68, 0.69), Permuted(0.7, auc_p, 0.5, 0.6), {}
    )


@pytest.mark.parametrize(
    ("test", "said"),
    [
        (permuted(0.80, 0.001, 0.001), "There is signal: accuracy is better than with shuffled"),
        (permuted(0.68, 0.7, 0.001), "but accuracy hides it"),
        (permuted(0.685, 0.02, 0.001), "accuracy is 0.5 points above the majority class at most"),
        (permuted(0.69, 0.5, 0.2), "No signal was found"),
        (permuted(0.80, 0.03, 0.04), "No signal was found"),  # two tests: each at half the level
        (
            replace(permuted(1.0, 1.0, float("nan")), fixed=390),
            "The permutation test cannot tell: 390 of 400 graphs are in test parts with a single",
        ),
        (replace(permuted(0.69, 0.5, 0.2), fixed=1), "No signal was found"),
        (permuted(0.80, 1 / 41, 1 / 41, 40), "There is signal: accuracy"),
        (permuted(0.66, 0.7, 0.001), "accuracy is not above the majority class. Judge"),
    ],
)
def test_the_conclusion_follows_from_accuracy_and_area(
    test: PermutationTest | None, said: str
) -> None:
    assert said in signal(test).conclusion


def test_without_a_test_the_conclusion_is_the_gap_to_the_majority_class() -> None:
    found = signal(None)
    better = replace(found.references[1], scores=replace(found.references[1].scores, accuracy=0.7))
    assert found.conclusion == "No reference is above the majority class."
    assert signal(None, 0.713).conclusion == "No reference is above the majority class."
    assert replace(found, references=(found.references[0], better), best="forest").conclusion == (
        "The best reference, random forest, is 2.0 points above the majority class. Whether that "
        "is chance was not tested."
    )


def test_in_stratified_folds_the_majority_class_can_be_below_its_share() -> None:
    # 15 graphs of each class in two folds: the training graphs have 8 of one class, of which the
    # test part has 7 among its 15 graphs.
    data = dataset_of([TRIANGLE, KITE] * 15, classes=[0, 1] * 15)
    folds = draw_folds(data.graph_class, 0, folds=2)
    found = references(GraphFeatures(data), folds, 0)[0].scores.accuracy
    assert found == pytest.approx(7 / 15)
    assert below_majority_share(found, 0.5) == (
        "The majority class has 50.0 % of all graphs. The reference predicts the majority class of "
        "the training graphs, which can be the rarer class in the test part."
    )


def test_the_best_reference_may_be_the_majority_class() -> None:
    assert signal(None).best_reference.title == "majority class"


def test_the_conclusion_compares_with_the_majority_class_of_all_graphs() -> None:
    # Test parts with classes of 3 and 1, and of 1 and 3: the training graphs always have more of
    # the other class, so the reference is right for 1 in 4.
    truth, parts = np.array([0, 0, 0, 1, 1, 1, 1, 0]), ([0, 1, 2, 3], [4, 5, 6, 7])
    folds = [Fold((Split(other[:3], other[3:], part),)) for part, other in (parts, parts[::-1])]
    data = dataset_of([TRIANGLE, KITE] * 4, classes=truth.tolist())
    found = references(GraphFeatures(data), folds, 0)[0].scores.accuracy
    assert found == 0.25
    note = below_majority_share(found, 0.5)
    assert note is not None
    assert note.startswith("The majority class has 50.0 % of all graphs.")
    assert below_majority_share(0.6649, 0.665) is None
    # A gain of 2 points over 68 % is noise, whatever the reference reaches on these folds.
    assert "No signal" not in signal(permuted(0.80, 0.001, 0.001), 0.70).conclusion
    assert "accuracy is 1.0 points above" in signal(permuted(0.71, 0.01, 0.001), 0.70).conclusion
