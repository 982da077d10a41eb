"""Generate graphs whose class depends on structure and labels together.

Every graph has equally many nodes of each label (to within one), and its number of edges depends
only on its number of nodes. The share of homophilic edges is chosen so that the expected node
homophily (equations 1 and 2) is the requested one. With probability `signal`, an edge follows the
pattern of its class c:

- homophilic edges join nodes of label c,
- heterophilic edges join partners in round c of a tournament in which all labels meet once.

Otherwise it joins any label to itself, or any two labels. The pattern of class c is that of class 0
with the labels renamed. So neither the structure alone, nor the label counts, nor the homophily
reveal the class (docs/synthetic.md).

All draws come from the raw stream of PCG64, which NumPy guarantees, graph by graph: a smaller data
set is a prefix of a larger one, and class noise does not change the graphs.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ihgnn_cli.data.build import ListedGraphs, build
from ihgnn_cli.data.dataset import GraphDataset, offsets
from ihgnn_cli.data.synthetic_spec import SyntheticSpec, edge_share

Pairs = tuple[NDArray[np.int64], NDArray[np.int64]]


def generate(spec: SyntheticSpec) -> GraphDataset:
    """Generate the data set of a specification; it is the same on every machine."""
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
        edges.append(_without_isolated_nodes(joined, label, draw))
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
    """The pairs of labels that meet in a round of a tournament (circle method).

    With an odd number of labels, label `number` has no partner. Round c is round 0 rotated by c.
    """
    circle = labels - 1 + labels % 2
    met = [((number + i) % circle, (number - i) % circle) for i in range(1, (circle + 1) // 2)]
    if labels % 2 == 0:
        met.append((number % circle, labels - 1))
    return sorted((min(pair), max(pair)) for pair in met)


@dataclass(frozen=True)
class _EdgeKinds:
    """The label pairs a·L + b, a <= b, that edges of a class join, and their probabilities."""

    labels: int
    same: NDArray[np.int64]
    """[L] the kinds of homophilic edges."""
    same_up_to: NDArray[np.float64]
    """[L] cumulative probability."""
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
        """[L · L] the number of edges of each kind, drawn at random."""
        same = _picked(self.same, self.same_up_to, draw.units(homophilic))
        other = _picked(self.other, self.other_up_to, draw.units(heterophilic))
        return np.bincount(np.concatenate([same, other]), minlength=self.labels**2)


def _picked(
    kinds: NDArray[np.int64], up_to: NDArray[np.float64], unit: NDArray[np.float64]
) -> NDArray[np.int64]:
    # The last cumulative probability may be slightly below 1.
    position = np.minimum(np.searchsorted(up_to, unit, "right"), len(kinds) - 1)
    return kinds[position]


def _labels(nodes: int, labels: int, draw: "_Draws") -> NDArray[np.int64]:
    """[n] labels in equal numbers (to within one), in random order."""
    turn = draw.order(labels)[np.arange(nodes) % labels]
    return turn[draw.order(nodes)]


def _joined(
    label: NDArray[np.int64],
    counts: NDArray[np.int64],
    pairs: Pairs,
    kinds: _EdgeKinds,
    draw: "_Draws",
) -> NDArray[np.int64]:
    """[2, edges] distinct pairs of nodes, as many of each kind as requested."""
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
    """Move counts that do not fit to kinds that have room."""
    kept = np.minimum(counts, room)
    for _ in range(int(min(counts.sum(), room.sum()) - kept.sum())):
        free = np.flatnonzero(kept < room)
        kept[free[draw.below(len(free))]] += 1
    return kept


def _without_isolated_nodes(
    edges: NDArray[np.int64], label: NDArray[np.int64], draw: "_Draws"
) -> NDArray[np.int64]:
    """Give each isolated node one end of an edge of a node with the same label and several edges.

    The number of edges between any two labels, and so the expected homophily, does not change.
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
    """Random numbers from the raw stream of PCG64, the same in every version of NumPy."""

    def __init__(self, seed: int) -> None:
        self._bits = np.random.PCG64(seed)

    def integers(self, count: int) -> NDArray[np.uint64]:
        drawn: NDArray[np.uint64] = self._bits.random_raw(count)
        return drawn

    def units(self, count: int) -> NDArray[np.float64]:
        """Floats in [0, 1), in steps of 2^-53."""
        return (self.integers(count) >> np.uint64(11)).astype(np.float64) * 2.0**-53

    def unit(self) -> float:
        return float(self.units(1)[0])

    def below(self, end: int) -> int:
        """An integer from 0 to `end` - 1, uniform to within 2^-64."""
        return int(self.integers(1)[0]) * end >> 64

    def order(self, count: int) -> NDArray[np.int64]:
        """A random permutation."""
        return np.argsort(self.integers(count), kind="stable")
