"""The workers of a job, on this machine or on a cluster."""

from collections.abc import Callable
from dataclasses import dataclass

import torch

from ihgnn_cli.jobs.queue import Callback, Queue


@dataclass(frozen=True)
class Executor:
    """Workers, on this machine or on a cluster."""

    workers: int
    device: torch.device
    """The device of the workers, or of the first of them."""
    memory: int | None
    """Bytes that each worker may use; `None` if unknown."""
    run: Callable[[Queue, Callback], None]
    """Runs every unit of a queue and reports progress; raises an IhgnnError if it cannot."""
