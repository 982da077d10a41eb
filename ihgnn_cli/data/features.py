"""Node features: labels, attributes, or both."""

import numpy as np
from numpy.typing import NDArray

from ihgnn_cli.data.dataset import GraphDataset
from ihgnn_cli.data.kinds import Features
from ihgnn_cli.errors import InputError
from ihgnn_cli.settings import checked

__all__ = ["Features", "node_features", "one_hot"]


def node_features(dataset: GraphDataset, kind: Features = Features.LABELS) -> NDArray[np.float32]:
    """[N, d] attributes followed by one-hot labels, in the order of torch-geometric.

    For inspection and exchange; models use embedding lookups instead.

    Raises:
        InputError: attributes are requested, but the data set has none.
    """
    kind = checked("features", kind, Features)
    blocks = []
    if kind != Features.LABELS:
        if dataset.node_attributes is None:
            raise InputError(
                f"{dataset.name} has no node attributes. Use its labels ({Features.LABELS})."
            )
        blocks.append(dataset.node_attributes)
    if kind != Features.ATTRIBUTES:
        blocks.append(one_hot(dataset.node_label, len(dataset.label_values)))
    return np.concatenate(blocks, axis=1)


def one_hot(positions: NDArray[np.int32], width: int) -> NDArray[np.float32]:
    """[rows, width] one-hot rows."""
    rows = np.zeros((len(positions), width), dtype=np.float32)
    rows[np.arange(len(positions)), positions] = 1
    return rows
