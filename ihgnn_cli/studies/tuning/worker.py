"""A worker of a search: takes trials from the study, trains them in stacks, stores the results.

A stack consists of trials that differ only in learning rate and dropout. After the random trials at
the start of every search, TPE is asked for one trial, and then for others with the same shape.
Random search, grid search and the Gaussian process are never restricted: the largest group among
the trials that they gave is trained first.
"""

import math
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial

import torch
from optuna.trial import TrialState

from ihgnn_cli.errors import InputError
from ihgnn_cli.files import exclusive
from ihgnn_cli.jobs.local import run_until_finished
from ihgnn_cli.jobs.queue import Callback, Step
from ihgnn_cli.signals import safe_point
from ihgnn_cli.studies.tuning.kinds import SamplerName
from ihgnn_cli.studies.tuning.samplers import STARTUP
from ihgnn_cli.studies.tuning.search import Search
from ihgnn_cli.studies.tuning.space import Params, Value
from ihgnn_cli.studies.tuning.storage import Address, database_errors
from ihgnn_cli.studies.tuning.study import join_study
from ihgnn_cli.studies.tuning.trainer import TrialTrainer
from ihgnn_cli.studies.tuning.trial_queue import TrialQueue
from ihgnn_cli.training.config import RunConfig

# Random trials to take at a time: enough to find groups with the same shape.
_RANDOM = 32
# Trials to take from a Gaussian process at a time: it learns from each result.
_GP = 4


@dataclass(frozen=True, eq=False)
class WorkerPlan:
    """What a worker process receives."""

    search: Search
    """Without the classes of test graphs."""
    where: Address
    study: str
    """Name of the study."""
    trials: int
    """Number of requested trials."""
    stack: int
    """Maximum number of trials to train together."""
    timeout: float | None
    """Seconds after which no new training starts."""
    workers: int = 1
    """Number of workers of this command."""

    def queue(self) -> TrialQueue:
        """Open the study in this process."""
        study = join_study(self.search, self.where, self.study)
        # SQLite can give a waiting trial to two processes that ask at the same time.
        alone = partial(exclusive, self.where.lock) if self.where.lock else nullcontext
        return TrialQueue(study, self.search.space.distributions(), self.trials, alone)


def work(plan: WorkerPlan, device: str, callback: Callback) -> None:
    """Run trials in this process until all are finished or the time is up.

    Raises:
        IhgnnError: the storage failed.
    """
    with database_errors(plan.where), plan.queue() as queue:
        Worker(queue, plan, torch.device(device), callback).run()


class Worker:
    """Takes trials, groups them into stacks, and trains the stacks."""

    def __init__(
        self, queue: TrialQueue, plan: WorkerPlan, device: torch.device, callback: Callback
    ) -> None:
        self.queue = queue
        self._search = plan.search
        self._stack = plan.stack
        self._workers = plan.workers
        self._timeout = math.inf if plan.timeout is None else plan.timeout
        self._callback = callback
        self._trainer = TrialTrainer(plan.search, device, queue, callback, self._be_smaller)
        self._in_hand: dict[int, RunConfig] = {}
        """Trials that were taken and not started."""
        self._shapes: dict[int, object] = {}
        self._limits: dict[object, int] = {}
        """Maximum stack size of shapes that did not fit in memory."""

    def run(self) -> None:
        """Train stacks until every trial is finished or the time is up."""
        deadline = time.monotonic() + self._timeout
        run_until_finished(
            self._next_stack,
            self._trainer.train,
            lambda: time.monotonic() >= deadline or self.queue.finished(),
            self._callback,
        )

    def _next_stack(self) -> dict[int, RunConfig] | None:
        """The largest group of trials that make a stack; `None` if there is no trial now."""
        self._take()
        groups: dict[object, list[int]] = {}
        for number in sorted(self._in_hand):
            shape = self._shapes[number]
            group = groups.setdefault(shape, [])
            if len(group) < self._limits.get(shape, self._stack):
                group.append(number)
        largest = max(groups.values(), key=len, default=[])
        stack = {number: self._in_hand.pop(number) for number in largest}
        if self._workers > 1 and len(self.queue.trials()) >= self.queue.total:
            # There are no new trials for the other workers: they may have the rest of these.
            self.queue.requeue(self._in_hand)
            self._in_hand.clear()
        return stack or None

    def _take(self) -> None:
        match self._search.sampler:
            case SamplerName.RANDOM:
                self._take_freely(_RANDOM)
            case SamplerName.GRID:
                self._take_freely(self._stack)
            case _ if len(self.queue.trials()) < STARTUP:  # these are random
                self._take_freely(STARTUP)
            case SamplerName.GP:
                self._take_freely(_GP)
            case SamplerName.TPE:
                self._take_one_shape()

    def _take_freely(self, enough: int) -> None:
        enough = min(enough, self._share())
        while len(self._in_hand) < enough and self._take_one({}):
            pass

    def _take_one_shape(self) -> None:
        first = None if self._in_hand else self._take_one({})
        if first is None:
            return
        shape = dict(self._search.space.shape(first))
        enough = min(self._stack, self._share())
        while len(self._in_hand) < enough and self._take_one(shape):
            pass

    def _share(self) -> int:
        """This worker's share of the trials that nobody has taken: others need some, too."""
        trials = self.queue.trials()
        waiting = sum(each.state is TrialState.WAITING for each in trials)
        left = self.queue.total - len(trials) + waiting + len(self._in_hand)
        return max(1, math.ceil(left / self._workers))

    def _take_one(self, fixed: Mapping[str, Value]) -> Params | None:
        space = self._search.space
        safe_point()
        while (trial := self.queue.take(fixed)) is not None:
            try:
                self._in_hand[trial.number] = self._search.config.with_values(trial.params)
            except InputError as error:  # settings that exclude each other, as width and heads
                self.queue.fail(trial.number, str(error))
                continue
            shape = space.shape(trial.params)
            # A trial may be why its process died: a retry is trained alone.
            alone = self.queue.has_died(trial.number)
            self._shapes[trial.number] = (shape, trial.number) if alone else shape
            return dict(trial.params)
        return None

    def _be_smaller(self, numbers: Sequence[int]) -> None:
        """Limit later stacks with the shape of these trials, which did not fit in memory."""
        shape = self._shapes[numbers[0]]
        limit = self._limits.get(shape, self._stack)
        self._limits[shape] = max(1, min(limit, len(numbers) // 2))
        self._callback(Step(halved=len(numbers)))
