"""The copies of a graph that an explanation asks about, some at a time."""

import numpy as np
import pytest
import torch

from ihgnn_cli.data import load_dataset
from ihgnn_cli.data.features import Features
from ihgnn_cli.data.splits.split import holdout
from ihgnn_cli.inference import explanation
from ihgnn_cli.models.card import describe
from ihgnn_cli.training.checkpoint import Checkpoint, build
from ihgnn_cli.training.classifier import TorchClassifier
from ihgnn_cli.training.config import configure


def test_copies_of_a_graph_in_parts_say_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    mutag, graph = load_dataset("MUTAG"), 5
    config = configure(model="h2gcn")
    card = describe("MUTAG", mutag, Features.LABELS, holdout(mutag.graph_class, 0))
    weights = build(config, card.inputs, [0]).state_dict()
    model = TorchClassifier(Checkpoint(config, card, weights, 1, None), torch.device("cpu"))
    whole = explanation.explain_graph(model, mutag, mutag, graph).positions
    monkeypatch.setattr(explanation, "_COPIED_AT_ONCE", 200)
    parts = explanation.explain_graph(model, mutag, mutag, graph).positions
    assert len(whole) == np.diff(mutag.node_ptr)[graph]
    changes = {each.node: each.change for each in parts}
    assert changes == pytest.approx({each.node: each.change for each in whole}, abs=1e-5)
