"""A unit of the protocol: one training of one configuration, and its results.

Validation and test results are kept apart from the start. Selection uses `Validated`, which holds
nothing about the test graphs; only reports read `Tested`, after all choices are made.
"""

import hashlib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Any

from ihgnn_cli.jsonable import jsonable
from ihgnn_cli.studies.grid import Configuration, Setting, configuration, shown, with_plain
from ihgnn_cli.training.epoch import Epoch

Score = tuple[Fraction, float]
"""Validation accuracy, exact so that ties are recognised, and minus the loss: larger is better."""
_SEED_BYTES = 4  # short enough to be typed: `ihgnn train --seed` trains a unit alone


class Stage(StrEnum):
    """The purpose of a training."""

    SELECT = "select"
    """One of the candidate configurations of a fold."""
    FINAL = "final"
    """A run of a fold's chosen configuration, which is tested."""


@dataclass(frozen=True)
class Unit:
    """Identifies a training."""

    stage: Stage
    fold: int
    split: int
    """Index of the fold's split into train and validation."""
    configuration: Configuration
    run: int
    epochs: int | None = None
    """Epochs of an early rung of a race; `None`: those of the protocol."""

    @property
    def name(self) -> str:
        """The file name without its suffix."""
        return self._training if self.epochs is None else f"{self._training}-epochs{self.epochs}"

    @property
    def _training(self) -> str:
        each = self.configuration
        others = "".join(f"-{key}{_in_name(value)}" for key, value in each.others)
        return (
            f"{self.stage}-fold{self.fold}-split{self.split}-lr{float(each.lr)!r}-batch{each.batch_size}"
            f"-k{each.layers}{others}-run{self.run}"
        )

    def seed(self, seed: int) -> int:
        """The unit's seed, derived from the seed of the job; the same in all rungs of a race."""
        digest = hashlib.sha256(f"{seed} {self._training}".encode()).digest()
        return int.from_bytes(digest[:_SEED_BYTES], "big")


@dataclass(frozen=True)
class Validated:
    """The results of a finished training, without test results."""

    unit: Unit
    seed: int
    split_sha256: str
    epochs: int
    """Number of epochs run, including one that diverged."""
    diverged: bool
    best: Epoch | None
    """The best epoch by validation; `None` if no epoch had a finite loss."""
    validation_graphs: int
    hits: tuple[int, ...]
    """Correctly classified validation graphs, per epoch."""
    losses: tuple[float, ...]
    """Validation loss per epoch, to six digits."""
    seconds: float
    """Its share of its stack's training time."""
    members: int
    """Number of models in that stack."""
    device: str
    probabilities: tuple[tuple[float, ...], ...] = ()
    """[validation_graphs, classes] like those of `Tested`, to calibrate prediction sets; final runs
    only, and not of older versions."""

    @property
    def score(self) -> "Score":
        """The score that configurations are compared by."""
        if self.best is None:
            return Fraction(0), -math.inf
        hits = self.hits[self.best.epoch - 1]
        return Fraction(hits, self.validation_graphs), -self.best.validation_loss


@dataclass(frozen=True)
class Tested:
    """The test results of a training; no choice depends on them."""

    graphs: int
    accuracy: float | None = None
    """At the best epoch by validation, evaluated once; final runs only."""
    predictions: tuple[int, ...] = ()
    """The class of each test graph, as an index into the data set's classes; final runs only."""
    hits: tuple[int, ...] = ()
    """Correctly classified test graphs per epoch, for rules from the literature (`--rules`)."""
    probabilities: tuple[tuple[float, ...], ...] = ()
    """[graphs, classes] to six digits, the mean over snapshots if there are any; final runs only,
    and not of older versions."""


@dataclass(frozen=True)
class Record:
    """A finished unit, stored as one line of JSON."""

    validated: Validated
    tested: Tested | None

    @property
    def has_curve(self) -> bool:
        """Whether the test accuracy of every epoch is recorded.

        True for a training that diverged in its first epoch, which has none to record.
        """
        hits = () if self.tested is None else self.tested.hits
        return len(hits) == len(self.validated.hits)

    def line(self) -> str:
        """The content of the file."""
        plain = asdict(self.validated)
        plain["unit"] = with_plain(plain["unit"])
        if plain["unit"]["epochs"] is None:  # as files of earlier versions
            del plain["unit"]["epochs"]
        if not plain["probabilities"]:  # likewise
            del plain["probabilities"]
        tested = None if self.tested is None else asdict(self.tested)
        if tested is not None and not tested["probabilities"]:  # as files of earlier versions
            del tested["probabilities"]
        return json.dumps(jsonable({**plain, "test": tested}), separators=(",", ":")) + "\n"


def parsed(line: str) -> Record:
    """Parse the line of a record.

    Raises:
        ValueError, KeyError, TypeError, RecursionError: the line is not a record.
    """
    plain: Mapping[str, Any] = dict(json.loads(line))
    values = {key: value for key, value in plain.items() if key != "test"}
    unit = plain["unit"]
    values |= {
        "unit": Unit(
            Stage(unit["stage"]),
            unit["fold"],
            unit["split"],
            configuration(unit["configuration"]),
            unit["run"],
            unit.get("epochs"),
        ),
        "best": None if plain["best"] is None else _epoch(plain["best"]),
        "hits": tuple(plain["hits"]),
        "losses": tuple(plain["losses"]),
        "probabilities": tuple(map(tuple, plain.get("probabilities", ()))),
    }
    best, curve = values["best"], len(plain["hits"])
    unvalidated = plain["validation_graphs"] < 1
    if (unvalidated and curve) or (not unvalidated and best and not 1 <= best.epoch <= curve):
        raise ValueError("the best epoch is not in the curve")
    test = plain["test"]
    tested = None
    if test is not None:
        lists = {key: tuple(test[key]) for key in ("predictions", "hits")}
        likely = tuple(map(tuple, test.get("probabilities", ())))
        tested = Tested(**{**test, **lists, "probabilities": likely})
    return Record(Validated(**values), tested)


def _epoch(plain: Mapping[str, Any]) -> Epoch:
    """An epoch; without validation graphs, its validation results are null in the file."""
    values: dict[str, Any] = {k: math.nan if v is None else v for k, v in dict(plain).items()}
    return Epoch(**values)


def _in_name(value: Setting) -> str:
    """A setting's value, with all digits, without characters that file names cannot have."""
    text = repr(value) if isinstance(value, float) else shown(value)
    return re.sub(r"[^\w.+-]", "_", text)
