"""A unit of the protocol: one training of one configuration, and what it came to.

Validation and test are kept apart from the start. Whatever chooses works on `Validated`, which
holds nothing of the test graphs; `Tested` is read by what reports, when all choices are made.
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

from ihgnn_cli.studies.grid import Configuration, Setting, configuration, shown, with_plain
from ihgnn_cli.training.stack import Epoch

Score = tuple[Fraction, float]
"""Validation accuracy, exact so that equals are equal, and minus the loss: larger is better."""
_SEED_BYTES = 4  # short enough to be typed: `ihgnn train --seed` trains a unit alone


class Stage(StrEnum):
    """What a training is for."""

    SELECT = "select"
    """One of the competing configurations of a fold."""
    FINAL = "final"
    """A run of the chosen configuration of a fold, the one that is tested."""


@dataclass(frozen=True)
class Unit:
    """Which training."""

    stage: Stage
    fold: int
    split: int
    """Which of the fold's splits into train and validation."""
    configuration: Configuration
    run: int

    @property
    def name(self) -> str:
        """Its name as a file."""
        each = self.configuration
        others = "".join(f"-{key}{_in_name(value)}" for key, value in each.others)
        return (
            f"{self.stage}-fold{self.fold}-split{self.split}-lr{float(each.lr)!r}-batch{each.batch_size}"
            f"-k{each.layers}{others}-run{self.run}"
        )

    def seed(self, seed: int) -> int:
        """Its own seed, which follows from that of the whole."""
        digest = hashlib.sha256(f"{seed} {self.name}".encode()).digest()
        return int.from_bytes(digest[:_SEED_BYTES], "big")


@dataclass(frozen=True)
class Validated:
    """What is known of a finished training without its test graphs."""

    unit: Unit
    seed: int
    split_sha256: str
    epochs: int
    """That were run, up to the one that diverged where one did."""
    diverged: bool
    best: Epoch | None
    """By validation; `None` where not one epoch had a finite loss."""
    validation_graphs: int
    hits: tuple[int, ...]
    """Validation graphs that are right, epoch by epoch."""
    losses: tuple[float, ...]
    """On validation, epoch by epoch, to six digits."""
    seconds: float
    """Its share of the time that its stack took."""
    members: int
    """Of that stack."""
    device: str

    @property
    def score(self) -> "Score":
        """What configurations compete by."""
        if self.best is None:
            return Fraction(0), -math.inf
        hits = self.hits[self.best.epoch - 1]
        return Fraction(hits, self.validation_graphs), -self.best.validation_loss


@dataclass(frozen=True)
class Tested:
    """What a training is worth on the test graphs of its fold; nothing chooses by it."""

    graphs: int
    accuracy: float | None = None
    """At the best epoch by validation, looked at once; of final runs."""
    predictions: tuple[int, ...] = ()
    """The class of each test graph, by position in the data set's classes; of final runs."""
    hits: tuple[int, ...] = ()
    """Test graphs that are right, epoch by epoch, for the rules of the literature (`--rules`)."""


@dataclass(frozen=True)
class Record:
    """A finished unit, as its file holds it: one line of JSON."""

    validated: Validated
    tested: Tested | None

    @property
    def has_curve(self) -> bool:
        """Whether the test accuracy of every epoch is there.

        A training that diverged in its first epoch has none, recorded or not.
        """
        hits = () if self.tested is None else self.tested.hits
        return len(hits) == len(self.validated.hits)

    def line(self) -> str:
        """The file's content."""
        plain = asdict(self.validated)
        plain["unit"] = with_plain(plain["unit"])
        tested = None if self.tested is None else asdict(self.tested)
        return json.dumps({**plain, "test": tested}, separators=(",", ":")) + "\n"


def parsed(line: str) -> Record:
    """The record in a line.

    Raises:
        ValueError, KeyError, TypeError, RecursionError: it is none.
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
        ),
        "best": None if plain["best"] is None else Epoch(**plain["best"]),
        "hits": tuple(plain["hits"]),
        "losses": tuple(plain["losses"]),
    }
    best = values["best"]
    if plain["validation_graphs"] < 1 or (best and not 1 <= best.epoch <= len(plain["hits"])):
        raise ValueError("the best epoch is none of the curve")
    test = plain["test"]
    tested = None
    if test is not None:
        lists = {key: tuple(test[key]) for key in ("predictions", "hits")}
        tested = Tested(**{**test, **lists})
    return Record(Validated(**values), tested)


def _in_name(value: Setting) -> str:
    """A setting's value, numbers with all digits, with no character that a file may not have."""
    text = repr(value) if isinstance(value, float) else shown(value)
    return re.sub(r"[^\w.+-]", "_", text)
