"""Takes trials of a study, puts them together to stacks, and lets workers train them.

The process that conducts is the only one that speaks to the study. A stack is made of trials that
differ in nothing but learning rate and dropout. After the trials at random that every search
begins with, TPE is asked for one trial freely, and for others that share its shape; random and
grid search and the Gaussian process are never told what to take, and the largest group of what
they gave is trained first.
"""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.connection import Connection

from ihgnn_cli.errors import IhgnnError, InputError
from ihgnn_cli.jobs.processes import Killed, Workers
from ihgnn_cli.signals import safe_point
from ihgnn_cli.studies.tuning.kinds import SamplerName
from ihgnn_cli.studies.tuning.ledger import Ledger
from ihgnn_cli.studies.tuning.samplers import STARTUP
from ihgnn_cli.studies.tuning.slots import Slot
from ihgnn_cli.studies.tuning.space import Params, SearchSpace, Value
from ihgnn_cli.studies.tuning.trainer import (
    Assignment,
    Failed,
    Finished,
    Ready,
    Report,
    Smaller,
    Task,
    Verdict,
    live,
)
from ihgnn_cli.training.config import RunConfig

# How often one looks after trials of others, and tells how things are.
_LOOK_SECONDS = 3.0
_WAIT_SECONDS = 0.5
# Trials in hand at random: so many that groups of one shape are worth it.
_RANDOM_IN_HAND = 32
# Of a Gaussian process, which learns from each and is not told what to take.
_GP_IN_HAND = 4


@dataclass(frozen=True)
class Sight:
    """How a search is getting on."""

    slots: Sequence[Slot]
    """Of all processes together."""
    total: int
    running: Mapping[int, int]
    """Trials that are trained here, each with its epoch."""
    model_epochs: int
    """That were trained here."""
    lost: int = 0
    """Trials of dead processes that were found just now."""
    dead: int = 0
    """Workers that were killed from outside just now."""
    smaller: int = 0
    """Trials of a stack that memory was too small for just now."""


Watch = Callable[[Sight], None]


@dataclass
class _Worker:
    """A worker that has been heard of."""

    trials: set[int] = field(default_factory=set)
    ready: bool = False


class Conductor:
    """One process's part in a search.

    Args:
        ledger: the study.
        space: what is searched.
        config: of every trial, but for what is searched.
        sampler: whose trials they are.
        stack: trials that a worker trains together, at most.
        timeout: seconds from when a worker is ready, after which no trial begins.
        watch: is told how things are.
    """

    def __init__(
        self,
        ledger: Ledger,
        space: SearchSpace,
        config: RunConfig,
        sampler: SamplerName,
        *,
        stack: int,
        timeout: float | None = None,
        watch: Watch = lambda _sight: None,
    ) -> None:
        self.ledger = ledger
        self._prunes = True
        self.model_epochs = 0
        """That were trained here."""
        self._space = space
        self._config = config
        self._sampler = sampler
        self._stack = stack
        self._timeout = timeout
        self._began: float | None = None
        """When the first worker was ready."""
        self._limits: dict[object, int] = {}
        """Of shapes whose stacks memory was too small for: how many trials may be together."""
        self._watch = watch
        self._pool: dict[int, RunConfig] = {}
        """Trials in hand that nobody trains yet."""
        self._shapes: dict[int, object] = {}
        self._epochs: dict[int, int] = {}
        self._workers: dict[Connection, _Worker] = {}
        self._looked = 0.0

    def run(self, task: Task, devices: Sequence[str]) -> None:
        """Work until every slot is settled, or the time is over.

        Raises:
            IhgnnError: a worker failed, or all were killed.
        """
        if self.ledger.finished():
            return
        self._prunes = task.prunes
        try:
            with Workers(devices, partial(live, task)) as workers:
                self._conduct(workers)
        finally:
            self.ledger.give_all_back()

    def _conduct(self, workers: Workers) -> None:
        self._look()
        while True:
            for channel, worker in self._workers.items():
                if worker.ready:
                    self._assign(channel, worker)
            busy = any(not worker.ready for worker in self._workers.values())
            if not busy and (self._is_late() or self.ledger.finished()):
                break
            for channel, message in workers.hear(_WAIT_SECONDS):
                self._hear(channel, message)
            safe_point()
            if time.monotonic() - self._looked >= _LOOK_SECONDS:
                self._look()
        self._look()

    def _assign(self, channel: Connection, worker: _Worker) -> None:
        group = self._next_group()
        if not group:
            return
        worker.ready = False
        worker.trials = set(group)
        _send(channel, Assignment(tuple((number, self._pool.pop(number)) for number in group)))
        self._epochs |= dict.fromkeys(group, 0)

    def _next_group(self) -> list[int]:
        """The largest group of trials in hand that make a stack; of equals the one in hand first.

        Where there is nothing in hand, or too little to choose from, trials are taken first.
        """
        if self._is_late():
            return []
        self._take()
        groups: dict[object, list[int]] = {}
        for number in sorted(self._pool):
            shape = self._shapes[number]
            group = groups.setdefault(shape, [])
            if len(group) < self._limits.get(shape, self._stack):
                group.append(number)
        return max(groups.values(), key=len, default=[])

    def _take(self) -> None:
        match self._sampler:
            case SamplerName.RANDOM:
                self._take_freely(_RANDOM_IN_HAND)
            case SamplerName.GRID:
                self._take_freely(self._stack)
            case SamplerName.TPE | SamplerName.GP if self._is_starting():
                self._take_freely(STARTUP)
            case SamplerName.GP:
                self._take_freely(_GP_IN_HAND)
            case SamplerName.TPE:
                self._take_a_stack()

    def _take_freely(self, enough: int) -> None:
        # Half of what is left at most, so that other machines have something to do.
        left = self.ledger.total - len(self.ledger.slots())
        enough = max(self._stack, min(enough, len(self._pool) + math.ceil(left / 2)))
        while len(self._pool) < enough and self._take_one({}):
            pass

    def _take_a_stack(self) -> None:
        leader = None if self._pool else self._take_one({})
        if leader is None:
            return
        shape = dict(self._space.shape(leader))
        while len(self._pool) < self._stack and self._take_one(shape):
            pass

    def _is_starting(self) -> bool:
        """Whether trials are at random still, and their shapes too few to fix one for others."""
        return len(self.ledger.slots()) < STARTUP

    def _take_one(self, fixed: Mapping[str, Value]) -> Params | None:
        safe_point()  # a search asks for many at its start
        while (trial := self.ledger.take(fixed)) is not None:
            try:
                self._pool[trial.number] = self._space.applied(self._config, trial.params)
            except InputError as error:  # settings that do not go together, as width and heads
                self.ledger.fail(trial.number, str(error))
                continue
            shape = self._space.shape(trial.params)
            # One that a process has died of may be why: it takes no others with it again.
            alone = self.ledger.has_died(trial.number)
            self._shapes[trial.number] = (shape, trial.number) if alone else shape
            return dict(trial.params)
        return None

    def _hear(self, channel: Connection, message: object) -> None:
        worker = self._workers.setdefault(channel, _Worker())
        match message:
            case Killed():
                del self._workers[channel]
                for trial in worker.trials:  # perhaps they filled the memory
                    self._be_smaller(self._shapes[trial], len(worker.trials))
                    self._epochs.pop(trial, None)
                self.ledger.give_back(worker.trials)
                self._look(dead=1)
            case IhgnnError():
                self.ledger.give_back(worker.trials)  # perhaps they are why
                raise message
            case Ready():
                worker.ready = True
                self._began = self._began or time.monotonic()
            case Report():
                pruned = self._judge(message)
                if self._prunes:
                    _send(channel, Verdict(pruned))
            case Finished(trial, outcome, pruned):
                self.model_epochs += outcome.model_epochs
                self._forget(worker, trial)
                self.ledger.finish(trial, outcome, pruned=pruned)
            case Failed(trial, reason):
                self._forget(worker, trial)
                self.ledger.fail(trial, reason)
            case Smaller(trials):
                self._be_smaller(self._shapes[trials[0]], len(trials))
                self._look(smaller=len(trials))

    def _be_smaller(self, shape: object, trials: int) -> None:
        """Never make so large a stack of a shape again."""
        self._limits[shape] = max(1, min(self._limits.get(shape, self._stack), trials // 2))

    def _judge(self, report: Report) -> frozenset[int]:
        """Which trials of a report are to be given up."""
        self._epochs |= dict.fromkeys(report.accuracies, report.epoch)
        return frozenset(
            number
            for number, accuracy in report.accuracies.items()
            if self.ledger.report(number, report.epoch, accuracy)
        )

    def _forget(self, worker: _Worker, trial: int) -> None:
        worker.trials.discard(trial)
        self._epochs.pop(trial, None)

    def _is_late(self) -> bool:
        if self._timeout is None or self._began is None:
            return False
        return time.monotonic() >= self._began + self._timeout

    def _look(self, *, dead: int = 0, smaller: int = 0) -> None:
        """See what others do, take what the dead have left, and tell."""
        self._looked = time.monotonic()
        lost = self.ledger.reclaim()
        slots, total = self.ledger.slots(), self.ledger.total
        epochs = dict(self._epochs)
        self._watch(Sight(slots, total, epochs, self.model_epochs, lost, dead, smaller))


def _send(channel: Connection, message: Assignment | Verdict) -> None:
    """Tell a worker something; that it was killed is seen where it is listened to."""
    with suppress(OSError):
        channel.send(message)
