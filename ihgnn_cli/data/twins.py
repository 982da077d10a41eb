"""Twins: graphs that 1-WL cannot tell apart, and so no message-passing network can."""

import numpy as np
from numpy.typing import NDArray

from ihgnn_cli.data.batching.wl_rows import color_rounds
from ihgnn_cli.data.dataset import GraphDataset

ROUNDS = 5
"""Rounds of 1-WL that tell graphs apart: the largest K of the paper's grid."""


def colorings(dataset: GraphDataset) -> list[NDArray[np.int64]]:
    """[G] a number for the multiset of each graph's colours, before the first round and after each.

    Graphs with the same number are twins at that round. Initial colours are the node labels.
    """
    found = []
    for color in color_rounds(dataset, ROUNDS):
        # A sum of random 64-bit codes: two multisets of colours share it with probability 2^-64.
        random = np.random.default_rng(0)
        code = random.integers(0, 2**64, size=int(color.max()) + 1, dtype=np.uint64)
        digest = np.add.reduceat(code[color], dataset.node_ptr[:-1])
        found.append(np.unique(digest, return_inverse=True)[1].reshape(-1))
    return found + [found[-1]] * (ROUNDS + 1 - len(found))  # stable colours


def twin_groups(dataset: GraphDataset) -> NDArray[np.int64]:
    """[G] graphs with the same number have the same colours after `ROUNDS` rounds of 1-WL."""
    return colorings(dataset)[-1]
