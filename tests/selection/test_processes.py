"""A block that signals wait for."""

import signal
import threading
from collections.abc import Iterator

import pytest

from ihgnn_cli.selection.processes import undisturbed

HANDLED = (signal.SIGINT, signal.SIGTERM)


class Terminated(Exception):  # noqa: N818  a signal is no mistake
    pass


@pytest.fixture(autouse=True)
def known_handlers() -> Iterator[None]:
    """Whoever started the tests may have had SIGINT ignored."""

    def terminate(number: int, frame: object) -> None:
        raise Terminated

    before = {number: signal.getsignal(number) for number in HANDLED}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, terminate)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize(
    ("number", "raised"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, Terminated)]
)
def test_a_signal_in_the_block_arrives_after_it(
    number: signal.Signals, raised: type[BaseException]
) -> None:
    done = []
    handlers = [signal.getsignal(each) for each in HANDLED]
    with pytest.raises(raised):  # noqa: PT012  what is done in the block is what counts
        with undisturbed():
            signal.raise_signal(number)
            signal.raise_signal(number)
            done.append("the block")
        done.append("what follows it")
    assert done == ["the block"]
    assert [signal.getsignal(each) for each in HANDLED] == handlers
    with undisturbed():  # and it has arrived once
        done.append("the next block")


def test_without_a_signal_nothing_happens() -> None:
    handlers = [signal.getsignal(each) for each in HANDLED]
    with undisturbed():
        assert [signal.getsignal(each) for each in HANDLED] != handlers
    assert [signal.getsignal(each) for each in HANDLED] == handlers
    with pytest.raises(ZeroDivisionError), undisturbed():
        raise ZeroDivisionError
    assert [signal.getsignal(each) for each in HANDLED] == handlers


def test_a_signal_is_not_lost_where_the_block_fails() -> None:
    def fail() -> None:
        with undisturbed():
            signal.raise_signal(signal.SIGINT)
            raise ZeroDivisionError

    with pytest.raises(KeyboardInterrupt) as caught:
        fail()
    assert isinstance(caught.value.__context__, ZeroDivisionError)


def test_a_signal_that_is_ignored_stays_so() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with undisturbed():
        signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_other_threads_have_no_signals_to_wait_for() -> None:
    handlers = [signal.getsignal(each) for each in HANDLED]
    seen = []

    def work() -> None:
        with undisturbed():
            seen.append([signal.getsignal(each) for each in HANDLED])

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [handlers]
