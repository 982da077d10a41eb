"""The expected outputs of an exported file, computed by the checkpoint's model in torch."""

import numpy as np
import torch
from numpy.typing import NDArray

from ihgnn_cli.data.batching import GraphStore
from ihgnn_cli.data.dataset import GraphDataset
from ihgnn_cli.deploy.metadata import CLOSE
from ihgnn_cli.inference.metrics import mean_probabilities
from ihgnn_cli.training.checkpoint import Checkpoint
from ihgnn_cli.training.stack import evaluation_batches, predict

_CPU = torch.device("cpu")


class Reference:
    """A checkpoint's model as it was trained, independent of the exported modules."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self._card = checkpoint.card
        self._members = checkpoint.members
        self._rounds = checkpoint.config.spec.rounds(checkpoint.config.model)
        self._model = checkpoint.model(_CPU)

    def outputs(self, graphs: GraphDataset) -> dict[str, NDArray[np.float64]]:
        """The outputs of the exported file by name, [G, ·] each."""
        logits = self.logits(graphs)
        found = {"logits": logits, "probabilities": mean_probabilities(logits[None])}
        if self._model.graph_embedding is not None:
            store = self._store(graphs, self._rounds)
            every = np.arange(len(graphs))
            embeddings = predict(self._model, store, every, self._model.graph_embedding)
            found["graph_embedding"] = embeddings.mean(axis=0, dtype=np.float64)
        return found

    def logits(self, graphs: GraphDataset) -> NDArray[np.float64]:
        """[G, C]; for several members, the logarithm of their mean probability."""
        store = self._store(graphs, self._rounds)
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
        return [bool(gap < CLOSE) for gap in self.key_gaps(dataset, graphs)]

    @torch.no_grad()
    def key_gaps(self, dataset: GraphDataset, graphs: NDArray[np.int64]) -> NDArray[np.float64]:
        """[len(graphs)] the smallest gap between the sort keys of different nodes of each graph.

        Gaps are relative to the largest number in H; infinite if nothing is sorted or all nodes are
        equal.
        """
        gaps = np.full(len(graphs), np.inf)
        if not self._model.sorts or not len(graphs):
            return gaps
        store = self._store(dataset, self._rounds)
        first = 0
        for batch in evaluation_batches(store, [graphs] * self._members):
            h, key, graph = (each.numpy() for each in self._model.sort_keys(batch))
            found = _smallest_gaps(h, key, graph, batch.origin.size)
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
    differ = np.abs(h[after] - h[before]).max(1) > CLOSE * scale
    pairs = (graph[before] == graph[after]) & differ
    gaps = np.full(graphs, np.inf)
    apart = (key[after] - key[before])[pairs] / scale[pairs]
    np.minimum.at(gaps, graph[after[pairs]], apart)
    return gaps
