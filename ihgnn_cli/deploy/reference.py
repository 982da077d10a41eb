"""What an exported file has to say: the answers of the checkpoint's own model, in torch."""

import numpy as np
import torch
from numpy.typing import NDArray

from ihgnn_cli.data.batches import GraphStore
from ihgnn_cli.data.dataset import GraphDataset
from ihgnn_cli.models.readout import SortConcat
from ihgnn_cli.training.checkpoint import Checkpoint
from ihgnn_cli.training.stack import predict

_CPU = torch.device("cpu")
# Of the largest number in H. Rounding moved a sort key by up to 2.2e-6 of it on COLLAB, by less
# than 6e-7 on four other data sets; and there are two keys, each moved either way.
_CLOSE = 5e-6


class Reference:
    """A checkpoint's model as it was trained; nothing here knows the modules that are exported."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self._card = checkpoint.card
        self._members = checkpoint.members
        self._layers = checkpoint.config.model.layers
        self._model = checkpoint.ihgnn(_CPU)

    def logits(self, graphs: GraphDataset) -> NDArray[np.float64]:
        """[G, C]; of several members, the logarithm of their mean probability."""
        store = self._store(graphs, self._layers)
        logits = predict(self._model, store, np.arange(len(graphs))).astype(np.float64)
        if self._members == 1:
            single: NDArray[np.float64] = logits[0]
            return single
        log_p = logits - np.logaddexp.reduce(logits, axis=-1, keepdims=True)
        mean: NDArray[np.float64] = np.logaddexp.reduce(log_p, axis=0) - np.log(self._members)
        return mean

    @torch.no_grad()
    def order_is_chance(self, dataset: GraphDataset, graphs: NDArray[np.int64]) -> list[bool]:
        """For each graph whether rounding decides on the order of its nodes.

        It does where nodes that differ follow each other so closely in the sort key that single
        precision cannot tell which one is first.
        """
        readout = self._model.readout
        if not isinstance(readout, SortConcat) or not len(graphs):
            return [False] * len(graphs)
        store = self._store(dataset, None)
        found = []
        for graph in graphs:
            batch = store.batch([np.array([graph])] * self._members)
            h, last_layer = self._model.embed(batch)
            key = readout.sort_key(h, last_layer)
            found.append(any(map(_close, h, key)))
        return found

    def _store(self, graphs: GraphDataset, rounds: int | None) -> GraphStore:
        return GraphStore(graphs, self._card.features, self._card.max_nodes, rounds, _CPU)


def _close(h: torch.Tensor, key: torch.Tensor) -> bool:
    ascending, order = key.sort()
    scale = h.abs().max()
    close = ascending.diff() < _CLOSE * scale
    differ = h[order].diff(dim=0).abs().amax(1) > _CLOSE * scale
    return bool((close & differ).any())
