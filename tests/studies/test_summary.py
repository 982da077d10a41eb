"""Means and standard deviations over folds and over runs, by hand."""

from fractions import Fraction
from math import sqrt

import pytest

from ihgnn_cli.errors import IhgnnError
from ihgnn_cli.studies.grid import Configuration
from ihgnn_cli.studies.summary import FinalRun, Summary, summarize
from ihgnn_cli.studies.units import Record, Stage, Unit, Validated
from ihgnn_cli.studies.units import Tested as OnTest  # pytest takes Test... for tests
from ihgnn_cli.training.epoch import Epoch

A, B = Configuration(0.01, 32, 3), Configuration(0.001, 64, 4)
CHOSEN = {0: A, 1: B}
SCORES = {
    0: {A: (Fraction(18, 20), -0.25), B: (Fraction(16, 20), -0.5)},
    1: {A: (Fraction(14, 20), -0.5), B: (Fraction(19, 20), -0.125)},
}


def final(fold: int, run: int, accuracy: float | None, best: bool = True) -> Record:
    known = Validated(
        unit=Unit(Stage.FINAL, fold, 0, CHOSEN[fold], run),
        seed=100 * fold + run,
        split_sha256=f"split {fold}",
        epochs=7,
        diverged=False,
        best=Epoch(5, 0.1, 0.9, 0.3, 0.85) if best else None,
        validation_graphs=20,
        hits=(10, 11, 12, 13, 17, 16, 15) if best else (),
        losses=(0.9, 0.8, 0.7, 0.6, 0.3, 0.4, 0.5) if best else (),
        seconds=0.0,
        members=1,
        device="cpu",
    )
    return Record(known, OnTest(20 + fold, accuracy))


SIX = [
    *(final(0, run, accuracy) for run, accuracy in enumerate((0.7, 0.8, 0.9))),
    *(final(1, run, accuracy) for run, accuracy in enumerate((0.5, 0.5, 0.8))),
]


def summary(final: list[Record] = SIX, runs: int = 3) -> Summary:
    return summarize(CHOSEN, SCORES, final, runs)


def test_a_fold_is_the_mean_of_its_runs_and_deviations_divide_by_their_number() -> None:
    first, second = summary().folds
    assert (first.fold, first.configuration, first.test_graphs) == (0, A, 20)
    assert (first.test_mean, first.test_std) == pytest.approx((0.8, sqrt(0.02 / 3)))
    assert (second.fold, second.configuration, second.test_graphs) == (1, B, 21)
    assert (second.test_mean, second.test_std) == pytest.approx((0.6, sqrt(0.06 / 3)))


def test_the_result_is_over_folds_of_the_means_over_their_runs() -> None:
    found = summary()
    assert (found.test_mean, found.test_std) == pytest.approx((0.7, 0.1))


def test_runs_are_compared_by_their_means_over_the_folds() -> None:
    found = summary()
    assert found.runs == pytest.approx((0.6, 0.65, 0.85))
    # From 0.7 they are away by 0.1, 0.05 and 0.15.
    assert found.runs_std == pytest.approx(sqrt(0.035 / 3))


def test_a_single_run_has_no_deviation() -> None:
    found = summary([SIX[0], SIX[3]], runs=1)
    assert [fold.test_std for fold in found.folds] == [0, 0]
    assert found.runs == pytest.approx((0.6,))
    assert found.runs_std == 0


def test_a_fold_tells_the_validation_of_its_choice_in_the_selection() -> None:
    told = [(fold.validation_accuracy, fold.validation_loss) for fold in summary().folds]
    assert told == [(0.9, 0.25), (0.95, 0.125)]
    assert type(told[0][0]) is float  # a file can hold it


def test_a_run_tells_how_it_is_repeated_and_where_it_was_best() -> None:
    assert summary().folds[1].runs[2] == FinalRun(
        run=2,
        seed=102,
        split_sha256="split 1",
        epoch=5,
        epochs=7,
        validation_accuracy=0.85,
        test_accuracy=0.8,
    )


def test_the_order_of_the_records_does_not_matter() -> None:
    assert summary(SIX[::-1]) == summary()


@pytest.mark.parametrize(
    ("at", "told"), [(1, "Run 1 of fold 0"), (3, "Run 0 of fold 1"), (5, "Run 2 of fold 1")]
)
def test_a_missing_run_is_refused_and_named(at: int, told: str) -> None:
    with pytest.raises(IhgnnError, match=f"{told} is missing.*The same command finishes it"):
        summary([*SIX[:at], *SIX[at + 1 :]])


def test_a_run_that_was_not_tested_is_refused_and_named() -> None:
    name = "final-fold0-split0-lr0.01-batch32-k3-run0 was not tested. Remove its file"
    for wrong in (final(0, 0, None), final(0, 0, 0.5, best=False), Record(SIX[0].validated, None)):
        with pytest.raises(IhgnnError) as caught:
            summary([wrong, *SIX[1:]])
        assert str(caught.value).startswith(name)
