"""A canonical order of a graph's nodes, independent of their numbering.

Colour refinement (1-WL) starts from the nodes' own values. If several nodes share a colour, a node
of the smallest such cell gets a colour of its own and refinement continues, until all colours
differ; the nodes are then ordered by colour. The chosen node is the one with the least trace: the
multiset of the colours of all rounds. Renumbering the nodes then gives the same order up to an
automorphism, hence the same adjacency matrix, provided that nodes of a cell with equal traces can
always be mapped to each other by an automorphism that keeps the values. This fails on some regular
graphs (such as one made of two different strongly regular graphs with the same parameters). There,
and if a graph exceeds its work limit, the node numbers break the tie.

Twins (nodes with equal values and the same neighbours, adjacent to each other or not) can always be
swapped, so they are ordered by number at once. This makes stars, complete graphs and the hydrogens
of molecules cheap.
"""

import numpy as np
from numpy.typing import NDArray

Colours = NDArray[np.int64]
Hashes = NDArray[np.uint64]

# Nodes and edges that refinement may visit before node numbers break ties (half a second), and the
# fixed cost of a round in the same unit.
_WORK = 5_000_000
_ROUND = 1_000


def canonical_order(
    values: NDArray[np.float32], sender: Colours, receiver: Colours
) -> NDArray[np.int64]:
    """[n] the nodes in canonical order.

    Args:
        values: [n, *] the nodes' own values.
        sender: sender of each edge, in both directions, in ascending order of receiver.
        receiver: receiver of each edge.
    """
    graph = _Refinement(len(values), sender, receiver)
    colours = np.unique(values, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)
    colours, _ = graph.refined(_apart_by_number(graph.refined(colours)[0], graph.twins()))
    while colours.max() + 1 < len(colours) and graph.work < _WORK:
        found = []
        for node in _smallest_cell(colours):
            found.append(graph.refined(_marked(colours, node)))
            if graph.work >= _WORK:
                break
        colours, _ = min(found, key=lambda each: each[1])
    # Remaining ties are in the order of the node numbers.
    return np.argsort(colours, kind="stable")


class _Refinement:
    """Colour refinement of one graph."""

    def __init__(self, nodes: int, sender: Colours, receiver: Colours) -> None:
        self._sender = sender
        self._ptr = np.searchsorted(receiver, np.arange(nodes + 1))
        self.work = 0

    def refined(self, colours: Colours) -> tuple[Colours, tuple[int, ...]]:
        """The coarsest refinement where nodes of a colour have neighbours of the same colours.

        Colours are 0, 1, ... in an order that depends on the graph alone.

        Returns:
            The colours and their trace. Hashes represent multisets of colours: a collision could
            leave nodes in one cell, but not make the order depend on the node numbers.
        """
        trace = []
        count = 0
        colours = _ranks(colours)
        while count <= colours.max():
            count = int(colours.max()) + 1
            hashes = self._sums(_mixed(colours.astype(np.uint64)))
            # The old colour comes first, so cells are split and never merged.
            order = np.lexsort((hashes, colours))
            ranked, of_rank = colours[order], hashes[order]
            new = (np.diff(ranked) != 0) | (of_rank[1:] != of_rank[:-1])
            trace.append(int(_mixed(of_rank + ranked.astype(np.uint64)).sum()))
            colours = np.empty_like(colours)
            colours[order] = np.concatenate([[0], np.cumsum(new)])
            self.work += _ROUND + len(colours) + len(self._sender)
        return colours, tuple(trace)

    def twins(self) -> Hashes:
        """[n] a value that twins share: nodes with the same neighbours, adjacent or not."""
        own = _mixed(np.arange(len(self._ptr) - 1, dtype=np.uint64))
        apart = self._sums(own)
        joined = apart + own
        _, at, times = np.unique(joined, return_inverse=True, return_counts=True)
        # No node has twins of both kinds: they would be both adjacent and not adjacent.
        return np.where(times[at] > 1, joined, apart)

    def _sums(self, hashes: Hashes) -> Hashes:
        """[n] the sum of each node's neighbours' hashes, modulo 2^64."""
        total = np.concatenate([np.zeros(1, np.uint64), np.cumsum(hashes[self._sender])])
        sums: Hashes = total[self._ptr[1:]] - total[self._ptr[:-1]]
        return sums


def _mixed(numbers: Hashes) -> Hashes:
    """A bijective hash: the finalizer of splitmix64."""
    mixed = numbers + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def _ranks(colours: Colours) -> Colours:
    return np.unique(colours, return_inverse=True)[1].reshape(-1).astype(np.int64)


def _apart_by_number(colours: Colours, twins: Hashes) -> Colours:
    """Order twins of one colour by number; other nodes keep their colours."""
    order = np.lexsort((twins, colours))  # stable: the node number is the third key
    same = (np.diff(colours[order]) == 0) & (twins[order][1:] == twins[order][:-1])
    start = np.concatenate([[True], ~same])
    at = np.arange(len(colours))
    within = at - np.maximum.accumulate(np.where(start, at, 0))
    number = np.empty_like(colours)
    number[order] = within
    return colours * len(colours) + number


def _smallest_cell(colours: Colours) -> Colours:
    """The nodes of the smallest cell with several nodes; the first of these if there are more."""
    sizes = np.bincount(colours)
    chosen = np.argmin(np.where(sizes > 1, sizes, len(colours) + 1))
    return np.flatnonzero(colours == chosen)


def _marked(colours: Colours, node: int) -> Colours:
    """Put the node before the others of its colour."""
    marked = 2 * colours + 1
    marked[node] -= 1
    return marked
