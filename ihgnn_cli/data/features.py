"""Node features: labels, attributes, or both; and what of the data a model does not read."""

import logging
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ihgnn_cli.data.dataset import GraphDataset, LabelSource
from ihgnn_cli.data.kinds import Features
from ihgnn_cli.errors import InputError
from ihgnn_cli.settings import checked

__all__ = ["Features", "node_features", "note_unread", "one_hot", "resolved_features", "unread"]

_log = logging.getLogger(__name__)


def resolved_features(dataset: GraphDataset, features: Features) -> Features:
    """The features that a model reads of this data: `auto` becomes labels or attributes.

    Raises:
        InputError: attributes are requested, but the data set has none.
    """
    if features == Features.AUTO:
        only = dataset.label_source == LabelSource.DEGREE and dataset.node_attributes is not None
        return Features.ATTRIBUTES if only else Features.LABELS
    if features != Features.LABELS and dataset.node_attributes is None:
        raise InputError(f"{dataset.name} has no node attributes. Use --features labels.")
    return features


def unread(
    dataset: GraphDataset,
    features: Features = Features.AUTO,
    *,
    edge_labels: bool = False,
    edge_bins: bool = False,
    references: bool = False,
) -> str | None:
    """A sentence on what the data has and a model with these settings does not read, if anything.

    Args:
        dataset: the graphs.
        features: node features of the model.
        edge_labels: whether the model tells edges apart by label.
        edge_bins: whether it tells edges apart by bins of their attribute.
        references: whether no network reads the data, only classifiers that take node labels.
    """
    features = Features.LABELS if references else resolved_features(dataset, features)
    labelled = dataset.label_source == LabelSource.LABELS
    found = []
    if dataset.node_attributes is not None and features == Features.LABELS:
        option = "--features both" if labelled else "--features attributes"
        option = "'ihgnn train' can" if references else option
        found.append(f"node attributes ({option})")
    if labelled and features == Features.ATTRIBUTES:
        found.append("node labels (--features both)")
    binned = dataset.edge_bins is not None  # then the labels are computed
    if dataset.edge_label is not None and not (edge_labels or dataset.uses_edge_labels):
        found.append("edge labels (--edge-labels)")
    if dataset.edge_attributes is not None and not (edge_bins or binned):
        one = dataset.edge_attributes.shape[1] == 1
        option = "--edge-bins" if one else "no option reads more than one per edge"
        found.append(f"edge attributes ({option})")
    return f"{dataset.name} has data that is not read: {', '.join(found)}." if found else None


@lru_cache(64)
def note_unread(sentence: str | None) -> None:
    """Log a sentence of `unread`, once in a process.

    It is information, but a program that has not configured logging shows warnings only.
    """
    if sentence is not None:
        shown = _log.isEnabledFor(logging.INFO)
        _log.log(logging.INFO if shown else logging.WARNING, "%s", sentence)


def node_features(dataset: GraphDataset, kind: Features = Features.LABELS) -> NDArray[np.float32]:
    """[N, d] attributes followed by one-hot labels, in the order of torch-geometric.

    For inspection and exchange; models use embedding lookups instead.

    Raises:
        InputError: attributes are requested, but the data set has none.
    """
    kind = resolved_features(dataset, checked("features", kind, Features))
    blocks = []
    if kind != Features.LABELS and dataset.node_attributes is not None:
        blocks.append(dataset.node_attributes)
    if kind != Features.ATTRIBUTES:
        blocks.append(one_hot(dataset.node_label, len(dataset.label_values)))
    return np.concatenate(blocks, axis=1)


def one_hot(positions: NDArray[np.int32], width: int) -> NDArray[np.float32]:
    """[rows, width] one-hot rows."""
    rows = np.zeros((len(positions), width), dtype=np.float32)
    rows[np.arange(len(positions)), positions] = 1
    return rows
