"""Bundles: what a member becomes, what it cannot see, and what survives a kill."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from ihgnn_cli.data import load_dataset
from ihgnn_cli.data.splits import draw_folds
from ihgnn_cli.errors import IhgnnError
from ihgnn_cli.studies import work
from ihgnn_cli.studies.grid import Configuration
from ihgnn_cli.studies.plan import Bundle, Protocol, bundles, final_units, selection_units
from ihgnn_cli.studies.units import Record, Stage, Unit
from ihgnn_cli.studies.work import Job, Trainer
from ihgnn_cli.training import cohort
from ihgnn_cli.training.config import configure

CPU = torch.device("cpu")
FAST, SLOW = Configuration(0.01, 32, 1), Configuration(0.001, 32, 1)


def make_job(*, epochs: int = 4, patience: int = 0, inner: int = 1, curves: bool = False) -> Job:
    config = configure(
        overrides={"width": 4, "hidden": 8, "epochs": epochs, "patience": patience, "device": "cpu"}
    )
    dataset = load_dataset("MUTAG")
    folds = tuple(draw_folds(dataset.graph_class, 0, 3, inner))
    return Job(Protocol(config, (FAST, SLOW), 2), dataset, folds, curves)


def selection(job: Job) -> Bundle:
    (bundle,) = bundles(selection_units(job.protocol, job.folds), 12)
    return bundle


def final(job: Job) -> Bundle:
    chosen = dict.fromkeys(range(3), FAST)
    (bundle,) = bundles(final_units(job.protocol, job.folds, chosen), 10)
    return bundle


def trained(job: Job, bundle: Bundle, partial: Path | None = None) -> dict[Unit, Record]:
    found: dict[Unit, Record] = {}
    Trainer(job, CPU).train(bundle, _into(found), lambda *_: None, partial)
    return found


def _into(found: dict[Unit, Record]):
    def deliver(record: Record) -> None:
        found[record.validated.unit] = without_time(record)

    return deliver


def without_time(record: Record) -> Record:
    return replace(record, validated=replace(record.validated, seconds=0.0))


def test_every_unit_is_delivered_with_its_split_and_its_seed() -> None:
    job = make_job()
    found = trained(job, selection(job))
    assert set(found) == set(selection_units(job.protocol, job.folds))
    for unit, record in found.items():
        known = record.validated
        assert known.split_sha256 == job.folds[unit.fold].splits[unit.split].digest
        assert known.seed == unit.seed(0)
        assert len(known.hits) == len(known.losses) == known.epochs == 4
        assert known.members == 6
        assert known.best is not None
        best = known.best.epoch - 1
        assert known.hits[best] == max(known.hits)
        assert known.best.validation_accuracy == known.hits[best] / known.validation_graphs
        assert record.tested is None


def test_a_member_of_a_bundle_has_the_curve_that_it_has_alone() -> None:
    job = make_job()
    together = trained(job, selection(job))
    for unit, record in together.items():
        alone = trained(job, Bundle("alone", (unit,)))[unit].validated
        assert alone.hits == record.validated.hits
        np.testing.assert_allclose(alone.losses, record.validated.losses, atol=2e-5)


def test_selection_is_the_same_whatever_the_test_graphs_are() -> None:
    """Nothing of the test part reaches a training, its epoch or what configurations compete by."""
    job = make_job(curves=True)
    before = trained(job, selection(job))
    for number, fold in enumerate(job.folds):
        poisoned = job.dataset.graph_class.copy()
        poisoned[fold.test] = 1 - poisoned[fold.test]
        other = replace(job, dataset=replace(job.dataset, graph_class=poisoned))
        # Of this fold only: the others train on these graphs.
        units = tuple(unit for unit in selection(job).units if unit.fold == number)
        one = Bundle("one", units)
        clean, dirty = trained(job, one), trained(other, one)
        for unit in units:
            assert clean[unit].validated == dirty[unit].validated
            right, wrong = clean[unit].tested, dirty[unit].tested
            assert right is not None
            assert wrong is not None
            complement = tuple(len(fold.test) - hits for hits in right.hits)
            assert wrong.hits == complement  # the curves did see them
            assert before[unit].tested is not None


def test_curves_of_the_test_graphs_change_nothing_else() -> None:
    plain, curved = make_job(), make_job(curves=True)
    before, after = trained(plain, selection(plain)), trained(curved, selection(curved))
    for unit, record in before.items():
        assert after[unit].validated == record.validated
        tested = after[unit].tested
        assert tested is not None
        assert len(tested.hits) == 4
        assert tested.accuracy is None


def test_final_runs_are_tested_once_at_their_best_epoch() -> None:
    job = make_job()
    for unit, record in trained(job, final(job)).items():
        assert unit.stage is Stage.FINAL
        tested = record.tested
        assert tested is not None
        assert tested.hits == ()
        truth = job.dataset.graph_class[job.folds[unit.fold].test]
        assert tested.accuracy == np.mean(np.array(tested.predictions) == truth)


def test_the_test_accuracy_of_a_final_run_is_that_of_its_best_epoch(monkeypatch) -> None:
    """The curve of the same training, looked at from outside, at the epoch that was chosen."""
    job = make_job(curves=True, epochs=6)
    bundle = final(job)
    as_selection = tuple(replace(unit, stage=Stage.SELECT) for unit in bundle.units)
    monkeypatch.setattr(Unit, "seed", lambda unit, seed: 100 + unit.fold * 10 + unit.run)
    found = trained(job, bundle)
    curves = trained(job, Bundle("curves", as_selection))
    for unit, record in found.items():
        watched = curves[replace(unit, stage=Stage.SELECT)]
        assert record.validated.losses == watched.validated.losses
        assert record.validated.best is not None
        assert record.tested is not None
        assert watched.tested is not None
        at_best = watched.tested.hits[record.validated.best.epoch - 1]
        assert record.tested.accuracy == at_best / watched.tested.graphs


def test_with_patience_units_are_delivered_when_they_are_done() -> None:
    job = make_job(epochs=60, patience=3)
    order: list[int] = []
    told = [0, 0]

    def tell(epochs: int, settled: int) -> None:
        told[0] += epochs
        told[1] += settled

    Trainer(job, CPU).train(
        selection(job), lambda record: order.append(record.validated.epochs), tell
    )
    assert order == sorted(order)
    assert len(set(order)) > 1  # or nothing is shown
    assert told == [sum(order), 60 * len(order)]


class _Killed(BaseException):
    pass


@pytest.mark.parametrize("patience", [0, 3])
def test_a_bundle_goes_on_from_its_last_save_bit_for_bit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, patience: int
) -> None:
    job = make_job(epochs=20, patience=patience, curves=True)
    bundle = selection(job)
    whole = trained(job, bundle)
    monkeypatch.setattr(work, "_SAVE_SECONDS", 0.0)
    monkeypatch.setattr(work, "_SAVE_SHARE", 0)
    advance = cohort.Cohort.advance
    found: dict[Unit, Record] = {}
    epochs = 0

    def dying(self: cohort.Cohort) -> None:
        nonlocal epochs
        epochs += 1
        if epochs in (4, 9):
            raise _Killed
        advance(self)

    monkeypatch.setattr(cohort.Cohort, "advance", dying)
    for _ in range(2):
        with pytest.raises(_Killed):
            Trainer(job, CPU).train(bundle, _into(found), lambda *_: None, tmp_path)
        assert (tmp_path / f"{bundle.name}.pt").is_file()
    Trainer(job, CPU).train(bundle, _into(found), lambda *_: None, tmp_path)
    assert found == whole
    # Two calls died before they did anything; nothing else was done twice.
    assert epochs - 2 == max(record.validated.epochs for record in whole.values())
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("content", [b"", b"garbage", None])
def test_a_damaged_save_begins_anew(tmp_path: Path, content: bytes | None) -> None:
    job = make_job()
    bundle = selection(job)
    path = tmp_path / f"{bundle.name}.pt"
    if content is None:
        torch.save({"units": [unit.name for unit in bundle.units], "curves": False}, path)
    else:
        path.write_bytes(content)
    assert trained(job, bundle, tmp_path) == trained(job, bundle)


def test_a_save_of_other_units_is_not_taken(tmp_path: Path) -> None:
    job = make_job()
    bundle = selection(job)
    torch.save({"units": ["another"], "curves": False}, tmp_path / f"{bundle.name}.pt")
    assert trained(job, bundle, tmp_path) == trained(job, bundle)


def test_a_stack_that_memory_is_too_small_for_is_trained_in_halves(monkeypatch) -> None:
    job = make_job()
    bundle = selection(job)
    sizes = []
    advance = cohort.Cohort.advance

    def full(self: cohort.Cohort) -> None:
        sizes.append(len(self.present))
        if len(self.present) > 2:
            raise torch.OutOfMemoryError("CUDA out of memory")
        advance(self)

    monkeypatch.setattr(cohort.Cohort, "advance", full)
    found = trained(job, bundle)
    assert set(found) == set(bundle.units)
    assert sizes[:3] == [6, 3, 2]
    assert {record.validated.members for record in found.values()} == {1, 2}


def test_memory_too_small_for_one_model_is_told_with_a_remedy(monkeypatch) -> None:
    job = make_job()

    def full(_: cohort.Cohort) -> None:
        raise MemoryError

    monkeypatch.setattr(cohort.Cohort, "advance", full)
    with pytest.raises(IhgnnError, match=r"Not enough memory on cpu.*smaller --batch-size"):
        trained(job, selection(job))


def test_other_failures_are_not_taken_for_a_full_memory(monkeypatch) -> None:
    def broken(_: cohort.Cohort) -> None:
        raise RuntimeError("shapes do not match")

    monkeypatch.setattr(cohort.Cohort, "advance", broken)
    job = make_job()
    with pytest.raises(RuntimeError, match="shapes"):
        trained(job, selection(job))


def test_a_diverged_training_is_recorded_and_disturbs_nobody() -> None:
    job = make_job()
    wild = replace(job.protocol, grid=(Configuration(1e30, 32, 1), SLOW))
    found = trained(replace(job, protocol=wild), selection(replace(job, protocol=wild)))
    for unit, record in found.items():
        if unit.configuration.lr > 1:
            assert record.validated.diverged
            assert record.validated.epochs == len(record.validated.hits) + 1 <= 4
        else:
            assert not record.validated.diverged
            alone = trained(job, Bundle("alone", (unit,)))[unit].validated
            np.testing.assert_allclose(alone.losses, record.validated.losses, atol=2e-5)


def test_units_of_inner_folds_train_on_their_own_split() -> None:
    job = make_job(inner=2)
    found = trained(job, selection(job))
    assert len(found) == 2 * 3 * 2
    assert {unit.split for unit in found} == {0, 1}
    digests = {record.validated.split_sha256 for record in found.values()}
    assert digests == {split.digest for fold in job.folds for split in fold.splits}
