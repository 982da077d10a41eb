"""A cross-validation job, and its folder with one result file per finished stack.

`crossval.json` describes the job, `splits.json` holds its folds, `units/` has a file of records for
each finished stack, `partial/` holds checkpoints of unfinished ones, and `locks/` the locks of
those that are being trained. A finished job also has `result.json`, and `best.toml` with the
configuration that most folds chose.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from ihgnn_cli.data.dataset import GraphDataset
from ihgnn_cli.data.splits import Fold, Split, fold_file, write_fold_file
from ihgnn_cli.errors import InputError
from ihgnn_cli.files import written_whole
from ihgnn_cli.studies.crossval.protocol import (
    Configuration,
    Protocol,
    Stage,
    Training,
    final_trainings,
    selection_trainings,
)
from ihgnn_cli.studies.crossval.records import Record, Validated, parsed
from ihgnn_cli.studies.crossval.selection import leading
from ihgnn_cli.studies.crossval.stacks import Sizes, Stack, stacks
from ihgnn_cli.studies.job_folder import CROSSVAL_JOB, open_job
from ihgnn_cli.training.config import RunConfig

SPLITS, UNITS, PARTIAL, LOCKS = "splits.json", "units", "partial", "locks"


class Data:
    """The graphs of a job.

    Args:
        dataset: the graphs.
        load: reads them again. They are then not sent to other processes, which read them when
            they need them.
    """

    def __init__(
        self, dataset: GraphDataset, load: Callable[[], GraphDataset] | None = None
    ) -> None:
        self._dataset: GraphDataset | None = dataset
        self._load = load
        self._fingerprint = dataset.fingerprint

    @property
    def dataset(self) -> GraphDataset:
        """The graphs, read again if this process does not have them.

        Raises:
            InputError: they have changed since.
        """
        if self._dataset is None and self._load is not None:
            self._dataset = self._load()
            if self._dataset.fingerprint != self._fingerprint:
                raise InputError(f"The files of {self._dataset.name} have changed meanwhile.")
        assert self._dataset is not None  # noqa: S101  nothing drops what cannot be read again
        return self._dataset

    def drop(self) -> None:
        """Forget the graphs if they can be read again."""
        if self._load is not None:
            self._dataset = None

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_dataset": None if self._load else self._dataset}


@dataclass(frozen=True, eq=False)
class Job:
    """One cross-validation over one partition into folds."""

    protocol: Protocol
    data: Data
    folds: tuple[Fold, ...]
    curves: bool = False
    """Whether to record the test accuracy of every epoch, for rules from the literature."""
    group_twins: bool = False
    """Whether the folds keep graphs with the same 1-WL colouring together."""

    @property
    def dataset(self) -> GraphDataset:
        """The graphs."""
        return self.data.dataset

    @property
    def identity(self) -> dict[str, Any]:
        """The values that two jobs must share for their trainings to be the same."""
        splits = hashlib.sha256("".join(fold.digest for fold in self.folds).encode()).hexdigest()
        protocol = self.protocol.as_plain()
        # The same data may have another path on another machine.
        protocol["data"]["dataset"] = self.dataset.name
        return {
            "protocol": protocol,
            "data_sha256": self.dataset.fingerprint,
            "splits_sha256": splits,
            "folds": len(self.folds),
            "inner_folds": len(self.folds[0].splits),
        }

    @property
    def partial(self) -> str | None:
        """A warning if the folds do not test every graph; `None` if they do."""
        tested, graphs = sum(len(fold.test) for fold in self.folds), len(self.dataset)
        if tested == graphs:
            return None
        return (
            f"Partial result: the first {len(self.folds)} folds of a split file, which test "
            f"{tested:,} of {graphs:,} graphs. It is not the full protocol."
        )

    def split(self, training: Training) -> Split:
        """The split of a training; without a selection, validation graphs train as well."""
        split = self.folds[training.fold].splits[training.split]
        if self.protocol.selects:
            return split
        train = np.sort(np.concatenate([split.train, split.validation]))
        return Split(train, np.empty(0, dtype=np.int64), split.test, may_be_empty=True)

    def config(self, training: Training) -> RunConfig:
        """The configuration of a training, with its own seed."""
        config = training.configuration.applied(self.protocol.config)
        seed = training.seed(config.training.seed)
        epochs = training.epochs or config.training.epochs
        return replace(config, training=replace(config.training, seed=seed, epochs=epochs))


@dataclass(eq=False)
class JobFolder:
    """A job in its folder: what is finished, and what can be trained now."""

    path: Path
    job: Job
    sizes: Sizes
    _records: dict[str, tuple[Record, ...]] = field(default_factory=dict)
    """The records of finished stacks by the name of the stack, as far as they were read."""
    _stages: list[list[Stack]] = field(default_factory=list)
    """The rungs of the selection as far as they are known, then the final runs."""
    _left: Mapping[int, Sequence[Configuration]] = field(default_factory=dict)
    """The configurations of the last stage, by fold."""

    def __post_init__(self) -> None:
        self._left = dict.fromkeys(range(len(self.job.folds)), self.job.protocol.grid)
        self._rungs = self.job.protocol.rungs
        if self._rungs:
            self._add(selection_trainings(self.job.protocol, self.job.folds))

    def open_stacks(self) -> list[Stack]:
        """The stacks that can be trained now and are not finished."""
        self._advance()
        return [stack for stack in self._stages[-1] if not self.done(stack)]

    @property
    def finished(self) -> bool:
        """Whether every stack is finished."""
        self._advance()
        return len(self._stages) > len(self._rungs) and all(map(self.done, self._stages[-1]))

    def finished_trainings(self) -> list[Training]:
        """The trainings that are finished, by any process."""
        self._advance()
        found = (stack for stage in self._stages for stack in stage if self.done(stack))
        return [training for stack in found for training in stack.trainings]

    def stack_file(self, stack: Stack) -> Path:
        """The file with the records of a stack."""
        return self.path / UNITS / f"{stack.name}.jsonl"

    def write(self, stack: Stack, records: Sequence[Record]) -> None:
        """Store the records of a finished stack on disk.

        Raises:
            IhgnnError: the disk is full, or the folder is gone.
        """
        with written_whole(self.stack_file(stack), durable=True) as temporary:
            temporary.write_text("".join(each.line() for each in records), encoding="utf-8")

    def done(self, stack: Stack) -> bool:
        """Whether a stack is finished, with the test accuracy per epoch if the job asks for it.

        Raises:
            InputError: its file is damaged or belongs to another job.
        """
        if stack.name not in self._records:
            found = self._read(stack)
            if found is None:
                return False
            curves = self.job.curves and stack.trainings[0].stage == Stage.SELECT
            if curves and not all(each.has_curve for each in found):
                return False
            self._records[stack.name] = found
        return True

    def knows(self, name: str) -> bool:
        """Whether a stack was found to be finished."""
        return name in self._records

    def chosen(self) -> dict[int, Configuration]:
        """The configuration of each fold.

        Raises:
            IhgnnError: the selection is not finished, or all of a fold's trainings diverged.
        """
        if not self._rungs:  # a single configuration
            return {fold: grid[0] for fold, grid in self._left.items()}
        best = leading(self._validated(len(self._rungs) - 1), self._left, 1)
        return {fold: configurations[0] for fold, configurations in best.items()}

    def selection(self) -> list[Record]:
        """The trainings of all rungs; all rungs but the last are short."""
        self._advance()
        return self._found(self._stages[: len(self._rungs)])

    def last_rung(self) -> list[Validated]:
        """The trainings that the choice is made by; empty if nothing is chosen."""
        return self._validated(len(self._rungs) - 1) if self._rungs else []

    def final(self) -> list[Record]:
        """The final runs."""
        self._advance()
        return self._found(self._stages[len(self._rungs) :])

    def most_open(self) -> int:
        """An upper bound of the number of stacks that can be trained at a time."""
        protocol, folds = self.job.protocol, self.job.folds
        first = len(self._stages[0]) if self._stages else 0
        # Folds that choose models of another shape share no stack.
        size = self.sizes.of(protocol.runs * len(folds))
        return max(first, len(folds) * -(-protocol.runs // size))

    def _advance(self) -> None:
        """Add the stages that follow from finished ones: each depends on all of the one before."""
        while len(self._stages) <= len(self._rungs) and (
            not self._stages or all(map(self.done, self._stages[-1]))
        ):
            rung, job = len(self._stages), self.job
            if rung == len(self._rungs):
                self._add(final_trainings(job.protocol, job.folds, self.chosen()))
                return
            kept = leading(self._validated(rung - 1), self._left, self._rungs[rung].configurations)
            self._left = {  # in the order of the grid, which decides ties
                fold: [each for each in self._left[fold] if each in kept[fold]] for fold in kept
            }
            self._add(selection_trainings(job.protocol, job.folds, rung, self._left))

    def _add(self, trainings: Sequence[Training]) -> None:
        """Add a stage.

        What follows from validation results of one fold must not change the stacks of another,
        whose test graphs it may have validated on. Later rungs, and trainings that stop early,
        therefore share stacks with others of their fold only. Final runs come after all choices.
        """
        final = len(self._stages) == len(self._rungs)
        patience = self.job.protocol.config.training.patience > 0
        fold_by_fold = not final and (len(self._stages) > 0 or patience)
        size = self.sizes.of(len(trainings))
        self._stages.append(stacks(trainings, size, fold_by_fold=fold_by_fold))

    def _validated(self, stage: int) -> list[Validated]:
        """What selection may see of a stage."""
        return [each.validated for each in self._found(self._stages[stage : stage + 1])]

    def _found(self, stages: Sequence[Sequence[Stack]]) -> list[Record]:
        finished = (stack for stack in chain.from_iterable(stages) if self.done(stack))
        return [record for stack in finished for record in self._records[stack.name]]

    def _read(self, stack: Stack) -> tuple[Record, ...] | None:
        path = self.stack_file(stack)
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
            found = tuple(map(parsed, lines))
        except FileNotFoundError:
            return None
        except OSError as error:
            raise InputError(f"Cannot read {path}: {error.strerror or error}.") from error
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise InputError(
                f"{path} is damaged. Remove it, and its stack is trained again."
            ) from error
        for record, training in zip(found, stack.trainings, strict=False):
            ours = self.job.config(training).training.seed, self.job.split(training).digest
            theirs = record.validated.seed, record.validated.split_sha256
            if record.validated.training != training or theirs != ours:
                break
        else:
            if len(found) == len(stack):
                return found
        raise InputError(f"{path} belongs to another job. Remove it, or choose another --out.")


def open_folder(
    path: Path, job: Job, sizes: Callable[[], Sizes], facts: Mapping[str, Any]
) -> tuple[JobFolder, dict[str, Any]]:
    """Create the folder of a job, or open it; also returns the content of its file.

    Args:
        path: the folder.
        job: the job.
        sizes: computes the sizes of stacks for a new folder; a folder keeps its own.
        facts: more to write into its file.

    Raises:
        InputError: the folder holds something else.
        IhgnnError: the folder cannot be created.
    """
    new = not (path / CROSSVAL_JOB.file).is_file()
    content = {
        "identity": job.identity,
        "sizes": asdict(sizes()) if new else {},
        **facts,
    }
    found, _ = open_job(path, CROSSVAL_JOB, content)
    try:
        stored = Sizes(int(found["sizes"]["most"]), int(found["sizes"]["workers"]))
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path / CROSSVAL_JOB.file} is damaged. Choose another --out.") from error
    if not _holds(path / SPLITS, job.folds):
        write_fold_file(job.folds, path / SPLITS)
    return JobFolder(path, job, stored), found


def _holds(path: Path, folds: Sequence[Fold]) -> bool:
    """Whether a fold file exists and holds these folds."""
    try:
        return path.read_bytes() == fold_file(folds).encode()
    except OSError:
        return False
