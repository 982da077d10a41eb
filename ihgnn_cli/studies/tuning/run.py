"""Runs a search: starts the workers, shows progress, and retries what dead processes left."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from optuna.trial import TrialState

from ihgnn_cli.jobs.local import run_workers
from ihgnn_cli.jobs.queue import NOTHING, Step
from ihgnn_cli.signals import safe_point
from ihgnn_cli.studies.places import Places
from ihgnn_cli.studies.tuning.search import Conducted, Search
from ihgnn_cli.studies.tuning.slots import Slot
from ihgnn_cli.studies.tuning.storage import Address, speaking
from ihgnn_cli.studies.tuning.worker import WorkerPlan, work

if TYPE_CHECKING:
    from optuna import Study

# Seconds between two looks at the study.
_LOOK_SECONDS = 3.0


@dataclass(frozen=True)
class TuneProgress:
    """The state of a search."""

    slots: Sequence[Slot]
    """Of all processes together."""
    total: int
    running: Mapping[int, int]
    """Running trials, each with its last reported epoch."""
    lost: int = 0
    """Trials of dead processes that were found just now."""
    dead: int = 0
    """Workers that were killed from outside just now."""
    smaller: int = 0
    """Trials of a stack that did not fit in memory just now."""


TuneCallback = Callable[[TuneProgress], None]


def conduct(
    search: Search,
    study: "Study",
    where: Address,
    places: Places,
    *,
    trials: int,
    stack: int,
    timeout: float | None = None,
    watch: TuneCallback = lambda _progress: None,
) -> Conducted:
    """Run trials until there are so many, of any process, or the time is over.

    Raises:
        IhgnnError: the storage or a worker failed.
    """
    plan = WorkerPlan(search.blinded(), where, study.study_name, trials, stack, timeout)
    began = time.monotonic()
    with speaking(where):
        parent = _Parent(plan, watch)
        if not parent.queue.finished():
            parent.look()
            run_workers(places.devices, partial(work, plan), parent.hear, parent.tick)
            parent.look()
        slots = tuple(parent.queue.slots())
    return Conducted(slots, trials, parent.model_epochs, time.monotonic() - began)


class _Parent:
    """The process that started the workers: it trains nothing and takes no trial."""

    def __init__(self, plan: WorkerPlan, watch: TuneCallback) -> None:
        self.queue = plan.queue()
        self.model_epochs = 0
        """Trained by the workers of this command."""
        self._watch = watch
        self._looked = 0.0

    def hear(self, step: Step) -> None:
        self.model_epochs += step.trained
        if step.dead or step.halved:
            self.look(step)

    def tick(self) -> None:
        safe_point()
        if time.monotonic() - self._looked >= _LOOK_SECONDS:
            self.look()

    def look(self, step: Step = NOTHING) -> None:
        """Retry trials of dead processes, and report progress."""
        self._looked = time.monotonic()
        lost = self.queue.reclaim()
        slots = self.queue.slots()
        running = {
            slot.last.number: max(slot.last.intermediate_values, default=0)
            for slot in slots
            if slot.last.state is TrialState.RUNNING
        }
        found = TuneProgress(slots, self.queue.total, running, lost, step.dead, step.halved)
        self._watch(found)
