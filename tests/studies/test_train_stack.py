"""Stacks: what a member becomes, what it cannot see, and what survives a kill."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from small_job import SLOW, at, small_job, with_classes

from ihgnn_cli.errors import IhgnnError
from ihgnn_cli.studies.crossval import train_stack
from ihgnn_cli.studies.crossval.job import Job
from ihgnn_cli.studies.crossval.protocol import (
    Stage,
    Training,
    final_trainings,
    selection_trainings,
)
from ihgnn_cli.studies.crossval.records import Record
from ihgnn_cli.studies.crossval.stacks import Stack
from ihgnn_cli.studies.crossval.train_stack import Trainer, remove_checkpoints
from ihgnn_cli.training import cohort

CPU = torch.device("cpu")


def selection(job: Job) -> Stack:
    return Stack("select", tuple(selection_trainings(job.protocol, job.folds)))


def final(job: Job) -> Stack:
    chosen = dict.fromkeys(range(len(job.folds)), job.protocol.grid[0])
    return Stack("final", tuple(final_trainings(job.protocol, job.folds, chosen)))


def train(job: Job, stack: Stack, partial: Path | None = None) -> dict[Training, Record]:
    """The records of a stack, without the time they took."""
    records = Trainer(job, CPU).train(stack, partial=partial)
    assert [each.validated.training for each in records] == list(stack.trainings)
    timeless = (replace(each, validated=replace(each.validated, seconds=0.0)) for each in records)
    return dict(zip(stack.trainings, timeless, strict=True))


def test_every_training_has_its_own_split_and_seed_and_its_best_epoch_by_validation() -> None:
    job = small_job(inner=2)
    found = train(job, selection(job))
    assert len({each.validated.split_sha256 for each in found.values()}) == 6
    for training, record in found.items():
        known = record.validated
        assert known.split_sha256 == job.folds[training.fold].splits[training.split].digest
        assert known.seed == training.seed(0)
        assert len(known.hits) == len(known.losses) == known.epochs == 4
        assert known.members == 12
        assert known.best is not None
        best = known.best.epoch - 1
        assert known.hits[best] == max(known.hits)
        assert known.best.validation_accuracy == known.hits[best] / known.validation_graphs
        assert record.tested is None


def test_a_member_of_a_stack_has_the_curve_that_it_has_alone() -> None:
    job = small_job()
    for training, record in train(job, selection(job)).items():
        alone = train(job, Stack("alone", (training,)))[training].validated
        assert alone.hits == record.validated.hits
        np.testing.assert_allclose(alone.losses, record.validated.losses, atol=2e-5)


def test_curves_of_the_test_graphs_change_nothing_else() -> None:
    plain, curved = small_job(), small_job(curves=True)
    before, after = train(plain, selection(plain)), train(curved, selection(curved))
    for training, record in before.items():
        assert after[training].validated == record.validated
        tested = after[training].tested
        assert tested is not None
        assert len(tested.hits) == 4
        assert tested.accuracy is None


def test_a_final_run_is_tested_at_its_best_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its curve, recorded by the same training as a part of the selection, says so."""
    job = small_job(curves=True, epochs=6)
    stack = final(job)
    watched = Stack("curves", tuple(replace(each, stage=Stage.SELECT) for each in stack.trainings))
    monkeypatch.setattr(Training, "seed", lambda each, _: 100 + each.fold * 10 + each.run)
    curves = train(job, watched)
    for training, record in train(job, stack).items():
        curve, tested = curves[replace(training, stage=Stage.SELECT)], record.tested
        assert record.validated.losses == curve.validated.losses
        assert record.validated.best is not None
        assert tested is not None
        assert curve.tested is not None
        right = curve.tested.hits[record.validated.best.epoch - 1]
        assert tested.accuracy == right / curve.tested.graphs
        truth = job.dataset.graph_class[job.folds[training.fold].test]
        assert tested.accuracy == np.mean(np.array(tested.predictions) == truth)
        assert tested.predictions == tuple(np.argmax(tested.probabilities, axis=1))
        assert tested.hits == ()


class _Killed(BaseException):
    pass


@pytest.mark.parametrize("settings", [{}, {"patience": 3}, {"snapshots": 4}])
def test_a_stack_goes_on_from_its_last_save_bit_for_bit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: dict[str, int]
) -> None:
    if "snapshots" in settings:
        job = small_job(grid=(SLOW,), epochs=20, **settings)
        stack = final(job)
    else:
        job = small_job(epochs=20, curves=True, **settings)
        stack = selection(job)
    whole = train(job, stack)
    monkeypatch.setattr(train_stack, "_SAVE_SECONDS", 0.0)
    monkeypatch.setattr(train_stack, "_SAVE_SHARE", 0)
    advance, epochs = cohort.Cohort.advance, 0

    def dying(self: cohort.Cohort) -> None:
        nonlocal epochs
        epochs += 1
        if epochs in (4, 9):
            raise _Killed
        advance(self)

    monkeypatch.setattr(cohort.Cohort, "advance", dying)
    for _ in range(2):
        with pytest.raises(_Killed):
            train(job, stack, tmp_path)
        assert (tmp_path / f"{stack.name}.pt").is_file()
    again = train(job, stack, tmp_path)
    assert [each.line() for each in again.values()] == [each.line() for each in whole.values()]
    # Two calls died before they did anything; nothing else was done twice.
    assert epochs - 2 == max(record.validated.epochs for record in whole.values())
    remove_checkpoints(tmp_path, stack)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("content", [b"", b"garbage", "incomplete", "others"])
def test_a_save_that_is_damaged_or_of_others_is_not_used(
    tmp_path: Path, content: bytes | str
) -> None:
    job = small_job()
    stack = selection(job)
    names = [each.name for each in stack.trainings]
    path = tmp_path / f"{stack.name}.pt"
    match content:
        case bytes():
            path.write_bytes(content)
        case "incomplete":
            torch.save({"trainings": names, "curves": False}, path)
        case _:
            torch.save({"trainings": ["another"], "curves": False}, path)
    assert train(job, stack, tmp_path) == train(job, stack)


def test_a_stack_that_does_not_fit_is_trained_in_halves_that_survive_a_kill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = small_job()
    stack, sizes, alive = selection(job), [], [True]
    advance = cohort.Cohort.advance

    def full(self: cohort.Cohort) -> None:
        sizes.append(len(self.present))
        if len(self.present) > 3:
            raise torch.OutOfMemoryError("CUDA out of memory")
        if len(sizes) > 6 and alive[0]:
            alive[0] = False
            raise _Killed
        advance(self)

    monkeypatch.setattr(cohort.Cohort, "advance", full)
    with pytest.raises(_Killed):
        train(job, stack, tmp_path)
    first = [*sizes]
    found = train(job, stack, tmp_path)
    assert first == [6, 3, 3, 3, 3, 3, 3]  # all epochs of the first half, one of the second
    assert sizes[len(first) :] == [6, 3, 3, 3, 3]  # the second half alone
    assert {record.validated.members for record in found.values()} == {3}
    assert found == train(job, stack)
    remove_checkpoints(tmp_path, stack)
    assert not list(tmp_path.iterdir())


def test_halves_without_test_accuracies_are_trained_again_for_rules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = small_job()
    advance = cohort.Cohort.advance

    def full(self: cohort.Cohort) -> None:
        if len(self.present) > 3:
            raise torch.OutOfMemoryError("CUDA out of memory")
        advance(self)

    monkeypatch.setattr(cohort.Cohort, "advance", full)
    train(job, selection(job), tmp_path)
    found = train(replace(job, curves=True), selection(job), tmp_path)
    assert all(record.has_curve for record in found.values())


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (MemoryError(), r"Not enough memory on cpu .*smaller --batch-size"),
        (RuntimeError("shapes do not match"), "shapes"),
    ],
)
def test_only_full_memory_is_reported_as_such(monkeypatch, error: Exception, said: str) -> None:
    def fail(_: cohort.Cohort) -> None:
        raise error

    monkeypatch.setattr(cohort.Cohort, "advance", fail)
    job = small_job()
    kind = IhgnnError if isinstance(error, MemoryError) else RuntimeError
    with pytest.raises(kind, match=said):
        train(job, selection(job))


def test_a_diverged_training_is_recorded_and_the_others_go_on() -> None:
    job = small_job((at(1e30, layers=1), SLOW))
    for training, record in train(job, selection(job)).items():
        known = record.validated
        assert known.diverged == (training.configuration["lr"] > 1)
        if known.diverged:
            assert known.epochs == len(known.hits) + 1 <= 4
        else:
            alone = train(job, Stack("alone", (training,)))[training].validated
            np.testing.assert_allclose(alone.losses, known.losses, atol=2e-5)
    with pytest.raises(IhgnnError, match=r"A final run of fold 0 diverged in its first epoch .*lr"):
        train(job, final(job))


def test_without_a_selection_validation_graphs_train_and_predictions_are_averaged() -> None:
    job = small_job((SLOW,), snapshots=3, runs=1)
    for training, record in train(job, final(job)).items():
        known, tested = record.validated, record.tested
        assert (known.validation_graphs, known.hits, known.losses) == (0, (), ())
        assert known.best is not None
        assert known.best.epoch == 4
        assert tested is not None
        np.testing.assert_allclose(np.sum(tested.probabilities, axis=1), 1, atol=1e-5)
        split = job.folds[training.fold].splits[0]
        outside = np.concatenate([split.train, split.validation])
        assert sorted(job.split(training).train) == sorted(outside)
    flipped = with_classes(job, 1 - job.dataset.graph_class)
    fold = final_trainings(job.protocol, job.folds, {0: SLOW, 1: SLOW, 2: SLOW})[0]
    assert train(flipped, Stack("one", (fold,))) != train(job, Stack("one", (fold,)))
