"""Graphs made from a seed, whose class lies in structure and labels together.

Every graph has as many nodes of each label as of any other, give or take one, and a number of
edges that depends on its number of nodes alone. A share of its edges is homophilic, so that its
expected node homophily (equations 1 and 2) is the one that was asked for. Class c decides which
labels they join: with probability `signal` an edge follows the pattern of the class, in which

- homophilic edges join nodes of the label c,
- heterophilic edges join partners in round c of a tournament in which all labels meet once,

and else it joins any label to itself, or any two labels. The pattern of class c is that of class 0
with the labels renamed. So neither the graph without its labels, nor the number of nodes of each
label, nor the homophily tells anything about the class (docs/synthetic.md).

All draws are integers of PCG64, whose stream NumPy guarantees, graph by graph: a smaller data set
is the beginning of a larger one, and class noise leaves the graphs as they are.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ihgnn_cli.data.dataset import GraphDataset, offsets
from ihgnn_cli.data.readers.build import ListedGraphs, build
from ihgnn_cli.data.sources.synthetic_spec import SyntheticSpec, edge_share

Pairs = tuple[NDArray[np.int64], NDArray[np.int64]]


def generate(spec: SyntheticSpec) -> GraphDataset:
    """The data set of a specification, the same on every machine."""
    draw = _Draws(spec.seed)
    kinds = [_EdgeKinds.of_class(spec, number) for number in range(spec.classes)]
    pairs_of: dict[int, Pairs] = {}
    labels, edges, classes = [], [], []
    for number in range(spec.graphs):
        own = number % spec.classes
        nodes = spec.nodes[0] + draw.below(spec.nodes[1] - spec.nodes[0] + 1)
        beta = spec.homophily[0] + draw.unit() * (spec.homophily[1] - spec.homophily[0])
        if nodes not in pairs_of:
            pairs_of[nodes] = np.triu_indices(nodes, 1)
        label = _labels(nodes, spec.labels, draw)
        homophilic = int(spec.edges(nodes) * edge_share(spec, beta) + draw.unit())
        counts = kinds[own].counts(homophilic, spec.edges(nodes) - homophilic, draw)
        joined = _joined(label, counts, pairs_of[nodes], kinds[own], draw)
        labels.append(label)
        edges.append(_without_lonely_nodes(joined, label, draw))
        flipped, other = draw.unit() < spec.noise, draw.below(spec.classes - 1)
        classes.append((own + 1 + other) % spec.classes if flipped else own)
    sizes = np.array([len(each) for each in labels])
    first = np.repeat(offsets(sizes)[:-1], [each.shape[1] for each in edges])
    source, target = (np.concatenate(edges, axis=1) + first).astype(np.int32)
    return build(
        ListedGraphs(
            name=str(spec),
            sizes=sizes,
            source=source,
            target=target,
            classes=(np.array(classes, dtype=np.int32), tuple(range(spec.classes))),
            node_labels=(
                np.concatenate(labels).astype(np.int32),
                tuple(range(spec.labels)),
            ),
            undirected=True,
        )
    )


def partners(labels: int, number: int) -> list[tuple[int, int]]:
    """Who meets whom in a round of a tournament of labels; of an odd number `number` sits out.

    All but the last of an even number stand on a circle, and the round mirrors it at `number`;
    who stands there meets the last. Round c is round 0 turned by c places.
    """
    circle = labels - 1 + labels % 2
    met = [((number + i) % circle, (number - i) % circle) for i in range(1, (circle + 1) // 2)]
    if labels % 2 == 0:
        met.append((number % circle, labels - 1))
    return sorted((min(pair), max(pair)) for pair in met)


@dataclass(frozen=True)
class _EdgeKinds:
    """The label pairs a·L + b, a <= b, that edges of a class join, and how likely."""

    labels: int
    same: NDArray[np.int64]
    """[L] the kinds of homophilic edges."""
    same_up_to: NDArray[np.float64]
    """[L] the probability of this kind or one before it."""
    other: NDArray[np.int64]
    other_up_to: NDArray[np.float64]

    @staticmethod
    def of_class(spec: SyntheticSpec, number: int) -> "_EdgeKinds":
        labels, signal = spec.labels, spec.signal
        a, b = np.triu_indices(labels, 1)
        same, other = np.arange(labels) * (labels + 1), a * labels + b
        favoured = [low * labels + high for low, high in partners(labels, number)]
        of_same = np.full(labels, (1 - signal) / labels)
        of_same[number] += signal
        of_other = np.full(len(other), (1 - signal) / len(other))
        of_other[np.isin(other, favoured)] += signal / len(favoured)
        return _EdgeKinds(labels, same, np.cumsum(of_same), other, np.cumsum(of_other))

    def counts(self, homophilic: int, heterophilic: int, draw: "_Draws") -> NDArray[np.int64]:
        """[L · L] how many edges there are of each kind, drawn one by one."""
        same = _picked(self.same, self.same_up_to, draw.units(homophilic))
        other = _picked(self.other, self.other_up_to, draw.units(heterophilic))
        return np.bincount(np.concatenate([same, other]), minlength=self.labels**2)


def _picked(
    kinds: NDArray[np.int64], up_to: NDArray[np.float64], unit: NDArray[np.float64]
) -> NDArray[np.int64]:
    # The last sum of probabilities may be a rounding below 1.
    position = np.minimum(np.searchsorted(up_to, unit, "right"), len(kinds) - 1)
    return kinds[position]


def _labels(nodes: int, labels: int, draw: "_Draws") -> NDArray[np.int64]:
    """[n] labels in equal numbers; which ones have a node more, and where they stand, is drawn."""
    turn = draw.order(labels)[np.arange(nodes) % labels]
    return turn[draw.order(nodes)]


def _joined(
    label: NDArray[np.int64],
    counts: NDArray[np.int64],
    pairs: Pairs,
    kinds: _EdgeKinds,
    draw: "_Draws",
) -> NDArray[np.int64]:
    """[2, edges] as many pairs of nodes as there are edges of each kind, none twice."""
    low = np.minimum(label[pairs[0]], label[pairs[1]])
    kind = low * (kinds.labels - 1) + label[pairs[0]] + label[pairs[1]]  # low · L + high
    room = np.bincount(kind, minlength=len(counts))
    if (counts > room).any():
        for group in (kinds.same, kinds.other):
            counts[group] = _fitting(counts[group], room[group], draw)
    order = np.lexsort((draw.integers(len(kind)), kind))
    place = np.arange(len(kind)) - (np.cumsum(room) - room)[kind[order]]
    chosen = order[place < counts[kind[order]]]
    return np.stack([pairs[0][chosen], pairs[1][chosen]])


def _fitting(
    counts: NDArray[np.int64], room: NDArray[np.int64], draw: "_Draws"
) -> NDArray[np.int64]:
    """The counts with what has no room moved to kinds that have some."""
    kept = np.minimum(counts, room)
    for _ in range(int(min(counts.sum(), room.sum()) - kept.sum())):
        free = np.flatnonzero(kept < room)
        kept[free[draw.below(len(free))]] += 1
    return kept


def _without_lonely_nodes(
    edges: NDArray[np.int64], label: NDArray[np.int64], draw: "_Draws"
) -> NDArray[np.int64]:
    """Each node without edges takes over an end of an edge from a node of its label with several.

    The number of edges between any two labels stays, and so does the expected homophily.
    """
    degree = np.bincount(edges.reshape(-1), minlength=len(label))
    ends = edges.reshape(-1)  # a view: edges are changed in place
    for node in np.flatnonzero(degree == 0).tolist():
        spare = np.flatnonzero((label[ends] == label[node]) & (degree[ends] > 1))
        if not len(spare):
            continue
        end = spare[draw.below(len(spare))]
        degree[ends[end]] -= 1
        degree[node] += 1
        ends[end] = node
    return edges


class _Draws:
    """Random numbers from the raw stream of PCG64, which is the same in every version of NumPy."""

    def __init__(self, seed: int) -> None:
        self._bits = np.random.PCG64(seed)

    def integers(self, count: int) -> NDArray[np.uint64]:
        drawn: NDArray[np.uint64] = self._bits.random_raw(count)
        return drawn

    def units(self, count: int) -> NDArray[np.float64]:
        """From 0 to below 1, in steps of 2^-53."""
        return (self.integers(count) >> np.uint64(11)).astype(np.float64) * 2.0**-53

    def unit(self) -> float:
        return float(self.units(1)[0])

    def below(self, end: int) -> int:
        """From 0 to `end` - 1, which a multiplication spreads evenly up to 2^-64."""
        return int(self.integers(1)[0]) * end >> 64

    def order(self, count: int) -> NDArray[np.int64]:
        """A permutation."""
        return np.argsort(self.integers(count), kind="stable")
