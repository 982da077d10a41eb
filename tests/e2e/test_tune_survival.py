"""`ihgnn tune` as several processes: killed and continued, two commands, terminal, dashboard."""

import json
import os
import re
import signal
import time
import urllib.request
from pathlib import Path

import pytest
from refusals import assert_refused
from started import PATIENCE, start, wait_for, workers_of
from tuned import EPOCHS, SLOW, TINY, finished, rows, states

needs_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks into /proc")


@needs_proc
@pytest.mark.parametrize("name", ["SIGKILL", pytest.param("SIGINT", marks=pytest.mark.long)])
@pytest.mark.usefixtures("thread_workers")  # only of the command that goes on
def test_a_killed_search_continues_and_loses_and_repeats_nothing(
    command, ihgnn, tmp_path, name
) -> None:
    epochs = 3 * EPOCHS  # two stacks are left when the first trial is complete
    args = ("tune", *SLOW, "--epochs", str(epochs), "--stack", "2", "--trials", "6")
    args = (*args, "--out", str(tmp_path / "search"))
    process = start([command, *args])
    wait_for(lambda: finished(tmp_path / "search") >= 1, process)
    process.send_signal(getattr(signal, name))
    shown, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == {"SIGKILL": -9, "SIGINT": 130}[name]
    if name == "SIGINT":
        assert "Best trials by validation accuracy" in shown
        assert "the same command continues" in said
        assert (tmp_path / "search" / "best.toml").is_file()
        assert set(states(tmp_path / "search")) == {"WAITING", "COMPLETE"}
    kept = finished(tmp_path / "search")
    assert kept < 6
    result = ihgnn(*args, "--json", "-q")
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    assert found["trials"]["complete"] == 6
    assert found["trials"]["failed"] == 0
    assert found["trained_now"] == (6 - kept) * epochs
    assert len(rows(tmp_path / "search")) == 6


@needs_proc
@pytest.mark.long
def test_a_search_that_is_terminated_repeatedly_says_so_once_and_leaves_no_failed_trials(
    command, ihgnn, tmp_path
) -> None:
    folder = tmp_path / "search"
    # Reports of every epoch, so that a signal most likely meets a call into the database.
    often = ("--report-every", "1", "--workers", "2", "--trials", "4", "--stack", "2")
    args = ("tune", *SLOW, *often, "--out", str(folder))
    process = start([command, *args])
    wait_for(lambda: states(folder).get("RUNNING"), process)
    began = time.monotonic()
    while process.poll() is None and time.monotonic() - began < 4:
        os.killpg(process.pid, signal.SIGTERM)  # to all processes
        time.sleep(0.1)
    _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 143
    assert said.count("the same command continues") == 1
    assert said.endswith("Error: Interrupted.\n")
    assert "Traceback" not in said
    assert "killed" not in said
    assert set(states(folder)) <= {"WAITING", "COMPLETE"}
    result = ihgnn(*args, "--json", "-q")
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["trials"]["complete"] == 4
    assert states(folder) == {"COMPLETE": 4}


@needs_proc
@pytest.mark.long
def test_a_killed_worker_is_replaced(command, tmp_path) -> None:
    folder = tmp_path / "search"
    args = ("tune", *SLOW, "--workers", "2", "--trials", "6", "--stack", "2", "--json", "-q")
    process = start([command, *args, "--out", str(folder)])
    wait_for(lambda: finished(folder) >= 1, process)
    os.kill(workers_of(process)[0], signal.SIGKILL)
    shown, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, said
    assert "A worker was killed from outside" in said
    assert json.loads(shown)["trials"]["complete"] == 6
    assert len(rows(folder)) == 6


def test_two_commands_on_one_folder_share_the_trials(command, tmp_path) -> None:
    args = ("tune", *SLOW, "--trials", "8", "--out", str(tmp_path / "search"), "--json", "-q")
    both = [start([command, *args]) for _ in range(2)]
    found = []
    for process in both:
        shown, said = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, said
        found.append(json.loads(shown))
    assert [each["trials"]["complete"] for each in found] == [8, 8]
    assert sum(each["trained_now"] for each in found) == 8 * EPOCHS
    assert found[0]["best"] == found[1]["best"]
    assert found[0]["final"]["test"] == found[1]["final"]["test"]
    assert len(rows(tmp_path / "search")) == 8


def test_the_live_table_fits_a_terminal(in_terminal) -> None:
    shown = in_terminal("tune", *TINY, "--trials", "2", "--out", "search")
    assert "trial-epochs" in shown
    assert "Best trials by validation accuracy" in shown


@pytest.mark.long
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
        process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
