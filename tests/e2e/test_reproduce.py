"""`ihgnn reproduce` as a user meets it: tables beside the paper's, kills, mistakes."""

import csv
import json
import os
import signal
from pathlib import Path

import pytest
from refusals import assert_refused
from started import PATIENCE, start, wait_for

DATA = "synthetic:graphs=20,nodes=12,degree=2,signal=0.2"
TABLE = ("reproduce", "table1", "--models", "ihgnn,gin", "-d", DATA)
HERE = ("--workers", "1", "--device", "cpu", "--out", "out")


def cells(folder: Path) -> dict[str, Path]:
    """The results that there are, by model."""
    return {path.parent.name: path for path in folder.glob("cells/*/*/result.json")}


@pytest.mark.long
def test_a_killed_table_goes_on_and_is_written_in_every_form(command, ihgnn, tmp_path) -> None:
    out = tmp_path / "out"
    process = start([command, *TABLE, *HERE], cwd=tmp_path)
    wait_for(lambda: list(out.glob("cells/*/gin/units/[!.]*.jsonl")), process)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=PATIENCE)
    before = cells(out)
    assert set(before) == {"ihgnn"}
    kept = {path: path.stat().st_mtime_ns for path in out.glob("cells/*/*/units/[!.]*.jsonl")}
    content = before["ihgnn"].read_bytes()
    assert not (out / "table1.md").exists()

    result = ihgnn(*TABLE, *HERE, "--json")
    assert result.returncode == 0, result.stderr
    assert "IHGNN on " in result.stderr
    assert "2 of 2: GIN on " in result.stderr
    assert before["ihgnn"].read_bytes() == content
    assert {path: path.stat().st_mtime_ns for path in kept} == kept  # nothing was done twice
    told = json.loads(result.stdout)
    assert (told["subject"], told["budget"]) == ("table1", "quick")
    assert told["statement"].startswith("The same for every method: 5 outer folds")
    assert [(each["model"], each["refused"]) for each in told["cells"]] == [
        ("ihgnn", None),
        ("gin", None),
    ]
    page = (out / "table1.html").read_text(encoding="utf-8")
    for each in told["cells"]:
        assert each["result"] == json.loads(cells(out)[each["model"]].read_text())
        assert each["result"]["models"] == 5 * 2 + 5
        assert f"{100 * each['result']['test_mean']:.1f} ± " in page
    (figure,) = out.glob("table1-*.svg")
    made = [figure, *(out / f"table1.{each}" for each in ("md", "tex", "csv", "html"))]
    assert {tmp_path / path for path in told["files"]} == set(made)
    for path in made:
        assert "quick" in path.read_text(encoding="utf-8"), path
    with (out / "table1.csv").open(encoding="utf-8", newline="") as stream:
        assert [row["model"] for row in csv.DictReader(stream)] == ["ihgnn", "gin"]


def test_mistakes_are_refused_and_leave_nothing(ihgnn, tmp_path) -> None:
    wrong = ihgnn("reproduce", "table1", "--budget", "nonsense")
    assert_refused(wrong, 2, "--budget must be one of quick, paper, race, not 'nonsense'.")
    # Told before the first data set is trained on.
    other = ihgnn("reproduce", "table1", "--models", "ihgnn", "-d", "MUTAG,MUTAGG")
    assert_refused(other, 2, "Did you mean MUTAG")
    assert not list(tmp_path.iterdir())


def test_the_homophily_of_data_sets_is_drawn_without_any_training(ihgnn, tmp_path) -> None:
    result = ihgnn("reproduce", "figure1", "-d", f"MUTAG,{DATA}", "--out", "out")
    assert result.returncode == 0, result.stderr
    assert "nothing is trained" in result.stdout
    assert "MUTAG" in result.stdout
    found = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert found == [f"figure1.{each}" for each in ("csv", "html", "md", "svg", "tex")]
    with (tmp_path / "out" / "figure1.csv").open(encoding="utf-8", newline="") as stream:
        graphs = [row["dataset"] for row in csv.DictReader(stream)]
    assert graphs.count("MUTAG") == 188
    assert len(graphs) == 188 + 20
    assert "\x1b" not in result.stdout
