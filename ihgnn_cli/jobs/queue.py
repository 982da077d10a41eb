"""What the engine asks of the work it runs: a job, its units, and the queue that hands them out."""

from collections.abc import Callable
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any, Protocol

from ihgnn_cli.jobs.claims import Claims


@dataclass(frozen=True)
class Step:
    """Progress of the workers; an empty step says that one of them is ready."""

    trained: int = 0
    """Model-epochs that were trained."""
    settled: int = 0
    """Model-epochs that are not left to run: trained, loaded, or skipped by early stopping."""
    dead: int = 0
    """Workers that were killed from outside; their units are run again."""
    halved: int = 0
    """Models of a stack that did not fit in memory and was halved."""

    def __add__(self, other: "Step") -> "Step":
        return Step(*(one + more for one, more in zip(astuple(self), astuple(other), strict=True)))


NOTHING = Step()
Callback = Callable[[Step], None]

Deliver = Callable[[Any], None]
"""Takes the result of a finished part of a unit."""
Tell = Callable[[int, int], None]
"""Takes the numbers of a `Step`: trained and settled."""
Runner = Callable[[Any, Deliver, Tell, Path | None], None]
"""Runs a unit; the path is the folder for checkpoints of unfinished units, if there is one."""


class Unit(Protocol):
    """A piece of work that one worker does at a time."""

    @property
    def name(self) -> str:
        """Unique within the job."""

    def __len__(self) -> int:
        """The number of models in it."""


class Job(Protocol):
    """What every worker needs, sent to each of them once."""

    def runner(self, device: str) -> Runner:
        """Prepare to run units on a device."""


class Queue(Protocol):
    """The units of a job and the store of their results, shared by all processes."""

    @property
    def job(self) -> Job:
        """What the units belong to."""

    @property
    def claims(self) -> Path:
        """The folder that says which process works on which unit."""

    @property
    def partial(self) -> Path:
        """The folder for checkpoints of unfinished units."""

    def take(self, claims: Claims) -> Any | None:
        """Claim a unit that is neither finished nor claimed; `None` if there is none now."""

    def write(self, result: Any) -> None:
        """Store a result."""

    def finished(self) -> bool:
        """Whether every unit has its results."""
