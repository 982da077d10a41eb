"""The choice: by validation accuracy, then loss, then the order of the grid."""

from fractions import Fraction

import pytest
import small_job

from ihgnn_cli.errors import IhgnnError
from ihgnn_cli.studies.crossval.protocol import Configuration, Stage, Training
from ihgnn_cli.studies.crossval.records import Score, Validated
from ihgnn_cli.studies.crossval.selection import choose, common, most_chosen, scores

A, B, C = (small_job.at(lr) for lr in (0.01, 0.001, 0.0001))
DIVERGED = None


def trained(
    configuration: Configuration,
    best: tuple[float, float] | None,
    fold: int = 0,
    split: int = 0,
) -> Validated:
    """A training with this accuracy and loss on validation at its best epoch."""
    training = Training(Stage.SELECT, fold, split, configuration, 0)
    hits, losses = ([], []) if best is None else ([round(10 * best[0])], [best[1]])
    return small_job.trained(training, hits, losses).validated


def test_the_most_accurate_is_chosen_whatever_its_loss() -> None:
    assert choose([trained(A, (0.8, 0.1)), trained(B, (0.9, 5.0))], (A, B), 1) == {0: B}


def test_of_equally_accurate_ones_the_lower_loss_is_chosen() -> None:
    found = [trained(A, (0.8, 0.5)), trained(B, (0.8, 0.4)), trained(C, (0.8, 0.6))]
    assert choose(found, (A, B, C), 1) == {0: B}


def test_of_equals_the_earlier_in_the_grid_is_chosen_whichever_was_trained_first() -> None:
    found = [trained(C, (0.8, 0.5)), trained(B, (0.8, 0.5)), trained(A, (0.7, 0.5))]
    assert choose(found, (A, B, C), 1) == {0: B}
    assert choose(found, (C, B, A), 1) == {0: C}


def test_each_fold_has_its_own_choice() -> None:
    found = [
        trained(A, (0.8, 0.5), fold=0),
        trained(B, (0.7, 0.5), fold=0),
        trained(A, (0.6, 0.5), fold=1),
        trained(B, (0.7, 0.5), fold=1),
    ]
    assert choose(found, (A, B), 2) == {0: A, 1: B}


def test_a_score_is_the_mean_over_the_splits_of_a_fold() -> None:
    found = [
        trained(A, (1.0, 0.25), split=0),
        trained(A, (0.5, 0.75), split=1),
        trained(B, (0.8, 0.25), split=0),
        trained(B, (0.7, 0.5), split=1),
    ]
    # Both are right for 75 % on average, and B's mean loss is 0.375 against 0.5.
    assert scores(found, (A, B)) == {0: {A: (0.75, -0.5), B: (0.75, -0.375)}}
    assert choose(found, (A, B), 1) == {0: B}


@pytest.mark.parametrize(("loss", "best"), [(0.4, A), (0.6, B), (0.5, A)])
def test_equal_means_over_splits_are_a_tie(loss: float, best: Configuration) -> None:
    """1, 2 and 3 of 10 are as many as 2, 2 and 2, though a mean of 0.1, 0.2 and 0.3 is not 0.2."""
    found = [trained(A, (hits / 10, loss), split=at) for at, hits in enumerate((1, 2, 3))]
    found += [trained(B, (0.2, 0.5), split=at) for at in range(3)]
    assert choose(found, (A, B), 1) == {0: best}


def test_scores_come_in_the_order_of_folds_and_grid() -> None:
    found = [trained(B, (0.5, 1.0), fold=1), trained(A, (0.5, 1.0), fold=1), trained(B, (0.5, 1.0))]
    made = scores(found, (A, B))
    assert list(made) == [0, 1]
    assert list(made[1]) == [A, B]
    assert list(made[0]) == [B]


def test_one_that_diverged_is_not_chosen() -> None:
    """Not even where the others have nothing right."""
    found = [trained(A, DIVERGED), trained(B, (0.0, 9.0))]
    assert choose(found, (A, B), 1) == {0: B}


def test_one_that_diverged_in_a_split_is_not_chosen() -> None:
    """A has 0.5 on average over its splits, one of which diverged; B has 0.4 in both."""
    found = [
        trained(A, (1.0, 0.5), split=0),
        trained(A, DIVERGED, split=1),
        trained(B, (0.4, 0.5), split=0),
        trained(B, (0.4, 0.5), split=1),
    ]
    assert choose(found, (A, B), 1) == {0: B}


def test_a_fold_where_each_diverged_in_a_split_is_refused() -> None:
    found = [
        trained(A, (1.0, 0.5), split=0),
        trained(A, DIVERGED, split=1),
        trained(B, DIVERGED, split=0),
        trained(B, (0.4, 0.5), split=1),
    ]
    with pytest.raises(IhgnnError, match="All configurations of fold 0 diverged"):
        choose(found, (A, B), 1)


def test_a_fold_where_all_diverged_is_refused() -> None:
    found = [trained(each, (0.5, 1.0), fold=0) for each in (A, B)]
    found += [trained(each, DIVERGED, fold=1) for each in (A, B)]
    with pytest.raises(IhgnnError, match=r"All configurations of fold 1 diverged.* --lr"):
        choose(found, (A, B), 2)


def test_a_missing_configuration_is_named() -> None:
    found = [
        trained(A, (0.5, 1.0), fold=0),
        trained(B, (0.5, 1.0), fold=0),
        trained(A, (0.5, 1.0), fold=1),
    ]
    assert choose(found, (A, B), 1) == {0: A}
    with pytest.raises(IhgnnError, match=r"Fold 1 is not complete: .* lr 0\.001, batch size 32, K"):
        choose(found, (A, B), 2)


def test_a_missing_split_is_refused() -> None:
    found = [
        trained(A, (1.0, 0.5), split=0),
        trained(B, (0.4, 0.5), split=0),
        trained(B, (0.4, 0.5), split=1),
    ]
    with pytest.raises(IhgnnError, match=r"Fold 0 is not complete: results of lr 0\.01,"):
        choose(found, (A, B), 1)


def test_a_missing_fold_is_refused() -> None:
    with pytest.raises(IhgnnError, match="Fold 1 is not complete"):
        choose([trained(A, (0.5, 1.0), fold=0), trained(A, (0.5, 1.0), fold=2)], (A,), 3)


def score(hits: int, loss: float) -> Score:
    return Fraction(hits, 20), -loss


def test_the_common_choice_is_the_best_on_average_over_folds() -> None:
    # Over folds A has 0.75 and B 0.7, though B is ahead in two of three.
    by_fold = {
        0: {A: score(20, 1.0), B: score(10, 1.0)},
        1: {A: score(13, 1.0), B: score(16, 1.0)},
        2: {A: score(12, 1.0), B: score(16, 1.0)},
    }
    assert common(by_fold) == A


def test_the_configuration_that_most_folds_chose_wins_and_on_ties_the_better_average() -> None:
    by_fold = {fold: {A: score(10, 1.0), B: score(11, 1.0), C: score(20, 1.0)} for fold in range(4)}
    assert most_chosen({0: A, 1: A, 2: B}, by_fold) == (A, 2)
    assert most_chosen({0: A, 1: A, 2: B, 3: B}, by_fold) == (B, 2)


def test_a_tie_over_folds_goes_to_the_lower_loss_and_then_to_the_earlier() -> None:
    assert common({0: {A: score(10, 1.0), B: score(10, 0.5)}}) == B
    assert common({0: {A: score(10, 1.0), B: score(10, 1.0)}}) == A


@pytest.mark.parametrize(("loss", "best"), [(0.4, A), (0.6, B), (0.5, A)])
def test_equal_means_over_folds_are_a_tie(loss: float, best: Configuration) -> None:
    by_fold = {
        fold: {A: score(hits, loss), B: score(4, 0.5)} for fold, hits in enumerate((2, 4, 6))
    }
    assert common(by_fold) == best


def test_one_that_diverged_in_a_fold_is_no_common_choice() -> None:
    diverged = trained(A, DIVERGED).score
    poor = score(1, 9.0)
    assert common({0: {A: score(20, 1.0), B: poor}, 1: {A: diverged, B: poor}}) == B
