"""`ihgnn tune` as a user runs it: results, files and refusals."""

import json
import re
import shutil
import tomllib

import pytest
from refusals import assert_refused
from tuned import ONE_WORKER, TINY, finished, rows

from ihgnn_cli.api import tune as tune_api
from ihgnn_cli.cli import tune_display
from ihgnn_cli.studies.tuning import job as jobs


@pytest.fixture
def quick(monkeypatch, thread_workers) -> None:
    """Threads as workers, and no figures: starting processes and drawing are the slowest parts."""
    for name in ("write_report", "draw_study", "draw"):
        monkeypatch.setattr(tune_api, name, lambda *_: {})


@pytest.mark.usefixtures("thread_workers")
def test_a_search_ends_with_a_tested_model_and_all_its_files(ihgnn, tmp_path) -> None:
    result = ihgnn("tune", *TINY, "--trials", "4", "--workers", "2")
    assert result.returncode == 0, result.stderr
    assert re.search(r"^Test accuracy \d+\.\d%$", result.stdout, re.MULTILINE)
    assert "no trial saw the test graphs" in result.stdout
    assert "\x1b" not in result.stdout + result.stderr
    (folder,) = (tmp_path / "runs").iterdir()
    assert folder.name.startswith("MUTAG-tune-")
    found = json.loads((folder / "result.json").read_text())
    for name in ("history", "curves", "parallel", "slices"):
        assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    page = (folder / "report.html").read_text(encoding="utf-8")
    test = found["final"]["test"]
    assert f"{test['balanced_accuracy']:.1%}; {test['roc_auc']:.3f}</dd>" in page
    assert "data:image/png;base64," in page
    assert all(row["best_epoch"] in ("1", "2", "3") for row in rows(folder))
    assert (folder / found["final"]["folder"] / "curves.png").read_bytes().startswith(b"\x89PNG")
    assert not re.search(r"""(src|href)=["'](?!data:)""", page)  # nothing is fetched
    assert len(rows(folder)) == 4
    assert found["trials"]["complete"] + found["trials"]["pruned"] == 4
    # The best by the rule: accuracy, then loss, then the earlier.
    complete = [row for row in rows(folder) if row["state"] == "complete"]
    best = max(
        complete,
        key=lambda row: (float(row["validation_accuracy"]), -float(row["validation_loss"])),
    )
    assert found["best"]["trial"] == int(best["trial"])
    # The paper's defaults are the first trial where they are in the space, and here they are not.
    assert float(rows(folder)[0]["lr"]) != 0.001
    checkpoint = folder / found["final"]["folder"] / "ckpt.pt"
    evaluated = ihgnn("evaluate", checkpoint, "--json")
    accuracy = json.loads(evaluated.stdout)["accuracy"]
    assert accuracy == pytest.approx(found["final"]["test"]["accuracy"])


def result_of(done) -> dict:
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.usefixtures("quick")
def test_the_final_run_repeats_the_best_trial_exactly_and_best_toml_the_final_run(
    ihgnn, tmp_path
) -> None:
    args = (*TINY, "--epochs", "12", "--trials", "2", "--out", "search")
    found = result_of(ihgnn("tune", *args, "--json", "-q"))
    # With one inner fold the final run is the best trial again.
    assert found["final"]["validation"]["accuracy"] == found["best"]["validation_accuracy"]
    assert [found["final"]["best_epoch"]] == found["best"]["best_epochs"]
    best = tomllib.loads((tmp_path / "search" / "best.toml").read_text())
    assert best["training"]["lr"] == found["best"]["params"]["lr"]
    assert best["model"]["width"] == 4  # fixed
    args = ("--config", "search/best.toml", "--json", "-q", "--out", "again")
    again = result_of(ihgnn("train", *args))
    assert again["test"]["accuracy"] == found["final"]["test"]["accuracy"]
    assert again["best_epoch"] == found["final"]["best_epoch"]


@pytest.mark.parametrize(
    ("trial", "folds", "said"),
    [
        (0.8, 1, ""),
        (0.8004, 1, ""),
        (0.9, 3, " The 90.0% of the trial is its mean over 3 inner folds."),
    ],
)
def test_a_different_validation_accuracy_of_the_final_run_is_explained(
    trial: float, folds: int, said: str
) -> None:
    result = {
        "best": {"validation_accuracy": trial},
        "final": {"validation": {"accuracy": 0.8}},
        "validation_graphs": [10] * folds,
    }
    found = tune_display._why_validation_differs(result)
    assert found.startswith(said)
    assert bool(found) == bool(said)


@pytest.mark.usefixtures("quick")
def test_trials_is_the_total_and_more_can_be_requested(ihgnn, tmp_path) -> None:
    args = ("tune", *TINY, "--out", "search", "--quiet", "--json", "--trials")
    first = result_of(ihgnn(*args, "2"))
    again = result_of(ihgnn(*args, "2"))
    assert again["trained_now"] == 0
    assert again["best"] == first["best"]
    assert again["final"] == first["final"]
    more = result_of(ihgnn(*args, "3"))
    assert 0 < more["trained_now"] < more["model_epochs"]
    assert [row["trial"] for row in rows(tmp_path / "search")] == list("012")
    fewer = result_of(ihgnn(*args, "1"))
    assert fewer["best"] == more["best"]  # all finished trials count


@pytest.mark.usefixtures("quick")
def test_a_copied_folder_is_continued(ihgnn, tmp_path) -> None:
    args = ("tune", *TINY, "--quiet", "--json")
    first = result_of(ihgnn(*args, "--trials", "2", "--out", "runs/search"))
    shutil.copytree(tmp_path / "runs" / "search", tmp_path / "moved" / "search")
    more = result_of(ihgnn(*args, "--trials", "3", "--out", "moved/search"))
    assert first["model_epochs"] + more["trained_now"] == more["model_epochs"]
    assert [row["trial"] for row in rows(tmp_path / "moved" / "search")] == list("012")
    assert finished(tmp_path / "runs" / "search") <= 2


@pytest.mark.usefixtures("quick")
def test_a_second_test_is_mentioned(ihgnn, tmp_path) -> None:
    # With its first learning rate the model does not learn.
    args = ("tune", *ONE_WORKER, "--lr", "1e-12,0.01", "--sampler", "grid", "--layers", "1")
    args += ("--batch-size", "64", "--epochs", "12", "--out", "search")
    first = ihgnn(*args, "--trials", "1", "-q")
    assert first.returncode == 0, first.stderr
    assert "already used" not in first.stderr
    second = ihgnn(*args, "--trials", "2")
    assert second.returncode == 0, second.stderr
    assert "The test graphs were already used in this search, for trial 0" in second.stderr
    result = json.loads((tmp_path / "search" / "result.json").read_text())
    assert result["final"]["tested_before"] == [0]


def test_an_address_in_a_wrong_place_shows_no_password(ihgnn) -> None:
    for args in (("postgresql://me:s3cret@h/db",), ("--config", "postgresql://me:s3cret@h/db")):
        result = ihgnn("tune", *args)
        assert result.returncode == 2
        assert "s3cret" not in result.stdout + result.stderr
        assert "***" in result.stderr


@pytest.mark.usefixtures("quick")
def test_one_worker_and_one_seed_repeat_a_search(ihgnn, tmp_path) -> None:
    args = ("tune", *TINY, "--trials", "12", "--quiet", "--out")
    for name in ("one", "two"):
        assert ihgnn(*args, name).returncode == 0

    def known(row: dict[str, str]) -> dict[str, str]:
        return {name: value for name, value in row.items() if name != "seconds"}

    assert [*map(known, rows(tmp_path / "one"))] == [*map(known, rows(tmp_path / "two"))]


@pytest.mark.usefixtures("quick")
def test_a_grid_limits_the_number_of_trials(ihgnn, tmp_path) -> None:
    args = (*TINY, "--lr", "0.01,0.001", "--sampler", "grid", "--pruner", "hyperband")
    result = ihgnn("tune", *args, "--trials", "99", "--out", "search")
    assert result.returncode == 0, result.stderr
    assert "The grid has 8 points" in result.stderr
    points = {(row["lr"], row["batch_size"], row["layers"]) for row in rows(tmp_path / "search")}
    assert len(points) == len(rows(tmp_path / "search")) == 8
    ranged = ihgnn("tune", *TINY, "--lr", "0.001:0.01", "--sampler", "grid")
    assert_refused(ranged, 2, "--lr is a range", "a grid needs lists")


@pytest.mark.parametrize("sampler", ["random", "gp"])
@pytest.mark.usefixtures("quick")
def test_other_samplers_with_inner_folds(ihgnn, tmp_path, sampler: str) -> None:
    args = (*ONE_WORKER, "--sampler", sampler, "--inner-folds", "2", "--dropout", "0:0.5")
    args += ("--variant", "full,no-concat", "-n", "11", "--epochs", "1", "--json", "--out", "x")
    found = result_of(ihgnn("tune", *args))
    assert found["validation_graphs"] == [85, 84]
    assert len(found["best"]["best_epochs"]) == 2
    assert {row["variant"] for row in rows(tmp_path / "x")} == {"full", "no-concat"}
    assert len({row["dropout"] for row in rows(tmp_path / "x")}) > 6


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("--lr", "fast"), ("--lr must be a range", "not 'fast'")),
        (("--lr", "0.01:0.001"), ("--lr", "from a smaller to a larger")),
        (("--layers", "3,3"), ("--layers names 3 twice",)),
        (("--layers", "-1,3"), ("layers must be at least 0",)),
        (("--dropout", "0:2"), ("dropout must be at least 0 and below 1",)),
        (("--variant", "best"), ("--variant", "best")),
        (("--trials", "0"), ("--trials", "must be at least 1, not 0")),
        (("--timeout", "soon"), ("--timeout must be a time", "1h30m")),
        (("--inner-folds", "0"), ("--inner-folds", "must be at least 1, not 0")),
        (("--inner-folds", "999"), ("169 graphs", "inner folds")),
        (("--storage", "redis://x"), ("--storage is postgresql",)),
        (("--workers", "0"), ("--workers must be auto or",)),
        (("--device", "cuda:999"), ("GPU",)),
        (("--out", ""), ("--out needs the name",)),
        (("--sampler", "best"), ("sampler",)),
        (
            ("--lr", "0.1", "--layers", "3", "--batch-size", "32"),
            ("Nothing is left to search",),
        ),
    ],
)
def test_mistakes_are_reported_in_a_line(
    ihgnn, tmp_path, args: tuple[str, ...], words: tuple[str, ...]
) -> None:
    assert_refused(ihgnn("tune", *args), 2, *words)
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("quick")
def test_another_search_in_the_same_folder_or_study_is_refused(ihgnn, tmp_path) -> None:
    args = ("tune", *TINY, "--trials", "1", "-q", "--storage", "sqlite:///shared.db")
    args += ("--study", "mine")
    assert ihgnn(*args, "--out", "a").returncode == 0
    other = ihgnn(*args, "--lr", "0.01,0.02", "--out", "a")
    assert_refused(other, 2, "a holds another search", "lr", "Choose another --out")
    other = ihgnn(*args[:-4], "--out", "a")
    assert_refused(other, 2, "a holds another search", "study was mine", "storage")
    other = ihgnn(*args, "--epochs", "5", "--out", "b")
    assert_refused(other, 2, "The study 'mine' is another search", "epochs", "--study")
    assert not (tmp_path / "b").exists()


@pytest.mark.usefixtures("quick")
def test_settings_that_cannot_be_trained_fail_alone(ihgnn, tmp_path) -> None:
    args = (*TINY, "--lr", "0.01,1e30", "--sampler", "grid", "--out", "search", "--json", "-q")
    found = result_of(ihgnn("tune", *args))
    assert found["trials"]["failed"] == 4
    assert found["best"]["params"]["lr"] == 0.01
    failures = {row["failure"] for row in rows(tmp_path / "search") if row["state"] == "failed"}
    assert failures == {"the loss was not finite in the first epoch"}
    alone = ihgnn("tune", *TINY, "--lr", "1e30,2e30", "--sampler", "grid", "-q", "--out", "alone")
    assert_refused(alone, 1, "No trial finished training", "8 failed")


@pytest.mark.usefixtures("quick")
def test_a_timeout_ends_with_the_finished_trials(ihgnn) -> None:
    args = ("--pruner", "none", "--trials", "5000", "--timeout", "0.5s", "--json", "-q")
    found = result_of(ihgnn("tune", *TINY, *args))
    assert 0 < found["trials"]["complete"] < 5000
    assert found["final"]["test"]["graphs"] == 19


@pytest.mark.usefixtures("quick")
def test_a_folder_that_is_removed_meanwhile_ends_in_a_sentence(
    ihgnn, tmp_path, monkeypatch
) -> None:
    run_workers = jobs.run_workers

    def remove(*args, **options) -> None:
        shutil.rmtree(tmp_path / "search")
        run_workers(*args, **options)

    monkeypatch.setattr(jobs, "run_workers", remove)
    done = ihgnn("tune", *TINY, "--trials", "2", "--out", "search", "-q")
    assert_refused(done, 1, "search was removed while the search was running")
    assert not (tmp_path / "search").exists()


@pytest.mark.usefixtures("quick")
def test_the_final_training_is_announced_before_it_starts(ihgnn) -> None:
    done = ihgnn("tune", *TINY, "--trials", "1", "--out", "search")
    lines = done.stderr.splitlines()
    at = lines.index("0 of 3 epochs: training and testing the settings of trial 0")
    assert lines[at - 1].startswith("1 of 1 trials: 1 complete")
    assert lines[-1].startswith("3 of 3 epochs")
