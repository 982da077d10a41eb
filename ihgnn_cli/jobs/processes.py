"""Worker processes on this machine: started, pinned, replaced when killed, gone with their parent.

A worker gets its work over a pipe once it has said that it runs, and sends messages back over the
same pipe. A worker that is killed is replaced and the others are not disturbed: each has a pipe of
its own, because the lock of a shared queue dies with its holder.
"""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import connection, get_context, parent_process, resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from multiprocessing.reduction import ForkingPickler
from typing import Any, TypeVar, cast

from ihgnn_cli.errors import IhgnnError, retold

MOST_DEATHS = 5
"""Processes started for one place before it is given up."""
_END_SECONDS = 30.0  # for a worker that has closed its pipe to end, on a busy machine
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")
_SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")  # Windows has no SIGHUP

_Argument = TypeVar("_Argument")
Send = Callable[[object], None]
"""Sends a message to the process that started the worker."""


@dataclass(frozen=True)
class Place:
    """Where one worker runs."""

    device: str
    """As torch names it."""
    core: int | None = None
    """The processor core it is pinned to."""


@dataclass(frozen=True)
class Killed:
    """The message about a worker that was killed from outside."""

    pid: int


@dataclass(frozen=True)
class _Hello:
    """The first message of a worker: it waits for its work."""


@dataclass
class _Worker:
    process: BaseProcess
    place: Place
    deaths_left: int


def cores() -> list[int]:
    """The processor cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def run_workers(
    work: Callable[[_Argument, Place, Send], None],
    argument: _Argument,
    *,
    places: Sequence[Place],
    on_message: Callable[[object], None],
    tick: Callable[[], None] = lambda: None,
) -> None:
    """Run a function in one worker process per place, until all have returned.

    Workers that are still running when this function ends, for any reason, are killed.

    Args:
        work: a function that another process can import.
        argument: its first argument, pickled once.
        places: the device and core of each worker.
        on_message: called with what workers send, and with `Killed` for each that was killed.
        tick: called about once a second; what was sent before one call is heard before the next.

    Raises:
        IhgnnError: a worker failed, or the last ones were killed along with their replacements.
    """
    payload = bytes(ForkingPickler.dumps((work, argument)))
    workers: dict[Connection, _Worker] = {}
    killed_last = False

    def start(place: Place, deaths_left: int) -> None:
        pipe, process = _launch(place)
        workers[pipe] = _Worker(process, place, deaths_left)

    try:
        for place in places:
            start(place, MOST_DEATHS)
        while workers:
            tick()
            for each in connection.wait(list(workers), timeout=1.0):
                pipe = cast("Connection", each)
                if _heard(pipe, payload, on_message):
                    continue
                worker = workers.pop(pipe)
                pipe.close()
                killed_last = not _ended_by_itself(worker.process)
                if not killed_last:
                    continue
                if worker.deaths_left > 1:
                    start(worker.place, worker.deaths_left - 1)
                on_message(Killed(worker.process.pid or 0))
        if killed_last:
            raise IhgnnError(
                "All workers were killed, perhaps because memory was full. The same command "
                "continues where they stopped; use fewer --workers if it happens again."
            )
    finally:
        for worker in workers.values():
            worker.process.kill()
        for pipe, worker in workers.items():
            worker.process.join()
            pipe.close()


def _heard(pipe: Connection, payload: bytes, on_message: Callable[[object], None]) -> bool:
    """Answer all messages that have come; returns whether the worker is still there."""
    while True:
        try:
            if not pipe.poll():
                return True
            message: object = pipe.recv()
        except (EOFError, OSError):  # it has gone, perhaps in the middle of a message
            return False
        _answer(pipe, message, payload, on_message)


def _answer(
    pipe: Connection, message: object, payload: bytes, on_message: Callable[[object], None]
) -> None:
    match message:
        case _Hello():
            # Not as an argument of the process: one that is killed while it reads its arguments
            # would leave this process waiting for ever.
            with suppress(OSError):
                pipe.send_bytes(payload)
        case Exception():
            raise message
        case _:
            on_message(message)


def _ended_by_itself(process: BaseProcess) -> bool:
    process.join(_END_SECONDS)
    if process.is_alive():  # it would share its core or GPU with its replacement
        process.kill()
        process.join()
    return process.exitcode == 0


def _launch(place: Place) -> tuple[Connection, BaseProcess]:
    """Start a process that waits for its work, and return its pipe."""
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_main, args=(place, theirs), daemon=True)
    with _hidden_script(), _one_thread(), _signals_blocked():
        process.start()
    theirs.close()
    return ours, process


@contextmanager
def _hidden_script() -> Iterator[None]:
    """Keep new processes from importing the script of this one, which may have no main guard."""
    main = vars(sys.modules["__main__"])
    before: dict[str, Any] = {name: main[name] for name in ("__file__", "__spec__") if name in main}
    main.update(dict.fromkeys(before))
    try:
        yield
    finally:
        main.update(before)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Give new processes one thread each: they read it when they import NumPy and torch."""
    before = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value


@contextmanager
def _signals_blocked() -> Iterator[None]:
    """Hold signals back: a process that is only half started would show a traceback.

    The new process inherits the block and lifts it when it is ready.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    resource_tracker.ensure_running()  # it would unblock them
    numbers = [getattr(signal, name) for name in _SIGNALS]
    before = signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _main(place: Place, pipe: Connection) -> None:
    """The life of a worker process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all: the parent decides
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
    threading.Thread(target=_die_with_parent, daemon=True).start()
    if place.core is not None and hasattr(os, "sched_setaffinity"):
        with suppress(OSError):
            os.sched_setaffinity(0, {place.core})
    run_here(place, pipe)


def run_here(place: Place, pipe: Connection) -> None:
    """Say hello, receive the work and do it; errors are sent to the parent."""

    def send(message: object) -> None:
        try:
            pipe.send(message)
        except OSError:  # nobody listens
            sys.exit(1)

    try:
        send(_Hello())
        work, argument = pipe.recv()
        work(argument, place, send)
    except IhgnnError as error:
        send(retold(error, str(error)))  # not every class can be pickled
    except EOFError:
        sys.exit(1)
    except OSError as error:
        send(IhgnnError(f"A worker cannot go on: {error}. The same command tries again."))
    except Exception as error:  # noqa: BLE001  the parent tells the user
        what = f"{type(error).__name__}: {error}"
        send(IhgnnError(f"A worker failed: {what}\nThis is a bug in ihgnn."))


def _die_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)
