"""Progress of workers."""

from collections.abc import Callable
from dataclasses import astuple, dataclass


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
