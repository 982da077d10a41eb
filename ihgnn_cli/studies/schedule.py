"""The queue of a cross-validation: which stacks are left to train."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path

from ihgnn_cli.jobs.claims import Claims
from ihgnn_cli.studies import folder as folders
from ihgnn_cli.studies.choice import leading
from ihgnn_cli.studies.grid import Configuration
from ihgnn_cli.studies.plan import Bundle, bundles, final_units, selection_units
from ihgnn_cli.studies.units import Record, Stage, Unit, Validated
from ihgnn_cli.studies.work import Job

Grids = Mapping[int, Sequence[Configuration]]


class Schedule:
    """The bundles of a job in order: first the rungs of the selection, then the final runs.

    Args:
        job: the job.
        folder: its folder.
        stack: models per bundle; the job may have a smaller number for final runs.
    """

    def __init__(self, job: Job, folder: Path, stack: int) -> None:
        self.job = job
        self.claims, self.partial = folder / folders.CLAIMS, folder / folders.PARTIAL
        self.units = folders.Units(folder, self._is_ours)
        self.stack = stack
        self.final_stack = job.final_stack or stack
        self._rungs = job.protocol.rungs
        self._left: Grids = dict.fromkeys(range(len(job.folds)), job.protocol.grid)
        """The configurations of the last stage, by fold."""
        first = selection_units(job.protocol, job.folds)
        self._stages = [bundles(first, stack, job.folds_each)] if self._rungs else []
        """The rungs of the selection as far as they are known, then the final runs."""

    @property
    def selection(self) -> list[Unit]:
        """The trainings of all rungs as far as they are known; all rungs but the last are short."""
        return _units(self._stages[: len(self._rungs)])

    @property
    def last_rung(self) -> list[Unit]:
        """The trainings that the choice is made by; empty until they are known."""
        if not self._rungs:
            return []
        return _units(self._stages[len(self._rungs) - 1 : len(self._rungs)])

    @property
    def total(self) -> int:
        """The total number of units."""
        return (
            sum(rung.configurations for rung in self._rungs) * self._splits + self.job.final_count
        )

    @property
    def total_epochs(self) -> int:
        """The number of model-epochs if every training runs to its end."""
        whole = self.job.protocol.config.training.epochs
        selection = sum(each.configurations * (each.epochs or whole) for each in self._rungs)
        return selection * self._splits + self.job.final_count * whole

    def take(self, claims: Claims) -> Bundle | None:
        """Claim a bundle that is neither done nor claimed; `None` if there is none now.

        There may be more later: see `finished`.
        """
        self._advance()
        for stage in self._stages:
            by_name = {bundle.name: bundle for bundle in stage}
            taken = claims.take(by_name, lambda name: self._done(by_name[name]))  # noqa: B023
            if taken is not None:
                return by_name[taken]
        return None

    def write(self, result: Record) -> None:
        """Store a finished unit."""
        self.units.write(result)

    def finished(self) -> bool:
        """Whether every unit is done."""
        self._advance()
        return len(self._stages) > len(self._rungs) and all(map(self._done, self._stages[-1]))

    def finished_units(self) -> list[Unit]:
        """The units that are finished, by any process."""
        self._advance()
        return list(filter(self._has, _units(self._stages)))

    def chosen(self) -> dict[int, Configuration]:
        """The configuration of each fold.

        Raises:
            IhgnnError: the selection is not finished, or all of a fold's trainings diverged.
        """
        self._advance()
        return self._choice()

    def _choice(self) -> dict[int, Configuration]:
        if not self._rungs:  # a single configuration
            return {fold: grid[0] for fold, grid in self._left.items()}
        best = leading(self.units.validated(self.last_rung), self._left, 1)
        return {fold: configurations[0] for fold, configurations in best.items()}

    def final(self) -> list[Unit]:
        """The final runs; empty until the selection is finished."""
        self._advance()
        return _units(self._stages[len(self._rungs) :])

    @property
    def _splits(self) -> int:
        return sum(len(fold.splits) for fold in self.job.folds)

    def _advance(self) -> None:
        """Add the stages that follow from finished ones: each depends on all of the one before."""
        while len(self._stages) <= len(self._rungs) and self._stage_done():
            rung = len(self._stages)
            if rung == len(self._rungs):
                units = final_units(self.job.protocol, self.job.folds, self._choice())
            else:
                count = self._rungs[rung].configurations
                found = self.units.validated(_units(self._stages[-1:]))
                kept = leading(found, self._left, count)
                self._left = {  # in the order of the grid, which decides ties
                    fold: [each for each in self._left[fold] if each in kept[fold]] for fold in kept
                }
                units = selection_units(self.job.protocol, self.job.folds, rung, self._left)
            self._stages.append(bundles(units, self.final_stack, self.job.folds_each))

    def _is_ours(self, record: Validated) -> bool:
        """Whether a record has this job's seed and split."""
        seed = self.job.config(record.unit).training.seed
        return (record.seed, record.split_sha256) == (seed, self.job.split(record.unit).digest)

    def _stage_done(self) -> bool:
        return not self._stages or all(map(self._done, self._stages[-1]))

    def _done(self, bundle: Bundle) -> bool:
        return all(map(self._has, bundle.units))

    def _has(self, unit: Unit) -> bool:
        curves = self.job.curves and unit.stage == Stage.SELECT
        calibration = self.job.conformal is not None and unit.stage == Stage.FINAL
        return self.units.has(unit, curves=curves, calibration=calibration)


def _units(stages: Iterable[Iterable[Bundle]]) -> list[Unit]:
    return [unit for bundle in chain.from_iterable(stages) for unit in bundle.units]
