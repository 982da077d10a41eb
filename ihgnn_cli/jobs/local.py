"""Worker processes of a job on this machine.

Each worker takes units from the queue until all are finished. A worker exits with the process that
started it, and its claim is free for others at once. A worker that is killed is replaced.
"""

import time
from collections.abc import Callable, Sequence
from functools import partial
from multiprocessing.connection import Connection
from typing import TypeVar

from ihgnn_cli.errors import IhgnnError
from ihgnn_cli.jobs.old_processes import Killed, Workers, tell
from ihgnn_cli.jobs.queue import Callback, Step

# Seconds a worker waits when all units are claimed by others.
_PAUSE = 0.3
# Seconds between two progress messages, so that reporting costs nothing.
_TELL_SECONDS = 0.2

_Unit = TypeVar("_Unit")

Main = Callable[[str, Callback], None]
"""What a worker process runs: given its device, and where to report progress."""


def run_workers(
    devices: Sequence[str],
    main: Main,
    callback: Callback,
    tick: Callable[[], None] = lambda: None,
) -> None:
    """Run a function in one worker process for each of these devices, until all have returned.

    Args:
        devices: as torch names them.
        main: has to be importable by another process.
        callback: called with the progress of the workers.
        tick: called about once a second, and after every message.

    Raises:
        IhgnnError: a worker failed, or all were killed.
    """
    with Workers(devices, partial(_live, main)) as workers:
        while workers:
            tick()
            for _, message in workers.hear(1.0):
                match message:
                    case IhgnnError():
                        raise message
                    case Killed():
                        callback(Step(dead=1))
                    case Step():
                        callback(message)


def _live(main: Main, device: str, channel: Connection) -> None:
    batched = _BatchedSteps(partial(tell, channel))
    main(device, batched.add)
    batched.flush()


def run_until_finished(
    take: Callable[[], _Unit | None],
    run: Callable[[_Unit], None],
    finished: Callable[[], bool],
    callback: Callback,
) -> None:
    """The loop of every worker: take a unit and run it, until all work is finished.

    Args:
        take: takes a unit; `None` if other workers have all that is left.
        run: runs a unit.
        finished: whether to stop.
        callback: receives an empty step when the worker is ready, and while it waits.
    """
    callback(Step())
    while not finished():
        unit = take()
        if unit is not None:
            run(unit)
        else:
            callback(Step())
            time.sleep(_PAUSE)


class _BatchedSteps:
    """Adds up steps and sends the sum now and then."""

    def __init__(self, send: Callable[[Step], None]) -> None:
        self._send = send
        self._sum = Step()
        self._sent = 0.0

    def add(self, step: Step) -> None:
        self._sum += step
        if time.monotonic() - self._sent >= _TELL_SECONDS:
            self.flush()

    def flush(self) -> None:
        self._send(self._sum)
        self._sum = Step()
        self._sent = time.monotonic()
