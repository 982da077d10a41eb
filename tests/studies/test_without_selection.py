"""A cross-validation that averages snapshots and chooses nothing."""

from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import ihgnn_cli
from ihgnn_cli.api.crossval import planned
from ihgnn_cli.data import load_dataset
from ihgnn_cli.data.splits import write_fold_file
from ihgnn_cli.errors import InputError
from ihgnn_cli.jobs.executor import Executor
from ihgnn_cli.jobs.local import work
from ihgnn_cli.models.registry import model_names
from ihgnn_cli.studies import crossval
from ihgnn_cli.studies import work as unit_work
from ihgnn_cli.studies.folds import make_folds
from ihgnn_cli.studies.grid import check_choices, own_grid
from ihgnn_cli.studies.plan import bundles, final_units, selection_units
from ihgnn_cli.studies.units import Record, Unit, parsed
from ihgnn_cli.studies.work import Job
from ihgnn_cli.training.config import configure, read_config
from ihgnn_cli.training.kinds import Recipe

SMALL = {"width": 4, "hidden": 8, "epochs": 4, "device": "cpu", "ensemble": 2, "snapshots": 2}
HERE = Executor(1, torch.device("cpu"), 2**34, lambda queue, callback: work(queue, "cpu", callback))


def make_job() -> Job:
    config = configure(Recipe.ROBUST, overrides=SMALL)
    dataset = load_dataset("MUTAG")
    protocol = planned(config, {"batch_size": (64,), "layers": (1,)})
    return Job(protocol, dataset, make_folds(dataset, 0, folds=2))


def finished(job: Job, folder: Path) -> dict:
    stack = crossval.begin(job, folder, HERE)
    return crossval.finish(job, folder, HERE, stack).result


def test_all_graphs_outside_the_test_part_train() -> None:
    job = make_job()
    assert selection_units(job.protocol, job.folds) == []
    units = final_units(job.protocol, job.folds, dict.fromkeys(range(2), job.protocol.grid[0]))
    assert len(units) == 4  # two seeds in each of two folds
    split = job.split(units[0])
    assert len(split.validation) == 0
    assert len(split.train) + len(split.test) == len(job.dataset)


def test_the_accuracy_of_a_fold_is_that_of_the_mean_prediction(tmp_path: Path) -> None:
    job = make_job()
    result = finished(job, tmp_path / "job")
    records = [
        parsed(path.read_text(encoding="utf-8")) for path in (tmp_path / "job/units").iterdir()
    ]
    assert len(records) == result["models"] == 4
    assert not any(each.validated.probabilities for each in records)  # nothing is validated
    for number, fold in enumerate(job.folds):
        rows = [each.tested.probabilities for each in records if each.validated.unit.fold == number]
        right = np.mean(rows, axis=0).argmax(1) == job.dataset.graph_class[fold.test]
        assert result["folds"][number]["test_mean"] == pytest.approx(right.mean())
        assert result["folds"][number]["validation_accuracy"] is None
    assert result["chosen_by"] == "nothing"
    assert result["snapshots"] == 2
    assert result["model_epochs"] == 16
    best = read_config(tmp_path / "job" / "best.toml").training
    assert (best.ensemble, best.snapshots, best.epochs) == (2, 2, 4)


def test_the_snapshots_so_far_survive_a_kill(tmp_path: Path, monkeypatch) -> None:
    job = make_job()
    units = final_units(job.protocol, job.folds, dict.fromkeys(range(2), job.protocol.grid[0]))
    (bundle,) = bundles(units, 4)
    monkeypatch.setattr(unit_work, "_SAVE_SECONDS", 0.0)
    monkeypatch.setattr(unit_work, "_SAVE_SHARE", 0)

    def train(partial: Path | None, epochs: int) -> dict[Unit, tuple]:
        """The probabilities of finished units; the process is killed after some epochs."""
        found, left = {}, iter(range(epochs))

        def deliver(record: Record) -> None:
            found[record.validated.unit] = record.tested.probabilities

        def tell(advanced: int, _done: int) -> None:
            if advanced and next(left, None) is None:
                raise KeyboardInterrupt

        with suppress(KeyboardInterrupt):
            unit_work.Trainer(job, torch.device("cpu")).train(bundle, deliver, tell, partial)
        return found

    whole = train(None, 4)
    assert len(whole) == 4
    assert train(tmp_path, 2) == {}  # after the first snapshot
    assert train(tmp_path, 4) == whole


def test_a_finished_job_is_not_trained_again(tmp_path: Path) -> None:
    job = make_job()
    result = finished(job, tmp_path / "job")
    stack = crossval.begin(job, tmp_path / "job", HERE)
    again = crossval.finish(job, tmp_path / "job", HERE, stack)
    assert again.trained is None
    assert again.result == result


def test_classes_of_test_graphs_change_no_prediction(tmp_path: Path) -> None:
    job = make_job()

    def predicted(job: Job, folder: Path) -> dict[Unit, tuple]:
        finished(job, folder)
        lines = [path.read_text(encoding="utf-8") for path in (folder / "units").iterdir()]
        found = [parsed(line) for line in lines]
        return {each.validated.unit: each.tested.probabilities for each in found}

    first = replace(job, folds=job.folds[:1])
    classes = job.dataset.graph_class.copy()
    classes[job.folds[0].test] = 0
    other = replace(first, dataset=replace(job.dataset, graph_class=classes))
    assert predicted(first, tmp_path / "one") == predicted(other, tmp_path / "other")


@pytest.mark.parametrize(
    ("settings", "lists", "asked", "what"),
    [
        ({}, {"lr": (0.1, 0.01)}, {}, "a list of values has no meaning"),
        ({}, {}, {"race": True}, "--race has no meaning"),
        (
            {},
            {},
            {"rules": True},
            "With snapshots, as in the recipe robust, .*, so --rules has no meaning",
        ),
        (
            {},
            {},
            {"inner_folds": 3},
            r"--inner-folds \(or a split file with several\) has no meaning",
        ),
        ({"snapshots": 0}, {}, {}, "ensemble needs snapshots"),
    ],
)
def test_what_would_choose_is_refused(settings, lists, asked, what) -> None:
    config = configure(Recipe.ROBUST, overrides=settings)
    with pytest.raises(InputError, match=what):
        check_choices(config, own_grid(config, lists), **asked)


@pytest.mark.parametrize("conformal", [None, 0.1])
def test_several_inner_splits_of_a_file_are_refused(tmp_path: Path, conformal) -> None:
    file = tmp_path / "splits.json"
    write_fold_file(make_folds(load_dataset("MUTAG"), 0, folds=2, inner=2), file)
    with pytest.raises(
        InputError, match=r"so inner_folds \(or a split file with several\) has no meaning"
    ):
        ihgnn_cli.crossval(
            recipe="robust", split_file=file, conformal=conformal, out=tmp_path / "job"
        )
    assert not (tmp_path / "job").exists()


@pytest.mark.parametrize("model", model_names())
def test_snapshots_leave_one_configuration_of_every_model(model: str) -> None:
    config = configure(overrides={"snapshots": 3, "lr": 0.02}, model=model)
    (only,) = own_grid(config)
    assert only.applied(config) == config


def test_with_prediction_sets_the_validation_graphs_calibrate_instead_of_training(
    tmp_path: Path,
) -> None:
    job = replace(make_job(), conformal=0.1)
    assert crossval.default_folder(tmp_path, job, "x") != crossval.default_folder(
        tmp_path, make_job(), "x"
    )
    result = finished(job, tmp_path / "job")
    records = [
        parsed(path.read_text(encoding="utf-8")) for path in (tmp_path / "job/units").iterdir()
    ]
    for each in records:
        split = job.split(each.validated.unit)
        assert split == job.folds[each.validated.unit.fold].splits[0]
        assert len(each.validated.probabilities) == len(split.validation) > 0
        assert each.validated.best is not None
        assert each.validated.best.epoch == 4  # the last one: none is chosen
    found = result["conformal"]
    assert found["chosen_on_same"] is False
    # By hand: the mean of the two seeds, calibrated and tested in each fold.
    for number, fold in enumerate(job.folds):
        own = [each for each in records if each.validated.unit.fold == number]
        truth = job.dataset.graph_class
        validated = np.mean([each.validated.probabilities for each in own], axis=0)
        tested = np.mean([each.tested.probabilities for each in own], axis=0)
        validation = fold.splits[0].validation
        of_truth = np.sort(validated[np.arange(len(validation)), truth[validation]])
        least = of_truth[int(np.floor(0.1 * (len(validation) + 1))) - 1]
        listed = tested[np.arange(len(fold.test)), truth[fold.test]]
        inside = (listed >= least - 1e-6) | (listed == tested.max(axis=1))
        assert found["folds"][number]["coverage"] == pytest.approx(inside.mean(), abs=0.02)
        assert found["folds"][number]["calibrated_on"] == len(validation)
