"""Which trainings are trained together as one stack, and how large stacks are.

Trainings with the same K, batch size and other shape settings can share a stack. Stacks follow from
the request and from sizes that are fixed when a job starts, never from what is left to do: in
single precision a model's rounding depends on the other models in its stack, and an interrupted job
must end with the same numbers.
"""

import hashlib
import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import torch

from ihgnn_cli.data.dataset import GraphDataset
from ihgnn_cli.studies.crossval.protocol import COMMON, Configuration, Protocol, Training
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
_DIGEST = 8  # hexadecimal digits that distinguish shapes in names


@dataclass(frozen=True)
class Stack:
    """Trainings that are trained together."""

    name: str
    """Unique within the job."""
    trainings: tuple[Training, ...]

    def __len__(self) -> int:
        return len(self.trainings)


@dataclass(frozen=True)
class Sizes:
    """What the sizes of all stacks of a job follow from; stored in its folder."""

    most: int
    """The largest stack that improves throughput and fits in memory."""
    workers: int = 1
    """Every stage is divided among so many workers if it has enough trainings."""

    def of(self, trainings: int) -> int:
        """The size of stacks in a stage with this many trainings."""
        return max(1, min(self.most, math.ceil(trainings / self.workers)))


def stacks(trainings: Iterable[Training], size: int, *, fold_by_fold: bool) -> list[Stack]:
    """Divide trainings into stacks of nearly equal size, at most `size`, most expensive first.

    So that all workers finish at about the same time.

    Args:
        trainings: those of one stage.
        size: the maximum size.
        fold_by_fold: whether only trainings of the same fold share a stack.
    """

    def shape(each: Training) -> tuple[Any, ...]:
        made = each.configuration
        others = ",".join(f"{key} {value}" for key, value in made.others)
        fold = each.fold if fold_by_fold else -1
        return -made["layers"], made["batch_size"], others, fold

    def neighbors(each: Training) -> tuple[object, ...]:
        # Adam updates neighbours with the same learning rate together.
        return *shape(each), each.configuration["lr"], each.fold, each.split, each.run

    found = []
    for (layers, batch_size, others, fold), group in groupby(
        sorted(trainings, key=neighbors), shape
    ):
        members = list(group)
        count = math.ceil(len(members) / size)
        first = members[0]
        name = f"{first.stage}-k{-layers}-batch{batch_size}"
        name += f"-{hashlib.sha256(others.encode()).hexdigest()[:_DIGEST]}" if others else ""
        name += "" if first.epochs is None else f"-epochs{first.epochs}"
        name += f"-fold{fold}" if fold_by_fold else ""
        for number in range(count):
            part = slice(*(len(members) * at // count for at in (number, number + 1)))
            found.append(Stack(f"{name}-{number}", tuple(members[part])))
    # The cost of an epoch grows with the number of layers and little with smaller batches.
    return sorted(
        found, key=lambda each: -len(each) * (each.trainings[0].configuration["layers"] + 1)
    )


def largest_stack(
    protocol: Protocol, dataset: GraphDataset, device: torch.device, memory: int | None
) -> int:
    """Models per stack: as many as improve throughput and fit in a worker's memory."""
    if protocol.config.spec.stacked is None:
        return 1  # trained one after the other anyway; each is saved sooner
    each = member_bytes(protocol, dataset)
    most = paying(device, each)
    return most if memory is None else max(1, min(most, fitting(memory, device, dataset, each)))


def member_bytes(protocol: Protocol, dataset: GraphDataset) -> int:
    """Estimated bytes of a model, for the largest configuration of the grid."""
    return max(model_bytes(dataset, each) for each in _largest(protocol))


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


def require_room_for(
    protocol: Protocol,
    dataset: GraphDataset,
    trainings: int,
    *,
    device: torch.device,
    memory: int | None,
    workers: int,
) -> None:
    """Make sure that a worker can train each configuration of the grid alone.

    Args:
        protocol: the protocol.
        dataset: the graphs.
        trainings: the number of trainings of the largest stage.
        device: that of the workers.
        memory: bytes that each worker may use; `None` if unknown.
        workers: their number.

    Raises:
        NoRoomError: a configuration does not fit.
    """
    if memory is None:
        return
    if device.type != "cuda":
        memory = memory * workers // min(workers, trainings)  # no worker has nothing to do
        memory = max(0, memory - worker_bytes(dataset))
    fewer = "fewer --workers, " if workers > 1 else ""
    for each in _largest(protocol):
        require_room(each, dataset, device, memory, also=fewer)


def _largest(protocol: Protocol) -> list[RunConfig]:
    """For each combination of the grid's other settings, the largest K and batch size."""
    first = protocol.grid[0]
    most = {name: max(each[name] for each in protocol.grid) for name in COMMON[1:]}
    common = {"lr": first["lr"], **most}
    distinct = dict.fromkeys(each.others for each in protocol.grid)
    return [
        Configuration((*common.items(), *others)).applied(protocol.config) for others in distinct
    ]
