"""Whether a process lives: seen on its own machine, and unknown from any other."""

import json
import os
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from ihgnn_cli.jobs import alive
from ihgnn_cli.jobs.alive import this_process, who_from_plain

only_with_proc = pytest.mark.skipif(
    not Path("/proc/self/stat").exists(), reason="the system shows no start times"
)
not_windows = pytest.mark.skipif(os.name == "nt", reason="another process cannot be asked for")

INTRODUCED = """
import json, sys
from dataclasses import asdict
from ihgnn_cli.jobs.alive import this_process

print(json.dumps(asdict(this_process())), flush=True)
sys.stdin.read()
"""


@only_with_proc
def test_this_process_lives() -> None:
    assert this_process().pid == os.getpid()
    assert this_process().lives() is True


@only_with_proc
def test_another_process_lives_until_it_is_killed_and_also_before_it_is_waited_for() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", INTRODUCED],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout
        who = who_from_plain(json.loads(process.stdout.readline()))
        assert who.pid == process.pid
        assert who.lives() is True
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # it is a zombie now
        assert who.lives() is False
    assert who.lives() is False


@only_with_proc
def test_a_later_process_of_the_same_number_is_another() -> None:
    here = this_process()
    assert here.started is not None
    assert replace(here, started=here.started - 1).lives() is False
    assert replace(here, started=None).lives() is False


def test_a_process_of_another_machine_cannot_be_seen() -> None:
    assert replace(this_process(), machine="elsewhere").lives() is None


@not_windows
def test_where_the_system_shows_less_only_death_is_certain(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(alive, "_process", lambda pid: None)
    here = this_process()
    assert here.started is None
    assert here.lives() is None
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
        assert replace(here, pid=process.pid).lives() is False


def test_a_process_is_the_same_after_a_file() -> None:
    here = this_process()
    assert who_from_plain({**asdict(here), "beat": 3}) == here


@pytest.mark.parametrize(
    "changes",
    [
        {"machine": None},
        {"machine": 3},
        {"pid": "1"},
        {"pid": 0},
        {"pid": -1},
        {"pid": 2**31},
        {"started": "x"},
        {"started": 1.5},
    ],
)
def test_what_is_no_process_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="not a process"):
        who_from_plain({**asdict(this_process()), **changes})


@pytest.mark.parametrize("missing", ["machine", "pid", "started"])
def test_what_is_no_whole_process_is_refused(missing: str) -> None:
    plain = asdict(this_process())
    del plain[missing]
    with pytest.raises(KeyError):
        who_from_plain(plain)
