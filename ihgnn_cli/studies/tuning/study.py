"""The Optuna study of a search: made or found, and refused where it is about something else."""

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
from ihgnn_cli.studies.tuning.slots import Slot, asked_for, rank
from ihgnn_cli.studies.tuning.storage import Address, open_storage, speaking

if TYPE_CHECKING:
    from optuna import Study

_IDENTITY = "ihgnn"
# How long a study that somebody is just making may be without what it is.
_MAKING_SECONDS = 10.0


def open_study(search: Search, where: Address, folder: Path, name: str) -> "Study":
    """The study of a search, made where there is none.

    Raises:
        InputError: a study of that name is about something else.
        IhgnnError: the storage cannot be reached.
    """
    storage = open_storage(where, folder)
    with speaking(where):
        try:
            study = optuna.create_study(
                storage=storage, study_name=name, direction=optuna.study.StudyDirection.MAXIMIZE
            )
        except DuplicatedStudyError:
            study = optuna.load_study(storage=storage, study_name=name)
            _check_same(study, search, name)
        else:
            _introduce(study, search)
    return _with_sampler(study, search)


def join_study(search: Search, where: Address, name: str) -> "Study":
    """The study of a search that another process has made, for a worker."""
    study = optuna.load_study(storage=open_storage(where), study_name=name)
    return _with_sampler(study, search)


def _with_sampler(study: "Study", search: Search) -> "Study":
    seed = search.config.training.seed
    study.sampler = make_sampler(search.sampler, search.space, seed, partial(rank, study))
    study.pruner = make_pruner(search.pruner, search.config.training.epochs, search.interval)
    return study


def find_study(where: Address, name: str) -> "Study":
    """The study of a name, where there is one; nothing is made.

    Raises:
        InputError: there is none.
        IhgnnError: the storage cannot be reached.
    """
    missing = InputError(
        f"There is no study '{name}' in {where.masked} yet. Search first, without --dashboard."
    )
    if where.path is not None and not where.path.is_file():
        raise missing
    storage = open_storage(where)
    with speaking(where):
        try:
            return optuna.load_study(storage=storage, study_name=name)
        except KeyError:
            raise missing from None


def _introduce(study: "Study", search: Search) -> None:
    """Let a new study begin with the configuration's own values, and say what it is about."""
    defaults = search.space.defaults(search.config)
    if defaults is not None and search.sampler != SamplerName.GRID:
        study.enqueue_trial(defaults, skip_if_exists=True)
    study.set_user_attr(_IDENTITY, search.identity)


def _check_same(study: "Study", search: Search, name: str) -> None:
    deadline = time.monotonic() + _MAKING_SECONDS
    while (found := study.user_attrs.get(_IDENTITY)) is None:
        if time.monotonic() >= deadline:
            if not _is_new(study):
                raise InputError(
                    f"The study '{name}' was not made by ihgnn. Choose another name with --study."
                )
            _introduce(study, search)  # who made it was killed before
        else:
            safe_point()
            time.sleep(0.1)
    changed = difference(found, search.identity)
    if changed is not None:
        raise InputError(
            f"The study '{name}' is another search ({changed}). Choose another name with --study."
        )


def _is_new(study: "Study") -> bool:
    """Whether a study may be one of ihgnn's that nobody has worked on."""
    waiting = (each.state is TrialState.WAITING for each in study.get_trials(deepcopy=False))
    return study.directions == [optuna.study.StudyDirection.MAXIMIZE] and all(waiting)


def slots_now(study: "Study", where: Address, trials: int) -> tuple[Slot, ...]:
    """How far a study is.

    Raises:
        IhgnnError: the storage failed.
    """
    with speaking(where):
        return tuple(asked_for(study.get_trials(deepcopy=False), trials))
