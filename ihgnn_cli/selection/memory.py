"""How many models fit into memory together."""

import math

import numpy as np

from ihgnn_cli.models.card import inputs_of
from ihgnn_cli.models.settings import IHGNNSettings, Inputs, Variant
from ihgnn_cli.selection.executor import Executor
from ihgnn_cli.selection.work import Job

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
    on_gpu = executor.device.type == "cuda"
    most = min(_CUDA_STACK if on_gpu else _CPU_STACK, math.ceil(units / executor.workers))
    if executor.memory is None:
        return most
    left = executor.memory - (0 if on_gpu else worker_bytes(job))
    return max(1, min(most, int(_SHARE * left) // member_bytes(job)))


def worker_bytes(job: Job) -> int:
    """About what a worker on a CPU takes beside its models."""
    return int(_WORKER + _STORED_PAIR * (job.dataset.num_nodes + job.dataset.neighbor_ptr[-1]))


def member_bytes(job: Job) -> int:
    """About what a member of a stack takes, for the largest configuration of the grid."""
    dataset, config = job.dataset, job.protocol.config
    layers = max(each.layers for each in job.protocol.grid)
    batch_size = max(each.batch_size for each in job.protocol.grid)
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
