"""A job from its folds to its result, in this process."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from ihgnn_cli.data import load_dataset
from ihgnn_cli.data.splits import draw_folds, load_split, write_fold_file
from ihgnn_cli.errors import IhgnnError, InputError
from ihgnn_cli.jobs.claims import Claims
from ihgnn_cli.jobs.executor import Executor
from ihgnn_cli.jobs.local import work
from ihgnn_cli.jobs.queue import Callback, Queue, Step
from ihgnn_cli.studies import crossval
from ihgnn_cli.studies.folder import read_job, read_result
from ihgnn_cli.studies.folds import make_folds
from ihgnn_cli.studies.grid import Configuration, configuration
from ihgnn_cli.studies.plan import Protocol
from ihgnn_cli.studies.result import identity
from ihgnn_cli.studies.signal.features import GraphFeatures
from ihgnn_cli.studies.signal.references import references
from ihgnn_cli.studies.units import Validated, parsed
from ihgnn_cli.studies.work import Job
from ihgnn_cli.training.config import configure, read_config
from ihgnn_cli.training.final import final_config
from ihgnn_cli.training.needs import NoRoomError

CPU = torch.device("cpu")
GRID = (Configuration(0.01, 64, 1), Configuration(0.001, 64, 1))


def here(queue: Queue, callback: Callback) -> None:
    work(queue, "cpu", callback)


def idle(*_: object) -> None:
    pass


HERE = Executor(1, CPU, 2**34, here)


@pytest.fixture
def job() -> Job:
    config = configure(overrides={"width": 4, "hidden": 8, "epochs": 2, "device": "cpu"})
    dataset = load_dataset("MUTAG")
    folds = make_folds(dataset, 0, folds=3)
    return Job(Protocol(config, GRID, 2), dataset, folds)


def finished(job: Job, folder: Path, **options) -> dict:
    stack = crossval.begin(job, folder, HERE, stack=4)
    return crossval.finish(job, folder, HERE, stack, **options).result


def test_references_of_a_later_version_replace_those_of_a_finished_job(
    job: Job, tmp_path: Path
) -> None:
    found = references(GraphFeatures(job.dataset), job.folds, 0)
    before = finished(job, tmp_path / "job", references=found[:3])
    told = finished(job, tmp_path / "job", references=found)
    assert len(before["references"]["methods"]) == 3
    assert [each["key"] for each in told["references"]["methods"]] == [each.key for each in found]
    assert read_result(tmp_path / "job") == told
    assert told["test_mean"] == before["test_mean"]
    refuse = replace(HERE, run=idle)
    again = crossval.finish(job, tmp_path / "job", refuse, 4, references=found)
    assert (again.result, again.trained) == (told, None)


def test_the_result_follows_from_the_unit_files(job: Job, tmp_path: Path) -> None:
    result = finished(job, tmp_path / "job", command="ihgnn crossval")
    files = (tmp_path / "job" / "units").iterdir()
    records = [parsed(path.read_text(encoding="utf-8")) for path in files]
    assert len(records) == result["models"] == 2 * 3 + 3 * 2
    assert result["model_epochs"] == result["trained_now"] == 24
    for fold in result["folds"]:
        of_fold = [each for each in records if each.validated.unit.fold == fold["fold"]]
        chosen = Configuration(**fold["configuration"])
        competing = {
            each.validated.unit.configuration: each.validated.score
            for each in of_fold
            if each.validated.unit.stage == "select"
        }
        assert competing[chosen] == max(competing.values())
        assert fold["validation_accuracy"] == float(competing[chosen][0])
        tests = [
            each.tested.accuracy
            for each in sorted(of_fold, key=lambda each: each.validated.unit.run)
            if each.validated.unit.stage == "final"
        ]
        assert [run["test_accuracy"] for run in fold["runs"]] == tests
        assert fold["test_mean"] == np.mean(tests)
        digests = {run["split_sha256"] for run in fold["runs"]}
        assert digests == {job.folds[fold["fold"]].splits[0].digest}
    means = [fold["test_mean"] for fold in result["folds"]]
    assert result["test_mean"] == pytest.approx(np.mean(means))
    assert result["test_std"] == pytest.approx(np.std(means))
    by_run = [
        np.mean([fold["runs"][run]["test_accuracy"] for fold in result["folds"]])
        for run in range(2)
    ]
    assert result["runs"] == pytest.approx(by_run)
    assert result["runs_std"] == pytest.approx(np.std(by_run))
    assert result["paper"] == {"variant": "full", "mean": 0.899, "std": 0.06}
    assert result["majority_share"] == 125 / 188
    assert result["job"]["data_sha256"] == job.dataset.fingerprint
    assert result["provenance"]["command"] == "ihgnn crossval"
    assert json.loads((tmp_path / "job" / "result.json").read_text()) == result


def test_what_most_folds_chose_is_left_as_a_configuration(job: Job, tmp_path: Path) -> None:
    result = finished(job, tmp_path / "job")
    best = result["best"]
    choices = [fold for fold in result["folds"] if fold["configuration"] == best["configuration"]]
    assert best["folds"] == len(choices) >= 2
    epochs = sorted(run["epoch"] for fold in choices for run in fold["runs"])
    assert best["epochs"] == epochs[(len(epochs) - 1) // 2]
    file = tmp_path / "job" / "best.toml"
    config = read_config(file)
    assert config == crossval.best_config(job, result)
    assert best["epochs"] < 20
    assert config.training.epochs == 20  # the fewest for a final training
    assert config.training.lr == best["configuration"]["lr"]
    assert final_config(config, file=file).training.epochs == 20
    assert f"its final runs ({best['epochs']}), but at least 20" in file.read_text()
    text = file.read_text()
    assert text.startswith(f"# The configuration that most folds chose: {len(choices)} of 3.\n")
    file.unlink()
    crossval.finish(job, tmp_path / "job", HERE, 4)
    assert file.read_text() == text
    older = {**result, "best": {**best, "epochs": 77}}
    crossval.folders.write_result(tmp_path / "job", older)
    file.write_text(text.replace("epochs = 20", "epochs = 77"))
    crossval.finish(job, tmp_path / "job", HERE, 4)  # made again with the result
    assert file.read_text() == text
    file.unlink()
    crossval._write_best(job, tmp_path / "job", {**result, "best": {**best, "folds": 1}})
    assert file.read_text().startswith("# Each of 3 folds chose another configuration; this one ")


def test_a_result_of_before_gets_its_best_configuration(job: Job, tmp_path: Path) -> None:
    result = finished(job, tmp_path / "job")
    older = {name: value for name, value in result.items() if name != "best"}
    (tmp_path / "job" / "result.json").write_text(json.dumps(older))
    again = crossval.finish(job, tmp_path / "job", HERE, 4)
    assert again.result["best"] == result["best"]
    assert again.result["seconds"] == result["seconds"]


def test_a_finished_job_is_not_done_again(job: Job, tmp_path: Path) -> None:
    result = finished(job, tmp_path / "job")

    def refuse(*_: object) -> None:
        raise AssertionError("there is nothing left to do")

    path = tmp_path / "job" / "result.json"
    result |= {"finished": "2026-01-01T00:00:00+00:00", "provenance": {"command": "of old"}}
    path.write_text(json.dumps(result))
    again = crossval.finish(job, tmp_path / "job", replace(HERE, run=refuse), 4)
    assert again == crossval.Finished(result, None)
    assert json.loads(path.read_text()) == result
    path.unlink()
    anew = crossval.finish(job, tmp_path / "job", replace(HERE, run=refuse), 4)
    assert anew.result["folds"] == result["folds"]
    assert anew.result["trained_now"] == 0
    assert anew.trained is None


def test_what_an_older_version_wrote_is_made_again_and_says_so(job: Job, tmp_path: Path) -> None:
    result = finished(job, tmp_path / "job")
    path = tmp_path / "job" / "result.json"
    path.write_text(json.dumps({**result, "test_error": 0.5, "provenance": {"command": "of old"}}))
    again = crossval.finish(job, tmp_path / "job", HERE, 4, command="ihgnn crossval again").result
    assert again["test_error"] == result["test_error"]
    assert again["provenance"] == {"command": "of old"}
    assert again["made_again"]["command"] == "ihgnn crossval again"
    assert json.loads(path.read_text()) == again


def test_rules_and_coverage_are_kept_by_commands_that_do_not_ask_for_them(
    job: Job, tmp_path: Path
) -> None:
    folder = tmp_path / "job"
    more = replace(job, curves=True, conformal=0.5)
    stack = crossval.begin(more, folder, HERE)
    first = crossval.finish(more, folder, HERE, stack).result
    assert crossval.finish(job, folder, HERE, stack).result == first
    other = crossval.finish(replace(more, conformal=0.25), folder, HERE, stack).result
    assert (other["conformal"]["alpha"], other["rules"]) == (0.25, first["rules"])


def test_a_result_that_cannot_be_replaced_is_shown_unless_more_is_asked_for(
    job: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "job"
    result = finished(job, folder)
    (folder / "result.json").write_text(json.dumps({**result, "test_error": 0.5}))

    def full(*_: object) -> None:
        raise IhgnnError("The disk is full.")

    monkeypatch.setattr(crossval.folders, "write_result", full)
    assert crossval.finish(job, folder, HERE, 4).result["test_error"] == result["test_error"]
    with pytest.raises(IhgnnError, match="full"):
        crossval.finish(replace(job, conformal=0.5), folder, HERE, 4)


def test_what_is_trained_now_is_told_apart_from_what_was_there(job: Job, tmp_path: Path) -> None:
    folder = tmp_path / "job"
    finished(job, folder)
    (folder / "result.json").unlink()
    for lost in (folder / "units").glob("final-*"):
        lost.unlink()
    done = crossval.finish(job, folder, HERE, 4)
    assert done.trained == done.result["trained_now"] == 3 * 2 * 2
    assert done.result["model_epochs"] == 24


def test_who_waits_for_others_has_trained_nothing(job: Job, tmp_path: Path) -> None:
    def others(queue: Queue, watch: Callback) -> None:
        watch(Step())
        here(queue, idle)

    crossval.begin(job, tmp_path / "job", HERE, stack=4)
    done = crossval.finish(job, tmp_path / "job", replace(HERE, run=others), 4)
    assert done.trained == 0


def test_no_mean_over_what_happens_to_be_there(job: Job, tmp_path: Path) -> None:
    finished(job, tmp_path / "job")
    (tmp_path / "job" / "result.json").unlink()
    lost = next((tmp_path / "job" / "units").glob("final-fold1-*-run1.json"))
    lost.unlink()
    lazy = replace(HERE, run=idle)
    with pytest.raises(IhgnnError, match="Run 1 of fold 1 is missing"):
        crossval.finish(job, tmp_path / "job", lazy, 4)
    assert not (tmp_path / "job" / "result.json").exists()
    next((tmp_path / "job" / "units").glob("select-fold2-*")).unlink()
    with pytest.raises(IhgnnError, match="Fold 2 is not complete"):
        crossval.finish(job, tmp_path / "job", lazy, 4)


def test_progress_ends_at_the_end_whatever_patience_leaves_out(job: Job, tmp_path: Path) -> None:
    training = replace(job.protocol.config.training, epochs=30, patience=2)
    patient = replace(
        job, protocol=job.protocol.on(replace(job.protocol.config, training=training))
    )
    told: list[crossval.Progress] = []
    result = finished(patient, tmp_path / "job", watch=lambda progress, _: told.append(progress))
    assert result["model_epochs"] < 30 * 12
    assert told[0].epochs == 0
    assert (told[-1].epochs, told[-1].of_epochs) == (30 * 12, 30 * 12)
    assert told[-1].of_models == 12
    assert [each.epochs for each in told] == sorted(each.epochs for each in told)


@pytest.mark.parametrize("pause", [0.0, 1000.0])
def test_not_all_epochs_are_told_before_all_models_are_finished(
    job: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pause: float
) -> None:
    """Also when what is finished was looked for long ago."""
    monkeypatch.setattr(crossval._Meter, "_LOOK_SECONDS", pause)
    monkeypatch.setattr(crossval._Meter, "_LOOK_SHARE", 1e9)
    told: list[crossval.Progress] = []
    finished(job, tmp_path / "job", watch=lambda progress, _: told.append(progress))
    last = told[-1]
    assert (last.epochs, last.models) == (24, 12)
    assert all(each.models == 12 for each in told if each.epochs == each.of_epochs)


@pytest.mark.parametrize(
    ("stack", "workers"),
    [
        (1, 6),  # six trainings of the selection, six final runs
        (2, 3),  # and three folds, which may need stacks of their own
        (4, 3),
        (15, 3),
    ],
)
def test_there_is_no_use_for_more_workers_than_stacks(
    job: Job, tmp_path: Path, stack: int, workers: int
) -> None:
    crossval.begin(job, tmp_path / "job", HERE, stack=stack)
    assert crossval.most_workers(job, tmp_path / "job") == workers


def test_the_size_of_stacks_stays_what_it_was(job: Job, tmp_path: Path) -> None:
    assert crossval.begin(job, tmp_path / "job", HERE, stack=4) == 4
    assert crossval.begin(job, tmp_path / "job", HERE, stack=5) == 4
    assert crossval.begin(job, tmp_path / "job", HERE) == 4
    assert crossval.begin(job, tmp_path / "other", HERE) == 6  # all six fit and pay


def sizes(folder: Path) -> tuple[int, int]:
    """Of stacks in the selection and in final runs."""
    begun = read_job(folder)
    return begun["stack"], begun["final_stack"]


@pytest.mark.parametrize(
    ("workers", "stack", "final"), [(1, 15, 6), (2, 9, 3), (4, 5, 2), (100, 1, 1)]
)
def test_final_runs_are_spread_over_the_workers_where_nobody_says_otherwise(
    job: Job, tmp_path: Path, workers: int, stack: int, final: int
) -> None:
    """18 trainings of the selection, and six final runs: with two workers each has three."""
    lrs = (0.06, 0.05, 0.04, 0.03, 0.02, 0.01)
    grid = tuple(Configuration(lr, 64, 1) for lr in lrs)
    larger = replace(job, protocol=replace(job.protocol, grid=grid))
    folder = tmp_path / "job"
    crossval.begin(larger, folder, replace(HERE, workers=workers))
    assert sizes(folder) == (stack, final)
    crossval.begin(larger, folder, HERE, stack=15)  # goes on with what was begun
    assert sizes(folder) == (stack, final)


@pytest.mark.parametrize("workers", [1, 2, 100])
def test_a_size_that_is_given_is_that_of_all_stacks_whoever_works(
    job: Job, tmp_path: Path, workers: int
) -> None:
    crossval.begin(job, tmp_path / "job", replace(HERE, workers=workers), stack=4)
    assert sizes(tmp_path / "job") == (4, 4)


def test_the_sizes_of_the_folder_are_those_of_the_trainings_and_of_the_result(
    job: Job, tmp_path: Path
) -> None:
    """Six trainings of the selection and three final runs, for two workers."""
    one = replace(job, protocol=replace(job.protocol, runs=1))
    crossval.begin(one, tmp_path / "job", replace(HERE, workers=2))
    result = finished(one, tmp_path / "job")
    assert (result["stack"], result["final_stack"]) == (3, 2)
    members: dict[str, set[int]] = {"select": set(), "final": set()}
    for path in (tmp_path / "job" / "units").iterdir():
        known = parsed(path.read_text(encoding="utf-8")).validated
        members[known.unit.stage].add(known.members)
    assert members == {"select": {3}, "final": {1, 2}}


def test_equal_jobs_have_the_same_folder_and_others_another(job: Job) -> None:
    place = crossval.default_folder(Path("runs"), job, "MUTAG")
    assert place.parent == Path("runs")
    assert place.name.startswith("MUTAG-crossval-")
    assert crossval.default_folder(Path("runs"), replace(job, curves=True), "MUTAG") == place
    moved = replace(job.protocol.config, data=replace(job.protocol.config.data, dataset="/x/MUTAG"))
    assert (
        crossval.default_folder(
            Path("runs"), replace(job, protocol=job.protocol.on(moved)), "MUTAG"
        )
        == place
    )
    others = [
        replace(job, protocol=replace(job.protocol, runs=3)),
        replace(job, protocol=replace(job.protocol, grid=GRID[:1])),
        replace(job, folds=make_folds(job.dataset, 1, folds=3)),
        replace(job, protocol=job.protocol.on(configure(overrides={"width": 5, "epochs": 2}))),
    ]
    places = {crossval.default_folder(Path("runs"), each, "MUTAG") for each in [job, *others]}
    assert len(places) == 5


def test_the_identity_holds_no_path_and_no_device(job: Job) -> None:
    moved = replace(job.protocol.config, data=replace(job.protocol.config.data, dataset="/x/MUTAG"))
    text = json.dumps(identity(replace(job, protocol=job.protocol.on(moved))))
    assert "/x" not in text
    assert "cpu" not in text


def test_folds_come_from_the_seed_or_from_a_file(job: Job, tmp_path: Path) -> None:
    data = job.dataset
    ten = make_folds(data, 0)
    assert [len(fold.splits) for fold in ten] == [1] * 10
    file = tmp_path / "folds.json"
    write_fold_file(draw_folds(data.graph_class, 5, 4, 2), file)
    found = make_folds(data, 0, file=file)
    assert [fold.digest for fold in found] == [
        fold.digest for fold in draw_folds(data.graph_class, 5, 4, 2)
    ]
    assert len(make_folds(data, 0, file=file, folds=4, inner=2)) == 4
    for folds in (-1, 0, 1, 5, 10):
        with pytest.raises(InputError, match=f"has 4 folds, and --folds asks for {folds}"):
            make_folds(data, 0, file=file, folds=folds)
    with pytest.raises(InputError, match="has 2 inner folds, and --inner-folds asks for 1"):
        make_folds(data, 0, file=file, inner=1)
    write_fold_file(ten, file)
    with pytest.raises(InputError, match="has 1 inner fold, and --inner-folds asks for 2"):
        make_folds(data, 0, file=file, inner=2)


def test_the_first_folds_of_a_file_are_a_partial_job(job: Job, tmp_path: Path) -> None:
    data, file = job.dataset, tmp_path / "folds.json"
    ten = make_folds(data, 0)
    write_fold_file(ten, file)
    first = make_folds(data, 0, file=file, folds=3)
    assert [fold.digest for fold in first] == [fold.digest for fold in ten[:3]]
    whole, part = replace(job, folds=ten), replace(job, folds=first)
    tested = sum(len(fold.test) for fold in first)
    assert whole.partial is None
    assert part.partial is not None
    assert f"the first 3 folds of a split file, which test {tested} of {len(data)} graphs" in (
        part.partial
    )
    assert identity(whole) != identity(part)
    write_fold_file(first, file)  # what the job writes into its folder can be read again
    assert len(make_folds(data, 0, file=file, folds=3)) == 3
    assert load_split(f"{file}:2", data, 0).digest == first[2].splits[0].digest
    with pytest.raises(InputError, match="in the test part of no fold"):
        make_folds(data, 0, file=file)


def test_files_that_are_no_cross_validation_are_refused(job: Job, tmp_path: Path) -> None:
    file = tmp_path / "folds.json"
    one, other = draw_folds(job.dataset.graph_class, 0, 2)
    write_fold_file([one], file)
    with pytest.raises(InputError, match="holds one fold"):
        make_folds(job.dataset, 0, file=file)
    uneven = replace(other, splits=other.splits * 2)
    write_fold_file([one, uneven], file)
    with pytest.raises(InputError, match="different numbers of inner splits"):
        make_folds(job.dataset, 0, file=file)


def test_steps_of_others_are_seen_in_the_folder(job: Job, tmp_path: Path, monkeypatch) -> None:
    folder = tmp_path / "job"
    crossval.begin(job, folder, HERE, stack=4)
    monkeypatch.setattr(crossval._Meter, "_LOOK_SECONDS", 0.0)
    told: list[crossval.Progress] = []

    def silent(queue: Queue, watch: Callback) -> None:
        watch(Step())
        here(queue, idle)  # as another command would
        watch(Step())

    quiet = replace(HERE, run=silent)
    crossval.finish(job, folder, quiet, 4, lambda progress, _: told.append(progress))
    assert told[0].models == 0
    assert (told[-1].models, told[-1].epochs) == (12, 24)


def test_units_of_another_job_are_not_taken_for_ours(job: Job, tmp_path: Path) -> None:
    """Someone has replaced crossval.json: seeds and splits of the units tell."""
    finished(job, tmp_path / "job")
    other = replace(job, folds=make_folds(job.dataset, 5, folds=3))
    for name in ("crossval.json", "result.json"):
        (tmp_path / "job" / name).unlink()
    with pytest.raises(InputError, match="is not empty"):
        finished(other, tmp_path / "job")
    crossval.begin(other, tmp_path / "another", HERE, stack=4)
    (tmp_path / "another" / "crossval.json").replace(tmp_path / "job" / "crossval.json")
    with pytest.raises(InputError, match="belongs to another job"):
        finished(other, tmp_path / "job")


def test_other_versions_are_told(job: Job, tmp_path: Path) -> None:
    crossval.begin(job, tmp_path / "job", HERE, stack=4)
    assert crossval.other_versions(tmp_path / "job", HERE) is None
    path = tmp_path / "job" / "crossval.json"
    content = json.loads(path.read_text())
    content["packages"]["torch"] = "1.0"
    path.write_text(json.dumps(content))
    told = crossval.other_versions(tmp_path / "job", HERE)
    assert told is not None
    assert told.startswith("torch 1.0, now 2.")


def test_rules_are_added_to_a_job_where_a_whole_stack_diverged_at_once(
    job: Job, tmp_path: Path
) -> None:
    wild = replace(job, protocol=replace(job.protocol, grid=(Configuration(1e30, 64, 1), GRID[0])))
    assert crossval.begin(wild, tmp_path / "job", HERE, stack=3) == 3  # a stack a learning rate
    plain = finished(wild, tmp_path / "job")
    assert plain["diverged"] == 3
    ruled = finished(replace(wild, curves=True), tmp_path / "job")
    assert ruled["folds"] == plain["folds"]
    assert ruled["trained_now"] == 3 * 2  # those that did not diverge
    assert [rule["key"] for rule in ruled["rules"]] == [
        "nested",
        "common-validation",
        "authors",
        "common-test-epoch",
    ]
    for rule in ruled["rules"][1:]:
        assert rule["configuration"]["lr"] == 0.01


@pytest.mark.parametrize("content", ["", "{}", "[]", "[" * 100_000])
def test_a_damaged_result_is_made_anew(job: Job, tmp_path: Path, content: str) -> None:
    result = finished(job, tmp_path / "job")
    (tmp_path / "job" / "result.json").write_text(content)
    assert finished(job, tmp_path / "job")["folds"] == result["folds"]


def test_the_rules_of_one_are_not_swept_away_by_another(job: Job, tmp_path: Path) -> None:
    """A command without --rules finishes while one with them is at work."""
    folder = tmp_path / "job"
    finished(job, folder)
    (folder / "result.json").unlink()
    (folder / "partial").mkdir(exist_ok=True)
    (folder / "partial" / "select-k1-batch64-0.pt").touch()
    with Claims(folder / "claims") as claims:
        assert claims.take(["select-k1-batch64-0"], lambda _: False)
        finished(job, folder)
        assert any((folder / "partial").iterdir())
    (folder / "result.json").unlink()
    finished(job, folder)
    assert not (folder / "partial").exists()


def test_another_model_s_job_has_its_settings_in_its_records_and_result(tmp_path: Path) -> None:
    config = configure(overrides={"width": 4, "layers": 1, "epochs": 2}, model="gin")
    dataset = load_dataset("MUTAG")
    grid = tuple(Configuration(0.01, 64, 1, (("learn_eps", each),)) for each in (True, False))
    job = Job(Protocol(config, grid, 1), dataset, make_folds(dataset, 0, folds=2))
    stack = crossval.begin(job, tmp_path / "job", HERE)
    assert stack == 1
    result = crossval.finish(job, tmp_path / "job", HERE, stack).result
    assert result["model"] == "gin"
    assert result["paper"] is None
    assert result["job"]["protocol"]["model"]["name"] == "gin"
    assert result["models"] == 2 * 2 + 2
    for fold in result["folds"]:
        assert configuration(fold["configuration"]) in grid
    names = {path.name for path in (tmp_path / "job" / "units").iterdir()}
    assert "select-fold0-split0-lr0.01-batch64-k1-learn_epstrue-run0.json" in names
    again = crossval.finish(job, tmp_path / "job", replace(HERE, run=idle), stack)
    assert again.trained is None
    assert again.result == result


def test_a_job_that_does_not_fit_makes_no_folder(job: Job, tmp_path: Path) -> None:
    with pytest.raises(NoRoomError, match="IHGNN does not fit in memory"):
        crossval.begin(job, tmp_path / "job", replace(HERE, memory=1000))
    assert not (tmp_path / "job").exists()


RACERS = tuple(Configuration(lr, 64, 1) for lr in (0.1, 0.03, 0.01, 0.001))


@pytest.fixture
def race(job: Job) -> Job:
    """Four configurations for 1 epoch, two for 3, one for 9."""
    config = replace(job.protocol.config, training=replace(job.protocol.config.training, epochs=9))
    return replace(job, protocol=Protocol(config, RACERS, 1, race=True))


def test_a_race_is_won_by_validation_after_few_epochs(race: Job, tmp_path: Path) -> None:
    told = []
    result = finished(race, tmp_path / "job", watch=lambda progress, _: told.append(progress))
    assert result["models"] == 3 * (4 + 2 + 1) + 3
    assert result["model_epochs"] == 3 * (4 * 1 + 2 * 3 + 1 * 9) + 3 * 9
    assert (told[-1].models, told[-1].epochs) == (24, result["model_epochs"])
    assert (told[-1].of_models, told[-1].of_epochs) == (24, result["model_epochs"])
    assert result["race"].startswith(
        "Race: in each fold 4 configurations for 1 epoch, 2 for 3 epochs, 1 for 9 epochs,"
    )
    assert result["chosen_by"].endswith(", in a race")
    whole = replace(race, protocol=replace(race.protocol, race=False))
    finished(whole, tmp_path / "whole")
    curves = {
        (each.unit.fold, each.unit.configuration): each
        for path in (tmp_path / "whole" / "units").glob("select-*")
        for each in [parsed(path.read_text(encoding="utf-8")).validated]
    }
    for fold in result["folds"]:
        left = list(RACERS)
        for epochs, count in ((1, 2), (3, 1)):
            scores = {each: best_until(curves[fold["fold"], each], epochs) for each in left}
            left = sorted(left, key=scores.__getitem__, reverse=True)[:count]
        assert configuration(fold["configuration"]) == left[0]


def best_until(found: Validated, epochs: int) -> tuple[int, float]:
    return max(zip(found.hits[:epochs], (-each for each in found.losses[:epochs]), strict=True))


def test_an_interrupted_race_ends_with_the_same_numbers(race: Job, tmp_path: Path) -> None:
    whole = finished(race, tmp_path / "whole")
    folder = tmp_path / "job"
    stack = crossval.begin(race, folder, HERE, stack=4)

    def interrupt(progress: crossval.Progress, _step: Step) -> None:
        if progress.models >= 14:  # in the second rung
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        crossval.finish(race, folder, HERE, stack, interrupt)
    again = crossval.finish(race, folder, HERE, stack).result
    assert again["folds"] == whole["folds"]
    assert again["trained_now"] < whole["trained_now"]


def test_a_race_is_another_job_than_the_full_selection(race: Job, tmp_path: Path) -> None:
    crossval.begin(race, tmp_path / "job", HERE, stack=4)
    whole = replace(race, protocol=replace(race.protocol, race=False))
    assert "race" not in identity(whole)["protocol"]  # as in folders of earlier versions
    with pytest.raises(InputError, match="holds another job"):
        crossval.begin(whole, tmp_path / "job", HERE, stack=4)


def repeated(job: Job, repeats: int) -> Job:
    folds = make_folds(job.dataset, 0, folds=3, repeats=repeats)
    return replace(job, folds=folds, repeats=repeats)


def test_a_repeat_is_the_job_with_its_seed_and_more_of_them_continue_a_finished_job(
    job: Job, tmp_path: Path
) -> None:
    first = finished(job, tmp_path / "job")
    more = finished(repeated(job, 2), tmp_path / "job")
    assert more["trained_now"] == first["model_epochs"]  # those of the second partition alone
    assert more["folds"][:3] == first["folds"]
    training = replace(job.protocol.config.training, seed=1)
    other = replace(
        job,
        protocol=job.protocol.on(replace(job.protocol.config, training=training)),
        folds=make_folds(job.dataset, 1, folds=3),
    )
    alone = finished(other, tmp_path / "alone")
    assert [fold["runs"] for fold in more["folds"][3:]] == [fold["runs"] for fold in alone["folds"]]
    assert [fold["fold"] for fold in more["folds"]] == list(range(6))
    means = [each["test_mean"] for each in (first, alone)]
    assert [each["test_mean"] for each in more["repeats"]] == means
    assert [each["seed"] for each in more["repeats"]] == [0, 1]
    assert more["test_mean"] == pytest.approx(np.mean(means))
    files = {path.name for path in (tmp_path / "job").glob("splits*")}
    assert files == {"splits.json", "splits-repeat1.json"}
    written = (tmp_path / "job" / "splits-repeat1.json").read_bytes()
    assert written == (tmp_path / "alone" / "splits.json").read_bytes()
    # Fewer repeats are a result of the units that are there.
    again = crossval.finish(job, tmp_path / "job", HERE, 4)
    assert again.trained is None
    assert again.result["folds"] == first["folds"]


def test_the_standard_error_counts_shared_training_graphs(job: Job, tmp_path: Path) -> None:
    result = finished(repeated(job, 2), tmp_path / "job")
    means = [fold["test_mean"] for fold in result["folds"]]
    tested = 188 / 3
    factor = 1 / 6 + tested / (188 - tested)
    assert result["test_error"] == pytest.approx(np.sqrt(factor) * np.std(means, ddof=1))


def test_the_accuracy_of_each_graph_is_its_mean_over_runs_and_repeats(
    job: Job, tmp_path: Path
) -> None:
    result = finished(repeated(job, 2), tmp_path / "job")
    files = (tmp_path / "job" / "units").glob("final-*")
    records = [parsed(path.read_text(encoding="utf-8")) for path in files]
    assert len(records) == 2 * 3 * 2
    hits = np.zeros(188)
    for each in records:
        test = repeated(job, 2).folds[each.validated.unit.fold].test
        hits[test] += np.equal(each.tested.predictions, job.dataset.graph_class[test])
    assert result["graph_accuracies"] == pytest.approx((hits / 4).tolist())


def test_repeats_of_a_file_of_folds_are_refused(job: Job, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--repeats draws partitions, and --split-file reads one"):
        make_folds(job.dataset, 0, file=tmp_path / "folds.json", repeats=2)
    with pytest.raises(InputError, match="repeats must be at least 1"):
        make_folds(job.dataset, 0, repeats=0)
