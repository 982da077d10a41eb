"""The results of a finished training, stored as one line of JSON.

Validation and test results are kept apart from the start. Selection uses `Validated`, which holds
nothing about the test graphs; only reports read `Tested`, after all choices are made.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

from ihgnn_cli.jsonable import jsonable
from ihgnn_cli.studies.crossval.protocol import Stage, Training, configuration
from ihgnn_cli.training.epoch import Epoch

Score = tuple[Fraction, float]
"""Validation accuracy, exact so that ties are recognised, and minus the loss: larger is better."""


@dataclass(frozen=True)
class Validated:
    """The results of a finished training, without test results."""

    training: Training
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

    @property
    def score(self) -> Score:
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
    """[graphs, classes] to six digits, the mean over snapshots if there are any; final runs only"""


@dataclass(frozen=True)
class Record:
    """A finished training."""

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
        """The record as a line of a file."""
        plain = asdict(self.validated)
        of = self.validated.training
        unit = {**plain.pop("training"), "configuration": of.configuration.as_plain()}
        if of.epochs is None:
            del unit["epochs"]
        tested = None if self.tested is None else asdict(self.tested)
        content = jsonable({"unit": unit, **plain, "test": tested})
        return json.dumps(content, separators=(",", ":")) + "\n"


def parsed(line: str) -> Record:
    """Parse the line of a record.

    Raises:
        ValueError, KeyError, TypeError, RecursionError: the line is not a record.
    """
    plain: dict[str, Any] = dict(json.loads(line))
    unit, test, best = plain.pop("unit"), plain.pop("test"), plain.pop("best")
    training = Training(
        Stage(unit["stage"]),
        unit["fold"],
        unit["split"],
        configuration(unit["configuration"]),
        unit["run"],
        unit.get("epochs"),
    )
    lists: dict[str, Any] = {name: tuple(plain.pop(name)) for name in ("hits", "losses")}
    validated = Validated(
        training=training, best=None if best is None else _epoch(best), **lists, **plain
    )
    curve, graphs = len(validated.hits), validated.validation_graphs
    if curve if graphs < 1 else validated.best and not 1 <= validated.best.epoch <= curve:
        raise ValueError("the best epoch is not in the curve")
    if test is None:
        return Record(validated, None)
    lists = {name: tuple(test.pop(name)) for name in ("predictions", "hits")}
    likely = tuple(map(tuple, test.pop("probabilities")))
    return Record(validated, Tested(**test, **lists, probabilities=likely))


def _epoch(plain: Mapping[str, Any]) -> Epoch:
    """An epoch; without validation graphs, its validation results are null in the file."""
    values: dict[str, Any] = {k: math.nan if v is None else v for k, v in dict(plain).items()}
    return Epoch(**values)
