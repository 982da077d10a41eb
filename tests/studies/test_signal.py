"""The sentence that `ihgnn signal` ends with."""

import pytest

from ihgnn_cli.studies.fold_scores import Scores
from ihgnn_cli.studies.permutation import PermutationTest, Permuted
from ihgnn_cli.studies.references import Reference
from ihgnn_cli.studies.signal import Signal
from ihgnn_cli.studies.wl_ceiling import Ceiling, TwinAccuracy, Twins


def signal(test: PermutationTest | None) -> Signal:
    """Of 400 graphs with a majority of 68 %."""
    listed = [("majority", "majority class", 0.68), ("forest", "random forest", 0.66)]
    found = tuple(
        Reference(key, title, Scores(accuracy, 0, 0.5, 0.5, ()), ())
        for key, title, accuracy in listed
    )
    tested = TwinAccuracy(400, 0, None, 0.68)
    return Signal(found, Ceiling((1.0,), ()), Twins(0, 0), tested, test)


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
        (permuted(0.80, 1 / 40, 1 / 40, 39), "Use --permutations 40 or more."),
        (permuted(0.80, 1 / 41, 1 / 41, 40), "There is signal: accuracy"),
        (None, "Whether that is chance was not tested."),
    ],
)
def test_the_conclusion_follows_from_accuracy_and_area(
    test: PermutationTest | None, said: str
) -> None:
    assert said in signal(test).conclusion


def test_the_best_reference_may_be_the_majority_class() -> None:
    assert signal(None).best.key == "majority"
