"""A worker of a search: takes trials from the study, trains them in stacks, and tells the results.

A stack is made of trials that differ in nothing but learning rate and dropout. After the random
trials that every search begins with, TPE is asked for one trial freely, and for others that share
its shape. Random and grid search and the Gaussian process are always asked freely, and the largest
group of what they gave is trained first.
"""

import math
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial

import torch

from ihgnn_cli.errors import InputError
from ihgnn_cli.files import exclusive
from ihgnn_cli.jobs.queue import Callback, Step
from ihgnn_cli.signals import safe_point
from ihgnn_cli.studies.tuning.kinds import SamplerName
from ihgnn_cli.studies.tuning.queue import TrialQueue
from ihgnn_cli.studies.tuning.samplers import STARTUP
from ihgnn_cli.studies.tuning.search import Search
from ihgnn_cli.studies.tuning.slots import Outcome
from ihgnn_cli.studies.tuning.space import Params, Value
from ihgnn_cli.studies.tuning.storage import Address, reported
from ihgnn_cli.studies.tuning.study import join_study
from ihgnn_cli.studies.tuning.trainer import Trainer
from ihgnn_cli.training.config import RunConfig

# Seconds until a worker without a trial looks again: one of another worker may come back.
_WAIT_SECONDS = 0.5
# Random trials in hand: enough that groups of one shape are worth it.
_RANDOM_IN_HAND = 32
# Trials of a Gaussian process in hand: it learns from each, and no shape is fixed for it.
_GP_IN_HAND = 4


@dataclass(frozen=True, eq=False)
class WorkerPlan:
    """What a worker process is started with."""

    search: Search
    """Without the classes of test graphs."""
    where: Address
    study: str
    """The study's name."""
    trials: int
    """The total that is asked for."""
    stack: int
    """The most trials to train together."""
    timeout: float | None
    """Seconds after which no trial begins."""

    def queue(self) -> TrialQueue:
        """The study, opened by this process."""
        study = join_study(self.search, self.where, self.study)
        # SQLite gives a waiting trial to two processes that ask at the same moment.
        alone = partial(exclusive, self.where.lock) if self.where.lock else nullcontext
        return TrialQueue(study, self.search.space.distributions(), self.trials, alone)


def work(plan: WorkerPlan, device: str, callback: Callback) -> None:
    """Run trials until all are finished or the time is over, in this process.

    Raises:
        IhgnnError: the storage failed.
    """
    with reported(plan.where), plan.queue() as queue:
        Worker(queue, plan, torch.device(device), callback).run()


class Worker:
    """One process's part in a search."""

    def __init__(
        self, queue: TrialQueue, plan: WorkerPlan, device: torch.device, callback: Callback
    ) -> None:
        self.queue = queue
        self._search = plan.search
        self._stack = plan.stack
        self._timeout = math.inf if plan.timeout is None else plan.timeout
        self._callback = callback
        self._trainer = Trainer(plan.search.task(), device, self, self._be_smaller)
        self._in_hand: dict[int, RunConfig] = {}
        """Trials that were taken and not begun."""
        self._shapes: dict[int, object] = {}
        self._limits: dict[object, int] = {}
        """By shapes whose stacks did not fit in memory: the most trials together."""

    def run(self) -> None:
        """Train stacks until every trial has its result, or the time is over."""
        self._callback(Step())  # ready
        deadline = time.monotonic() + self._timeout
        while time.monotonic() < deadline:
            self._take()
            group = self._next_group()
            if group:
                self._trainer.train({number: self._in_hand.pop(number) for number in group})
            elif self.queue.finished():
                return
            else:
                time.sleep(_WAIT_SECONDS)

    def report(self, number: int, epoch: int, accuracy: float) -> bool:
        """Note how a trial does, and say whether to prune it."""
        return self.queue.report(number, epoch, accuracy)

    def finish(self, number: int, outcome: Outcome, *, pruned: bool) -> None:
        """Tell the study what a trial came to, and the parent what was trained."""
        self.queue.finish(number, outcome, pruned=pruned)
        self._callback(Step(trained=outcome.model_epochs))

    def fail(self, number: int, reason: str) -> None:
        """Tell the study that a trial cannot be trained."""
        self.queue.fail(number, reason)

    def _next_group(self) -> list[int]:
        """The largest group of trials in hand that make a stack; of equals the earlier."""
        groups: dict[object, list[int]] = {}
        for number in sorted(self._in_hand):
            shape = self._shapes[number]
            group = groups.setdefault(shape, [])
            if len(group) < self._limits.get(shape, self._stack):
                group.append(number)
        return max(groups.values(), key=len, default=[])

    def _take(self) -> None:
        match self._search.sampler:
            case SamplerName.RANDOM:
                self._take_freely(_RANDOM_IN_HAND)
            case SamplerName.GRID:
                self._take_freely(self._stack)
            case SamplerName.TPE | SamplerName.GP if len(self.queue.slots()) < STARTUP:
                # Random trials still, with too few shapes to fix one for others.
                self._take_freely(STARTUP)
            case SamplerName.GP:
                self._take_freely(_GP_IN_HAND)
            case SamplerName.TPE:
                self._take_a_stack()

    def _take_freely(self, enough: int) -> None:
        # Half of what is left at most, so that other workers have something to do.
        left = self.queue.total - len(self.queue.slots())
        enough = max(self._stack, min(enough, len(self._in_hand) + math.ceil(left / 2)))
        while len(self._in_hand) < enough and self._take_one({}):
            pass

    def _take_a_stack(self) -> None:
        leader = None if self._in_hand else self._take_one({})
        if leader is None:
            return
        shape = dict(self._search.space.shape(leader))
        while len(self._in_hand) < self._stack and self._take_one(shape):
            pass

    def _take_one(self, fixed: Mapping[str, Value]) -> Params | None:
        space = self._search.space
        safe_point()
        while (trial := self.queue.take(fixed)) is not None:
            try:
                self._in_hand[trial.number] = space.applied(self._search.config, trial.params)
            except InputError as error:  # settings that do not go together, as width and heads
                self.queue.fail(trial.number, str(error))
                continue
            shape = space.shape(trial.params)
            # A trial whose process died may be the cause: it is trained alone from then on.
            alone = self.queue.has_died(trial.number)
            self._shapes[trial.number] = (shape, trial.number) if alone else shape
            return dict(trial.params)
        return None

    def _be_smaller(self, numbers: Sequence[int]) -> None:
        """Never make so large a stack of this shape again."""
        shape = self._shapes[numbers[0]]
        limit = self._limits.get(shape, self._stack)
        self._limits[shape] = max(1, min(limit, len(numbers) // 2))
        self._callback(Step(halved=len(numbers)))
