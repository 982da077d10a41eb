"""Trains stacks of trials and reports how they do; knows train and validation graphs only."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch

from ihgnn_cli.data.batching import GraphStore, Positions
from ihgnn_cli.data.dataset import GraphDataset
from ihgnn_cli.models.card import inputs_of
from ihgnn_cli.studies.tuning.slots import Outcome
from ihgnn_cli.training.cohort import Cohort, new_cohort
from ihgnn_cli.training.config import RunConfig
from ihgnn_cli.training.course import Course
from ihgnn_cli.training.devices import computing, is_full_memory
from ihgnn_cli.training.loading import store_for
from ihgnn_cli.training.stack import Member

OUT_OF_MEMORY = "out of memory"
DIVERGED = "the loss was no number from the first epoch on"


@dataclass(frozen=True, eq=False)
class Task:
    """What all trials of a search have in common."""

    dataset: GraphDataset
    splits: tuple[tuple[Positions, Positions], ...]
    """The graphs that train and those that validate, split by split."""
    interval: int
    """Epochs between two reports."""


class Trials(Protocol):
    """Takes reports and results of trials, by their numbers."""

    def report(self, number: int, epoch: int, accuracy: float) -> bool:
        """Note the accuracy of the best epoch so far, and say whether to prune the trial."""

    def finish(self, number: int, outcome: Outcome, *, pruned: bool) -> None:
        """Note what a trial came to."""

    def fail(self, number: int, reason: str) -> None:
        """Note that a trial cannot be trained."""


class Trainer:
    """Trains stacks of trials on one device.

    Args:
        task: the search.
        device: of the worker.
        trials: takes reports and results.
        smaller: called with the numbers of trials that did not fit in memory together.
    """

    def __init__(
        self,
        task: Task,
        device: torch.device,
        trials: Trials,
        smaller: Callable[[Sequence[int]], None] = lambda _numbers: None,
    ) -> None:
        self.task = task
        self.device = device
        self.trials = trials
        self._smaller = smaller
        self._store: tuple[int | None, GraphStore] | None = None

    def train(self, trials: Mapping[int, RunConfig]) -> None:
        """Train trials that differ in learning rate and dropout only as one stack.

        A stack that does not fit in memory is trained in halves.
        """
        left = dict(trials)
        try:
            with computing(0):  # one thread: a worker has one core
                _StackRun(self, trials, left).run()
        except (torch.OutOfMemoryError, MemoryError, RuntimeError) as error:
            if not is_full_memory(error):
                raise
        else:
            return
        # Out of the block: the exception holds on to what filled the memory.
        self._store = None
        if self.device.type == "cuda":
            torch.cuda.empty_cache()
        self._smaller(tuple(trials))
        rest = list(left.items())  # those that had not ended before
        if len(trials) == 1:
            self._train_split_by_split(*rest[0])
            return
        middle = math.ceil(len(trials) / 2)
        for half in filter(None, (rest[:middle], rest[middle:])):
            self.train(dict(half))

    def store(self, config: RunConfig) -> GraphStore:
        """The graphs for models of as many rounds; one store at a time is kept."""
        rounds = config.spec.rounds(config.model)
        if self._store is None or self._store[0] != rounds:
            self._store = None  # never two of them in memory
            dataset = self.task.dataset
            self._store = rounds, store_for(config, dataset, dataset.max_nodes, self.device)
        return self._store[1]

    def cohort(
        self, configs: Sequence[RunConfig], splits: Sequence[tuple[Positions, Positions]]
    ) -> Cohort:
        """Models at their start: for each configuration one a split."""
        members = [
            Member(
                config.training.seed, config.training.lr, train, validation, config.model.dropout
            )
            for config in configs
            for train, validation in splits
        ]
        shape = configs[0]
        inputs = inputs_of(self.task.dataset, shape.data.features)
        return new_cohort(shape, inputs, self.store(shape), members, keep_weights=False)

    def _train_split_by_split(self, trial: int, config: RunConfig) -> None:
        """The last resort: one model at a time, without reports."""
        if len(self.task.splits) == 1:
            self.trials.fail(trial, OUT_OF_MEMORY)
            return
        courses: list[Course] = []
        began = time.perf_counter()
        try:
            with computing(0):
                for split in self.task.splits:
                    cohort = self.cohort([config], [split])
                    while not cohort.finished:
                        cohort.advance()
                    courses += cohort.courses
        except (torch.OutOfMemoryError, MemoryError, RuntimeError) as error:
            if not is_full_memory(error):
                raise
            self.trials.fail(trial, OUT_OF_MEMORY)
            return
        self.conclude(trial, courses, time.perf_counter() - began, 1)

    def conclude(
        self,
        trial: int,
        courses: Sequence[Course],
        seconds: float,
        members: int,
        *,
        pruned: bool = False,
    ) -> None:
        """Tell what became of a trial, one course a split."""
        best = [course.best for course in courses if course.best is not None]
        if len(best) < len(courses):
            self.trials.fail(trial, DIVERGED)
            return
        graphs = tuple(len(validation) for _, validation in self.task.splits)
        outcome = Outcome(
            loss=sum(each.validation_loss for each in best) / len(best),
            best_epochs=tuple(each.epoch for each in best),
            hits=tuple(
                tuple(round(epoch.validation_accuracy * count) for epoch in course.history)
                for course, count in zip(courses, graphs, strict=True)
            ),
            graphs=graphs,
            seconds=round(seconds, 3),
            members=members,
        )
        self.trials.finish(trial, outcome, pruned=pruned)


class _StackRun:
    """The training of one stack of trials."""

    def __init__(
        self, trainer: Trainer, trials: Mapping[int, RunConfig], left: dict[int, RunConfig]
    ) -> None:
        self.trainer = trainer
        self.numbers = list(trials)
        self.not_concluded = left
        """Trials are taken out of it when they end."""
        self.splits = len(trainer.task.splits)
        self.cohort = trainer.cohort(list(trials.values()), trainer.task.splits)
        self.left = dict(enumerate(self.numbers))
        """The trials that have not ended, by their position."""
        self.seconds = [0.0] * len(trials)

    def run(self) -> None:
        epoch = 0
        while not self.cohort.finished:
            began = time.perf_counter()
            self.cohort.advance()
            self._count(time.perf_counter() - began)
            epoch += 1
            self._conclude_finished()
            if self.left and epoch % self.trainer.task.interval == 0:
                self._report(epoch)
        self._conclude_finished()

    def _members(self, place: int) -> range:
        return range(place * self.splits, (place + 1) * self.splits)

    def _courses(self, place: int) -> list[Course]:
        return [self.cohort.courses[member] for member in self._members(place)]

    def _count(self, seconds: float) -> None:
        for member in self.cohort.present:
            self.seconds[member // self.splits] += seconds / len(self.cohort.present)

    def _conclude_finished(self) -> None:
        for place in list(self.left):
            if all(map(self.cohort.done, self._members(place))):
                self._conclude(place)

    def _conclude(self, place: int, *, pruned: bool = False) -> None:
        number = self.left.pop(place)
        del self.not_concluded[number]
        self.trainer.conclude(
            number, self._courses(place), self.seconds[place], len(self.numbers), pruned=pruned
        )

    def _report(self, epoch: int) -> None:
        for place, number in list(self.left.items()):
            best = [course.best for course in self._courses(place)]
            found = [each.validation_accuracy for each in best if each is not None]
            if len(found) < self.splits:
                continue
            if self.trainer.trials.report(number, epoch, sum(found) / len(found)):
                for course in self._courses(place):
                    course.withdrawn = True
                self._conclude(place, pruned=True)
