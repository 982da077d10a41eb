"""Worker processes: their work reaches them, their deaths are survived, their errors are told."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from started import PATIENCE, lives
from worker_tasks import die, die_until, refuse, say

from ihgnn_cli.errors import InputError
from ihgnn_cli.jobs import processes
from ihgnn_cli.jobs.processes import MOST_DEATHS, Killed, Place, Send, run_workers

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="sends signals")
HERE = Path(__file__)


def test_workers_get_argument_place_core_and_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    core = processes.cores()[-1]
    heard: list[object] = []
    argument = {"bytes": b"x" * 2**20}  # more than a pipe holds
    places = [Place("one"), Place("two", core)]
    run_workers(say, argument, places=places, on_message=heard.append)
    expected = [(argument, "one", None, "1", True), (argument, "two", [core], "1", True)]
    assert sorted(heard, key=lambda each: each[1]) == expected
    assert os.environ["OMP_NUM_THREADS"] == "7"


def test_a_killed_worker_is_replaced_and_the_others_go_on(tmp_path: Path) -> None:
    heard: list[object] = []
    (tmp_path / "file").touch()
    run_workers(
        die_until,
        tmp_path / "file",
        places=[Place("one"), Place("two")],
        on_message=heard.append,
    )
    pids = [each.pid for each in heard if isinstance(each, Killed)]
    assert len(pids) == len(set(pids)) == 2
    told = dict(each for each in heard if isinstance(each, tuple))
    assert told["two"] == told["second"]  # one process all the time
    assert set(told) == {"one", "two", "second"}


def test_a_place_where_workers_only_die_is_given_up() -> None:
    heard: list[object] = []
    with pytest.raises(Exception, match="All workers were killed, perhaps because memory was full"):
        run_workers(die, None, places=[Place("dies")], on_message=heard.append)
    assert len(heard) == MOST_DEATHS


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("setting", r"^epochs must be at least 1, not 0\.$"),
        ("disk", r"^A worker cannot go on: .*No space left on device\. The same command tries"),
        ("bug", r"^A worker failed: KeyError: 'x'\nThis is a bug in ihgnn\.$"),
    ],
)
def test_an_error_of_a_worker_is_raised_in_the_parent(kind: str, said: str) -> None:
    with pytest.raises(Exception, match=said) as caught:
        run_workers(refuse, kind, places=[Place("cpu")], on_message=lambda _: None)
    assert isinstance(caught.value, InputError) == (kind == "setting")


SCRIPT = f"""
import sys, time
sys.path.insert(0, {str(HERE.parent)!r})
from test_processes import wait
from ihgnn_cli.jobs.processes import Place, run_workers
run_workers(wait, None, places=[Place("a"), Place("b")],
            on_message=lambda pid: print(pid, flush=True))
"""


def wait(_: object, _place: Place, send: Send) -> None:
    send(os.getpid())
    time.sleep(PATIENCE)


@pytest.mark.parametrize("name", ["SIGKILL", "SIGINT"])
def test_workers_are_gone_when_their_parent_is(name: str, tmp_path: Path) -> None:
    script = tmp_path / "script.py"  # without a main guard
    script.write_text(SCRIPT)
    environment = {**os.environ, "PYTHONPATH": str(HERE.parents[1])}
    with subprocess.Popen(
        [sys.executable, script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
    ) as parent:
        assert parent.stdout
        pids = [int(parent.stdout.readline()) for _ in range(2)]
        assert all(map(lives, pids))
        parent.send_signal(getattr(signal, name))
    deadline = time.monotonic() + PATIENCE
    while any(map(lives, pids)):
        assert time.monotonic() < deadline
        time.sleep(0.02)
