"""`ihgnn tune` beside others: killed and continued, two at once, in a terminal, watched."""

import json
import re
import signal
import urllib.request
from pathlib import Path

import pytest
from refusals import assert_refused
from started import start, wait_for
from tuned import SLOW, TINY, finished, rows


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks into /proc")
@pytest.mark.parametrize("name", ["SIGKILL", "SIGINT"])
def test_a_killed_search_goes_on_and_loses_and_repeats_nothing(
    command, ihgnn, tmp_path, name
) -> None:
    args = ("tune", *SLOW, "--stack", "2", "--trials", "8", "--out", str(tmp_path / "search"))
    process = start([command, *args])
    wait_for(lambda: finished(tmp_path / "search") >= 2, process)
    process.send_signal(getattr(signal, name))
    shown, said = process.communicate(timeout=60)
    assert process.returncode == {"SIGKILL": -9, "SIGINT": 130}[name]
    if name == "SIGINT":
        assert "Best trials by validation accuracy" in shown
        assert "the same command goes on" in said
        assert (tmp_path / "search" / "best.toml").is_file()
    kept = finished(tmp_path / "search")
    assert kept < 8
    result = ihgnn(*args, "--json", "-q")
    assert result.returncode == 0, result.stderr
    told = json.loads(result.stdout)
    assert told["trials"]["complete"] == 8
    assert told["trials"]["failed"] == 0
    assert told["trained_now"] == (8 - kept) * 150
    assert [row["trial"] for row in rows(tmp_path / "search") if row["state"] == "complete"]
    assert len(rows(tmp_path / "search")) == 8


def test_two_commands_on_one_folder_share_the_trials(command, tmp_path) -> None:
    args = ("tune", *SLOW, "--trials", "10", "--out", str(tmp_path / "search"), "--json", "-q")
    both = [start([command, *args]) for _ in range(2)]
    told = []
    for process in both:
        shown, said = process.communicate(timeout=200)
        assert process.returncode == 0, said
        told.append(json.loads(shown))
    assert [each["trials"]["complete"] for each in told] == [10, 10]
    assert sum(each["trained_now"] for each in told) == 10 * 150
    assert told[0]["best"] == told[1]["best"]
    assert told[0]["final"]["test"] == told[1]["final"]["test"]
    assert len(rows(tmp_path / "search")) == 10


def test_the_live_table_fits_a_terminal(in_terminal) -> None:
    shown = in_terminal("tune", *TINY, "--trials", "3", "--out", "search")
    assert "trial-epochs" in shown
    assert "Best trials by validation accuracy" in shown


def test_the_dashboard_shows_the_study(command, ihgnn, tmp_path) -> None:
    pytest.importorskip("optuna_dashboard", reason="an optional extra")
    args = ("tune", *TINY, "--trials", "1", "--out", str(tmp_path / "search"))
    assert_refused(ihgnn(*args, "--dashboard"), 2, "There is no study", "Search first")
    assert not (tmp_path / "search").exists()
    assert ihgnn(*args, "-q").returncode == 0
    process = start([command, *args, "--dashboard", "--port", "0"])
    try:
        line = process.stdout.readline()
        page = re.search(r"http://127\.0\.0\.1:\d+", line)[0]
        with urllib.request.urlopen(f"{page}/api/studies", timeout=30) as answer:
            studies = json.load(answer)["study_summaries"]
        assert [each["study_name"] for each in studies] == [line.split()[0]]
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)
    assert process.returncode == 130
