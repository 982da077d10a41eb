"""Worker processes on this machine: started, pinned, replaced, and gone with their parent."""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import connection, get_context, parent_process, resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any, cast

import torch

from ihgnn_cli.errors import IhgnnError
from ihgnn_cli.signals import handle, held, safe_point

# What a worker that was asked to stop may take to clean up.
_GRACE_SECONDS = 5.0
# What a worker that has closed its channel may take to end, on a busy machine.
_END_SECONDS = 30.0
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")

Life = Callable[[str, Connection], None]
"""What a worker does with its device, and with the channel to the process that started it."""


class Killed:
    """The last message of a worker that was killed from outside."""


class _Hello:
    """The first message of a worker: it waits for its work."""


class Workers:
    """Worker processes, one for each device, until the block ends; one that is killed is replaced.

    Args:
        devices: as torch names them.
        life: has to be a function that another process can import.
    """

    def __init__(self, devices: Sequence[str], life: Life) -> None:
        # With a worker for every core each has its own; fewer are free to go where there is room.
        pins = cores() if len(cores()) == len(devices) else [None] * len(devices)
        self._places = [
            _Place(device, pin if device == "cpu" else None)
            for device, pin in zip(devices, pins, strict=True)
        ]
        self.life = life
        self._working: dict[Connection, tuple[BaseProcess, _Place]] = {}
        self._ended = False
        """Whether a worker came to its end by itself."""
        self._stack = ExitStack()

    def __enter__(self) -> "Workers":
        with ExitStack() as stack:
            stack.enter_context(one_thread_each())
            stack.callback(self._stop)
            for place in self._places:
                self._start(place)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *raised: object) -> None:
        self._stack.close()

    def __bool__(self) -> bool:
        """Whether there is any worker left."""
        return bool(self._working)

    def hear(self, seconds: float) -> Iterator[tuple[Connection, object]]:
        """What workers say within some seconds, by their channels; the last word may be `Killed`.

        Raises:
            IhgnnError: all workers were killed, and their replacements, too.
        """
        for each in connection.wait(list(self._working), timeout=seconds):
            channel = cast("Connection", each)
            message = self._message(channel)
            if message is not None:
                yield channel, message
        if not self and not self._ended:
            raise IhgnnError(
                "All workers were killed, perhaps because memory was full. The same command "
                "continues where they stopped; use fewer --workers if it happens again."
            )

    def _message(self, channel: Connection) -> object | None:
        try:
            message: object = channel.recv()
        except (EOFError, OSError):  # it has gone, perhaps in the middle of a message
            process, place = self._working.pop(channel)
        else:
            if not isinstance(message, _Hello):
                return message
            # Not as an argument of the process: one that is killed while it reads its arguments
            # would leave this process waiting for ever.
            with suppress(OSError):
                channel.send(self.life)
            return None
        channel.close()
        process.join(_END_SECONDS)
        if process.is_alive():  # it would share its core or GPU with its replacement
            _stop([process])
        safe_point()  # a signal to all processes of the command is no reason for a new worker
        if process.exitcode == 0:
            self._ended = True
            return None
        if place.lives:
            self._start(place)
        return Killed()

    def _start(self, place: "_Place") -> None:
        place.lives -= 1
        with held():  # a process that is only half started shows a traceback
            channel, process = self.launch(place.device, place.core)
            self._working[channel] = process, place

    def launch(self, device: str, core: int | None) -> tuple[Connection, BaseProcess]:
        """Start a process, and give the channel to it."""
        context = get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=_live, args=(device, core, theirs), daemon=True)
        _start(process)
        theirs.close()
        return ours, process

    def _stop(self) -> None:
        with held():
            _stop([process for process, _ in self._working.values()])
            for channel in self._working:
                channel.close()


@dataclass
class _Place:
    """Where a worker sits, and the workers that may still be started there."""

    device: str
    core: int | None
    lives: int = 5  # a trial that kills its worker is given up sooner


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


def _live(device: str, core: int | None, channel: Connection) -> None:
    """A worker process from its beginning to its end."""
    # Ctrl-C reaches the whole group of processes: the parent decides.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, handle)  # a call into a database is not cut short
    threading.Thread(target=_die_with_parent, daemon=True).start()
    if core is not None and hasattr(os, "sched_setaffinity"):
        with suppress(OSError):
            os.sched_setaffinity(0, {core})
    torch.set_num_threads(1)
    try:
        tell(channel, _Hello())
        life: Life = channel.recv()
        life(device, channel)
    except IhgnnError as error:
        tell(channel, error)
    except OSError as error:
        again = "The same command tries again."
        tell(channel, IhgnnError(f"A worker cannot go on: {error}. {again}"))
    except Exception as error:  # noqa: BLE001  the parent tells the user
        told = f"{type(error).__name__}: {error}"
        tell(channel, IhgnnError(f"A worker failed: {told}\nThis is a bug in ihgnn."))
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
    script = ("__file__", "__spec__")
    before: dict[str, Any] = {name: vars(main)[name] for name in script if name in vars(main)}
    for name in before:
        setattr(main, name, None)
    try:
        yield
    finally:
        vars(main).update(before)


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
    deadline = time.monotonic() + _GRACE_SECONDS
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
