"""Predicting with the models of a checkpoint."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from ihgnn_cli.data.batching.batches import GraphStore
from ihgnn_cli.data.dataset import GraphDataset
from ihgnn_cli.inference.metrics import (
    member_probabilities,
    member_spread,
)
from ihgnn_cli.models.card import ModelCard
from ihgnn_cli.models.factory import StackedModel
from ihgnn_cli.training.checkpoint import Checkpoint, load_checkpoint
from ihgnn_cli.training.devices import computing
from ihgnn_cli.training.stack import predict


@dataclass(frozen=True, eq=False)
class TorchClassifier:
    """The models of a checkpoint; several models average their probabilities."""

    checkpoint: Checkpoint
    device: torch.device

    @property
    def card(self) -> ModelCard:
        """The inputs and outputs of the model."""
        return self.checkpoint.card

    @property
    def runs_on(self) -> str:
        """The device."""
        return str(self.device)

    @property
    def node_limit(self) -> int | None:
        """How many nodes per graph count, the first in sorted order; `None`: all of them."""
        config = self.checkpoint.config
        return config.spec.node_limit(config.model, self.card.max_nodes)

    def probabilities(
        self, dataset: GraphDataset, graphs: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """[len(graphs), C]."""
        return self.with_uncertainty(dataset, graphs)[0]

    @property
    def members(self) -> int:
        """The number of models."""
        return self.checkpoint.members

    def with_uncertainty(
        self, dataset: GraphDataset, graphs: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
        """Probabilities, and their spread between the models if there are several."""
        each = member_probabilities(self.logits(dataset, graphs))
        return each.mean(axis=0), member_spread(each) if self.members > 1 else None

    def logits(self, dataset: GraphDataset, graphs: NDArray[np.int64]) -> NDArray[np.float32]:
        """[S, G, C] of each model."""
        store = self._store(dataset)
        elements = int(store.cost(graphs).sum()) * self.checkpoint.config.model.width
        with computing(elements):
            return predict(self._model, store, graphs)

    @cached_property
    def _model(self) -> StackedModel:
        """Built once, because a stream of graphs needs it thousands of times."""
        return self.checkpoint.model(self.device)

    def _store(self, dataset: GraphDataset) -> GraphStore:
        config, card = self.checkpoint.config, self.card
        rounds = config.spec.rounds(config.model)
        return GraphStore(dataset, card.features, card.max_nodes, rounds, self.device)


def load_torch(path: Path, device: torch.device) -> TorchClassifier:
    """The classifier of a checkpoint.

    Raises:
        InputError: the file is not a checkpoint.
    """
    return TorchClassifier(load_checkpoint(path), device)
