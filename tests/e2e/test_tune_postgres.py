"""One search on a real PostgreSQL server: two commands at once, one of them killed."""

import json
import os
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from postgres import PASSWORD, QUOTED, postgres
from refusals import assert_refused
from started import PATIENCE, start, wait_for, workers_of

psycopg = pytest.importorskip("psycopg", reason="an optional extra")

SEARCH = ("--width", "4", "--hidden", "8", "--batch-size", "64", "--layers", "1,2")
SEARCH += ("--epochs", "600", "--workers", "1", "--device", "cpu")
SEARCH += ("--pruner", "none", "--trials", "8", "--quiet", "--json")


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with postgres() as address:
        yield address


def asked(address: str, question: str) -> list[tuple]:
    try:
        with psycopg.connect(address) as connection:
            return connection.execute(question).fetchall()
    except psycopg.Error:  # no tables as yet
        return []


def states(address: str) -> Counter[str]:
    return Counter(row[0] for row in asked(address, "select state from trials"))


def in_training(address: str, parent: subprocess.Popen[str]) -> int:
    """The trials that a worker of a command is in the middle of: running, with a report."""
    question = """select owner.value_json from trials
        join trial_intermediate_values using (trial_id)
        join trial_user_attributes as owner using (trial_id)
        where trials.state = 'RUNNING' and owner.key = 'worker'"""
    workers = set(workers_of(parent))
    return sum(int(json.loads(row[0]).split()[-1]) in workers for row in asked(address, question))


def no_secret(*texts: str) -> None:
    for text in texts:
        assert PASSWORD not in text
        assert QUOTED not in text


@pytest.mark.long
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks into /proc")
def test_two_machines_share_a_search_and_survive_the_death_of_one(
    command, ihgnn, tmp_path, server
) -> None:
    def begin(folder: str):
        args = ("tune", *SEARCH, "--storage", server, "--out", str(tmp_path / folder))
        return start([command, *args])

    doomed, other = begin("doomed"), begin("other")
    wait_for(lambda: in_training(server, doomed), doomed)  # mid-trial
    os.kill(doomed.pid, signal.SIGKILL)
    doomed.communicate(timeout=PATIENCE)
    shown, said = other.communicate(timeout=PATIENCE)
    assert other.returncode == 0, said
    told = json.loads(shown)
    assert told["trials"]["complete"] == 8
    assert told["trials"]["failed"] == 0
    assert told["trials"]["retried"] >= 1  # what the dead one had in hand
    # None is lost and none counts twice: 8 results, and each failed trial has one retry.
    found = states(server)
    assert found["COMPLETE"] == 8
    assert found["RUNNING"] == found["WAITING"] == 0
    assert found["FAIL"] == told["trials"]["retried"]
    # A third one finds all done, and comes to the same.
    again = ihgnn("tune", *SEARCH, "--storage", server, "--out", "third")
    third = json.loads(again.stdout)
    assert third["trained_now"] == 0
    assert third["best"] == told["best"]
    files = [path.read_text(errors="replace") for path in tmp_path.rglob("*.*") if path.is_file()]
    no_secret(shown, said, again.stdout, again.stderr, *files)
    assert "***" in third["storage"]


def test_a_wrong_password_or_host_is_told_without_the_secret(ihgnn, server, monkeypatch) -> None:
    wrong = server.replace(QUOTED, "wr0ng%40secret")
    monkeypatch.setenv("IHGNN_DEBUG", "")
    refused = ihgnn("tune", *SEARCH, "--storage", wrong)
    assert_refused(refused, 1, "Cannot open the study's storage", "authentication failed")
    assert "wr0ng" not in refused.stdout + refused.stderr
    closed = ihgnn("tune", *SEARCH, "--storage", f"postgresql://me:{QUOTED}@127.0.0.1:9/x")
    assert_refused(closed, 1, "Cannot open the study's storage", "127.0.0.1")
    no_secret(closed.stdout, closed.stderr)
    odd = ihgnn("tune", *SEARCH, "--storage", f"postgresql://me:{QUOTED}@127.0.0.1:port/x")
    assert odd.returncode in (1, 2)
    no_secret(odd.stdout, odd.stderr)
