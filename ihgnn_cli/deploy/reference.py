"""The expected outputs of an exported file, computed by the checkpoint's model in torch."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ihgnn_cli.data.batching.batches import GraphStore
from ihgnn_cli.data.dataset import GraphDataset
from ihgnn_cli.deploy.comparison import TOLERANCE
from ihgnn_cli.deploy.metadata import CLOSE, LARGEST
from ihgnn_cli.deploy.onnx_model import PREDICTION_SET
from ihgnn_cli.inference.metrics import (
    mean_probabilities,
    member_probabilities,
    member_spread,
)
from ihgnn_cli.training.checkpoint import Checkpoint
from ihgnn_cli.training.stack import evaluation_batches, predict

Measure = Callable[
    [NDArray[np.float32], NDArray[np.float32], NDArray[np.int64], int], NDArray[np.float64]
]
"""[rows, graphs] from each node's row h, its sort key and its graph, and the number of graphs."""

_CPU = torch.device("cpu")


class Reference:
    """A checkpoint's model as it was trained, independent of the exported modules."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self.card = checkpoint.card
        self._members = checkpoint.members
        self._rounds = checkpoint.config.spec.rounds(checkpoint.config.model)
        self._model = checkpoint.model(_CPU)

    def outputs(self, graphs: GraphDataset) -> dict[str, NDArray[Any]]:
        """The outputs of an exported file by name, [G, ·] or [G]; a file may not have all of them.

        NaN in `order_margin` and `uncertainty` where rounding can change them.
        """
        of_members = self._of_members(graphs)
        logits = self._combined(of_members)
        likely = mean_probabilities(logits[None])
        found = {"logits": logits, "probabilities": likely}
        if self.card.conformal is not None:
            found[PREDICTION_SET] = self.card.conformal.sets(likely).astype(np.uint8)
        if self._model.graph_embedding is not None:
            store = self._store(graphs, self._rounds)
            every = np.arange(len(graphs))
            embeddings = predict(self._model, store, every, self._model.graph_embedding)
            found["graph_embedding"] = embeddings.mean(axis=0, dtype=np.float64)
        found["order_margin"] = self._order_margin(graphs)
        if self._members > 1:
            found["uncertainty"] = _uncertainty(of_members)
        return found

    def logits(self, graphs: GraphDataset) -> NDArray[np.float64]:
        """[G, C]; for several members, the logarithm of their mean probability."""
        return self._combined(self._of_members(graphs))

    def _of_members(self, graphs: GraphDataset) -> NDArray[np.float64]:
        """[members, G, C] logits."""
        store = self._store(graphs, self._rounds)
        return predict(self._model, store, np.arange(len(graphs))).astype(np.float64)

    def _combined(self, logits: NDArray[np.float64]) -> NDArray[np.float64]:
        if self._members == 1:
            single: NDArray[np.float64] = logits[0]
            return single
        log_p = logits - np.logaddexp.reduce(logits, axis=-1, keepdims=True)
        mean: NDArray[np.float64] = np.logaddexp.reduce(log_p, axis=0) - np.log(self._members)
        return mean

    def order_is_chance(self, dataset: GraphDataset, graphs: NDArray[np.int64]) -> list[bool]:
        """For each graph, whether rounding decides the order of its nodes.

        It does if the sort keys of two different nodes are equal within single precision.
        """
        return [bool(gap < CLOSE) for gap in self.key_gaps(dataset, graphs)]

    def _order_margin(self, graphs: GraphDataset) -> NDArray[np.float64]:
        """[G] the smallest over the members; `LARGEST` if nothing is sorted."""
        found = self._smallest(_margins, 3, graphs, np.arange(len(graphs)))
        low, high = np.minimum(found[[0, 2]], LARGEST)
        margin: NDArray[np.float64] = np.minimum(found[1], LARGEST)
        margin[high - low > TOLERANCE * np.maximum(1, margin)] = np.nan
        return margin

    def key_gaps(self, dataset: GraphDataset, graphs: NDArray[np.int64]) -> NDArray[np.float64]:
        """[len(graphs)] the smallest gap between the sort keys of different nodes of each graph.

        Gaps are relative to the largest number in H; infinite if nothing is sorted or all nodes are
        equal.
        """
        gaps: NDArray[np.float64] = self._smallest(_smallest_gaps, 1, dataset, graphs)[0]
        return gaps

    @torch.no_grad()
    def _smallest(
        self, measure: Measure, rows: int, dataset: GraphDataset, graphs: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """[rows, len(graphs)] the smallest of a measure over members; infinite without a sort."""
        gaps = np.full((rows, len(graphs)), np.inf)
        if not self._model.sorts or not len(graphs):
            return gaps
        store = self._store(dataset, self._rounds)
        first = 0
        for batch in evaluation_batches(store, [graphs] * self._members):
            h, key, graph = (each.numpy() for each in self._model.sort_keys(batch))
            found = measure(h, key, graph, batch.origin.size)
            real = batch.origin.flatten() >= 0
            at = first + batch.origin.flatten()[real]
            for row, values in zip(gaps, found, strict=True):
                np.minimum.at(row, at, values[real])
            first += int(real.sum()) // self._members
        return gaps

    def _store(self, graphs: GraphDataset, rounds: int | None) -> GraphStore:
        return GraphStore(graphs, self.card.features, self.card.max_nodes, rounds, _CPU)


def _smallest_gaps(
    h: NDArray[np.float32], key: NDArray[np.float32], graph: NDArray[np.int64], graphs: int
) -> NDArray[np.float64]:
    """[1, graphs] as in `Reference.key_gaps`."""
    before, after = _neighbors(key, graph)
    scale = _largest(h, graph, graphs)[graph[after]]
    differ = np.abs(h[after] - h[before]).max(1) > CLOSE * scale
    gaps = np.full(graphs, np.inf)
    apart = (key[after] - key[before])[differ] / scale[differ]
    np.minimum.at(gaps, graph[after[differ]], apart)
    return gaps[None]


def _margins(
    h: NDArray[np.float32], key: NDArray[np.float32], graph: NDArray[np.int64], graphs: int
) -> NDArray[np.float64]:
    """[3, graphs] the least that the order margin (see `margin`) can round to, itself, the most."""
    before, after = _neighbors(key, graph)
    length = np.linalg.norm(h.astype(np.float64), axis=1)
    longer = np.maximum(length[before], length[after])
    apart = key[after].astype(np.float64) - key[before]
    rounding = CLOSE * _largest(h, graph, graphs)[graph[after]]
    gaps = np.full((3, graphs), np.inf)
    for row, sign in zip(gaps, (-1, 0, 1), strict=True):
        differ = np.abs(length[after] - length[before]) > CLOSE * 4.0**sign * longer
        gap = np.maximum(apart + sign * rounding, 0)[differ] / longer[differ]
        np.minimum.at(row, graph[after[differ]], gap)
    return gaps


def _neighbors(
    key: NDArray[np.float32], graph: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pairs of nodes of one graph that follow each other in sorted order."""
    order = np.lexsort((key, graph))
    same = graph[order[:-1]] == graph[order[1:]]
    return order[:-1][same], order[1:][same]


def _largest(h: NDArray[np.float32], graph: NDArray[np.int64], graphs: int) -> NDArray[np.float64]:
    """[graphs] the largest number in the rows of a graph."""
    found = np.zeros(graphs)
    np.maximum.at(found, graph, np.abs(h).max(1))
    return found


def _uncertainty(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    """[G] the spread between members; NaN if rounding can change the class."""
    members = member_probabilities(logits)
    found = member_spread(members)
    ranked = np.sort(members.mean(axis=0), axis=1)
    found[ranked[:, -1] - ranked[:, -2:-1].sum(axis=1) < 2 * TOLERANCE] = np.nan
    return found
