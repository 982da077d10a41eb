"""The data that a configuration names, read and checked."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from ihgnn_cli.data.batching import GraphStore
from ihgnn_cli.data.dataset import GraphDataset
from ihgnn_cli.data.features import Features
from ihgnn_cli.data.sources import Origin, locate, read
from ihgnn_cli.errors import InputError
from ihgnn_cli.progress import NO_PROGRESS, Progress
from ihgnn_cli.training.config import RunConfig


def load_data(
    config: RunConfig,
    *,
    data_root: Path | None = None,
    offline: bool = False,
    progress: Progress = NO_PROGRESS,
) -> tuple[RunConfig, GraphDataset]:
    """The data set, and the configuration with a path or name of it that holds in any folder.

    Raises:
        InputError: the data is not to be had, or has not the features that are asked for.
    """
    source = locate(config.data.dataset, data_root=data_root, offline=offline, progress=progress)
    dataset = read(source, progress)
    if config.data.features != Features.LABELS and dataset.node_attributes is None:
        raise InputError(f"{dataset.name} has no node attributes. Use --features labels.")
    if len(np.unique(dataset.graph_class)) < 2:
        raise InputError(
            f"All graphs of {dataset.name} have the same class, and there is nothing to learn. "
            "Give data with two classes or more."
        )
    given = config.data.dataset
    if source.origin == Origin.PATH:
        given = str(source.path)
    elif source.origin == Origin.SYNTHETIC:  # fields in one order: the same data is the same run
        given = source.name
    return replace(config, data=replace(config.data, dataset=given)), dataset


def store_for(
    config: RunConfig, dataset: GraphDataset, max_nodes: int, device: torch.device
) -> GraphStore:
    """The graphs as the model of a configuration takes them."""
    rounds = config.spec.rounds(config.model)
    return GraphStore(dataset, config.data.features, max_nodes, rounds, device)
