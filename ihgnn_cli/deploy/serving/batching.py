"""Collects concurrent requests into batches, which one worker thread answers."""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import dataclass
from typing import Generic, TypeVar

Work = TypeVar("Work")
Answer = TypeVar("Answer")
Observe = Callable[[int, float], None]
"""Called with the number of graphs of a batch and the seconds it took."""


@dataclass(frozen=True)
class BatchLimits:
    """When a batch starts."""

    graphs: int
    """It has this many graphs,"""
    size: int
    """or this many nodes and edges,"""
    wait: float
    """or its oldest request has waited this many seconds."""


@dataclass(eq=False)
class _Job(Generic[Work, Answer]):
    """A request that waits."""

    work: Work
    graphs: int
    size: int
    arrived: float
    answer: "asyncio.Future[Answer]"


class Batcher(Generic[Work, Answer]):
    """Answers requests in batches.

    A batch starts when it is full or has waited long enough, and the previous one has ended: the
    busier the service, the larger the batches. A request is never divided.

    Args:
        run: takes the work of some requests and returns one answer for each, in order.
        limits: when a batch starts.
        executor: the thread that runs it.
        observe: called for each batch.
    """

    def __init__(
        self,
        run: Callable[[Sequence[Work]], Sequence[Answer]],
        limits: BatchLimits,
        executor: Executor,
        observe: Observe,
    ) -> None:
        self._run, self._limits = run, limits
        self._executor, self._observe = executor, observe
        self._waiting: deque[_Job[Work, Answer]] = deque()
        self._graphs = self._size = 0
        self._changed = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()

    async def answer(self, work: Work, graphs: int, size: int) -> Answer:
        """Wait for the answer to a request.

        Raises:
            Exception: what `run` raised for it.
        """
        loop = asyncio.get_running_loop()
        job: _Job[Work, Answer] = _Job(work, graphs, size, loop.time(), loop.create_future())
        self._waiting.append(job)
        self._graphs += graphs
        self._size += size
        self._idle.clear()
        if len(self._waiting) == 1 or self._is_full:
            self._changed.set()
        return await job.answer

    async def serve(self) -> None:
        """Answer requests until this task is cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            batch = await self._next()
            start = loop.time()
            found = await loop.run_in_executor(
                self._executor, self._answers, [job.work for job in batch]
            )
            self._observe(sum(job.graphs for job in batch), loop.time() - start)
            for job, answer in zip(batch, found, strict=True):
                if job.answer.done():  # the request was given up
                    continue
                if isinstance(answer, Exception):
                    job.answer.set_exception(answer)
                else:
                    job.answer.set_result(answer)
            if not self._waiting:
                self._idle.set()

    async def finish(self) -> None:
        """Wait until everything is answered."""
        await self._idle.wait()

    @property
    def _is_full(self) -> bool:
        return self._graphs >= self._limits.graphs or self._size >= self._limits.size

    async def _next(self) -> list[_Job[Work, Answer]]:
        """The jobs of the next batch."""
        while True:
            while not self._waiting:
                self._changed.clear()
                await self._changed.wait()
            until = self._waiting[0].arrived + self._limits.wait
            while not self._is_full and asyncio.get_running_loop().time() < until:
                self._changed.clear()
                with suppress(TimeoutError):
                    async with asyncio.timeout_at(until):
                        await self._changed.wait()
            if batch := self._taken():
                return batch
            self._idle.set()  # all were given up

    def _taken(self) -> list[_Job[Work, Answer]]:
        batch: list[_Job[Work, Answer]] = []
        graphs = size = 0
        while self._waiting and graphs < self._limits.graphs and size < self._limits.size:
            job = self._waiting.popleft()
            self._graphs -= job.graphs
            self._size -= job.size
            if not job.answer.done():
                batch.append(job)
                graphs += job.graphs
                size += job.size
        return batch

    def _answers(self, work: list[Work]) -> list[Answer | Exception]:
        """The answers; if a batch fails, each request is tried alone."""
        try:
            return list(self._run(work))
        except Exception as error:  # noqa: BLE001 - it belongs to the request that caused it
            if len(work) == 1:
                return [error]
            return [self._answers([each])[0] for each in work]
