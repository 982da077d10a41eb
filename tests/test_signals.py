"""Signals raise at once, or at the end of a block or a safe point in it."""

import math
import signal
import threading
from collections.abc import Iterator

import pytest

from ihgnn_cli import signals
from ihgnn_cli.signals import held, safe_point

RAISED = {"SIGINT": KeyboardInterrupt, "SIGTERM": SystemExit, "SIGHUP": SystemExit}
"""What the handled signals raise; Windows has no SIGHUP."""
HANDLED = tuple(getattr(signal, name) for name in RAISED if hasattr(signal, name))


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in HANDLED}
    for number in HANDLED:  # whoever started the tests may have had some ignored
        signal.signal(number, signal.SIG_DFL)
    signals.install()
    monkeypatch.setattr(signals._State, "since", -math.inf)
    monkeypatch.setattr(signals, "_PATIENCE", math.inf)  # however long a test takes
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize(
    ("number", "raised"), [(number, RAISED[number.name]) for number in HANDLED]
)
def test_a_signal_in_the_block_arrives_after_it(
    number: signal.Signals, raised: type[BaseException]
) -> None:
    done = []
    with pytest.raises(raised) as caught:  # noqa: PT012  what is done in the block is what counts
        with held():
            signal.raise_signal(number)
            signal.raise_signal(number)
            with held():
                done.append("a block in the block")
            done.append("the block")
        done.append("what follows it")
    assert done == ["a block in the block", "the block"]
    assert caught.value.args == (() if number == signal.SIGINT else (128 + number,))
    with held():  # and it has arrived once
        done.append("the next block")


def test_a_safe_point_lets_a_signal_through_and_the_cleaning_up_is_held_again() -> None:
    done = []
    with pytest.raises(SystemExit), held():  # noqa: PT012
        try:
            safe_point()
            done.append("no signal yet")
            signal.raise_signal(signal.SIGTERM)
            done.append("held")
            safe_point()
            done.append("not reached")
        finally:
            signal.raise_signal(signal.SIGTERM)
            done.append("cleaned up")
    assert done == ["no signal yet", "held", "cleaned up"]


@pytest.mark.parametrize("again", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_that_is_sent_again_does_not_cut_the_cleaning_up_short(
    again: signal.Signals,
) -> None:
    done = []
    with pytest.raises(SystemExit):  # noqa: PT012
        try:
            signal.raise_signal(signal.SIGTERM)
        finally:
            signal.raise_signal(again)
            done.append("cleaned up")
    assert done == ["cleaned up"]


def test_a_process_that_ends_keeps_its_exit_code() -> None:
    signals.uninstall()
    for number in HANDLED:
        signal.raise_signal(number)


def test_a_second_signal_ends_what_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signals, "_PATIENCE", 0.0)
    done = []
    with pytest.raises(KeyboardInterrupt), held():  # noqa: PT012
        signal.raise_signal(signal.SIGINT)
        done.append("held")
        signal.raise_signal(signal.SIGINT)
        done.append("not reached")
    assert done == ["held"]


def test_a_signal_is_not_lost_where_the_block_fails() -> None:
    def fail() -> None:
        with held():
            signal.raise_signal(signal.SIGINT)
            raise ZeroDivisionError

    with pytest.raises(KeyboardInterrupt) as caught:
        fail()
    assert isinstance(caught.value.__context__, ZeroDivisionError)


def test_a_signal_that_is_ignored_stays_so() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signals.install()
    with held():
        signal.raise_signal(signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN


def test_other_threads_hold_nothing_back() -> None:
    inside, leave = threading.Event(), threading.Event()

    def work() -> None:
        with held():
            inside.set()
            leave.wait()

    thread = threading.Thread(target=work)
    thread.start()
    inside.wait()
    try:
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    finally:
        leave.set()
        thread.join()
