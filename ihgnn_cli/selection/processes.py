"""The life of worker processes on this machine: started, pinned, and gone with their parent."""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing import connection, get_context, parent_process, resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess

import torch

from ihgnn_cli.errors import IhgnnError

# What a worker that was asked to stop may take to clean up.
GRACE_SECONDS = 5.0
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")

Life = Callable[[str, Connection], None]
"""What a worker does with its device, and with the channel to the process that started it."""


@contextmanager
def started(devices: Sequence[str], life: Life) -> Iterator[dict[Connection, BaseProcess]]:
    """Processes, one for each of these devices, until the block ends; by their channels.

    Args:
        devices: as torch names them.
        life: has to be a function that another process can import.
    """
    context = get_context("spawn")
    # With a worker for every core each has its own; fewer are free to go where there is room.
    pins = cores() if len(cores()) == len(devices) else []
    workers: dict[Connection, BaseProcess] = {}
    with one_thread_each():
        try:
            for number, device in enumerate(devices):
                ours, theirs = context.Pipe()
                pin = pins[number] if pins and device == "cpu" else None
                arguments = (life, device, pin, theirs)
                process = context.Process(target=_live, args=arguments, daemon=True)
                _start(process)
                theirs.close()
                workers[ours] = process
            yield workers
        finally:
            _stop(workers.values())


def tell(channel: Connection, message: object) -> None:
    """Tell the process that started this one; where it listens no more, nothing is left to do."""
    try:
        channel.send(message)
    except OSError:
        sys.exit(1)


def cores() -> list[int]:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


@contextmanager
def one_thread_each() -> Iterator[None]:
    """Let processes that are started in the block have one thread: they read it when they start."""
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
def undisturbed() -> Iterator[None]:
    """Let Ctrl-C and a polite kill wait until the block ends, which is to be short."""
    if threading.current_thread() is not threading.main_thread():
        yield  # where they never arrive
        return
    caught: list[int] = []
    before = {
        number: signal.signal(number, lambda found, _: caught.append(found))
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if caught:
            signal.raise_signal(caught[0])


def _live(life: Life, device: str, core: int | None, channel: Connection) -> None:
    """A worker process from its beginning to its end."""
    # Ctrl-C reaches the whole group of processes: the parent decides.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    threading.Thread(target=_die_with_parent, daemon=True).start()
    if core is not None and hasattr(os, "sched_setaffinity"):
        with suppress(OSError):
            os.sched_setaffinity(0, {core})
    torch.set_num_threads(1)
    try:
        life(device, channel)
    except IhgnnError as error:
        tell(channel, error)
    except OSError as error:
        again = "The same command tries again."
        tell(channel, IhgnnError(f"A worker cannot go on: {error}. {again}"))
    except Exception as error:  # noqa: BLE001  the parent tells the user
        told = f"{type(error).__name__}: {error}"
        tell(channel, IhgnnError(f"A worker failed: {told}\nThis is a mistake in ihgnn."))
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # it is leaving already


def _start(process: BaseProcess) -> None:
    """Start a process that a Ctrl-C cannot reach before it is ready for it.

    It does not import the script of its parent, which would run again without a main guard:
    workers need this package only.
    """
    with _hidden_script():
        _start_out_of_reach(process)


@contextmanager
def _hidden_script() -> Iterator[None]:
    main = sys.modules["__main__"]
    before = {name: getattr(main, name, None) for name in ("__file__", "__spec__")}
    for name in before:
        setattr(main, name, None)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(main, name, value)


def _start_out_of_reach(process: BaseProcess) -> None:
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        process.start()
        return
    resource_tracker.ensure_running()  # which would unblock the signal
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        process.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _stop(workers: Iterable[BaseProcess]) -> None:
    """End the workers that are left, politely at first."""
    left = [each for each in workers if each.is_alive()]
    for process in left:
        process.terminate()
    deadline = time.monotonic() + GRACE_SECONDS
    for process in left:
        process.join(max(0.0, deadline - time.monotonic()))
        if process.is_alive():
            process.kill()
            process.join()


def _die_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)
