"""Telling whether a graph was seen before, by its content."""

import hashlib

import numpy as np
from numpy.typing import NDArray

from ihgnn_cli.data.dataset import GraphDataset

_BYTES = 8


def graph_digests(
    dataset: GraphDataset, graphs: NDArray[np.int64], *, attributes: bool = False
) -> list[str]:
    """For each graph a short hash of its labels and edges, in the order of its nodes.

    Labels count by what the author wrote, so that the same graph has the same hash in a part of a
    data set, in another file, or with another vocabulary. The class does not count; node
    attributes do on request.
    """
    value = [_number(str(each).encode()) for each in dataset.label_values]
    label = np.array(value, dtype=np.uint64)[dataset.node_label]
    found = []
    for graph in graphs.tolist():
        start, end = dataset.node_ptr[graph], dataset.node_ptr[graph + 1]
        ptr = dataset.neighbor_ptr[start : end + 1]
        digest = hashlib.blake2b(digest_size=_BYTES)
        digest.update(label[start:end].tobytes())
        digest.update((ptr - ptr[0]).tobytes())
        digest.update((dataset.neighbors[ptr[0] : ptr[-1]] - start).astype(np.int32).tobytes())
        if attributes and dataset.node_attributes is not None:
            digest.update(np.ascontiguousarray(dataset.node_attributes[start:end]).tobytes())
        found.append(digest.hexdigest())
    return found


def _number(text: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(text, digest_size=_BYTES).digest(), "big")
