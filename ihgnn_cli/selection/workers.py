"""Workers of a job on this machine: one a core, pinned to it, or one a GPU.

Each takes bundles from the folder until all are done. It dies with the process that started it,
and whatever it was doing is free for others at once. A worker that is killed is replaced.
"""

import math
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path

import torch

from ihgnn_cli.errors import IhgnnError, InputError
from ihgnn_cli.selection import folder as folders
from ihgnn_cli.selection.agenda import Agenda
from ihgnn_cli.selection.claims import Claims
from ihgnn_cli.selection.executor import Executor, Step, Watch
from ihgnn_cli.selection.processes import Killed, Workers, cores, tell
from ihgnn_cli.selection.units import Record
from ihgnn_cli.selection.work import Job, Trainer
from ihgnn_cli.training.devices import AUTO, cuda_devices, resolve_device
from ihgnn_cli.training.memory import free_memory

# How long a worker that has to wait for others waits before it looks again.
_PAUSE = 0.3
# Progress is told this often, so that telling costs nothing.
_TELL_SECONDS = 0.2


@dataclass(frozen=True)
class Places:
    """Where the workers of this machine sit."""

    devices: tuple[str, ...]
    """One for each worker, as torch names it."""
    first: torch.device
    memory: int
    """Bytes that each may take."""


def local_places(device: str, workers: int | None) -> Places:
    """Places for so many workers on a device; by default one a core, or one a GPU.

    Raises:
        InputError: the device is not here, or there are no workers.
    """
    if workers is not None and workers < 1:
        raise InputError(f"workers must be at least 1, not {workers}.")
    first = resolve_device(device)
    there = [first]
    if first.type == "cuda" and device in (AUTO, "cuda"):
        there = [torch.device("cuda", each.index) for each in cuda_devices()]
    count = workers or (len(there) if first.type == "cuda" else len(cores()))
    devices = tuple(str(there[number % len(there)]) for number in range(count))
    sharing = count if first.type == "cpu" else math.ceil(count / len(there))
    return Places(devices, first, min(map(free_memory, there)) // sharing)


def local_executor(device: str, workers: int | None) -> Executor:
    """Workers on this machine; by default one a core, or one a GPU.

    Raises:
        InputError: the device is not here, or there are no workers.
    """
    places = local_places(device, workers)
    run = partial(_run_workers, places.devices)
    return Executor(len(places.devices), places.first, places.memory, run)


def _run_workers(devices: Sequence[str], job: Job, folder: Path, stack: int, watch: Watch) -> None:
    """Do all that is left of a job with one worker for each of these devices.

    Raises:
        IhgnnError: a worker failed, or all were killed.
    """
    with Workers(devices, partial(_live, job, folder, stack)) as workers:
        while workers:
            for _, message in workers.hear(1.0):
                match message:
                    case IhgnnError():
                        raise message
                    case Killed():
                        watch(Step(dead=1))
                    case Step():
                        watch(message)


def _live(job: Job, folder: Path, stack: int, device: str, channel: Connection) -> None:
    """The life of a worker process."""
    teller = _Teller(partial(tell, channel))
    work(job, folder, stack, torch.device(device), teller.tell)
    teller.flush()


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
