"""`ihgnn tune` as a user meets it: tables, files, mistakes."""

import json
import re
import tomllib

import pytest
from refusals import assert_refused
from tuned import SLOW, TINY, rows


def test_a_search_ends_with_a_tested_model_and_all_its_files(ihgnn, tmp_path) -> None:
    result = ihgnn("tune", *TINY, "--trials", "6", "--workers", "2")
    assert result.returncode == 0, result.stderr
    assert re.search(r"^Test accuracy \d+\.\d%$", result.stdout, re.MULTILINE)
    assert "no trial saw the test graphs" in result.stdout
    assert "\x1b" not in result.stdout + result.stderr
    (folder,) = (tmp_path / "runs").iterdir()
    assert folder.name.startswith("MUTAG-tune-")
    told = json.loads((folder / "result.json").read_text())
    for name in ("history", "curves", "parallel", "slices"):
        assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "data:image/png;base64," in page
    assert not re.search(r"""(src|href)=["'](?!data:)""", page)  # nothing is fetched
    assert len(rows(folder)) == 6
    assert told["trials"]["complete"] + told["trials"]["pruned"] == 6
    # The best by the rule: accuracy, then loss, then the earlier.
    complete = [row for row in rows(folder) if row["state"] == "complete"]
    best = max(
        complete,
        key=lambda row: (float(row["validation_accuracy"]), -float(row["validation_loss"])),
    )
    assert told["best"]["trial"] == int(best["trial"])
    # The paper's defaults are the first trial where they are in the space, and here they are not.
    assert float(rows(folder)[0]["lr"]) != 0.001
    checkpoint = folder / told["final"]["folder"] / "ckpt.pt"
    evaluated = ihgnn("evaluate", checkpoint, "--json")
    accuracy = json.loads(evaluated.stdout)["accuracy"]
    assert accuracy == pytest.approx(told["final"]["test"]["accuracy"])


def test_best_toml_trains_what_was_tested(ihgnn, tmp_path) -> None:
    args = ("tune", *TINY, "--trials", "3", "--out", "search", "--json", "--quiet")
    told = json.loads(ihgnn(*args).stdout)
    best = tomllib.loads((tmp_path / "search" / "best.toml").read_text())
    assert best["training"]["lr"] == told["best"]["params"]["lr"]
    assert best["model"]["width"] == 4  # one value, which stays
    trained = ihgnn("train", "--config", "search/best.toml", "--json", "--quiet", "--out", "again")
    again = json.loads(trained.stdout)
    assert again["test"]["accuracy"] == told["final"]["test"]["accuracy"]
    assert again["best_epoch"] == told["final"]["best_epoch"]


def test_the_defaults_are_tried_first(ihgnn, tmp_path) -> None:
    args = ("--epochs", "1", "--trials", "2", "--batch-size", "32,64", "--layers", "2,3")
    assert ihgnn("tune", *args, "--workers", "1", "-q", "--out", "search").returncode == 0
    first = rows(tmp_path / "search")[0]
    assert (first["lr"], first["batch_size"], first["layers"]) == ("0.001", "32", "3")


def test_trials_is_the_total_and_more_can_be_asked_for(ihgnn, tmp_path) -> None:
    args = ("tune", *TINY, "--out", "search", "--quiet", "--json")
    first = json.loads(ihgnn(*args, "--trials", "3").stdout)
    again = json.loads(ihgnn(*args, "--trials", "3").stdout)
    assert again["trained_now"] == 0
    assert again["best"] == first["best"]
    assert again["final"] == first["final"]
    more = json.loads(ihgnn(*args, "--trials", "5").stdout)
    assert 0 < more["trained_now"] < more["model_epochs"]
    assert [row["trial"] for row in rows(tmp_path / "search")] == list("01234")
    fewer = json.loads(ihgnn(*args, "--trials", "2").stdout)
    assert fewer["best"] == more["best"]  # what is there counts


def test_a_second_look_at_test_is_told(ihgnn, tmp_path) -> None:
    # The second half of the grid is better: the first learning rates do not learn.
    args = ("tune", *TINY, "--lr", "1e-12,0.01", "--sampler", "grid", "--layers", "1")
    args += ("--batch-size", "64", "--epochs", "12", "--out", "search")
    first = ihgnn(*args, "--trials", "1", "-q")
    assert first.returncode == 0, first.stderr
    assert "already used" not in first.stderr
    second = ihgnn(*args, "--trials", "2")
    assert second.returncode == 0, second.stderr
    assert "The test graphs were already used in this search, for trial 0" in second.stderr
    told = json.loads((tmp_path / "search" / "result.json").read_text())
    assert told["final"]["tested_before"] == [0]


def test_another_study_does_not_take_over_a_folder(ihgnn, tmp_path) -> None:
    args = ("tune", *TINY, "--trials", "1", "--out", "search", "-q")
    assert ihgnn(*args).returncode == 0
    other = ihgnn(*args, "--storage", "journal:other.log")
    assert_refused(other, 2, "search holds the results of the study", "Choose another --out")


def test_an_address_in_a_wrong_place_shows_no_password(ihgnn) -> None:
    for args in (("postgresql://me:s3cret@h/db",), ("--config", "postgresql://me:s3cret@h/db")):
        result = ihgnn("tune", *args)
        assert result.returncode == 2
        assert "s3cret" not in result.stdout + result.stderr
        assert "***" in result.stderr


def test_one_worker_and_one_seed_repeat_a_search(ihgnn, tmp_path) -> None:
    args = ("tune", *TINY, "--trials", "12", "--report-every", "1", "--quiet", "--out")
    for name in ("one", "two"):
        assert ihgnn(*args, name).returncode == 0

    def known(row: dict[str, str]) -> dict[str, str]:
        return {name: value for name, value in row.items() if name != "seconds"}

    assert [*map(known, rows(tmp_path / "one"))] == [*map(known, rows(tmp_path / "two"))]


def test_a_grid_tries_every_point_once(ihgnn, tmp_path) -> None:
    args = (*TINY, "--lr", "0.01,0.001", "--sampler", "grid", "--pruner", "hyperband")
    result = ihgnn("tune", *args, "--trials", "99", "--out", "search")
    assert result.returncode == 0, result.stderr
    assert "The grid has 8 points" in result.stderr
    points = {(row["lr"], row["batch_size"], row["layers"]) for row in rows(tmp_path / "search")}
    assert len(points) == len(rows(tmp_path / "search")) == 8
    ranged = ihgnn("tune", *TINY, "--lr", "0.001:0.01", "--sampler", "grid")
    assert_refused(ranged, 2, "--lr is a range", "a grid needs lists")


@pytest.mark.parametrize("sampler", ["random", "gp"])
def test_other_samplers_and_inner_folds_and_a_file_of_the_space(ihgnn, tmp_path, sampler) -> None:
    space = '[dropout]\nlow = 0.0\nhigh = 0.5\n[variant]\nvalues = ["full", "no-concat"]\n'
    (tmp_path / "space.toml").write_text(space)
    args = (*TINY, "--sampler", sampler, "--inner-folds", "2", "--search-space", "space.toml")
    result = ihgnn("tune", *args, "--trials", "12", "--epochs", "2", "--json", "--out", "search")
    assert result.returncode == 0, result.stderr
    told = json.loads(result.stdout)
    assert told["validation_graphs"] == [85, 84]
    assert len(told["best"]["best_epochs"]) == 2
    assert {row["variant"] for row in rows(tmp_path / "search")} == {"full", "no-concat"}
    assert len({row["dropout"] for row in rows(tmp_path / "search")}) > 6


def test_a_split_of_a_file_goes_with_the_best_settings(ihgnn, tmp_path) -> None:
    drawn = ihgnn("train", "--epochs", "1", "--width", "4", "-q", "--out", "run", "--seed", "9")
    assert drawn.returncode == 0
    args = (*TINY, "--split", "run/splits.json", "--trials", "2", "--out", "search", "--json", "-q")
    told = json.loads(ihgnn("tune", *args).stdout)
    again = ihgnn("train", "--config", "search/best.toml", "--json", "-q", "--out", "again")
    assert json.loads(again.stdout)["test"] == told["final"]["test"]


def test_mistakes_are_told_in_a_line(ihgnn, tmp_path) -> None:
    for args, words in {
        ("--lr", "fast"): ("--lr is a range", "not 'fast'"),
        ("--lr", "0.01:0.001"): ("--lr", "from a smaller to a larger"),
        ("--layers", "3,3"): ("--layers names 3 twice",),
        ("--layers", "-1,3"): ("layers must be at least 0",),
        ("--dropout", "0:2"): ("dropout must be at least 0 and below 1",),
        ("--variant", "best"): ("--variant", "best"),
        ("--trials", "0"): ("--trials must be from 1",),
        ("--timeout", "soon"): ("--timeout must be a time", "1h30m"),
        ("--inner-folds", "0"): ("inner fold",),
        ("--inner-folds", "999"): ("169 graphs", "inner folds"),
        ("--report-every", "0"): ("--report-every",),
        ("--storage", "redis://x"): ("--storage is postgresql",),
        ("--search-space", "none.toml"): ("Cannot read none.toml",),
        ("--workers", "0"): ("--workers is auto or",),
        ("--device", "cuda"): ("There is no GPU",),
        ("--out", ""): ("--out needs the name",),
        ("--sampler", "best"): ("sampler",),
        ("--lr", "0.1", "--layers", "3", "--batch-size", "32"): ("Nothing is left to search",),
    }.items():
        assert_refused(ihgnn("tune", *args), 2, *words)
    assert not (tmp_path / "runs").exists()


def test_another_search_in_the_same_folder_or_study_is_refused(ihgnn, tmp_path) -> None:
    args = ("tune", *TINY, "--trials", "1", "-q")
    assert ihgnn(*args, "--out", "search").returncode == 0
    other = ihgnn(*args, "--lr", "0.01,0.02", "--out", "search")
    assert_refused(other, 2, "search holds another search", "lr", "Choose another --out")
    shared = ("--storage", "journal:shared.log", "--study", "mine")
    assert ihgnn(*args, *shared, "--out", "a").returncode == 0
    other = ihgnn(*args, *shared, "--epochs", "5", "--out", "b")
    assert_refused(other, 2, "The study 'mine' is another search", "epochs", "--study")
    assert not (tmp_path / "b").exists()
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "thesis.tex").touch()
    assert_refused(ihgnn(*args, "--out", "foreign"), 2, "foreign is not empty")


def test_settings_that_cannot_be_trained_fail_alone(ihgnn, tmp_path) -> None:
    args = (*TINY, "--lr", "0.01,1e30", "--sampler", "grid", "--out", "search", "--json", "-q")
    told = json.loads(ihgnn("tune", *args).stdout)
    assert told["trials"]["failed"] == 4
    assert told["best"]["params"]["lr"] == 0.01
    failures = {row["failure"] for row in rows(tmp_path / "search") if row["state"] == "failed"}
    assert failures == {"the loss was no number from the first epoch on"}
    alone = ihgnn("tune", *TINY, "--lr", "1e30,2e30", "--sampler", "grid", "-q", "--out", "alone")
    assert_refused(alone, 1, "No trial was completed", "8 failed")


def test_a_timeout_ends_with_what_there_is(ihgnn) -> None:
    result = ihgnn("tune", *SLOW, "--trials", "5000", "--timeout", "3s", "--json", "-q")
    assert result.returncode == 0, result.stderr
    told = json.loads(result.stdout)
    assert 0 < told["trials"]["complete"] < 5000
    assert told["final"]["test"]["graphs"] == 19
