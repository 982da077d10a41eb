"""Worker processes on this machine: one a core, pinned to it, or one a GPU.

Each takes bundles from the folder until all are done. It dies with the process that started it,
and whatever it was doing is free for others at once.
"""

import math
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing import connection, get_context, parent_process, resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import cast

import torch

from ihgnn_cli.errors import IhgnnError, InputError
from ihgnn_cli.selection import folder as folders
from ihgnn_cli.selection.agenda import Agenda
from ihgnn_cli.selection.claims import Claims
from ihgnn_cli.selection.executor import Executor, Step, Watch
from ihgnn_cli.selection.units import Record
from ihgnn_cli.selection.work import Job, Trainer
from ihgnn_cli.training.devices import AUTO, cuda_devices, resolve_device
from ihgnn_cli.training.memory import free_memory

# How long a worker that has to wait for others waits before it looks again.
_PAUSE = 0.3
# Progress is told this often, so that telling costs nothing.
_TELL_SECONDS = 0.2
# What a worker that was asked to stop may take to clean up.
_GRACE_SECONDS = 5.0
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")


def local_executor(device: str, workers: int | None) -> Executor:
    """Workers on this machine; by default one a core, or one a GPU.

    Raises:
        InputError: the device is not here, or there are no workers.
    """
    if workers is not None and workers < 1:
        raise InputError(f"workers must be at least 1, not {workers}.")
    first = resolve_device(device)
    there = [first]
    if first.type == "cuda" and device in (AUTO, "cuda"):
        there = [torch.device("cuda", each.index) for each in cuda_devices()]
    count = workers or (len(there) if first.type == "cuda" else len(_cores()))
    devices = [str(there[number % len(there)]) for number in range(count)]
    sharing = count if first.type == "cpu" else math.ceil(count / len(there))
    memory = min(map(free_memory, there)) // sharing
    return Executor(count, first, memory, partial(_run_workers, devices))


def _run_workers(devices: Sequence[str], job: Job, folder: Path, stack: int, watch: Watch) -> None:
    """Do all that is left of a job with one worker for each of these devices.

    Raises:
        IhgnnError: a worker failed, or all were killed.
    """
    context = get_context("spawn")
    cores = _cores()
    # With a worker for every core each has its own; fewer are free to go where there is room.
    pins = cores if len(cores) == len(devices) else []
    workers: dict[Connection, BaseProcess] = {}
    with _one_thread_each():
        try:
            for number, device in enumerate(devices):
                ours, theirs = context.Pipe(duplex=False)
                pin = pins[number] if pins and device == "cpu" else None
                arguments = (job, folder, stack, _Desk(device, pin, theirs))
                process = context.Process(target=_live, args=arguments, daemon=True)
                _start(process)
                theirs.close()
                workers[ours] = process
            _listen(workers, watch)
        finally:
            _stop(workers.values())


def _start(process: BaseProcess) -> None:
    """Start a process that a Ctrl-C cannot reach before it is ready for it."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        process.start()
        return
    resource_tracker.ensure_running()  # which would unblock the signal
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        process.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _one_thread_each() -> Iterator[None]:
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


def _listen(workers: dict[Connection, BaseProcess], watch: Watch) -> None:
    """Pass on what the workers tell, until the last has gone."""
    left = dict(workers)
    dead = 0
    while left:
        for ready in connection.wait(list(left), timeout=1.0):
            end = cast("Connection", ready)
            try:
                message = end.recv()
            except EOFError:
                process = left.pop(end)
                process.join(_GRACE_SECONDS)
                if process.exitcode:
                    dead += 1
                    watch(Step(dead=1))
                continue
            if isinstance(message, IhgnnError):
                raise message
            watch(message)
    if dead == len(workers):
        raise IhgnnError(
            "All workers were killed, perhaps because memory was full. The same command goes on "
            "where they were; use fewer --workers if it happens again."
        )


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


@dataclass(frozen=True)
class _Desk:
    """Where a worker sits."""

    device: str
    core: int | None
    """That it is pinned to."""
    channel: Connection
    """To the process that started it."""

    def tell(self, message: Step | IhgnnError) -> None:
        """Tell it; where it listens no more, there is nothing left to do."""
        try:
            self.channel.send(message)
        except OSError:
            sys.exit(1)


def _live(job: Job, folder: Path, stack: int, desk: _Desk) -> None:
    """The life of a worker process."""
    # Ctrl-C reaches the whole group of processes: the parent decides.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    threading.Thread(target=_die_with_parent, daemon=True).start()
    if desk.core is not None and hasattr(os, "sched_setaffinity"):
        with suppress(OSError):
            os.sched_setaffinity(0, {desk.core})
    torch.set_num_threads(1)
    teller = _Teller(desk.tell)
    try:
        work(job, folder, stack, torch.device(desk.device), teller.tell)
        teller.flush()
    except IhgnnError as error:
        desk.tell(error)
    except OSError as error:
        desk.tell(IhgnnError(f"A worker cannot go on: {error}. The same command tries again."))
    except Exception as error:  # noqa: BLE001  the parent tells the user
        told = f"{type(error).__name__}: {error}"
        desk.tell(IhgnnError(f"A worker failed: {told}\nThis is a mistake in ihgnn."))
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # it is leaving already


class _ClaimLostError(Exception):
    """This process slept for so long that others took it for dead, and have its work."""


def work(job: Job, folder: Path, stack: int, device: torch.device, watch: Watch) -> None:
    """Take bundles until all are done, in this process."""
    agenda = Agenda(job, folder, stack)
    trainer = Trainer(job, device)
    claims = Claims(folder / folders.CLAIMS)

    def deliver(record: Record) -> None:
        if claims.lost():
            raise _ClaimLostError
        agenda.units.write(record)

    def tell(trained: int, settled: int) -> None:
        watch(Step(trained, settled))

    watch(Step())  # ready
    with claims:
        while not agenda.finished():
            bundle = agenda.take(claims)
            if bundle is None:
                watch(Step())
                time.sleep(_PAUSE)
                continue
            with suppress(_ClaimLostError):
                trainer.train(bundle, deliver, tell, folder / folders.PARTIAL)
            claims.release()


class _Teller:
    """Adds up what is to be told, and tells it now and then."""

    def __init__(self, send: Callable[[Step], None]) -> None:
        self._send = send
        self._sum = Step()
        self._told = 0.0

    def tell(self, step: Step) -> None:
        self._sum = Step(self._sum.trained + step.trained, self._sum.settled + step.settled)
        if time.monotonic() - self._told >= _TELL_SECONDS:
            self.flush()

    def flush(self) -> None:
        self._send(self._sum)
        self._sum = Step()
        self._told = time.monotonic()


def _die_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)


def _cores() -> list[int]:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))
