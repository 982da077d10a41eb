"""The Optuna study of a search: created or opened, and refused if it belongs to another search."""

import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import optuna
from optuna.exceptions import DuplicatedStudyError
from optuna.trial import TrialState

from ihgnn_cli.errors import InputError
from ihgnn_cli.signals import safe_point
from ihgnn_cli.studies.differences import difference
from ihgnn_cli.studies.tuning.kinds import SamplerName
from ihgnn_cli.studies.tuning.samplers import make_pruner, make_sampler
from ihgnn_cli.studies.tuning.search import Search
from ihgnn_cli.studies.tuning.storage import Address, database_calls, open_storage
from ihgnn_cli.studies.tuning.trials import RequestedTrial, rank, requested

if TYPE_CHECKING:
    from optuna import Study

_IDENTITY = "ihgnn"
# Seconds to wait for another process that is creating the study.
_CREATION_SECONDS = 10.0


def open_study(search: Search, where: Address, folder: Path, name: str) -> "Study":
    """Open the study of a search, or create it.

    Raises:
        InputError: the study belongs to another search.
        IhgnnError: the storage cannot be reached.
    """
    storage = open_storage(where, folder)
    with database_calls(where):
        try:
            study = optuna.create_study(
                storage=storage, study_name=name, direction=optuna.study.StudyDirection.MAXIMIZE
            )
        except DuplicatedStudyError:
            study = optuna.load_study(storage=storage, study_name=name)
            _check_same(study, search, name)
        else:
            _describe(study, search)
    return _with_sampler(study, search)


def join_study(search: Search, where: Address, name: str) -> "Study":
    """Open an existing study in a worker."""
    study = optuna.load_study(storage=open_storage(where), study_name=name)
    return _with_sampler(study, search)


def _with_sampler(study: "Study", search: Search) -> "Study":
    seed = search.config.training.seed
    study.sampler = make_sampler(search.sampler, search.space, seed, partial(rank, study))
    study.pruner = make_pruner(search.pruner, search.config.training.epochs, search.interval)
    return study


def find_study(where: Address, name: str) -> "Study":
    """Open a study for reading; it is not created.

    Raises:
        InputError: there is no such study.
        IhgnnError: the storage cannot be reached.
    """
    missing = InputError(
        f"There is no study '{name}' in {where.masked} yet. Search first, without --dashboard."
    )
    if where.path is not None and not where.path.is_file():
        raise missing
    storage = open_storage(where)
    with database_calls(where):
        try:
            return optuna.load_study(storage=storage, study_name=name)
        except KeyError:
            raise missing from None


def open_trials(study: "Study", where: Address, total: int) -> tuple[RequestedTrial, ...]:
    """The requested trials of a study.

    Raises:
        IhgnnError: the storage failed.
    """
    with database_calls(where):
        return tuple(requested(study.get_trials(deepcopy=False), total))


def _describe(study: "Study", search: Search) -> None:
    """Queue the configuration's own values as the first trial, and store what the search is."""
    defaults = search.space.defaults(search.config)
    if defaults is not None and search.sampler != SamplerName.GRID:
        study.enqueue_trial(defaults, skip_if_exists=True)
    study.set_user_attr(_IDENTITY, search.identity)


def _check_same(study: "Study", search: Search, name: str) -> None:
    deadline = time.monotonic() + _CREATION_SECONDS
    while (found := study.user_attrs.get(_IDENTITY)) is None:
        if time.monotonic() >= deadline:
            if not _is_new(study):
                raise InputError(
                    f"The study '{name}' was not made by ihgnn. Choose another name with --study."
                )
            _describe(study, search)  # the process that created it was killed
        else:
            safe_point()
            time.sleep(0.1)
    changed = difference(found, search.identity)
    if changed is not None:
        raise InputError(
            f"The study '{name}' is another search ({changed}). Choose another name with --study."
        )


def _is_new(study: "Study") -> bool:
    """Whether a study without a description may be a new one of ihgnn."""
    waiting = (each.state is TrialState.WAITING for each in study.get_trials(deepcopy=False))
    return study.directions == [optuna.study.StudyDirection.MAXIMIZE] and all(waiting)
