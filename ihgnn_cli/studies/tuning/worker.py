"""A worker of a search: Optuna runs one trial after the other in this process."""

import math
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import torch
from optuna.exceptions import UpdateFinishedTrialError

from ihgnn_cli.jobs.processes import Place, Send
from ihgnn_cli.studies.tuning import storage
from ihgnn_cli.studies.tuning.objective import CannotTrainError, Objective
from ihgnn_cli.studies.tuning.search import Search
from ihgnn_cli.studies.tuning.storage import UNAVAILABLE, Address, database_errors, quiet_optuna
from ihgnn_cli.studies.tuning.trials import EnoughTrialsError, Study

_IDLE_SECONDS = 1.0  # until a worker without a trial or a database asks again


@dataclass(frozen=True, eq=False)
class WorkerPlan:
    """What a worker process receives."""

    search: Search
    """Without the classes of test graphs."""
    identity: Mapping[str, Any]
    """That of the search with them."""
    where: Address
    study: str
    total: int
    timeout: float
    """Seconds after which no new training starts."""
    command: str
    """Identifies the command that started the worker."""

    def open(self) -> Study:
        """The study in this process."""
        return Study(self.search, self.identity, self.where, self.study, self.total)


def work(plan: WorkerPlan, place: Place, send: Send) -> None:
    """Run trials in this process until all are finished or the time is up.

    Raises:
        IhgnnError: the storage failed.
    """
    with quiet_optuna(), database_errors(plan.where), closing(plan.open()) as study:
        study.worker = f"{plan.command} {os.getpid()} "
        objective = Objective(plan.search, torch.device(place.device))
        deadline, patience = time.monotonic() + plan.timeout, Patience()
        while time.monotonic() < deadline:
            try:
                study.optimize(objective, n_trials=1, catch=(CannotTrainError,))
                patience.end()
            except EnoughTrialsError as enough:
                if enough.finished:
                    return
                time.sleep(_IDLE_SECONDS)
            except UpdateFinishedTrialError:
                pass  # this process slept for so long that others took its trial
            except AssertionError:
                if not objective.is_done:  # likewise, at the end of the training
                    raise
            except UNAVAILABLE as error:
                patience.bear(error)
                with suppress(*UNAVAILABLE):
                    study.give_back(study.worker)
            if objective.model_epochs:
                send(objective.model_epochs)
                objective.model_epochs = 0


class Patience:
    """Bears with an unavailable database while other processes take this one for alive."""

    def __init__(self) -> None:
        self._since = math.inf

    def bear(self, error: Exception) -> None:
        """Wait a little, or raise the error if it has lasted too long."""
        self._since = min(self._since, time.monotonic())
        if time.monotonic() - self._since > storage.STALE_SECONDS:
            raise error
        time.sleep(_IDLE_SECONDS)

    def end(self) -> None:
        """The database answers again."""
        self._since = math.inf

    @contextmanager
    def for_a_call(self) -> Iterator[None]:
        """Make a call that may be left out while the database is unavailable."""
        try:
            yield
            self.end()
        except UNAVAILABLE as error:
            self.bear(error)
