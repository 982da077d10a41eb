"""Reading and checking the data set that a configuration names."""

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ihgnn_cli.data.access import DEFAULT, Access
from ihgnn_cli.data.dataset import GraphDataset
from ihgnn_cli.data.edge_labels import with_edge_labels
from ihgnn_cli.data.features import note_unread, resolved_features, unread
from ihgnn_cli.data.sources import locate, read
from ihgnn_cli.errors import InputError
from ihgnn_cli.models.node_inputs import fit_columns, model_features, with_columns
from ihgnn_cli.training.config import RunConfig

if TYPE_CHECKING:  # data is read, and may be refused, before torch is imported
    import torch

    from ihgnn_cli.data.batching.batches import GraphStore


def load_data(
    config: RunConfig,
    where: Access = DEFAULT,
    *,
    dataset: GraphDataset | None = None,
) -> tuple[RunConfig, GraphDataset]:
    """Load the data set; the returned configuration names it so that any folder can use it.

    Args:
        config: names the data set.
        where: where that may come from.
        dataset: used instead of that name; the graphs may have no name.

    Raises:
        InputError: the data is not available, or lacks the requested features.
    """
    if dataset is None:
        given = config.data.dataset
        if not given:
            raise InputError(
                "The graphs of this run were made by a Python program and are not stored with it. "
                "Start a new run there."
            )
        dataset = read(locate(given, where), where.progress)
    features = resolved_features(dataset, config.data.features)
    binned = config.data.edge_bins > 0
    note_unread(unread(dataset, features, edge_labels=config.data.edge_labels, edge_bins=binned))
    dataset = with_edge_labels(
        dataset,
        use=config.data.edge_labels,
        background=config.data.background_edge_label,
        bins=config.data.edge_bins,
    )
    bins = dataset.edge_bins
    if len(np.unique(dataset.graph_class)) < 2:
        raise InputError(
            f"All graphs of {dataset.name} have the same class, so there is nothing to learn. "
            "Give data with two classes or more."
        )
    data = replace(
        config.data,
        dataset=dataset.source,
        features=features,
        edge_labels=dataset.uses_edge_labels if bins is None else bins.labels,
        background_edge_label=dataset.background_edge_label,
        edge_bins=0 if bins is None else config.data.edge_bins or bins.count,
    )
    return replace(config, data=data), dataset


def store_for(
    config: RunConfig, dataset: GraphDataset, max_nodes: int, device: "torch.device"
) -> "GraphStore":
    """The graphs in the form that the configured model takes."""
    from ihgnn_cli.data.batching.batches import GraphStore

    rounds = config.spec.rounds(config.model)
    features = resolved_features(dataset, config.data.features)
    columns = fit_columns(dataset, config.data.inputs, features)
    extended = with_columns(dataset, features, columns)
    return GraphStore(extended, model_features(features, columns), max_nodes, rounds, device)
