"""Cohorts: members come and go, and each becomes what it would have become alone."""

import io
from collections.abc import Sequence
from dataclasses import astuple, replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from exact import ExactStore, one_thread  # noqa: F401
from numpy.typing import NDArray
from torch import Tensor

from ihgnn_cli.data import load_dataset
from ihgnn_cli.data.batching.batches import GraphStore
from ihgnn_cli.data.dataset import GraphDataset
from ihgnn_cli.data.features import Features
from ihgnn_cli.models.card import inputs_of
from ihgnn_cli.training.checkpoint import build
from ihgnn_cli.training.cohort import Cohort, new_cohort
from ihgnn_cli.training.config import RunConfig, configure
from ihgnn_cli.training.course import Course
from ihgnn_cli.training.stack import Member, Stack

CPU = torch.device("cpu")
# With a patience of 2, members finish at different times.
SMALL = {"layers": 2, "width": 4, "hidden": 8, "batch_size": 8, "epochs": 9, "patience": 2}
FOUR = (
    # Of 3, 2, 3 and 4 steps an epoch.
    Member(seed=1, lr=0.01, train=np.arange(20), validation=np.arange(150, 160)),
    Member(seed=2, lr=0.001, train=np.arange(60, 75), validation=np.arange(100, 107)),
    Member(seed=3, lr=0.01, train=np.arange(20, 40), validation=np.arange(110, 130)),
    Member(seed=4, lr=0.003, train=np.arange(5, 35), validation=np.arange(60, 80)),
)
# The last epoch of each: the third is best after one, the fourth after two.
LAST = [9, 9, 3, 4]


@cache
def mutag() -> GraphDataset:
    return load_dataset("MUTAG")


def exact(members: Sequence[Member], **settings: object) -> Cohort:
    """At its start, in double precision."""
    config = configure(overrides={**SMALL, **settings})
    inputs = inputs_of(mutag(), Features.LABELS)
    stack = Stack(
        build(config, inputs, [member.seed for member in members]).double(),
        ExactStore(mutag(), Features.LABELS, mutag().max_nodes, 2, CPU),
        members,
        batch_size=config.training.batch_size,
        dropout=config.model.dropout,
    )
    return Cohort(stack, epochs=config.training.epochs, patience=config.training.patience)


def single(members: Sequence[Member], *, keep_weights: bool = True, **settings: object) -> Cohort:
    """At its start, in single precision as in earnest."""
    config: RunConfig = configure(overrides={**SMALL, **settings})
    store = GraphStore(mutag(), Features.LABELS, mutag().max_nodes, 2, CPU)
    inputs = inputs_of(mutag(), Features.LABELS)
    return new_cohort(config, inputs, store, members, keep_weights=keep_weights)


def finished(cohort: Cohort) -> Cohort:
    while not cohort.finished:
        cohort.advance()
    return cohort


def assert_close(ours: Course, theirs: Course) -> None:
    """The same epochs, and the same numbers to far beyond what one epoch changes."""
    assert len(ours.history) == len(theirs.history)
    for one, other in zip(ours.history, theirs.history, strict=True):
        assert astuple(one) == pytest.approx(astuple(other), rel=1e-7)
    assert ours.best is not None
    assert theirs.best is not None
    assert ours.best.epoch == theirs.best.epoch
    assert ours.best_weights.keys() == theirs.best_weights.keys()
    for name, value in ours.best_weights.items():
        torch.testing.assert_close(value, theirs.best_weights[name], rtol=1e-6, atol=1e-8)


def copied(state: dict[str, Any]) -> dict[str, Any]:
    """The state as a file would keep it: nothing in it changes any more, and all of it is plain."""
    written = io.BytesIO()
    torch.save(state, written)
    written.seek(0)
    found: dict[str, Any] = torch.load(written, weights_only=True)
    return found


# Those who finish leave


def test_who_has_finished_leaves_and_the_others_do_not_notice() -> None:
    cohort = exact(FOUR)
    present = []
    while not cohort.finished:
        cohort.advance()
        present.append(cohort.present)
        assert len(cohort.stack.members) == len(cohort.present)
    assert present == [(0, 1, 2, 3)] * 3 + [(0, 1, 3)] + [(0, 1)] * 5
    assert [len(course.history) for course in cohort.courses] == LAST
    for course, member in zip(cohort.courses, FOUR, strict=True):
        assert_close(course, finished(exact([member])).courses[0])


def test_orders_and_dropout_are_those_of_each_alone_bit_for_bit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drawn: dict[tuple[int, int], list[tuple[list[int], Tensor]]] = {}
    draw = Stack._draw

    def watched(self: Stack, member: Member) -> tuple[NDArray[np.int64], Tensor]:
        order, dropout = draw(self, member)
        drawn.setdefault((member.seed, self.epoch), []).append((order.tolist(), dropout))
        return order, dropout

    monkeypatch.setattr(Stack, "_draw", watched)
    finished(exact(FOUR))
    for member in FOUR:
        finished(exact([member]))
    assert {key: len(each) for key, each in drawn.items()} == {
        (member.seed, epoch): 2
        for member, last in zip(FOUR, LAST, strict=True)
        for epoch in range(1, last + 1)
    }
    for (order, dropout), (order_alone, dropout_alone) in drawn.values():
        assert order == order_alone
        assert torch.equal(dropout, dropout_alone)


def test_the_last_ones_stay_in_the_stack() -> None:
    cohort = exact(FOUR[:2], epochs=2)
    assert not cohort.finished
    finished(cohort)
    cohort.dismiss()
    assert cohort.present == (0, 1)
    assert cohort.done(0)
    assert cohort.done(1)


def test_without_patience_all_run_to_the_end() -> None:
    cohort = finished(exact(FOUR, patience=0, epochs=4))
    assert [len(course.history) for course in cohort.courses] == [4] * 4
    assert cohort.present == (0, 1, 2, 3)


# What stays when others go


def test_those_who_are_kept_keep_weights_statistics_moments_and_steps_exactly() -> None:
    stack = single(FOUR).stack
    for _ in range(2):
        stack.train_epoch()
    before = copied(stack.state())
    stack.keep([0, 2])
    after = copied(stack.state())
    assert after["epoch"] == 2
    assert stack.members == (FOUR[0], FOUR[2])
    assert after["model"].keys() == before["model"].keys()
    assert any(name.endswith("running_var") for name in after["model"])  # statistics are among them
    for name, value in before["model"].items():
        assert torch.equal(after["model"][name], value[[0, 2]]), name
    for name in ("first", "second"):
        assert before["optimizer"][name].count_nonzero() > 0
        assert torch.equal(after["optimizer"][name], before["optimizer"][name][[0, 2]])
    assert before["optimizer"]["steps"] == [6, 4, 6, 8]
    assert after["optimizer"]["steps"] == [6, 6]


def test_parameters_are_still_moved_after_others_have_gone() -> None:
    stack = single(FOUR).stack
    stack.train_epoch()
    stack.keep([1, 3])
    before = copied(stack.state())
    stack.train_epoch()
    after = stack.state()
    assert after["optimizer"]["steps"] == [4, 8]  # type: ignore[index]
    for name, value in before["model"].items():
        assert value.shape[0] == 2
        for member in range(2):
            changed = after["model"][name][member]  # type: ignore[index]
            assert not torch.equal(changed, value[member]), name


def test_what_is_evaluated_is_evaluated_anew_for_those_who_stay() -> None:
    stack = exact(FOUR).stack
    stack.train_epoch()
    tests = [np.arange(start, start + 9) for start in (0, 50, 90, 120)]
    before = np.stack(stack.evaluate("test", tests))
    stack.keep([1, 2])
    after = np.stack(stack.evaluate("test", tests[1:3]))
    np.testing.assert_allclose(after, before[:, 1:3], rtol=1e-9)


# Divergence


def test_one_that_diverges_is_recorded_and_disturbs_nobody() -> None:
    wild = replace(FOUR[1], lr=1e300)
    with_wild = finished(exact([FOUR[0], wild, FOUR[2]]))
    without = finished(exact([FOUR[0], FOUR[2]]))
    diverged = with_wild.courses[1]
    assert diverged.diverged is not None
    assert diverged.diverged.epoch == len(diverged.history) + 1 < SMALL["epochs"]
    assert with_wild.present == (0,)
    assert_close(with_wild.courses[0], without.courses[0])
    assert_close(with_wild.courses[2], without.courses[1])


def test_one_that_diverges_at_once_has_nothing_to_show() -> None:
    wild = replace(FOUR[0], lr=1e30)
    cohort = finished(single([wild, FOUR[1]]))
    course = cohort.courses[0]
    assert (course.history, course.best, course.best_weights) == ([], None, {})
    assert course.diverged is not None
    assert course.diverged.epoch == 1
    assert len(cohort.courses[1].history) == LAST[1]
    assert all(each.isfinite().all() for each in cohort.courses[1].best_weights.values())


def test_a_cohort_where_all_diverge_has_finished() -> None:
    cohort = finished(single([replace(each, lr=1e30) for each in FOUR[:2]]))
    assert [course.best for course in cohort.courses] == [None, None]


# Going on


@pytest.mark.parametrize(("epochs", "present"), [(1, 4), (3, 4), (4, 3), (6, 2)])
def test_a_cohort_goes_on_from_its_state_bit_for_bit(epochs: int, present: int) -> None:
    """After 3 epochs somebody has finished but is still present; after 4 and 6 some are gone."""
    whole = single(FOUR)
    for _ in range(epochs):
        whole.advance()
    again = single(FOUR)
    again.restore(copied(whole.state()))
    assert again.present == whole.present
    assert len(again.stack.members) == len(again.present) == present
    while not whole.finished:
        assert not again.finished
        whole.advance()
        again.advance()
    assert again.finished
    assert again.present == whole.present
    for one, other in zip(again.courses, whole.courses, strict=True):
        assert one.history == other.history
        assert one.best == other.best
        for name, value in other.best_weights.items():
            assert torch.equal(one.best_weights[name], value), name
    for name, value in whole.stack.model.state_dict().items():
        assert torch.equal(again.stack.model.state_dict()[name], value), name


def test_who_has_diverged_is_not_brought_back_by_a_restart() -> None:
    members = [replace(FOUR[0], lr=1e30), FOUR[1]]
    whole = single(members)
    whole.advance()
    whole.advance()
    again = single(members)
    again.restore(copied(whole.state()))
    assert again.present == (1,)
    assert again.done(0)
    assert not again.done(1)


@pytest.mark.parametrize("key", ["present", "courses", "stack"])
def test_what_is_no_state_is_refused(key: str) -> None:
    state = single(FOUR[:2]).state()
    del state[key]
    with pytest.raises(KeyError):
        single(FOUR[:2]).restore(state)


def test_the_state_of_other_members_is_refused() -> None:
    with pytest.raises(ValueError, match="zip"):
        single(FOUR[:3]).restore(single(FOUR[:2]).state())
    with pytest.raises(RuntimeError, match="size mismatch"):
        single(FOUR[:2], width=6).restore(single(FOUR[:2]).state())


# The best weights


def test_the_weights_of_the_best_epoch_are_kept_as_they_were() -> None:
    cohort = single(FOUR, epochs=5)
    after: list[dict[int, dict[str, Tensor]]] = []
    while not cohort.finished:
        cohort.advance()
        weights = copied(cohort.stack.state())["model"]
        after.append(
            {
                member: {name: value[[place]] for name, value in weights.items()}
                for place, member in enumerate(cohort.present)
            }
        )
    for member, course in enumerate(cohort.courses):
        assert course.best is not None
        expected = after[course.best.epoch - 1][member]
        assert course.best_weights.keys() == expected.keys()
        for name, value in expected.items():
            assert torch.equal(course.best_weights[name], value), name


def test_nobody_keeps_weights_where_none_are_wanted() -> None:
    without = finished(single(FOUR, keep_weights=False))
    assert [course.best_weights for course in without.courses] == [{}] * 4
    kept = finished(single(FOUR))
    assert [each.history for each in without.courses] == [each.history for each in kept.courses]


def test_a_new_cohort_has_the_settings_of_its_configuration() -> None:
    cohort = single(FOUR[:2], batch_size=5, epochs=1, hidden=6)
    assert cohort.stack.batch_size == 5
    assert cohort.stack.model.state_dict()["classifier.second.weight"].shape == (2, 6, 2)
    assert cohort.stack.members == FOUR[:2]
    cohort.advance()
    assert cohort.stack.state()["optimizer"]["steps"] == [4, 3]  # type: ignore[index]
    assert cohort.finished
