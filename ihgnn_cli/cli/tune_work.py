"""The steps of `ihgnn tune` after its search is prepared: trials, the test, the files."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ihgnn_cli.cli import console, tune_display
from ihgnn_cli.errors import IhgnnError
from ihgnn_cli.report.tuning import TrialRow, write_trials
from ihgnn_cli.studies.places import Places
from ihgnn_cli.studies.tuning import folder as folders
from ihgnn_cli.studies.tuning.final import earlier_runs, run_folder, train_best
from ihgnn_cli.studies.tuning.rows import importances, trial_rows
from ihgnn_cli.studies.tuning.run import conduct
from ihgnn_cli.studies.tuning.search import Conducted, Search
from ihgnn_cli.studies.tuning.slots import Slot
from ihgnn_cli.studies.tuning.storage import Address, speaking
from ihgnn_cli.studies.tuning.study import open_study, slots_now

if TYPE_CHECKING:
    from optuna import Study


def opened(search: Search, where: Address, folder: Path, name: str, command: str) -> "Study":
    """Begin or find the search's folder, and its study; nothing is left of one that is refused."""
    new = folders.begin(search, folder, study=name, storage=where.masked, command=command)
    try:
        return open_study(search, where, folder, name)
    except IhgnnError:
        if new:
            folders.discard_unbegun(folder)
        raise


@dataclass(frozen=True, eq=False)
class TuneWork:
    """What the steps of the command share."""

    search: Search
    study: "Study"
    where: Address
    folder: Path
    places: Places
    command: str
    """For the record, without secrets."""
    data_root: Path | None
    offline: bool

    def conduct(
        self, total: int, stack: int, timeout: float | None, *, quiet: bool, silent: bool
    ) -> Conducted:
        """Do the trials; interrupted, write and show what there is (unless `silent`)."""
        if not quiet:
            tune_display.tell_begin(self.search, self.places, total, stack, self.folder)
        epochs = self.search.config.training.epochs
        try:
            with tune_display.progress(epochs, quiet=quiet) as watch:
                done = conduct(
                    self.search,
                    self.study,
                    self.where,
                    self.places,
                    trials=total,
                    stack=stack,
                    timeout=timeout,
                    watch=watch,
                )
        except (KeyboardInterrupt, SystemExit):
            slots = slots_now(self.study, self.where, total)
            self._write(slots)
            if not silent:
                tune_display.show_best(slots)
            console.note("Finished trials are kept: the same command continues with the rest.")
            raise
        if not done.finished:
            console.note("The time is over: what was not begun is left for the next command.")
        return done

    def conclude(self, done: Conducted, *, quiet: bool) -> dict[str, Any]:
        """Train the best settings, test them, and write all there is to know."""
        about = {
            "study": self.study.study_name,
            "storage": self.where.masked,
            "command": self.command,
        }
        result = folders.make_result(self.search, done, self.places.first, about)
        best = folders.best_config(self.search, done.slots)
        self._write(done.slots)
        if best is None:
            raise IhgnnError(
                f"No trial was trained to its end: {tune_display.states_in_words(done.slots)}. "
                "See trials.csv in the folder; try more --trials, a longer --timeout, or other "
                f"ranges. ({self.folder})"
            )
        trial = result["best"]["trial"]
        target = run_folder(self.folder, trial)
        try:
            with tune_display.final_progress(best.training.epochs, trial, quiet=quiet) as watch:
                tested = train_best(
                    best,
                    target,
                    watch,
                    data_root=self.data_root,
                    offline=self.offline,
                    command=self.command,
                )
        except (KeyboardInterrupt, SystemExit):
            console.note("All trials are kept: the same command continues with the last training.")
            raise
        result["final"] = {
            "folder": target.name,
            **{name: tested[name] for name in ("best_epoch", "validation", "test", "seeds")},
            "tested_before": earlier_runs(self.folder, trial),
        }
        self._draw(done.slots, result)
        folders.write_result(self.folder, result)
        return result

    def _write(self, slots: tuple[Slot, ...]) -> None:
        """The table of the trials, and the best settings where there are some."""
        rows = [TrialRow(**each) for each in trial_rows(slots)]
        write_trials(self.folder / folders.TRIALS, rows)
        best = folders.best_config(self.search, slots)
        if best is not None:
            folders.write_best(best, self.folder)

    def _draw(self, slots: tuple[Slot, ...], result: dict[str, Any]) -> None:
        rows = [TrialRow(**each) for each in trial_rows(slots)]
        log = [name for name, part in result["search"]["space"].items() if part.get("log")]
        with speaking(self.where):
            mattered = importances(self.study, slots)
        tune_display.draw(rows, mattered, result, self.folder, log)
