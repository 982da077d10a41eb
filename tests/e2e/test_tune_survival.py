"""`ihgnn tune` as processes: killed, interrupted and continued, and two commands at once."""

import json
import os
import signal
import time
from collections import Counter
from pathlib import Path

import pytest
from started import PATIENCE, start, wait_for, workers_of
from tuned import EPOCHS, SLOW, TINY, finished, rows, states

from ihgnn_cli.studies.tuning import storage

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/stat").exists(), reason="looks into /proc for workers"
)


@pytest.fixture
def soon(monkeypatch) -> None:
    """The command of this process takes others for dead after twelve seconds."""
    monkeypatch.setattr(storage, "HEARTBEAT_SECONDS", 1)
    monkeypatch.setattr(storage, "STALE_SECONDS", 12)


def continued(ihgnn, args, folder: Path, trials: int) -> dict:
    """Run the command again: it finishes what is left, and each trial has one result."""
    result = ihgnn(*args, "--json", "-q")
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    assert found["trials"]["complete"] == trials
    assert found["trials"]["failed"] == found["trials"]["left"] == 0
    assert len(rows(folder)) == trials
    points = Counter((row["lr"], row["batch_size"], row["layers"]) for row in rows(folder))
    assert set(points.values()) == {1}
    return found


@pytest.mark.usefixtures("thread_workers", "soon")  # only of the command that goes on
def test_a_killed_command_continues_and_loses_and_doubles_nothing(command, ihgnn, tmp_path) -> None:
    folder = tmp_path / "search"
    args = ("tune", *SLOW, "--trials", "4", "--out", str(folder))
    for left in (3, 2):
        process = start([command, *args])
        wait_for(lambda left=left: finished(folder) >= 4 - left, process)
        process.kill()
        process.communicate(timeout=PATIENCE)
    kept = finished(folder)
    assert kept < 4
    found = continued(ihgnn, args, folder, 4)
    assert found["trained_now"] == (4 - kept) * EPOCHS


@pytest.mark.parametrize("name", ["SIGINT", pytest.param("SIGTERM", marks=pytest.mark.long)])
@pytest.mark.usefixtures("thread_workers")  # only of the command that goes on
def test_an_interrupted_command_says_so_once_and_its_trials_wait(
    command, ihgnn, tmp_path, name
) -> None:
    folder, number = tmp_path / "search", getattr(signal, name)
    args = ("tune", *SLOW, "--workers", "2", "--trials", "4", "--out", str(folder))
    process = start([command, *args])
    wait_for(lambda: finished(folder) and states(folder).get("RUNNING"), process)
    began = time.monotonic()
    while process.poll() is None and time.monotonic() - began < 4:
        os.killpg(process.pid, number)  # to all processes, again and again
        time.sleep(0.1)
    shown, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 128 + number
    assert "Best trials by validation accuracy" in shown
    assert said.count("the same command continues") == 1
    assert said.endswith("Error: Interrupted.\n")
    assert "Traceback" not in said
    assert (folder / "best.toml").is_file()
    assert set(states(folder)) <= {"WAITING", "COMPLETE"}
    found = continued(ihgnn, args, folder, 4)
    assert found["trials"]["retried"] == 0
    assert states(folder) == {"COMPLETE": 4}  # with their numbers


@pytest.mark.long
def test_a_killed_worker_is_replaced(command, tmp_path) -> None:
    folder = tmp_path / "search"
    args = ("tune", *SLOW, "--workers", "2", "--trials", "6", "--json", "-q")
    process = start([command, *args, "--out", str(folder)])
    wait_for(lambda: states(folder).get("RUNNING") == 2, process)
    os.kill(workers_of(process)[0], signal.SIGKILL)
    shown, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, said
    assert "A worker was killed from outside" in said
    found = json.loads(shown)["trials"]
    assert (found["complete"], found["retried"]) == (6, 1)
    assert len(rows(folder)) == 6


@pytest.mark.long
def test_two_commands_share_the_trials_and_one_may_be_killed(command, tmp_path) -> None:
    folder = tmp_path / "search"
    args = ("tune", *SLOW, "--trials", "8", "--out", str(folder), "--json", "-q")
    doomed, *others = [start([command, *args]) for _ in range(3)]
    wait_for(lambda: finished(folder) >= 2, doomed)
    doomed.kill()
    doomed.communicate(timeout=PATIENCE)
    found = []
    for process in others:
        shown, said = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, said
        found.append(json.loads(shown))
    assert [each["trials"]["complete"] for each in found] == [8, 8]
    assert found[0]["best"] == found[1]["best"]
    assert found[0]["final"]["test"] == found[1]["final"]["test"]
    assert len(rows(folder)) == 8
    assert states(folder)["COMPLETE"] == 8
    assert states(folder).get("RUNNING", 0) == states(folder).get("WAITING", 0) == 0


def test_the_live_table_fits_a_terminal(in_terminal) -> None:
    shown = in_terminal("tune", *TINY, "--trials", "2", "--out", "search")
    assert "trial-epochs" in shown
    assert "Best trials by validation accuracy" in shown
