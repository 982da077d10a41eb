"""Trains a bundle as one stack, from the start or from the checkpoint of a killed process."""

import io
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ihgnn_cli.data.batching.batches import GraphStore
from ihgnn_cli.data.dataset import GraphDataset
from ihgnn_cli.data.splits import Fold, Split
from ihgnn_cli.errors import IhgnnError
from ihgnn_cli.files import written_whole
from ihgnn_cli.inference.conformal import too_few
from ihgnn_cli.inference.metrics import mean_probabilities
from ihgnn_cli.jobs.queue import Deliver, Runner, Tell
from ihgnn_cli.models.card import inputs_of
from ihgnn_cli.studies.folds import repeat_seed
from ihgnn_cli.studies.plan import Bundle, Protocol
from ihgnn_cli.studies.units import Record, Stage, Tested, Unit, Validated
from ihgnn_cli.training.checkpoint import build
from ihgnn_cli.training.cohort import Cohort, new_cohort
from ihgnn_cli.training.config import RunConfig
from ihgnn_cli.training.devices import computing, resolve_device
from ihgnn_cli.training.halving import train_in_halves
from ihgnn_cli.training.loading import store_for
from ihgnn_cli.training.snapshots import snapshot_epochs
from ihgnn_cli.training.stack import Member, predict

# Seconds between two saves of a stack; longer if saving would take more than a twentieth of the
# time.
_SAVE_SECONDS = 60.0
_SAVE_SHARE = 20


@dataclass(frozen=True, eq=False)
class Job:
    """Everything that a worker needs."""

    protocol: Protocol
    dataset: GraphDataset
    folds: tuple[Fold, ...]
    curves: bool = False
    """Whether to record the test accuracy of every epoch, for rules from the literature."""
    final_stack: int | None = None
    """Models per stack in final runs; `None`: the same as in the selection."""
    repeats: int = 1
    """Number of partitions, whose folds follow each other in `folds`."""
    conformal: float | None = None
    """Calibrate prediction sets at this share on validation graphs, and measure their coverage."""
    group_twins: bool = False
    """Whether the folds keep graphs with the same 1-WL colouring together."""

    @property
    def final_count(self) -> int:
        """The number of final runs over all folds."""
        return self.protocol.runs * len(self.folds)

    @property
    def folds_each(self) -> int:
        """The number of folds of a partition."""
        return len(self.folds) // self.repeats

    @property
    def first(self) -> tuple[Fold, ...]:
        """The first partition."""
        return self.folds[: self.folds_each]

    @property
    def partial(self) -> str | None:
        """A warning if the folds do not test every graph; `None` if they do."""
        tested = sum(len(fold.test) for fold in self.folds)
        if tested == self.repeats * len(self.dataset):
            return None
        return (
            f"Partial result: the first {len(self.folds)} folds of a split file, which test "
            f"{tested:,} of {len(self.dataset):,} graphs. It is not the full protocol."
        )

    def runner(self, device: str) -> Runner:
        """Prepare to train bundles on a device."""
        return Trainer(self, resolve_device(device)).train

    @property
    def too_few(self) -> str:
        """What to say about few validation graphs to calibrate on; empty if there are enough."""
        if self.conformal is None:
            return ""
        fewest = min(len(each.validation) for fold in self.folds for each in fold.splits)
        return too_few(fewest, self.conformal)

    @property
    def holds_out(self) -> bool:
        """Whether validation graphs do not train although nothing is chosen, but calibrate."""
        return self.conformal is not None and not self.protocol.selects

    def split(self, unit: Unit) -> Split:
        """The graphs of a unit; without a choice or calibration, those for validation train too."""
        split = self.folds[unit.fold].splits[unit.split]
        if self.protocol.selects or self.holds_out:
            return split
        train = np.sort(np.concatenate([split.train, split.validation]))
        return Split(train, np.empty(0, dtype=np.int64), split.test, may_be_empty=True)

    def config(self, unit: Unit) -> RunConfig:
        """The configuration of a unit's training; a repeat has those of a job with its seed."""
        config = unit.configuration.applied(self.protocol.config)
        training = config.training
        repeat, fold = divmod(unit.fold, self.folds_each)
        seed = replace(unit, fold=fold).seed(repeat_seed(training.seed, repeat))
        epochs = unit.epochs or training.epochs
        return replace(config, training=replace(training, seed=seed, epochs=epochs))


class Trainer:
    """Trains the bundles of a job on one device, one after the other."""

    def __init__(self, job: Job, device: torch.device) -> None:
        self.job = job
        self.device = device
        self._store: tuple[int | None, GraphStore] | None = None

    def train(
        self, bundle: Bundle, deliver: Deliver, tell: Tell, partial: Path | None = None
    ) -> None:
        """Train a bundle, and deliver each unit as soon as it is finished.

        A stack that does not fit in memory is trained in halves.

        Args:
            bundle: the units.
            deliver: receives results; may get a unit again after a kill.
            tell: receives progress.
            partial: the folder for checkpoints of unfinished stacks; `None`: keep none.

        Raises:
            IhgnnError: one model does not fit in memory, or the disk is full.
        """

        def train_stack(units: Sequence[Unit]) -> None:
            with computing(0):  # one thread: a worker has one core
                _StackRun(self, bundle.part(units), partial).run(deliver, tell)

        def refuse_one(units: Sequence[Unit]) -> None:
            if len(units) == 1:
                raise IhgnnError(
                    f"Not enough memory on {self.device} for one model of "
                    f"{units[0].configuration}. Use a smaller --batch-size, or fewer --workers."
                )

        train_in_halves(bundle.units, train_stack, refuse_one)

    def store(self, config: RunConfig) -> GraphStore:
        """The graphs for models with this number of rounds; keeps one store at a time."""
        rounds = config.spec.rounds(config.model)
        if self._store is None or self._store[0] != rounds:
            dataset = self.job.dataset
            self._store = rounds, store_for(config, dataset, dataset.max_nodes, self.device)
        return self._store[1]


class _StackRun:
    """The training of one bundle."""

    def __init__(self, trainer: Trainer, bundle: Bundle, partial: Path | None) -> None:
        self.job, self.units, self.device = trainer.job, bundle.units, trainer.device
        self.final = self.units[0].stage == Stage.FINAL
        self.store = trainer.store(self.job.config(self.units[0]))
        self.path = None if partial is None else partial / f"{bundle.name}.pt"
        self.seconds = [0.0] * len(self.units)
        self.test_hits: list[list[int]] = [[] for _ in self.units]
        training = self.job.config(self.units[0]).training
        self.snapshots = snapshot_epochs(training.epochs, training.snapshots)
        self.cohort = self._new_cohort()
        self.sums: list[torch.Tensor] = [torch.zeros(())] * len(self.units)
        """The probabilities of the test graphs, added up over the snapshots so far; nothing is
        chosen by them."""
        self.tests = [self.job.split(unit).test for unit in self.units]
        self.validation_sums: list[torch.Tensor] = [torch.zeros(())] * len(self.units)
        """The same for the validation graphs, if they calibrate."""
        self.validations = [self.job.split(unit).validation for unit in self.units]
        self.delivered: set[int] = set()
        if self.path is not None and self.path.is_file():
            self._go_on(self.path)

    def run(self, deliver: Deliver, tell: Tell) -> None:
        tell(0, sum(len(course.history) for course in self.cohort.courses))
        saved, taken = time.monotonic(), 0.0
        while not self.cohort.finished:
            began = time.perf_counter()
            self.cohort.advance()
            self._watch_test()
            if self.cohort.stack.epoch in self.snapshots:
                self.cohort.add_snapshot(self.sums, self.store, self.tests)
                if self.job.holds_out:
                    self.cohort.add_snapshot(self.validation_sums, self.store, self.validations)
            self._count(time.perf_counter() - began)
            tell(len(self.cohort.present), len(self.cohort.present))
            self._deliver(deliver, tell)
            pause = max(_SAVE_SECONDS, _SAVE_SHARE * taken)
            if self.path is not None and time.monotonic() - saved >= pause:
                began = time.monotonic()
                self._save(self.path)
                saved = time.monotonic()
                taken = saved - began
        self._deliver(deliver, tell)
        if self.path is not None:
            self.path.unlink(missing_ok=True)

    def _new_cohort(self) -> Cohort:
        """The untrained stack; members know only their training and validation graphs."""
        members = []
        for unit in self.units:
            split, training = self.job.split(unit), self.job.config(unit).training
            members.append(Member(training.seed, training.lr, split.train, split.validation))
        config = self.job.config(self.units[0])
        inputs = inputs_of(self.job.dataset, config.data.features, config.data.inputs)
        keep = self.final and not self.snapshots
        seed = self.job.protocol.config.training.seed
        return new_cohort(config, inputs, self.store, members, keep_weights=keep, places_seed=seed)

    def _watch_test(self) -> None:
        """Record the test accuracy of an epoch, if requested; nothing here uses it."""
        if self.final or not self.job.curves:
            return
        graphs = [self.job.split(self.units[member]).test for member in self.cohort.present]
        _, accuracies = self.cohort.stack.evaluate("test", graphs)
        for member, test, accuracy in zip(self.cohort.present, graphs, accuracies, strict=True):
            if self.cohort.courses[member].diverged is None:
                self.test_hits[member].append(round(float(accuracy) * len(test)))

    def _count(self, seconds: float) -> None:
        for member in self.cohort.present:
            self.seconds[member] += seconds / len(self.cohort.present)

    def _deliver(self, deliver: Deliver, tell: Tell) -> None:
        for member in range(len(self.units)):
            if self.cohort.done(member) and member not in self.delivered:
                record = self._record(member)
                deliver(record)
                self.delivered.add(member)
                asked = self.job.config(self.units[member]).training.epochs
                tell(0, asked - record.validated.epochs)

    def _record(self, member: int) -> Record:
        validated, test = self._validated(member), self.job.split(self.units[member]).test
        if not self.final:
            hits = tuple(self.test_hits[member])
            return Record(validated, Tested(len(test), hits=hits) if self.job.curves else None)
        likely, calibration = self._answers(member)
        predicted = likely.argmax(axis=1)
        right = predicted == self.job.dataset.graph_class[test]
        classes = tuple(predicted.tolist())
        tested = Tested(len(test), float(np.mean(right)), classes, probabilities=_rows(likely))
        return Record(replace(validated, probabilities=_rows(calibration)), tested)

    def _validated(self, member: int) -> Validated:
        unit, course = self.units[member], self.cohort.courses[member]
        split = self.job.split(unit)
        graphs = len(split.validation)
        return Validated(
            unit=unit,
            seed=self.job.config(unit).training.seed,
            split_sha256=split.digest,
            epochs=len(course.history) + (course.diverged is not None),
            diverged=course.diverged is not None,
            # Without a choice the last epoch, even if there are validation graphs to calibrate on.
            best=course.history[-1] if self.snapshots and course.history else course.best,
            validation_graphs=graphs,
            hits=tuple(
                round(each.validation_accuracy * graphs) for each in course.history if graphs
            ),
            losses=tuple(_short(each.validation_loss) for each in course.history if graphs),
            seconds=round(self.seconds[member], 3),
            members=len(self.units),
            device=str(self.device),
        )

    def _answers(self, member: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The probabilities of the test graphs, and of the validation graphs if there are any."""
        course = self.cohort.courses[member]
        if course.best is None or (self.snapshots and course.diverged is not None):
            when = "diverged" if self.snapshots else "diverged in its first epoch"
            raise IhgnnError(
                f"A final run of fold {self.units[member].fold} {when} "
                f"({self.units[member].configuration}). Give smaller learning rates with --lr."
            )
        if self.snapshots:
            found = self.sums[member].numpy() / len(self.snapshots)
            if not self.job.holds_out:
                return found, np.empty((0, found.shape[1]))
            return found, self.validation_sums[member].numpy() / len(self.snapshots)
        config, split = self.job.config(self.units[member]), self.job.split(self.units[member])
        inputs = inputs_of(self.job.dataset, config.data.features, config.data.inputs)
        model = build(config, inputs, [config.training.seed])
        model.load_state_dict(course.best_weights)
        model.to(self.device)
        test, others = (predict(model, self.store, part) for part in (split.test, split.validation))
        return mean_probabilities(test), mean_probabilities(others)

    def _save(self, path: Path) -> None:
        content = {
            "units": [unit.name for unit in self.units],
            "curves": self.job.curves,
            "cohort": self.cohort.state(),
            "seconds": self.seconds,
            "test_hits": self.test_hits,
            "sums": self.sums,
            "validation_sums": self.validation_sums,
        }
        written = io.BytesIO()
        torch.save(content, written)
        with written_whole(path) as temporary:
            temporary.write_bytes(written.getbuffer())

    def _go_on(self, path: Path) -> None:
        """Resume from a checkpoint; if it does not match or is damaged, start again."""
        try:
            content: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
            same = content["units"] == [unit.name for unit in self.units]
            if not same or content["curves"] != self.job.curves:
                return
            seconds, sums = list(content["seconds"]), list(content["sums"])
            others = list(content["validation_sums"])
            hits = [list(each) for each in content["test_hits"]]
            self.cohort.restore(content["cohort"])
            self.seconds, self.test_hits = seconds, hits
            self.sums, self.validation_sums = sums, others
        except Exception:  # noqa: BLE001  a damaged file can raise anything
            self.cohort = self._new_cohort()


def _short(number: float) -> float:
    """The number to six digits, to keep files small."""
    return float(f"{number:.6g}")


def _rows(probabilities: NDArray[np.float64]) -> tuple[tuple[float, ...], ...]:
    """The probabilities of each graph; none if there are no graphs."""
    return tuple(tuple(map(_short, row)) for row in np.atleast_2d(probabilities).tolist() if row)
