"""Runs the same work in several processes at once, each on its own core."""

import multiprocessing
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Any

PROCESSES = 2

Maker = Callable[[], Callable[[], Any]]
"""Creates, inside the process, the function to time."""
Rate = Callable[[int], float]


def take_cores() -> list[set[int]]:
    """One core per process; on a larger machine the command also gets only these.

    Returns empty sets if the system does not support pinning.
    """
    if not hasattr(os, "sched_setaffinity"):
        return [set() for _ in range(PROCESSES)]
    mine = sorted(os.sched_getaffinity(0))[:PROCESSES]
    os.sched_setaffinity(0, mine)  # inherited by child processes
    return [{mine[number % len(mine)]} for number in range(PROCESSES)]


@contextmanager
def at_once(
    makers: Sequence[Maker],
    cores: Sequence[set[int]],
    threads: int = 1,
) -> Iterator[Rate]:
    """Start one process per maker, each on its own cores.

    Yields a function that makes all processes call theirs the given number of times at once, and
    returns the sum of their calls per second.
    """
    context = multiprocessing.get_context("spawn")
    started = []
    for maker, of_process in zip(makers, cores, strict=True):
        ours, theirs = context.Pipe()
        process = context.Process(
            target=serve, args=(theirs, maker, of_process, threads), daemon=True
        )
        process.start()
        theirs.close()  # so that the end of the process closes the pipe
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
    """For each number of calls received, send back the seconds they took."""
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
    torch.set_flush_denormal(True)  # as in `ihgnn`; the same for all sides
