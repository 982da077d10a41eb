"""The expected outputs of an exported file, computed by the checkpoint's model in torch."""

import numpy as np
import torch
from numpy.typing import NDArray

from ihgnn_cli.data.batching import GraphStore
from ihgnn_cli.data.dataset import GraphDataset
from ihgnn_cli.models.stacked.model import StackedIHGNN
from ihgnn_cli.models.stacked.readout import SortConcat
from ihgnn_cli.training.checkpoint import Checkpoint
from ihgnn_cli.training.stack import evaluation_batches, predict

_CPU = torch.device("cpu")
# Relative to the largest number in H. Rounding moved a sort key by up to 2.2e-6 on COLLAB, and by
# less than 6e-7 on four other data sets. Two keys can move in opposite directions.
_CLOSE = 5e-6


class Reference:
    """A checkpoint's model as it was trained, independent of the exported modules."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self._card = checkpoint.card
        self._members = checkpoint.members
        self._layers = checkpoint.config.model.layers
        model = checkpoint.model(_CPU)
        if not isinstance(model, StackedIHGNN):
            raise TypeError(f"no reference for a model of {checkpoint.config.model_name}")
        self._model = model

    def logits(self, graphs: GraphDataset) -> NDArray[np.float64]:
        """[G, C]; for several members, the logarithm of their mean probability."""
        store = self._store(graphs, self._layers)
        logits = predict(self._model, store, np.arange(len(graphs))).astype(np.float64)
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
        return [bool(gap < _CLOSE) for gap in self.key_gaps(dataset, graphs)]

    @torch.no_grad()
    def key_gaps(self, dataset: GraphDataset, graphs: NDArray[np.int64]) -> NDArray[np.float64]:
        """[len(graphs)] the smallest gap between the sort keys of different nodes of each graph.

        Gaps are relative to the largest number in H; infinite if nothing is sorted or all nodes are
        equal.
        """
        gaps = np.full(len(graphs), np.inf)
        readout = self._model.readout
        if not isinstance(readout, SortConcat) or not len(graphs):
            return gaps
        store = self._store(dataset, self._layers)
        first = 0
        for batch in evaluation_batches(store, [graphs] * self._members):
            h, last_layer = self._model.embed(batch)
            row, graph = batch.layout.row, batch.layout.graph.numpy()
            key = readout.sort_key(h, last_layer).flatten()[row].numpy()
            found = _smallest_gaps(h.flatten(0, 1)[row].numpy(), key, graph, batch.origin.size)
            real = batch.origin.flatten() >= 0
            np.minimum.at(gaps, first + batch.origin.flatten()[real], found[real])
            first += int(real.sum()) // self._members
        return gaps

    def _store(self, graphs: GraphDataset, rounds: int | None) -> GraphStore:
        return GraphStore(graphs, self._card.features, self._card.max_nodes, rounds, _CPU)


def _smallest_gaps(
    h: NDArray[np.float32], key: NDArray[np.float32], graph: NDArray[np.int64], graphs: int
) -> NDArray[np.float64]:
    """[graphs] as in `Reference.key_gaps`, from each node's row h, key and graph."""
    largest = np.zeros(graphs)
    np.maximum.at(largest, graph, np.abs(h).max(1))
    order = np.lexsort((key, graph))
    before, after = order[:-1], order[1:]
    scale = largest[graph[after]]
    differ = np.abs(h[after] - h[before]).max(1) > _CLOSE * scale
    pairs = (graph[before] == graph[after]) & differ
    gaps = np.full(graphs, np.inf)
    apart = (key[after] - key[before])[pairs] / scale[pairs]
    np.minimum.at(gaps, graph[after[pairs]], apart)
    return gaps
