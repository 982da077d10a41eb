"""What a worker of a search does: it trains stacks of trials, and reports how they are doing.

A worker knows train and validation graphs, and no others. What it tells and hears are the messages
below. The answer to a report is taken note of at the next report, so that a worker does not stand
still while the database is asked.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection

import torch

from ihgnn_cli.data.batching import GraphStore, Positions
from ihgnn_cli.data.dataset import GraphDataset
from ihgnn_cli.jobs.processes import tell
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
    prunes: bool = True
    """Whether anybody answers to reports."""


@dataclass(frozen=True)
class Assignment:
    """Trials to train as one stack, with their configurations: they differ in lr and dropout."""

    trials: tuple[tuple[int, RunConfig], ...]


@dataclass(frozen=True)
class Ready:
    """A worker has nothing to do."""


@dataclass(frozen=True)
class Report:
    """How the trials of a stack are doing after an epoch: accuracy of their best epochs so far."""

    epoch: int
    accuracies: dict[int, float]


@dataclass(frozen=True)
class Verdict:
    """The answer to a report."""

    pruned: frozenset[int]


@dataclass(frozen=True)
class Finished:
    """A trial was trained to its end, or given up."""

    trial: int
    outcome: Outcome
    pruned: bool


@dataclass(frozen=True)
class Failed:
    """A trial cannot be trained."""

    trial: int
    reason: str


@dataclass(frozen=True)
class Smaller:
    """Memory was too small for a stack of these trials."""

    trials: tuple[int, ...]


def live(task: Task, device: str, channel: Connection) -> None:
    """The life of a worker: assignments until the channel is closed."""
    trainer = Trainer(task, torch.device(device), lambda message: tell(channel, message))

    def answer() -> Verdict:
        heard = channel.recv()
        if not isinstance(heard, Verdict):
            raise TypeError(f"a verdict was to come, not {heard}")
        return heard

    try:
        while True:
            tell(channel, Ready())
            trainer.catch_up(answer)  # on a stack that has ended before it came
            heard = channel.recv()
            trainer.train(heard, answer)
    except EOFError:
        return


class Trainer:
    """Trains the stacks of a search on one device.

    Args:
        task: the search.
        device: of the worker.
        send: takes reports and results.
    """

    def __init__(self, task: Task, device: torch.device, send: Callable[[object], None]) -> None:
        self.task = task
        self.device = device
        self.send = send
        self.unanswered = 0
        """Reports whose verdict was not heard yet."""
        self._store: tuple[int | None, GraphStore] | None = None

    def train(self, assignment: Assignment, answer: Callable[[], Verdict] | None) -> None:
        """Train trials as one stack; where memory is too small for it, in halves.

        A trial that does not fit alone is trained split by split, and fails if that does not help.

        Args:
            assignment: the trials.
            answer: waits for the verdict on the report before; `None` where there are no reports.
        """
        left = dict(assignment.trials)
        try:
            with computing(0):  # one thread: a worker has one core
                _Sitting(self, assignment.trials, left, answer).run()
        except (torch.OutOfMemoryError, MemoryError, RuntimeError) as error:
            if not is_full_memory(error):
                raise
        else:
            return
        # Out of the block: the exception holds on to what filled the memory.
        self._store = None
        if self.device.type == "cuda":
            torch.cuda.empty_cache()
        self.send(Smaller(tuple(number for number, _ in assignment.trials)))
        trials = tuple(left.items())  # those that had not come to their end before
        if len(assignment.trials) == 1:
            self._train_split_by_split(*trials[0])
            return
        middle = math.ceil(len(assignment.trials) / 2)
        for half in filter(None, (trials[:middle], trials[middle:])):
            if answer is not None:
                self.catch_up(answer)  # on what the larger stack reported
            self.train(Assignment(half), answer)

    def catch_up(self, answer: Callable[[], Verdict]) -> frozenset[int]:
        """Hear the verdicts that are still to come: which trials are to be given up."""
        pruned: frozenset[int] = frozenset()
        while self.unanswered:
            pruned |= answer().pruned
            self.unanswered -= 1
        return pruned

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
            self.send(Failed(trial, OUT_OF_MEMORY))
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
            self.send(Failed(trial, OUT_OF_MEMORY))
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
            self.send(Failed(trial, DIVERGED))
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
        self.send(Finished(trial, outcome, pruned))


class _Sitting:
    """One stack of trials from its start to its end."""

    def __init__(
        self,
        trainer: Trainer,
        trials: Sequence[tuple[int, RunConfig]],
        left: dict[int, RunConfig],
        answer: Callable[[], Verdict] | None,
    ) -> None:
        self.trainer = trainer
        self.numbers = [number for number, _ in trials]
        self.not_concluded = left
        """Trials that are taken out when they are concluded."""
        self.answer = answer
        self.splits = len(trainer.task.splits)
        self.cohort = trainer.cohort([config for _, config in trials], trainer.task.splits)
        self.left = dict(enumerate(self.numbers))
        """The trials that are not concluded, by their place."""
        self.seconds = [0.0] * len(trials)

    def run(self) -> None:
        epoch = 0
        while not self.cohort.finished:
            began = time.perf_counter()
            self.cohort.advance()
            self._count(time.perf_counter() - began)
            epoch += 1
            self._conclude_finished()
            if self.answer is not None and self.left and epoch % self.trainer.task.interval == 0:
                self._take_note(self.answer)
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

    def _take_note(self, answer: Callable[[], Verdict]) -> None:
        """Give up what the answer to the last report says."""
        pruned = self.trainer.catch_up(answer)
        for place, number in list(self.left.items()):
            if number in pruned:
                for course in self._courses(place):
                    course.withdrawn = True
                self._conclude(place, pruned=True)

    def _report(self, epoch: int) -> None:
        accuracies = {}
        for place, number in self.left.items():
            best = [course.best for course in self._courses(place)]
            found = [each.validation_accuracy for each in best if each is not None]
            if len(found) == self.splits:
                accuracies[number] = sum(found) / len(found)
        if accuracies:
            self.trainer.send(Report(epoch, accuracies))
            self.trainer.unanswered += self.trainer.task.prunes
