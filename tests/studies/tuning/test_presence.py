"""Who is dead: seen at once on this machine, and after a minute without a sign on others."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import optuna
import pytest

from ihgnn_cli.studies.tuning import presence
from ihgnn_cli.studies.tuning.presence import STALE, Presence

LIVING = """
import sys, time, json
from dataclasses import asdict
from ihgnn_cli.jobs.alive import this_process

print(json.dumps(asdict(this_process())), flush=True)
sys.stdin.read()
"""

only_with_proc = pytest.mark.skipif(
    not Path("/proc/self/stat").exists(), reason="the system shows no processes"
)


class Watch:
    """A clock that goes when it is told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def study() -> optuna.Study:
    return optuna.create_study()


@pytest.fixture
def watch() -> Watch:
    return Watch()


@pytest.fixture
def looking(study: optuna.Study, watch: Watch) -> Presence:
    return Presence(study, watch)


def sign(study: optuna.Study, token: str, beat: object, **changes: object) -> None:
    """A sign of life of a process of another machine, with this process's number."""
    plain = {"machine": "elsewhere", "pid": os.getpid(), "started": 1, "beat": beat}
    study.set_user_attr(f"worker-{token}", {**plain, **changes})


@contextmanager
def another() -> Iterator[tuple["subprocess.Popen[str]", dict[str, Any]]]:
    """A process of this machine, and how it introduces itself."""
    import json

    command = [sys.executable, "-c", LIVING]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        try:
            yield process, json.loads(process.stdout.readline())
        finally:
            process.kill()


def test_one_elsewhere_is_dead_after_a_minute_without_a_sign(
    study: optuna.Study, looking: Presence, watch: Watch
) -> None:
    sign(study, "t", 5)
    assert looking.dead({"1": "t"}) == []  # a first look knows nothing
    watch.now += STALE - 1
    assert looking.dead({"1": "t"}) == []
    watch.now += 1
    assert looking.dead({"1": "t", "2": "t"}) == ["1", "2"]


def test_one_elsewhere_lives_while_its_number_changes(
    study: optuna.Study, looking: Presence, watch: Watch
) -> None:
    for beat in range(5):
        sign(study, "t", beat)
        assert looking.dead({"1": "t"}) == []
        watch.now += STALE - 1
    sign(study, "t", 0)  # also downwards, as after a restart of its clock
    assert looking.dead({"1": "t"}) == []
    watch.now += STALE
    assert looking.dead({"1": "t"}) == ["1"]


def test_who_slept_for_long_takes_nobody_for_dead_that_gave_signs_meanwhile(
    study: optuna.Study, looking: Presence, watch: Watch
) -> None:
    sign(study, "t", 5)
    looking.dead({"1": "t"})
    watch.now += 100 * STALE
    sign(study, "t", 600)
    assert looking.dead({"1": "t"}) == []


def test_one_that_came_back_lives(study: optuna.Study, looking: Presence, watch: Watch) -> None:
    sign(study, "t", 5)
    looking.dead({"1": "t"})
    watch.now += STALE
    assert looking.dead({"1": "t"}) == ["1"]
    sign(study, "t", 6)
    assert looking.dead({"1": "t"}) == []


def test_each_is_looked_at_for_itself(study: optuna.Study, looking: Presence, watch: Watch) -> None:
    sign(study, "a", 1)
    sign(study, "b", 1)
    looking.dead({"1": "a", "2": "b"})
    watch.now += STALE
    sign(study, "b", 2)
    assert looking.dead({"1": "a", "2": "b"}) == ["1"]


def test_one_that_has_left_is_dead_at_once(study: optuna.Study, looking: Presence) -> None:
    with Presence(study) as other:
        assert looking.dead({"1": other.token}) == []
    assert looking.dead({"1": other.token}) == ["1"]


def test_one_that_nobody_knows_has_left(looking: Presence) -> None:
    assert looking.dead({"1": "unknown"}) == ["1"]


def test_one_leaves_also_after_a_failure(study: optuna.Study, looking: Presence) -> None:
    other = Presence(study)
    with pytest.raises(KeyError), other:
        raise KeyError
    assert looking.dead({"1": other.token}) == ["1"]
    assert not [each for each in threading.enumerate() if each.name == "signs of life"]


def test_this_process_lives(study: optuna.Study, looking: Presence, watch: Watch) -> None:
    with Presence(study) as other:
        for _ in range(3):
            assert looking.dead({"1": other.token}) == []
            watch.now += 10 * STALE  # its signs are not even looked at


@only_with_proc
def test_a_killed_process_of_this_machine_is_dead_at_once(
    study: optuna.Study, looking: Presence, watch: Watch
) -> None:
    with another() as (process, who):
        sign(study, "t", 1, **who)
        assert looking.dead({"1": "t"}) == []
        watch.now += 10 * STALE
        assert looking.dead({"1": "t"}) == []  # however long it gives no sign
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # it stays as a zombie
        assert looking.dead({"1": "t"}) == ["1"]
        process.wait()
        assert looking.dead({"1": "t"}) == ["1"]


@only_with_proc
def test_a_later_process_of_the_same_number_is_another(
    study: optuna.Study, looking: Presence
) -> None:
    with another() as (_, who):
        sign(study, "t", 1, **{**who, "started": who["started"] - 1})
        assert looking.dead({"1": "t"}) == ["1"]


def test_a_piece_that_nobody_signed_is_dead_after_a_minute(looking: Presence, watch: Watch) -> None:
    assert looking.dead({"1": None}) == []
    watch.now += STALE - 1
    assert looking.dead({"1": None, "2": None}) == []
    watch.now += 1
    assert looking.dead({"1": None, "2": None}) == ["1"]


@pytest.mark.parametrize(
    "content", ["text", 5, [], {}, {"beat": 1}, {"machine": 1, "pid": "x", "started": None}]
)
def test_a_sign_that_is_none_is_as_good_as_that_of_another_machine(
    study: optuna.Study, looking: Presence, watch: Watch, content: object
) -> None:
    study.set_user_attr("worker-t", content)
    assert looking.dead({"1": "t"}) == []
    watch.now += STALE
    assert looking.dead({"1": "t"}) == ["1"]


def test_signs_are_given_again_and_again_and_a_failure_stops_none(
    study: optuna.Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(presence, "HEARTBEAT", 0.001)
    enough = threading.Event()
    beats: list[int] = []
    write = study.set_user_attr

    def failing(key: str, value: Any) -> None:
        if value is not None:
            beats.append(value["beat"])
            if len(beats) > 5:
                enough.set()
            if len(beats) == 3:
                raise OSError("the network is away")
        write(key, value)

    monkeypatch.setattr(study, "set_user_attr", failing)
    with Presence(study):
        assert enough.wait(10)
    assert beats == list(range(len(beats)))


def test_a_study_out_of_reach_at_the_end_is_no_failure(
    study: optuna.Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object) -> None:
        raise OSError("the network is away")

    with Presence(study):
        monkeypatch.setattr(study, "set_user_attr", away)
