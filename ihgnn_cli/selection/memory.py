"""How many models fit into memory together."""

import math
from dataclasses import replace

import numpy as np
import torch

from ihgnn_cli.data.dataset import GraphDataset
from ihgnn_cli.models.card import inputs_of
from ihgnn_cli.models.settings import IHGNNSettings, Inputs, Variant
from ihgnn_cli.selection.executor import Executor
from ihgnn_cli.selection.work import Job
from ihgnn_cli.training.config import RunConfig

# A core is busy with this many models at a time; twice as many gain a few per cent (measured on
# MUTAG and IMDB-BINARY). A GPU has room for more.
_CPU_STACK, _CUDA_STACK = 15, 64
# Of what a worker has left; the rest is for batches being built, saving, and for others.
_SHARE = 0.5
# Value, gradient, two moments, and twice the value again: the best epoch's, and one being saved.
_COPIES = 6
# Numbers kept for the backward pass, a unit of width: by row of a layer, by node of the readout.
_PER_ROW, _PER_NODE = 6, 3
_FLOAT, _PAIR = 4, 24
"""Bytes of a number, and of an adjacent pair of rows in a batch."""
# What a worker takes before the first model: Python with torch, and the graphs while they are made
# ready (measured on COLLAB: 29 bytes a pair).
_WORKER, _STORED_PAIR = 350 * 2**20, 32


def stack_size(job: Job, units: int, executor: Executor) -> int:
    """The models that one of the workers trains together: as many as pay, fit and are there."""
    most = min(paying(executor.device), math.ceil(units / executor.workers))
    if executor.memory is None:
        return most
    room = fitting(executor.memory, executor.device, job.dataset, member_bytes(job))
    return max(1, min(most, room))


def paying(device: torch.device) -> int:
    """The models together that keep a device busy; more of them gain next to nothing."""
    return _CUDA_STACK if device.type == "cuda" else _CPU_STACK


def fitting(memory: int, device: torch.device, dataset: GraphDataset, each: int) -> int:
    """How many models of so many bytes fit together into a worker's memory, perhaps none."""
    left = memory - (0 if device.type == "cuda" else worker_bytes(dataset))
    return int(_SHARE * left) // each


def worker_bytes(dataset: GraphDataset) -> int:
    """About what a worker on a CPU takes beside its models."""
    return int(_WORKER + _STORED_PAIR * (dataset.num_nodes + dataset.neighbor_ptr[-1]))


def member_bytes(job: Job) -> int:
    """About what a member of a stack takes, for the largest configuration of the grid."""
    config = job.protocol.config
    layers = max(each.layers for each in job.protocol.grid)
    batch_size = max(each.batch_size for each in job.protocol.grid)
    largest = replace(
        config,
        model=replace(config.model, layers=layers),
        training=replace(config.training, batch_size=batch_size),
    )
    return model_bytes(job.dataset, largest)


def model_bytes(dataset: GraphDataset, config: RunConfig) -> int:
    """About what a model of this configuration takes in training."""
    layers, batch_size = config.model.layers, config.training.batch_size
    parameters = parameter_count(config.model, inputs_of(dataset, config.data.features), layers)
    nodes = np.diff(dataset.node_ptr)
    pairs = np.diff(dataset.neighbor_ptr[dataset.node_ptr])
    # A batch of average graphs, and the largest graph besides.
    rows = batch_size * float(nodes.mean()) + float(nodes.max())
    edges = batch_size * float(pairs.mean()) + float(pairs.max())
    kept = rows * config.model.width * ((layers + 1) * _PER_ROW + _PER_NODE)
    return int(_FLOAT * (_COPIES * parameters + kept) + _PAIR * edges)


def parameter_count(settings: IHGNNSettings, inputs: Inputs, layers: int) -> int:
    """The parameters of one model, to within a few vectors."""
    width, hidden = settings.width, settings.hidden
    seen = {Variant.NO_INTEGRATION: 2, Variant.NO_SEPARATION: 1}.get(settings.variant, 3)
    blocks = layers * (seen * width + width) * width
    read = width * (layers + 1 if settings.variant is Variant.NO_ADAPTIVE else 1)
    read *= 1 if settings.variant is Variant.NO_CONCAT else inputs.max_nodes
    first = (inputs.labels + inputs.attributes + width) * width
    return first + blocks + (read + inputs.classes) * hidden
