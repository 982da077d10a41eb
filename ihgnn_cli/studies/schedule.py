"""The queue of a cross-validation: which stacks are left to train."""

from collections.abc import Sequence
from pathlib import Path

from ihgnn_cli.jobs.claims import Claims
from ihgnn_cli.studies import folder as folders
from ihgnn_cli.studies.choice import choose
from ihgnn_cli.studies.grid import Configuration
from ihgnn_cli.studies.plan import Bundle, bundles, final_units, selection_units
from ihgnn_cli.studies.units import Record, Stage, Unit, Validated
from ihgnn_cli.studies.work import Job


class Schedule:
    """The bundles of a job in order: first the selection, then the final runs.

    Args:
        job: the job.
        folder: its folder.
        stack: models per bundle; the job may have a smaller number for final runs.
    """

    def __init__(self, job: Job, folder: Path, stack: int) -> None:
        self.job = job
        self.claims, self.partial = folder / folders.CLAIMS, folder / folders.PARTIAL
        self.units = folders.Units(folder, self._is_ours)
        self.selection: Sequence[Unit] = selection_units(job.protocol, job.folds)
        self.stack = stack
        self.final_stack = job.final_stack or stack
        self._select = bundles(self.selection, stack)
        self._final: list[Bundle] | None = None

    @property
    def total(self) -> int:
        """The total number of units."""
        return len(self.selection) + self.job.final_count

    def take(self, claims: Claims) -> Bundle | None:
        """Claim a bundle that is neither done nor claimed; `None` if there is none now.

        There may be more later: see `finished`.
        """
        for stage in filter(None, self._stages()):
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
        final = self._final_bundles()
        return final is not None and all(map(self._done, final))

    def finished_units(self) -> int:
        """How many units are finished, by any process."""
        units = [*self.selection, *self.final()]
        return sum(self._has(unit) for unit in units)

    def chosen(self) -> dict[int, Configuration]:
        """The configuration of each fold.

        Raises:
            IhgnnError: the selection is not finished, or all of a fold's trainings diverged.
        """
        validated = self.units.validated(self.selection)
        return choose(validated, self.job.protocol.grid, len(self.job.folds))

    def final(self) -> list[Unit]:
        """The final runs; empty until the selection is finished."""
        return [unit for bundle in self._final_bundles() or [] for unit in bundle.units]

    def _stages(self) -> list[list[Bundle]]:
        return [self._select, self._final_bundles() or []]

    def _final_bundles(self) -> list[Bundle] | None:
        """`None` until the selection is finished, because the choice depends on all of it."""
        if self._final is None and all(map(self._done, self._select)):
            units = final_units(self.job.protocol, self.job.folds, self.chosen())
            self._final = bundles(units, self.final_stack)
        return self._final

    def _is_ours(self, record: Validated) -> bool:
        """Whether a record has this job's seed and split."""
        seed = self.job.config(record.unit).training.seed
        return (record.seed, record.split_sha256) == (seed, self.job.split(record.unit).digest)

    def _done(self, bundle: Bundle) -> bool:
        return all(map(self._has, bundle.units))

    def _has(self, unit: Unit) -> bool:
        curves = self.job.curves and unit.stage == Stage.SELECT
        return self.units.has(unit, curves=curves)
