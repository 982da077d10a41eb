"""The spread between the members of an exported ensemble, and its computed inputs."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_models import ALL, Eager, dataset, untrained

from ihgnn_cli.data.features import Features
from ihgnn_cli.deploy.export import export_onnx
from ihgnn_cli.deploy.form import Layout
from ihgnn_cli.deploy.onnx_model import UNCERTAINTY, load_onnx
from ihgnn_cli.deploy.runtime import Predictor
from ihgnn_cli.inference.vocabulary import encode_dataset
from ihgnn_cli.models.card import describe
from ihgnn_cli.training import checkpoint as checkpoints
from ihgnn_cli.training.classifier import TorchClassifier

CPU = torch.device("cpu")


@pytest.mark.parametrize("layout", list(Layout))
def test_an_exported_ensemble_tells_the_spread_of_its_checkpoint(layout: Layout) -> None:
    data = dataset(*ALL)
    checkpoint, graphs = untrained(data, members=3), np.arange(len(data))
    _, expected = TorchClassifier(checkpoint, CPU).with_uncertainty(data, graphs)
    found = Eager(checkpoint, layout).answers(data, graphs)
    np.testing.assert_allclose(found.uncertainty, expected, atol=1e-5)
    assert Eager(untrained(data), layout).answers(data, graphs).uncertainty is None


def test_a_file_has_the_uncertainty_and_the_computed_inputs_of_its_model(tmp_path: Path) -> None:
    data = dataset(*ALL)
    plain = untrained(data)
    card = replace(
        describe("tiny", data, Features.LABELS, plain.card.split, "degree,triangles"),
        max_nodes=plain.card.max_nodes,
    )
    model = checkpoints.build(plain.config, card.inputs, [0, 1, 2, 3])
    whole = replace(plain, card=card, weights=model.state_dict(), members=4)
    checkpoint = whole.with_members(2)
    exported = export_onnx(checkpoint, tmp_path / "model.onnx")
    assert exported.inputs["attributes"]["shape"] == ["batch", "nodes", 3]
    assert exported.inputs["attributes"]["meaning"].startswith("log_degree, degree, triangles")
    classifier, reference = load_onnx(exported.path, "cpu"), TorchClassifier(checkpoint, CPU)
    assert UNCERTAINTY in [each.name for each in classifier.session.get_outputs()]
    assert classifier.members == 2
    encoded, graphs = encode_dataset(card, data).dataset, np.arange(len(data))
    given = encoded, graphs
    for found, expected in zip(
        classifier.with_uncertainty(*given), reference.with_uncertainty(*given), strict=True
    ):
        np.testing.assert_allclose(found, expected, atol=1e-5)
    graph = {"node_labels": ["a", "b", "c"], "edges": [[0, 1], [1, 2], [0, 2]]}
    ours, theirs = (Predictor(each).predict([graph])[0] for each in (classifier, reference))
    assert ours.probabilities == pytest.approx(theirs.probabilities, abs=1e-5)
    assert ours.uncertainty == pytest.approx(theirs.uncertainty, abs=1e-5)
