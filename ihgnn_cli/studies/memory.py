"""How many models fit in memory together."""

import math
from dataclasses import replace

import torch

from ihgnn_cli.data.dataset import GraphDataset
from ihgnn_cli.jobs.executor import Executor
from ihgnn_cli.studies.plan import selection_units
from ihgnn_cli.studies.work import Job
from ihgnn_cli.training.config import RunConfig
from ihgnn_cli.training.needs import model_bytes, require_room

# This many models keep a core busy; twice as many are a few per cent faster (measured on MUTAG and
# IMDB-BINARY). A GPU has room for more.
_CPU_STACK, _CUDA_STACK = 15, 64
# Stacks that take more than this are slower per model, because each step has to fetch all of them
# from memory: on DD, where a model takes 0.6 GB or more, a stack of 4 took 1.4 times as long per
# model as one alone. This also limits the memory of a worker.
_CPU_STACK_BYTES = 5 * 2**28
# Share of a worker's remaining memory for models; the rest is for building batches, saving and
# other programs.
_SHARE = 0.5
# Memory of a worker before the first model: Python with torch, and the graphs while they are
# prepared (measured on COLLAB: 29 bytes per pair).
_WORKER, _STORED_PAIR = 350 * 2**20, 32


def stack_size(job: Job, units: int, executor: Executor) -> int:
    """Models per stack: as many as improve throughput, fit in memory and are left per worker."""
    if job.protocol.config.spec.stacked is None:
        return 1  # trained one after the other anyway; each is saved sooner
    each = member_bytes(job)
    most = min(paying(executor.device, each), math.ceil(units / executor.workers))
    if executor.memory is None:
        return most
    room = fitting(executor.memory, executor.device, job.dataset, each)
    return max(1, min(most, room))


def paying(device: torch.device, each: int) -> int:
    """The stack size for models of `each` bytes beyond which throughput does not improve."""
    if device.type == "cuda":
        return _CUDA_STACK
    return max(1, min(_CPU_STACK, _CPU_STACK_BYTES // each))


def fitting(memory: int, device: torch.device, dataset: GraphDataset, each: int) -> int:
    """How many models of `each` bytes fit in a worker's memory; may be 0."""
    left = memory - (0 if device.type == "cuda" else worker_bytes(dataset))
    return int(_SHARE * left) // each


def worker_bytes(dataset: GraphDataset) -> int:
    """Estimated bytes that a CPU worker needs in addition to its models."""
    return int(_WORKER + _STORED_PAIR * (dataset.num_nodes + dataset.neighbor_ptr[-1]))


def member_bytes(job: Job) -> int:
    """Estimated bytes per member of a stack, for the largest configuration of the grid."""
    return max(model_bytes(job.dataset, each) for each in _largest(job))


def require_room_for(job: Job, executor: Executor) -> None:
    """Make sure that a worker can train each configuration of the grid alone.

    Raises:
        NoRoomError: a configuration does not fit.
    """
    memory = executor.memory
    if memory is None:
        return
    if executor.device.type != "cuda":
        # There are never more workers than units.
        units = len(selection_units(job.protocol, job.folds)) or job.final_count
        memory = memory * executor.workers // min(executor.workers, units)
        memory = max(0, memory - worker_bytes(job.dataset))
    fewer = "fewer --workers, " if executor.workers > 1 else ""
    for each in _largest(job):
        require_room(each, job.dataset, executor.device, memory, also=fewer)


def _largest(job: Job) -> list[RunConfig]:
    """For each combination of the grid's other settings, the largest K and batch size."""
    grid = job.protocol.grid
    layers, batch_size = (
        max(getattr(each, key) for each in grid) for key in ("layers", "batch_size")
    )
    distinct = dict.fromkeys(each.others for each in grid)
    return [
        replace(grid[0], layers=layers, batch_size=batch_size, others=others).applied(
            job.protocol.config
        )
        for others in distinct
    ]
