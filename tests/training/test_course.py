"""A course: its best epoch, and when it is enough."""

import math

import pytest
import torch

from ihgnn_cli.training.course import Course
from ihgnn_cli.training.epoch import Epoch


def epoch(number: int, accuracy: float, loss: float = 0.5, train_loss: float = 0.5) -> Epoch:
    return Epoch(number, train_loss, 0.5, loss, accuracy)


def course(*accuracies: float) -> Course:
    made = Course()
    for number, accuracy in enumerate(accuracies, 1):
        made.add(epoch(number, accuracy))
    return made


def test_the_best_is_the_most_accurate_then_of_the_lowest_loss_then_the_first() -> None:
    made = Course()
    assert made.best is None
    assert made.add(epoch(1, 0.5))
    assert made.add(epoch(2, 0.5, loss=0.4))
    assert not made.add(epoch(3, 0.5, loss=0.4))
    assert not made.add(epoch(4, 0.4, loss=0.1))
    assert made.best == epoch(2, 0.5, loss=0.4)
    assert made.add(epoch(5, 0.6, loss=9.0))
    assert made.best == epoch(5, 0.6, loss=9.0)
    assert [each.epoch for each in made.history] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("wrong", [math.nan, math.inf])
@pytest.mark.parametrize("which", ["loss", "train_loss"])
def test_an_epoch_whose_loss_is_not_finite_is_the_last_and_does_not_count(
    wrong: float, which: str
) -> None:
    made = course(0.5)
    diverged = epoch(2, 0.9, **{which: wrong})
    assert not made.add(diverged)
    assert made.diverged is diverged
    assert made.history == [epoch(1, 0.5)]
    assert made.best == epoch(1, 0.5)
    assert made.done(epochs=100, patience=0)


def test_a_course_that_diverged_at_once_has_no_best() -> None:
    made = Course()
    made.add(epoch(1, 0.9, loss=math.nan))
    assert made.best is None
    assert made.history == []
    assert made.done(epochs=100, patience=7)


def test_a_course_is_done_after_all_epochs() -> None:
    assert not course(0.1, 0.2).done(epochs=3, patience=0)
    assert course(0.1, 0.2, 0.3).done(epochs=3, patience=0)


def test_patience_is_counted_from_the_best_epoch() -> None:
    assert not course(0.5, 0.6, 0.4).done(epochs=100, patience=2)
    assert course(0.5, 0.6, 0.4, 0.6).done(epochs=100, patience=2)
    assert not course(0.5, 0.6, 0.4, 0.7).done(epochs=100, patience=2)


def test_without_patience_a_course_waits_for_the_last_epoch() -> None:
    assert not course(0.5, *[0.1] * 50).done(epochs=100, patience=0)


def test_a_course_before_its_first_epoch_is_not_done() -> None:
    assert not Course().done(epochs=1, patience=1)


def test_a_course_goes_on_from_its_plain_values() -> None:
    before = course(0.5, 0.7, 0.6)
    before.best_weights = {"weight": torch.ones(1, 2)}
    after = Course()
    after.restore(before.as_plain())
    assert after.history == before.history
    assert after.best == epoch(2, 0.7)
    assert torch.equal(after.best_weights["weight"], torch.ones(1, 2))
    assert after.diverged is None
    assert not after.add(epoch(4, 0.65))
    assert after.add(epoch(5, 0.75))


def test_what_diverged_comes_back_so() -> None:
    before = Course()
    before.add(epoch(1, 0.5, train_loss=math.inf))
    after = Course()
    after.restore(before.as_plain())
    assert after.best is None
    assert after.diverged == before.diverged
    assert after.done(epochs=100, patience=0)


def test_what_is_no_course_is_refused() -> None:
    plain = course(0.5).as_plain()
    for key in plain:
        with pytest.raises(KeyError):
            Course().restore({name: value for name, value in plain.items() if name != key})
    for wrong in ({"history": 3}, {"history": [{"epoch": 1}]}, {"best": 9}, {"best": "1"}):
        with pytest.raises((KeyError, TypeError, IndexError)):
            Course().restore({**plain, **wrong})
