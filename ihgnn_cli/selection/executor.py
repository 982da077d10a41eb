"""Who does the work of a job, as the job sees them."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

from ihgnn_cli.selection.work import Job


@dataclass(frozen=True)
class Step:
    """What an executor tells of its work; an empty one says that somebody is ready."""

    trained: int = 0
    """Model-epochs that were trained."""
    settled: int = 0
    """Model-epochs that need not be run any more: trained, taken over, or cut short."""
    dead: int = 0
    """Workers that were killed from outside; their work is done again."""


NOTHING = Step()
Watch = Callable[[Step], None]


@dataclass(frozen=True)
class Executor:
    """Workers, wherever they are."""

    workers: int
    device: torch.device
    """That the workers have, or the first of them."""
    memory: int | None
    """Bytes that a worker may take; `None` where that is not known."""
    run: Callable[[Job, Path, int, Watch], None]
    """Brings every unit of a job's folder to its end: job, folder, size of stacks, whom to tell.

    Raises an IhgnnError where it cannot.
    """
