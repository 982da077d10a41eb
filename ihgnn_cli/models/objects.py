"""Converts Python graph objects to the form that a trained model reads."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ihgnn_cli.data.dataset import LabelSource, Value
from ihgnn_cli.data.features import Features
from ihgnn_cli.data.json_graph import GraphError
from ihgnn_cli.data.objects import is_pyg, plain_entry
from ihgnn_cli.models.card import ModelCard


def entry_for(graph: object, card: ModelCard) -> Mapping[str, Any]:
    """A graph (see `data.objects.from_graphs`) as a JSON lines entry.

    The columns of torch-geometric's `x` mean the same as in training: attributes first, if the
    model reads them, then labels. If there are as many one-hot columns as the model has labels,
    they stand for these labels in order; otherwise they stand for the labels 0, 1, ... A row
    without a one is an unknown label. The same holds for `edge_attr` and edge labels; the first
    column is the edge attribute, if the model reads it.

    Raises:
        GraphError: this is not a graph, or `x` is not of the kind that the model was trained with.
    """
    if isinstance(graph, Mapping) or not is_pyg(graph):
        return plain_entry(graph)
    nodes = int(graph.num_nodes)  # type: ignore[attr-defined]
    if graph.edge_index is None:  # type: ignore[attr-defined]
        raise GraphError("no edge_index.", "Give it one of shape [2, E].")
    edges = np.asarray(graph.edge_index.detach().cpu())  # type: ignore[attr-defined]
    if edges.ndim != 2 or edges.shape[0] != 2:
        raise GraphError("edge_index is not [2, E].", "Transpose it?")
    entry: dict[str, Any] = {"num_nodes": nodes, "edges": edges.T.tolist()}
    given = getattr(graph, "edge_attr", None)
    if given is not None and len(given) and card.reads_edge_labels:
        rows = np.asarray(given.detach().cpu()).reshape(len(given), -1)
        entry |= _of_edges(rows, card)
    given = getattr(graph, "x", None)
    if given is None:
        return entry
    rows = np.asarray(given.detach().cpu()).reshape(len(given), -1)
    if card.given_features != Features.LABELS:
        entry["node_attributes"] = rows[:, : card.given_attributes].tolist()
        rows = rows[:, card.given_attributes :]
    if card.features != Features.ATTRIBUTES and card.label_source == LabelSource.LABELS:
        entry["node_labels"] = _labels(rows, card.label_values)
    return entry


def _of_edges(rows: NDArray[np.generic], card: ModelCard) -> dict[str, Any]:
    """What the model reads of `edge_attr`."""
    found: dict[str, Any] = {}
    known, columns = card.edge_label_values, rows.shape[1]
    if card.edge_bins is not None:
        found["edge_attributes"], rows = rows[:, :1].tolist(), rows[:, 1:]
        known = card.edge_bins.own_labels(known)
    known = known or (card.background_edge_label,)
    if rows.shape[1] and known != ("",):
        found["edge_labels"] = _labels(rows, known, "edge_attr")
    elif rows.shape[1] and not _are_labels(rows):
        raise GraphError(
            f"the model reads one edge attribute, and edge_attr has {columns} columns. Those after "
            "the first are not edge labels.",
            "Give the column of the attribute alone, or one-hot edge labels after it.",
        )
    return found


def _are_labels(rows: NDArray[np.generic]) -> bool:
    """Whether columns are a single one of integers, or have at most one 1 in each row."""
    if rows.shape[1] == 1 and np.issubdtype(rows.dtype, np.integer):
        return True
    ones = rows == 1
    binary = bool((ones | (rows == 0)).all())
    return binary and rows.shape[1] > 0 and bool((ones.sum(axis=1) <= 1).all())


def _labels(rows: NDArray[np.generic], known: Sequence[Value], name: str = "x") -> list[Value]:
    if rows.shape[1] == 1 and np.issubdtype(rows.dtype, np.integer):
        numbers: list[Value] = rows[:, 0].tolist()
        return numbers
    ones = rows == 1
    if not _are_labels(rows):
        raise GraphError(
            f"{name} is neither one-hot nor a single integer column.", "The model reads labels."
        )
    names: list[Value] = list(known) if rows.shape[1] == len(known) else list(range(rows.shape[1]))
    if isinstance(known[0], str):
        names = [str(name) for name in names]
        strange: Value = f"{max(map(str, known))}?"
    else:
        strange = max(int(each) for each in (*known, *names)) + 1
    places = np.where(ones.any(axis=1), ones.argmax(axis=1), len(names))
    return [[*names, strange][place] for place in places.tolist()]
