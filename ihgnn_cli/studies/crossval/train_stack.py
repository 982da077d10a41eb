"""Trains one stack, from the start or from the checkpoint of a killed process.

The only module of the cross-validation that calls the trainer.
"""

import io
import math
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ihgnn_cli.data.batching.batches import GraphStore
from ihgnn_cli.errors import IhgnnError
from ihgnn_cli.files import written_whole
from ihgnn_cli.inference.metrics import mean_probabilities
from ihgnn_cli.models.card import inputs_of
from ihgnn_cli.studies.crossval.job import Job, JobFolder
from ihgnn_cli.studies.crossval.protocol import Stage, Training
from ihgnn_cli.studies.crossval.records import Record, Tested, Validated, parsed
from ihgnn_cli.studies.crossval.stacks import Stack
from ihgnn_cli.training.checkpoint import build
from ihgnn_cli.training.cohort import Cohort, new_cohort
from ihgnn_cli.training.config import RunConfig
from ihgnn_cli.training.devices import computing
from ihgnn_cli.training.halving import train_in_halves
from ihgnn_cli.training.loading import store_for
from ihgnn_cli.training.snapshots import snapshot_epochs
from ihgnn_cli.training.stack import Member, predict

# Seconds between two saves of a stack; longer if saving would take more than a twentieth of the
# time.
_SAVE_SECONDS = 60.0
_SAVE_SHARE = 20

Report = Callable[[int, int], None]
"""Takes the model-epochs trained, and those that are no longer left to train."""


class Trainer:
    """Trains the stacks of a job on one device, one after the other."""

    def __init__(self, job: Job, device: torch.device) -> None:
        self.job = job
        self.device = device
        self._store: tuple[int | None, GraphStore] | None = None

    def train(
        self,
        stack: Stack,
        report: Report = lambda _trained, _done: None,
        partial: Path | None = None,
    ) -> list[Record]:
        """Train a stack; one that does not fit in memory is trained in halves.

        Args:
            stack: the trainings.
            report: receives progress.
            partial: the folder for checkpoints of unfinished stacks; `None`: keep none.

        Raises:
            IhgnnError: one model does not fit in memory, a final run has no epoch, or the disk is
                full.
        """
        found: dict[Training, Record] = {}

        def train_some(trainings: Sequence[Training]) -> None:
            name = stack.name
            if len(trainings) < len(stack):
                at = stack.trainings.index(trainings[0])
                name += f"-{at}-{at + len(trainings)}"
            with computing(0):  # one thread: a worker has one core
                made = _trained_before(partial, name, trainings, curves=self.job.curves)
                if made is None:
                    made = _StackRun(self, trainings, partial and partial / f"{name}.pt").run(
                        report
                    )
                    if partial is not None and len(trainings) < len(stack):
                        _keep(partial, name, made)
            found.update(zip(trainings, made, strict=True))

        def refuse_one(trainings: Sequence[Training]) -> None:
            if len(trainings) == 1:
                raise IhgnnError(
                    f"Not enough memory on {self.device} for one model of "
                    f"{trainings[0].configuration}. Use a smaller --batch-size, or fewer --workers."
                )

        train_in_halves(stack.trainings, train_some, refuse_one)
        return [found[each] for each in stack.trainings]

    def store(self, config: RunConfig) -> GraphStore:
        """The graphs for models with this number of rounds; keeps one store at a time."""
        rounds = config.spec.rounds(config.model)
        if self._store is None or self._store[0] != rounds:
            dataset = self.job.dataset
            self._store = rounds, store_for(config, dataset, dataset.max_nodes, self.device)
        return self._store[1]


def seconds_per_epoch(folder: JobFolder, device: torch.device) -> float:
    """Roughly the seconds of a worker per model-epoch: those of one step of the next stack.

    0 if nothing is open, or if it cannot be measured: too little memory, or a failure that training
    will report.
    """
    found: list[Stack] = []
    with suppress(IhgnnError):
        found = folder.open_stacks()
    if not found:
        return 0.0
    stack, job = found[0], folder.job
    configs = [job.config(each) for each in stack.trainings]
    config, size = configs[0], configs[0].training.batch_size
    splits = [job.split(each) for each in stack.trainings]
    members = [
        Member(each.training.seed, each.training.lr, split.train[:size], split.validation[:1])
        for each, split in zip(configs, splits, strict=True)
    ]
    with suppress(RuntimeError, MemoryError, IhgnnError), computing(0):
        inputs = inputs_of(job.dataset, config.data.features, config.data.inputs)
        store = Trainer(job, device).store(config)
        cohort = new_cohort(config, inputs, store, members, keep_weights=False)
        cohort.advance()  # the first step is slower
        began = time.perf_counter()
        cohort.advance()
        steps = math.ceil(len(splits[0].train) / size)
        return (time.perf_counter() - began) * steps / len(stack)
    return 0.0


def remove_checkpoints(partial: Path, stack: Stack) -> None:
    """Remove what a stack that is finished has left."""
    for path in partial.glob(f"{stack.name}*"):
        if path.stem in {stack.name} or path.stem.startswith(f"{stack.name}-"):
            with suppress(OSError):
                path.unlink()


def _keep(partial: Path, name: str, records: Sequence[Record]) -> None:
    """Keep the records of a part of a stack until all of it is finished."""
    with written_whole(partial / f"{name}.jsonl") as temporary:
        temporary.write_text("".join(each.line() for each in records), encoding="utf-8")


def _trained_before(
    partial: Path | None, name: str, trainings: Sequence[Training], *, curves: bool
) -> list[Record] | None:
    """The records of a part of a stack, if it was trained before and their file is whole.

    With `curves`, the test accuracy of every epoch must have been recorded in a selection.
    """
    if partial is None or not (partial / f"{name}.jsonl").is_file():
        return None
    with suppress(OSError, ValueError, KeyError, TypeError, RecursionError):
        lines = (partial / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
        found = list(map(parsed, lines))
        recorded = all(each.has_curve for each in found) or trainings[0].stage == Stage.FINAL
        same = [each.validated.training for each in found] == list(trainings)
        if same and (recorded or not curves):
            return found
    return None


class _StackRun:
    """The training of some models together."""

    def __init__(self, trainer: Trainer, trainings: Sequence[Training], path: Path | None) -> None:
        self.job, self.trainings, self.device = trainer.job, tuple(trainings), trainer.device
        self.final = trainings[0].stage == Stage.FINAL
        self.configs = [self.job.config(each) for each in trainings]
        self.splits = [self.job.split(each) for each in trainings]
        self.store = trainer.store(self.configs[0])
        self.path = path
        self.seconds = [0.0] * len(trainings)
        self.test_hits: list[list[int]] = [[] for _ in trainings]
        training = self.configs[0].training
        self.snapshots = snapshot_epochs(training.epochs, training.snapshots)
        self.sums: list[torch.Tensor] = [torch.zeros(())] * len(trainings)
        """The probabilities of the test graphs, added up over the snapshots so far; nothing is
        chosen by them."""
        self.cohort = self._new_cohort()
        if path is not None and path.is_file():
            self._go_on(path)

    def run(self, report: Report) -> list[Record]:
        """Train to the end; checkpoints are saved now and then."""
        report(0, sum(len(course.history) for course in self.cohort.courses))
        saved, taken = time.monotonic(), 0.0
        while not self.cohort.finished:
            began = time.perf_counter()
            self.cohort.advance()
            self._watch_test()
            if self.cohort.stack.epoch in self.snapshots:
                tests = [split.test for split in self.splits]
                self.cohort.add_snapshot(self.sums, self.store, tests)
            present = self.cohort.present
            for member in present:
                self.seconds[member] += (time.perf_counter() - began) / len(present)
            report(len(present), len(present))
            pause = max(_SAVE_SECONDS, _SAVE_SHARE * taken)
            if self.path is not None and time.monotonic() - saved >= pause:
                began = time.monotonic()
                self._save(self.path)
                saved = time.monotonic()
                taken = saved - began
        return [self._record(member) for member in range(len(self.trainings))]

    def _new_cohort(self) -> Cohort:
        """The untrained stack; members know only their training and validation graphs."""
        members = [
            Member(config.training.seed, config.training.lr, split.train, split.validation)
            for config, split in zip(self.configs, self.splits, strict=True)
        ]
        config = self.configs[0]
        inputs = inputs_of(self.job.dataset, config.data.features, config.data.inputs)
        keep = self.final and not self.snapshots
        seed = self.job.protocol.config.training.seed  # of places in batches: one for all stacks
        return new_cohort(config, inputs, self.store, members, keep_weights=keep, places_seed=seed)

    def _watch_test(self) -> None:
        """Record the test accuracy of an epoch, if requested; nothing here uses it."""
        if self.final or not self.job.curves:
            return
        tests = [self.splits[member].test for member in self.cohort.present]
        _, accuracies = self.cohort.stack.evaluate("test", tests)
        for member, test, accuracy in zip(self.cohort.present, tests, accuracies, strict=True):
            if self.cohort.courses[member].diverged is None:
                self.test_hits[member].append(round(float(accuracy) * len(test)))

    def _record(self, member: int) -> Record:
        validated, test = self._validated(member), self.splits[member].test
        if not self.final:
            hits = tuple(self.test_hits[member])
            return Record(validated, Tested(len(test), hits=hits) if self.job.curves else None)
        likely = self._probabilities(member)
        predicted = likely.argmax(axis=1)
        accuracy = float(np.mean(predicted == self.job.dataset.graph_class[test]))
        rows = tuple(tuple(map(_short, row)) for row in likely.tolist())
        classes = tuple(predicted.tolist())
        return Record(validated, Tested(len(test), accuracy, classes, probabilities=rows))

    def _validated(self, member: int) -> Validated:
        course, split = self.cohort.courses[member], self.splits[member]
        graphs = len(split.validation)
        validated = course.history if graphs else []
        return Validated(
            training=self.trainings[member],
            seed=self.configs[member].training.seed,
            split_sha256=split.digest,
            epochs=len(course.history) + (course.diverged is not None),
            diverged=course.diverged is not None,
            best=course.best,
            validation_graphs=graphs,
            hits=tuple(round(each.validation_accuracy * graphs) for each in validated),
            losses=tuple(_short(each.validation_loss) for each in validated),
            seconds=round(self.seconds[member], 3),
            members=len(self.trainings),
            device=str(self.device),
        )

    def _probabilities(self, member: int) -> NDArray[np.float64]:
        """The probabilities of the test graphs: of the best epoch, or the mean over snapshots."""
        course = self.cohort.courses[member]
        if course.best is None or (self.snapshots and course.diverged is not None):
            when = "diverged" if self.snapshots else "diverged in its first epoch"
            raise IhgnnError(
                f"A final run of fold {self.trainings[member].fold} {when} "
                f"({self.trainings[member].configuration}). Give smaller learning rates with --lr."
            )
        if self.snapshots:
            averaged: NDArray[np.float64] = self.sums[member].numpy() / len(self.snapshots)
            return averaged
        config = self.configs[member]
        inputs = inputs_of(self.job.dataset, config.data.features, config.data.inputs)
        model = build(config, inputs, [config.training.seed])
        model.load_state_dict(course.best_weights)
        model.to(self.device)
        return mean_probabilities(predict(model, self.store, self.splits[member].test))

    def _save(self, path: Path) -> None:
        content = {
            "trainings": [each.name for each in self.trainings],
            "curves": self.job.curves,
            "cohort": self.cohort.state(),
            "seconds": self.seconds,
            "test_hits": self.test_hits,
            "sums": self.sums,
        }
        written = io.BytesIO()
        torch.save(content, written)
        with written_whole(path) as temporary:
            temporary.write_bytes(written.getbuffer())

    def _go_on(self, path: Path) -> None:
        """Resume from a checkpoint; if it does not match or is damaged, start again."""
        try:
            content: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
            same = content["trainings"] == [each.name for each in self.trainings]
            if not same or content["curves"] != self.job.curves:
                return
            seconds, sums = list(content["seconds"]), list(content["sums"])
            hits = [list(each) for each in content["test_hits"]]
            self.cohort.restore(content["cohort"])
            self.seconds, self.test_hits, self.sums = seconds, hits, sums
        except Exception:  # noqa: BLE001  a damaged file can raise anything
            self.cohort = self._new_cohort()


def _short(number: float) -> float:
    """The number to six digits, to keep files small."""
    return float(f"{number:.6g}")
