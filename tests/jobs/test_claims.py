"""Processes that share a folder never take the same piece of work, and the dead hold none."""

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

import pytest
from started import PATIENCE, run_together, start_script

from ihgnn_cli.errors import IhgnnError
from ihgnn_cli.jobs import alive, claims
from ihgnn_cli.jobs.claims import STALE, Claims

WORKER = """
import random, sys, time
from pathlib import Path
from ihgnn_cli.jobs.claims import Claims

folder = Path(sys.argv[1])
names = [f"piece-{number}" for number in range(60)]
print("ready", flush=True)
sys.stdin.readline()
with Claims(folder / "claims") as claims:
    while (name := claims.take(names, lambda name: (folder / name).exists())) is not None:
        (folder / f"{name}.begun").touch(exist_ok=False)  # fails if another was here
        time.sleep(random.random() / 500)
        (folder / name).touch(exist_ok=False)
        claims.release()
        print(name)
"""

HOLDER = """
import sys
from pathlib import Path
from ihgnn_cli.jobs.claims import Claims

with Claims(Path(sys.argv[1])) as claims:
    print(claims.take(["a"], lambda name: False), flush=True)
    sys.stdin.read()
"""

AGE = STALE + 1

only_with_proc = pytest.mark.skipif(
    not Path("/proc/self/stat").exists(), reason="the system shows no start times"
)
not_windows = pytest.mark.skipif(os.name == "nt", reason="another process cannot be asked for")


def nothing(name: str) -> bool:
    return False


@contextmanager
def holder(folder: Path) -> Iterator["subprocess.Popen[str]"]:
    """Another process, which holds "a" until it is ended."""
    with start_script(HOLDER, folder) as process:
        assert process.stdout
        try:
            assert process.stdout.readline() == "a\n"
            yield process
        finally:
            process.kill()


def claim_files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.json"))


def aged(path: Path, seconds: float) -> None:
    os.utime(path, (time.time() - seconds,) * 2)


def rewritten(path: Path, **changes: object) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def foreign_claim(folder: Path, name: str, age: float = 0) -> Path:
    """A claim of a process of another machine, with this process's number."""
    folder.mkdir(exist_ok=True)
    path = folder / "elsewhere-1-00000000.json"
    content = {"name": name, "machine": "elsewhere", "pid": os.getpid(), "started": 1}
    path.write_text(json.dumps(content))
    aged(path, age)
    return path


def heartbeats() -> list[Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "heartbeat"]


def until(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.002)


def test_the_first_name_that_is_not_done_and_not_claimed_is_taken(tmp_path: Path) -> None:
    with Claims(tmp_path) as one, Claims(tmp_path) as other:
        assert one.take(["a", "b", "c"], lambda name: name == "a") == "b"
        assert other.take(["a", "b", "c"], lambda name: name == "a") == "c"
        assert other.held() == {"b", "c"}


def test_there_is_nothing_to_take_where_all_is_done_or_claimed(tmp_path: Path) -> None:
    with Claims(tmp_path) as one, Claims(tmp_path) as other:
        one.take(["a"], nothing)
        assert other.take(["a", "b"], lambda name: name == "b") is None
        assert other.take([], nothing) is None


def test_what_was_released_is_free_and_leaves_no_file(tmp_path: Path) -> None:
    with Claims(tmp_path) as one, Claims(tmp_path) as other:
        one.take(["a"], nothing)
        one.release()
        assert claim_files(tmp_path) == []
        assert other.take(["a"], nothing) == "a"


def test_the_end_of_the_block_releases_also_after_a_failure(tmp_path: Path) -> None:
    def fail() -> None:
        with Claims(tmp_path) as one:
            one.take(["a"], nothing)
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        fail()
    assert Claims(tmp_path).held() == frozenset()


def test_an_object_holds_one_name_at_a_time(tmp_path: Path) -> None:
    with Claims(tmp_path) as one:
        one.take(["a"], nothing)
        with pytest.raises(ValueError, match="release"):
            one.take(["b"], nothing)
        assert one.held() == {"a"}


def test_a_release_of_nothing_is_harmless(tmp_path: Path) -> None:
    one = Claims(tmp_path / "made" / "here")
    one.release()
    assert not one.lost()
    assert one.held() == frozenset()


def test_a_claim_file_says_which_process_holds_what(tmp_path: Path) -> None:
    with Claims(tmp_path) as one:
        one.take(["a"], nothing)
        (path,) = claim_files(tmp_path)
        assert f"-{os.getpid()}-" in path.name
        content = json.loads(path.read_text())
        assert (content["name"], content["pid"]) == ("a", os.getpid())


def test_processes_together_do_every_piece_once(tmp_path: Path) -> None:
    did = run_together(WORKER, [tmp_path], [tmp_path])
    assert sorted(did[0] + did[1]) == sorted(f"piece-{number}" for number in range(60))
    assert claim_files(tmp_path / "claims") == []


@not_windows
def test_what_a_killed_process_held_is_free_at_once(tmp_path: Path) -> None:
    with Claims(tmp_path) as mine, holder(tmp_path) as process:
        assert mine.take(["a"], nothing) is None
        process.kill()
        process.wait()
        assert mine.held() == frozenset()
        assert claim_files(tmp_path) == []
        assert mine.take(["a"], nothing) == "a"


@only_with_proc
def test_a_killed_process_that_nobody_has_waited_for_holds_nothing(tmp_path: Path) -> None:
    with Claims(tmp_path) as mine, holder(tmp_path) as process:
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # it stays as a zombie
        assert mine.take(["a"], nothing) == "a"


@only_with_proc
def test_a_process_of_this_machine_that_is_stopped_keeps_what_it_holds(tmp_path: Path) -> None:
    with Claims(tmp_path) as mine, holder(tmp_path) as process:
        process.send_signal(signal.SIGSTOP)
        (path,) = claim_files(tmp_path)
        aged(path, AGE)
        assert mine.take(["a"], nothing) is None


@only_with_proc
def test_a_later_process_of_the_same_number_is_another(tmp_path: Path) -> None:
    with Claims(tmp_path) as one, Claims(tmp_path) as other:
        one.take(["a"], nothing)
        (path,) = claim_files(tmp_path)
        rewritten(path, started=json.loads(path.read_text())["started"] - 1)
        assert other.take(["a"], nothing) == "a"


def test_a_claim_of_another_machine_holds_while_it_is_touched(tmp_path: Path) -> None:
    path = foreign_claim(tmp_path, "a", age=STALE - 30)
    with Claims(tmp_path) as mine:
        assert mine.take(["a"], nothing) is None
        assert mine.held() == {"a"}
        aged(path, AGE)
        assert mine.take(["a"], nothing) == "a"
        assert not path.exists()


@pytest.mark.parametrize("apart", [-10_000, 10_000])
def test_the_age_of_a_claim_is_told_by_the_clock_of_the_file_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, apart: float
) -> None:
    foreign_claim(tmp_path, "fresh")
    aged(foreign_claim(tmp_path, "old").rename(tmp_path / "old.json"), AGE)
    foreign_claim(tmp_path, "fresh")
    here = time.time()
    monkeypatch.setattr(time, "time", lambda: here + apart)
    assert Claims(tmp_path).held() == {"fresh"}


@pytest.mark.parametrize(("age", "held"), [(0, {"a"}), (AGE, set())])
def test_a_running_process_that_proc_does_not_show_holds_while_its_claim_is_touched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, age: float, held: set[str]
) -> None:
    monkeypatch.setattr(alive, "_process", lambda pid: None)
    with Claims(tmp_path) as mine:
        mine.take(["a"], nothing)
        aged(claim_files(tmp_path)[0], age)
        assert mine.held() == held


@not_windows
def test_a_process_that_is_gone_holds_nothing_also_without_proc(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(alive, "_process", lambda pid: None)
    with Claims(tmp_path) as mine, holder(tmp_path) as process:
        process.kill()
        process.wait()
        assert mine.take(["a"], nothing) == "a"


def test_who_slept_too_long_sees_that_the_claim_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Claims(tmp_path) as sleeper, Claims(tmp_path) as other:
        sleeper.take(["a"], nothing)
        assert not sleeper.lost()
        aged(claim_files(tmp_path)[0], AGE)
        monkeypatch.setattr(alive, "_machine", lambda: "elsewhere")
        assert other.take(["a"], nothing) == "a"
        assert sleeper.lost()
        assert not other.lost()
        sleeper.release()
        assert not sleeper.lost()
        assert other.held() == {"a"}


def test_a_claim_is_touched_while_it_is_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claims, "HEARTBEAT", 0.005)
    with Claims(tmp_path) as mine:
        mine.take(["a"], nothing)
        (path,) = claim_files(tmp_path)
        aged(path, AGE)
        until(lambda: time.time() - path.stat().st_mtime < STALE)
        mine.release()
        assert heartbeats() == []


def test_the_heartbeat_does_not_bring_back_a_claim_that_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claims, "HEARTBEAT", 0.005)
    with Claims(tmp_path) as mine:
        mine.take(["a"], nothing)
        (heartbeat,) = heartbeats()
        claim_files(tmp_path)[0].unlink()
        heartbeat.join(PATIENCE)
        assert not heartbeat.is_alive()
        assert claim_files(tmp_path) == []
        assert mine.lost()
        mine.release()
        assert mine.take(["b"], nothing) == "b"
        assert not mine.lost()


def test_the_heartbeat_outlives_trouble_with_the_file_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []

    def touch(path: Path) -> None:
        calls.append(path)
        raise OSError("the network is away")

    monkeypatch.setattr(claims, "HEARTBEAT", 0.005)
    with Claims(tmp_path) as mine:
        mine.take(["a"], nothing)
        monkeypatch.setattr(os, "utime", touch)
        until(lambda: len(calls) > 2)
        assert not mine.lost()


def test_who_finishes_while_done_is_asked_is_not_followed(tmp_path: Path) -> None:
    finished = set()
    with Claims(tmp_path) as other, Claims(tmp_path) as mine:
        other.take(["a"], nothing)

        def done(name: str) -> bool:
            answer = name in finished
            finished.add("a")
            other.release()
            return answer

        assert mine.take(["a"], done) is None


def test_who_takes_and_finishes_before_the_folder_is_locked_is_not_followed(
    tmp_path: Path,
) -> None:
    finished: set[str] = set()

    def done(name: str) -> bool:
        if name in finished:
            return True
        with Claims(tmp_path) as other:
            other.take([name], nothing)
            finished.add(name)
        return False

    with Claims(tmp_path) as mine:
        assert mine.take(["a"], done) is None


def test_who_takes_before_the_folder_is_locked_keeps_it(tmp_path: Path) -> None:
    with Claims(tmp_path) as other, Claims(tmp_path) as mine:

        def done(name: str) -> bool:
            if name == "a":  # asked for once, before the lock
                other.take(["a"], nothing)
            return False

        assert mine.take(["a", "b"], done) == "b"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b'{"name": "a", "machi',
        b"\xff\xfe",
        b"[]",
        b"3",
        b"[" * 100_000,
        b'{"name": "a"}',
        b'{"name": 1, "machine": "elsewhere", "pid": 1, "started": 1}',
        b'{"name": "a", "machine": "elsewhere", "pid": -1, "started": 1}',
        b'{"name": "a", "machine": "elsewhere", "pid": "1", "started": 1}',
    ],
)
def test_a_damaged_claim_holds_nothing_and_is_removed_when_it_is_old(
    tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "elsewhere-1-00000000.json"
    path.write_bytes(content)
    mine = Claims(tmp_path)
    assert mine.held() == frozenset()
    assert path.exists()
    aged(path, AGE)
    assert mine.held() == frozenset()
    assert not path.exists()


def test_what_killed_processes_left_half_written_is_removed_when_it_is_old(tmp_path: Path) -> None:
    for name in (".clock-1-ab.part", ".host-1-ab-1-cd.part.json"):
        (tmp_path / name).touch()
        aged(tmp_path / name, AGE)
    (tmp_path / ".clock-2-cd.part").touch()
    Claims(tmp_path).held()
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != "lock") == [
        ".clock-2-cd.part"
    ]


def test_folders_pipes_and_other_files_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "folder.json").mkdir()
    (tmp_path / "notes.txt").write_text("mine")
    others = ["folder.json", "notes.txt"]
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe.json")  # to open it would take forever
        others.append("pipe.json")
    for name in others:
        aged(tmp_path / name, AGE)
    with Claims(tmp_path) as mine:
        assert mine.take(["a"], nothing) == "a"
    assert {path.name for path in tmp_path.iterdir()} - {"lock"} == set(others)


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(IhgnnError, match="Cannot write"):
        Claims(tmp_path / "file")


def test_a_claim_that_cannot_be_kept_up_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("no more threads")

    monkeypatch.setattr(claims, "_Heartbeat", fail)
    mine = Claims(tmp_path)
    with pytest.raises(RuntimeError, match="no more threads"):
        mine.take(["a"], nothing)
    assert claim_files(tmp_path) == []
    monkeypatch.undo()
    with mine:
        assert mine.take(["a"], nothing) == "a"
