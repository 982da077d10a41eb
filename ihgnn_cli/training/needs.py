"""Estimate of the memory that a training needs, made before it starts."""

import math
from dataclasses import replace

import numpy as np
import torch

from ihgnn_cli.data.batching.batches import GraphStore, Positions
from ihgnn_cli.data.dataset import GraphDataset
from ihgnn_cli.errors import IhgnnError
from ihgnn_cli.models.autograd import PAIRS_AT_ONCE
from ihgnn_cli.models.card import inputs_of
from ihgnn_cli.models.factory import shapes
from ihgnn_cli.models.settings import Inputs
from ihgnn_cli.models.spec import Load
from ihgnn_cli.training.config import RunConfig
from ihgnn_cli.training.memory import free_memory
from ihgnn_cli.words import file_size

# Value, gradient, two moments, and two more copies: the best epoch's and one being saved.
_COPIES = 6
_FLOAT = 4


class NoRoomError(IhgnnError):
    """A training needs more memory than is available.

    Attributes:
        needed: the estimated number of bytes.
    """

    def __init__(self, message: str, needed: int) -> None:
        super().__init__(message)
        self.needed = needed


def require_room(
    config: RunConfig,
    dataset: GraphDataset,
    device: torch.device,
    memory: int | None = None,
    *,
    ensemble: int | None = None,
    also: str = "",
) -> None:
    """Make sure that a training step fits in memory, according to the estimate.

    Args:
        config: the training's configuration.
        dataset: the graphs to train on.
        device: the device to train on.
        memory: bytes that the training may use; default: the free memory.
        ensemble: number of models that are trained together and whose snapshots are kept;
            default: one model, without snapshots.
        also: another remedy for the message, followed by a comma.

    Raises:
        NoRoomError: the step does not fit.
    """
    free = free_memory(device) if memory is None else memory
    needed = model_bytes(dataset, config)
    if ensemble is not None and config.training.members > 1:
        needed = ensemble * (needed + _snapshot_bytes(dataset, config))
        also = f"a smaller --ensemble, fewer --snapshots, {also}"
    if needed <= free:
        return
    spec = config.spec
    raise NoRoomError(
        f"{spec.title} does not fit in memory: on {dataset.name} (up to {dataset.max_nodes:,} "
        f"nodes per graph, batches of {config.training.batch_size}) it takes about "
        f"{file_size(needed)}, and {file_size(free)} are free. Use a smaller --width, "
        f"{'' if spec.by_size else 'a smaller --batch-size, '}{also}data without its largest "
        "graphs, or a machine with more memory.",
        needed,
    )


def model_bytes(dataset: GraphDataset, config: RunConfig) -> int:
    """Estimated bytes that a model of this configuration needs in training."""
    inputs = inputs_of(dataset, config.data.features, config.data.inputs)
    parameters = parameter_count(config, inputs)
    loads = _loads(dataset, config)
    kept = max(config.spec.numbers(config.model, load) for load in loads)
    if config.spec.stacked is None:  # these models keep the features as a matrix
        kept += max(map(config.spec.feature_rows, loads)) * inputs.features
    sizes = zip(np.diff(dataset.node_ptr).tolist(), np.diff(dataset.edge_ptr).tolist(), strict=True)
    kept += sum(
        config.spec.derived(config.model, Load(1, nodes, edges, nodes, nodes**2))
        for nodes, edges in sizes
    )
    return int(_FLOAT * (_COPIES * parameters + kept))


def step_elements(config: RunConfig, store: GraphStore, train: Positions) -> int:
    """Approximate size of the largest operations of a training step."""
    batch = min(config.training.batch_size, len(train))
    return int(float(store.cost(train).mean()) * batch * config.model.width)


def _snapshot_bytes(dataset: GraphDataset, config: RunConfig) -> int:
    """Bytes for joining the snapshots of one model at the end: each is in memory twice."""
    inputs = inputs_of(dataset, config.data.features, config.data.inputs)
    return 2 * _FLOAT * config.training.snapshots * parameter_count(config, inputs)


def parameter_count(config: RunConfig, inputs: Inputs) -> int:
    """The number of parameters of one model."""
    return shapes(config.spec, config.model, inputs)[1]


def _loads(dataset: GraphDataset, config: RunConfig) -> list[Load]:
    """Candidates for the largest amount of data in memory at a time."""
    nodes, edges = np.diff(dataset.node_ptr), np.diff(dataset.edge_ptr)
    batch, largest = min(config.training.batch_size, len(dataset)), int(nodes.max())
    squares = float((nodes.astype(np.float64) ** 2).mean())
    average = Load(
        graphs=batch,
        nodes=int(batch * nodes.mean()),
        edges=int(batch * edges.mean()),
        largest=math.ceil(nodes.mean()),
        pairs=int(batch * squares),
        edge_types=dataset.edge_types,
    )
    alone = Load(1, largest, int(edges.max()), largest, largest**2)
    if config.spec.by_size:
        return [alone, _scaled(average, min(1.0, PAIRS_AT_ONCE / max(1, average.pairs)))]
    # A batch of average graphs plus the largest graph.
    return [
        Load(
            graphs=batch + 1,
            nodes=average.nodes + alone.nodes,
            edges=average.edges + alone.edges,
            largest=largest,
            pairs=average.pairs + alone.pairs,
            edge_types=dataset.edge_types,
        )
    ]


def _scaled(load: Load, share: float) -> Load:
    return replace(
        load,
        graphs=math.ceil(load.graphs * share),
        nodes=math.ceil(load.nodes * share),
        edges=math.ceil(load.edges * share),
        pairs=math.ceil(load.pairs * share),
    )
