"""Builds the input arrays of exported models in both layouts; needs no torch."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ihgnn_cli.data.dataset import GraphDataset, ranges
from ihgnn_cli.models.card import ModelCard
from ihgnn_cli.models.spec import Layout

PADDING = -1
"""Marks padding in `node_labels` of the padded layout."""
UNKNOWN_LABEL = -2
"""Marks a label that the model does not know in `node_labels`."""

Arrays = dict[str, NDArray[Any]]


def inputs_for(
    layout: Layout,
    card: ModelCard,
    dataset: GraphDataset,
    graphs: NDArray[np.int64],
    *,
    size: int | None = None,
) -> Arrays:
    """The inputs for graphs of an encoded data set; `size` is the fixed size, if any."""
    if layout == Layout.SPARSE:
        return sparse_inputs(card, dataset, graphs)
    return padded_inputs(card, dataset, graphs, size)


def padded_inputs(
    card: ModelCard,
    dataset: GraphDataset,
    graphs: NDArray[np.int64],
    size: int | None = None,
) -> Arrays:
    """The inputs for graphs of an encoded data set, padded to a size.

    The default size is that of the largest graph.
    """
    sparse = sparse_inputs(card, dataset, graphs)
    ptr, edges = sparse["ptr"], sparse["edge_index"]
    sizes = np.diff(ptr)
    shape = len(graphs), int(sizes.max(initial=1)) if size is None else size
    graph = np.repeat(np.arange(len(graphs)), sizes)
    place = np.arange(ptr[-1]) - np.repeat(ptr[:-1], sizes)
    inputs: Arrays = {
        "node_labels": np.full(shape, PADDING, dtype=np.int64),
        "adjacency": np.zeros((*shape, shape[1]), dtype=np.uint8),
    }
    inputs["node_labels"][graph, place] = sparse["node_labels"]
    kind = sparse["edge_labels"] + 1 if "edge_labels" in sparse else 1
    inputs["adjacency"][graph[edges[0]], place[edges[0]], place[edges[1]]] = kind
    if "attributes" in sparse:
        inputs["attributes"] = np.zeros((*shape, card.attributes), dtype=np.float32)
        inputs["attributes"][graph, place] = sparse["attributes"]
    return inputs


def sparse_inputs(card: ModelCard, dataset: GraphDataset, graphs: NDArray[np.int64]) -> Arrays:
    """The inputs for graphs of an encoded data set, without padding."""
    nodes, ptr = ranges(dataset.node_ptr, graphs)
    edges, edge_ptr = ranges(dataset.edge_ptr, graphs)
    label = dataset.node_label[nodes].astype(np.int64)
    known = (label >= 0) & (label < card.inputs.labels)
    source = np.repeat(np.arange(len(nodes)), dataset.degree[nodes])
    moved = np.repeat(ptr[:-1] - dataset.node_ptr[graphs], np.diff(edge_ptr))
    inputs: Arrays = {
        "node_labels": np.where(known, label, UNKNOWN_LABEL),
        "edge_index": np.stack([source, dataset.neighbors[edges] + moved]),
        "ptr": ptr,
    }
    if card.attributes:
        if dataset.node_attributes is None:
            raise ValueError("the data set has no node attributes")
        inputs["attributes"] = dataset.node_attributes[nodes]
    if card.edge_label_values:
        if dataset.edge_type is None:
            raise ValueError("the data set has no edge labels")
        inputs["edge_labels"] = dataset.edge_type[edges].astype(np.int64)
    return inputs
