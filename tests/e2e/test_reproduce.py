"""`ihgnn reproduce` as a user meets it: tables beside the paper's, kills, mistakes."""

import csv
import json
import os
import signal
from pathlib import Path

import pytest
from refusals import assert_refused
from started import start, wait_for

DATA = "synthetic:graphs=20,nodes=12,degree=2,signal=0.2"
TABLE = ("reproduce", "table1", "--models", "ihgnn,gin", "-d", DATA)
HERE = ("--workers", "1", "--device", "cpu", "--out", "out")


def cells(folder: Path) -> dict[str, Path]:
    """The results that there are, by model."""
    return {path.parent.name: path for path in folder.glob("cells/*/*/result.json")}


def test_a_killed_table_goes_on_and_is_written_in_every_form(command, ihgnn, tmp_path) -> None:
    out = tmp_path / "out"
    process = start([command, *TABLE, *HERE], cwd=tmp_path)
    wait_for(lambda: list(out.glob("cells/*/gin/units/*.json")), process)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=60)
    before = cells(out)
    assert set(before) == {"ihgnn"}
    kept = {path: path.stat().st_mtime_ns for path in out.glob("cells/*/*/units/*.json")}
    content = before["ihgnn"].read_bytes()
    assert not (out / "table1.md").exists()

    result = ihgnn(*TABLE, *HERE)
    assert result.returncode == 0, result.stderr
    assert "1 of 2: IHGNN on " in result.stderr
    assert "2 of 2: GIN on " in result.stderr
    assert "\x1b" not in result.stdout + result.stderr
    assert set(cells(out)) == {"ihgnn", "gin"}
    assert before["ihgnn"].read_bytes() == content
    assert {path: path.stat().st_mtime_ns for path in kept} == kept  # nothing was done twice
    for told in ("GIN", "IHGNN", "Budget 'quick', the same for every method: 10 outer folds"):
        assert told in result.stdout
    (figure,) = out.glob("table1-*.svg")
    for path in (figure, *(out / f"table1.{each}" for each in ("md", "tex", "csv", "html"))):
        assert "quick" in path.read_text(encoding="utf-8"), path
        assert str(path.relative_to(tmp_path)) in result.stdout.replace("\n", "")
    with (out / "table1.csv").open(encoding="utf-8", newline="") as stream:
        assert len(list(csv.DictReader(stream))) == 2

    # All is there: nothing is trained, and machines are told the same.
    again = ihgnn(*TABLE, *HERE, "--json", "-q")
    assert again.returncode == 0, again.stderr
    assert again.stderr == ""
    told = json.loads(again.stdout)
    assert (told["subject"], told["budget"]) == ("table1", "quick")
    assert [(each["model"], each["refused"]) for each in told["cells"]] == [
        ("ihgnn", None),
        ("gin", None),
    ]
    for each in told["cells"]:
        assert each["result"] == json.loads(cells(out)[each["model"]].read_text())
        assert each["result"]["models"] == 10 * 2 + 10
        accuracy = f"{100 * each['result']['test_mean']:.1f} ± "
        assert accuracy in result.stdout
    assert all((tmp_path / path).is_file() for path in told["files"])


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["table1", "--budget", "nonsense"], "--budget is quick or paper, not 'nonsense'."),
        (["table1", "--models", "gim", "-d", DATA], "No model 'gim'. Did you mean gin?"),
        (["table2", "--models", "gin:no-concat"], "Ablations are ihgnn:no-integration"),
        # Told before the first data set is trained on.
        (["table1", "--models", "ihgnn", "-d", "MUTAG,MUTAGG"], "Did you mean MUTAG"),
        (["figure1", "--models", "gin"], "figure1 is of data alone"),
        (["homophily-sweep", "-d", "MUTAG"], "makes its own data sets"),
        (["table1", "-d", ","], "--datasets is empty"),
    ],
)
def test_mistakes_are_refused_and_leave_nothing(
    ihgnn, tmp_path, args: list[str], said: str
) -> None:
    assert_refused(ihgnn("reproduce", *args), 2, said)
    assert not list(tmp_path.iterdir())


def test_the_homophily_of_data_sets_is_drawn_without_any_training(ihgnn, tmp_path) -> None:
    result = ihgnn("reproduce", "figure1", "-d", f"MUTAG,{DATA}", "--out", "out")
    assert result.returncode == 0, result.stderr
    assert "Nothing is trained" in result.stdout
    assert "MUTAG" in result.stdout
    found = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert found == [f"figure1.{each}" for each in ("csv", "html", "md", "svg", "tex")]
    with (tmp_path / "out" / "figure1.csv").open(encoding="utf-8", newline="") as stream:
        graphs = [row["dataset"] for row in csv.DictReader(stream)]
    assert graphs.count("MUTAG") in {1, 188}


@pytest.mark.long
def test_accuracy_by_k_is_drawn(ihgnn, tmp_path) -> None:
    result = ihgnn("reproduce", "sensitivity", "-d", DATA, *HERE, "--json", "-q")
    assert result.returncode == 0, result.stderr
    told = json.loads(result.stdout)
    assert [each["layers"] for each in told["cells"]] == [1, 2, 4, 8, 16, 32, 64]
    assert "3 final runs a fold" in told["statement"]
    for each in told["cells"]:
        assert each["result"]["job"]["protocol"]["grid"][0]["layers"] == each["layers"]
        assert len(each["result"]["runs"]) == 3
    assert (tmp_path / "out" / "sensitivity.svg").is_file()


@pytest.mark.long
def test_accuracy_by_homophily_is_drawn(ihgnn, tmp_path) -> None:
    result = ihgnn("reproduce", "homophily-sweep", "--models", "ihgnn", *HERE, "--json", "-q")
    assert result.returncode == 0, result.stderr
    told = json.loads(result.stdout)
    assert len(told["cells"]) == 6
    assert all(len(each["result"]["folds"]) == 5 for each in told["cells"])
    assert "200 synthetic graphs" in (tmp_path / "out" / "homophily-sweep.md").read_text()
