"""Several processes that do the same at the same time, each on a core of its own."""

import multiprocessing
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Any

PROCESSES = 2

Maker = Callable[[], Callable[[], Any]]
"""Makes, in its process, the function that is timed there."""
Rate = Callable[[int], float]


def take_cores() -> list[set[int]]:
    """One core for each process; on a larger machine the command, too, gets only these.

    Empty sets, and no pinning, where the system has none.
    """
    if not hasattr(os, "sched_setaffinity"):
        return [set() for _ in range(PROCESSES)]
    mine = sorted(os.sched_getaffinity(0))[:PROCESSES]
    os.sched_setaffinity(0, mine)  # inherited by all that is started from here
    return [{mine[number % len(mine)]} for number in range(PROCESSES)]


@contextmanager
def at_once(
    makers: Sequence[Maker],
    cores: Sequence[set[int]],
    threads: int = 1,
) -> Iterator[Rate]:
    """Processes side by side, one for each maker of a function, on the cores of each.

    Gives a function that has all processes call theirs so many times, at the same time, and
    returns the sum of their calls a second.
    """
    context = multiprocessing.get_context("spawn")
    started = []
    for maker, of_process in zip(makers, cores, strict=True):
        ours, theirs = context.Pipe()
        process = context.Process(
            target=serve, args=(theirs, maker, of_process, threads), daemon=True
        )
        process.start()
        theirs.close()  # so that an end of the process is an end of the file here
        started.append((process, ours))

    def rate(calls: int) -> float:
        for _, connection in started:
            connection.send(calls)
        return sum(calls / connection.recv() for _, connection in started)

    try:
        for _, connection in started:
            connection.recv()  # ready
        yield rate
    finally:
        for process, connection in started:
            connection.close()
            process.join()


def serve(
    connection: Connection,
    maker: Maker,
    cores: set[int],
    threads: int,
) -> None:
    """Answer each number of calls with their seconds, until nobody asks any more."""
    if cores:
        os.sched_setaffinity(0, cores)
    use_threads(threads)
    call = maker()
    connection.send("ready")
    while True:
        try:
            calls = connection.recv()
        except EOFError:
            return
        start = time.perf_counter()
        for _ in range(calls):
            call()
        connection.send(time.perf_counter() - start)


def use_threads(count: int) -> None:
    import torch

    torch.set_num_threads(count)
    torch.set_flush_denormal(True)  # as in `ihgnn`; it serves all sides
