"""Trains stacks of trials and reports their validation accuracy; test graphs are not used."""

import time
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import Protocol

import numpy as np
import torch

from ihgnn_cli.data.batching.store import GraphStore
from ihgnn_cli.data.splits import Split
from ihgnn_cli.jobs.queue import Callback, Step
from ihgnn_cli.models.card import inputs_of
from ihgnn_cli.studies.tuning.search import Search
from ihgnn_cli.studies.tuning.trials import Outcome
from ihgnn_cli.training.cohort import Cohort, new_cohort
from ihgnn_cli.training.config import RunConfig
from ihgnn_cli.training.course import Course
from ihgnn_cli.training.devices import computing
from ihgnn_cli.training.halving import train_in_halves
from ihgnn_cli.training.loading import store_for
from ihgnn_cli.training.snapshots import snapshot_epochs
from ihgnn_cli.training.stack import Member

OUT_OF_MEMORY = "out of memory"
DIVERGED = "the loss was not finite in the first epoch"
DIVERGED_LATER = "the loss was not finite, and snapshots of all epochs are averaged"
_LEAST = 1e-12  # probability in a loss


class Results(Protocol):
    """Receives the reports and results of trials, by number."""

    def report(self, number: int, epoch: int, accuracy: float) -> bool:
        """Receive the accuracy of the best epoch so far; returns whether to stop the trial."""

    def finish(self, number: int, outcome: Outcome, *, pruned: bool) -> None:
        """Receive the result of a trial."""

    def fail(self, number: int, reason: str) -> None:
        """Receive the reason why a trial cannot be trained."""


class TrialTrainer:
    """Trains stacks of trials on one device.

    Args:
        search: the data, the splits and the reporting interval.
        device: the device of the worker.
        results: receives reports and results.
        callback: receives the number of trained epochs.
        halved: called with the numbers of trials that did not fit in memory together.
    """

    def __init__(
        self,
        search: Search,
        device: torch.device,
        results: Results,
        callback: Callback = lambda _step: None,
        halved: Callable[[Sequence[int]], None] = lambda _numbers: None,
    ) -> None:
        self.search = search
        self.device = device
        self.results = results
        self._callback = callback
        self._halved = halved
        self._store: tuple[int | None, GraphStore] | None = None

    def train(self, trials: Mapping[int, RunConfig]) -> None:
        """Train trials that differ only in learning rate and dropout as one stack.

        A stack that does not fit in memory is trained in halves; a trial that does not fit alone,
        split by split.
        """
        unfinished = dict(trials)

        def train_stack(numbers: Sequence[int]) -> None:
            stack = {number: unfinished[number] for number in numbers if number in unfinished}
            if stack:
                with computing(0):  # one thread: a worker has one core
                    _StackRun(self, stack, unfinished).run()

        def free_memory(numbers: Sequence[int]) -> None:
            self._store = None
            self._halved(numbers)

        for number in train_in_halves(list(trials), train_stack, free_memory):
            self._train_split_by_split(number, unfinished[number])

    def store(self, config: RunConfig) -> GraphStore:
        """The graphs for models with this number of rounds; keeps one store at a time."""
        rounds = config.spec.rounds(config.model)
        if self._store is None or self._store[0] != rounds:
            self._store = None  # frees memory for the next one
            dataset = self.search.dataset
            self._store = rounds, store_for(config, dataset, dataset.max_nodes, self.device)
        return self._store[1]

    def cohort(self, configs: Sequence[RunConfig], splits: Sequence[Split]) -> Cohort:
        """Untrained models: one per configuration and split."""
        members = [
            Member(
                config.training.seed,
                config.training.lr,
                split.train,
                split.validation,
                config.model.dropout,
            )
            for config in configs
            for split in splits
        ]
        shape = configs[0]
        inputs = inputs_of(self.search.dataset, shape.data.features, shape.data.inputs)
        return new_cohort(shape, inputs, self.store(shape), members, keep_weights=False)

    def _train_split_by_split(self, number: int, config: RunConfig) -> None:
        """Train one model at a time, without reports."""
        courses: list[Course] = []
        sums: list[torch.Tensor] = []
        began = time.perf_counter()

        def train_split(split: Sequence[Split]) -> None:
            cohort = self.cohort([config], split)
            with computing(0):
                found = [torch.zeros(())]
                while not cohort.finished:
                    cohort.advance()
                    self.add_snapshot(cohort, found, split)
            courses.extend(cohort.courses)
            sums.extend(found)

        inner = self.search.inner
        if len(inner) == 1 or any(train_in_halves([split], train_split) for split in inner):
            self.results.fail(number, OUT_OF_MEMORY)
        else:
            self.finish(number, courses, sums, time.perf_counter() - began, 1)

    def add_snapshot(
        self, cohort: Cohort, sums: list[torch.Tensor], splits: Sequence[Split]
    ) -> None:
        """Add the predictions of validation graphs, if this epoch is a snapshot.

        Args:
            cohort: models of one or more trials, each on all splits.
            sums: by model, changed in place.
            splits: those of one trial.
        """
        training = self.search.config.training
        if cohort.stack.epoch in snapshot_epochs(training.epochs, training.snapshots):
            graphs = [split.validation for split in splits] * (len(sums) // len(splits))
            cohort.add_snapshot(sums, cohort.stack.store, graphs)

    def finish(
        self,
        number: int,
        courses: Sequence[Course],
        sums: Sequence[torch.Tensor],
        seconds: float,
        members: int,
        *,
        pruned: bool = False,
    ) -> None:
        """Deliver the result of a trial with one course, and one sum of snapshots, per split."""
        best = [course.best for course in courses if course.best is not None]
        averages = bool(self.search.config.training.snapshots) and not pruned
        diverged = averages and any(course.diverged is not None for course in courses)
        if len(best) < len(courses) or diverged:
            self.results.fail(number, DIVERGED_LATER if diverged else DIVERGED)
            return
        graphs = tuple(len(split.validation) for split in self.search.inner)
        loss = fmean(each.validation_loss for each in best)
        epochs, averaged = tuple(each.epoch for each in best), tuple[int, ...]()
        if averages:
            loss, averaged = self._averaged(sums)
            epochs = tuple(len(course.history) for course in courses)
        outcome = Outcome(
            loss=loss,
            best_epochs=epochs,
            hits=tuple(
                tuple(round(epoch.validation_accuracy * count) for epoch in course.history)
                for course, count in zip(courses, graphs, strict=True)
            ),
            graphs=graphs,
            seconds=round(seconds, 3),
            members=members,
            averaged=averaged,
        )
        self.results.finish(number, outcome, pruned=pruned)
        self._callback(Step(trained=outcome.model_epochs))

    def _averaged(self, sums: Sequence[torch.Tensor]) -> tuple[float, tuple[int, ...]]:
        """Loss and correct validation graphs of the mean predictions, one per split."""
        losses, hits = [], []
        for total, split in zip(sums, self.search.inner, strict=True):
            likely = (total / total.sum(dim=1, keepdim=True)).numpy()
            true = self.search.dataset.graph_class[split.validation]
            own = likely[np.arange(len(true)), true]
            losses.append(float(-np.log(np.maximum(own, _LEAST)).mean()))
            hits.append(int((likely.argmax(axis=1) == true).sum()))
        return fmean(losses), tuple(hits)


class _StackRun:
    """The training of one stack; finished trials are removed from `unfinished`."""

    def __init__(
        self,
        trainer: TrialTrainer,
        trials: Mapping[int, RunConfig],
        unfinished: dict[int, RunConfig],
    ) -> None:
        self.trainer = trainer
        self.numbers = list(trials)
        self.unfinished = unfinished
        self.splits = len(trainer.search.inner)
        self.cohort = trainer.cohort(list(trials.values()), trainer.search.inner)
        self.seconds = dict.fromkeys(trials, 0.0)
        self.sums = [torch.zeros(())] * len(self.cohort.courses)

    def run(self) -> None:
        epoch = 0
        while not self.cohort.finished:
            began = time.perf_counter()
            self.cohort.advance()
            self.trainer.add_snapshot(self.cohort, self.sums, self.trainer.search.inner)
            self._count(time.perf_counter() - began)
            epoch += 1
            for place, number in self._running():
                if all(map(self.cohort.done, self._members(place))):
                    self._finish(place, number)
            if epoch % self.trainer.search.interval == 0:
                self._report(epoch)

    def _running(self) -> list[tuple[int, int]]:
        """Position and number of the unfinished trials."""
        return [each for each in enumerate(self.numbers) if each[1] in self.unfinished]

    def _members(self, place: int) -> range:
        return range(place * self.splits, (place + 1) * self.splits)

    def _courses(self, place: int) -> list[Course]:
        return [self.cohort.courses[member] for member in self._members(place)]

    def _count(self, seconds: float) -> None:
        present = self.cohort.present
        for member in present:
            self.seconds[self.numbers[member // self.splits]] += seconds / len(present)

    def _finish(self, place: int, number: int, *, pruned: bool = False) -> None:
        del self.unfinished[number]
        courses, members = self._courses(place), len(self.numbers)
        sums = [self.sums[member] for member in self._members(place)]
        self.trainer.finish(number, courses, sums, self.seconds[number], members, pruned=pruned)

    def _report(self, epoch: int) -> None:
        for place, number in self._running():
            best = [course.best for course in self._courses(place)]
            found = [each.validation_accuracy for each in best if each is not None]
            if len(found) < self.splits:
                continue
            if self.trainer.results.report(number, epoch, sum(found) / len(found)):
                for course in self._courses(place):
                    course.withdrawn = True
                self._finish(place, number, pruned=True)
