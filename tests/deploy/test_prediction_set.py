"""Prediction sets in exported files."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tiny_models import ALL, SMALL, Eager, dataset, untrained

from ihgnn_cli.deploy.export import export_onnx
from ihgnn_cli.deploy.golden import check_golden
from ihgnn_cli.deploy.onnx_model import load_onnx
from ihgnn_cli.deploy.predictor import Predictor
from ihgnn_cli.deploy.verification import reference_of, verify
from ihgnn_cli.errors import IhgnnError
from ihgnn_cli.inference.vocabulary import encode_dataset
from ihgnn_cli.models.conformal import Conformal
from ihgnn_cli.models.spec import Layout
from ihgnn_cli.training.checkpoint import Checkpoint

DATA = dataset(*ALL)
EVERY = np.arange(len(DATA))


def with_sets(threshold: float | None, members: int = 1) -> Checkpoint:
    """A checkpoint whose predictions have sets, unless the threshold is `None`."""
    checkpoint = untrained(DATA, replace(SMALL, layers=1), members=members)
    sets = None if threshold is None else Conformal(0.1, 20, threshold)
    return replace(checkpoint, card=replace(checkpoint.card, conformal=sets))


@pytest.mark.parametrize("layout", list(Layout))
@pytest.mark.parametrize("members", [1, 2])
def test_the_classes_that_reach_the_threshold_are_listed(layout: Layout, members: int) -> None:
    encoded = encode_dataset(with_sets(None).card, DATA).dataset
    plain = Eager(with_sets(None, members), layout).answers(encoded, EVERY)
    assert plain.prediction_set is None
    second = np.sort(plain.probabilities, axis=1)[:, -2]
    threshold = float((second.min() + second.max()) / 2)  # so that some sets have two classes
    found = Eager(with_sets(threshold, members), layout).answers(encoded, EVERY)
    likely = found.probabilities
    expected = (likely >= threshold) | (likely == likely.max(axis=1, keepdims=True))
    assert found.prediction_set.tolist() == expected.astype(int).tolist()
    assert {1, 2} <= set(expected.sum(axis=1).tolist())


def test_a_file_lists_its_sets_and_is_held_to_them(tmp_path: Path) -> None:
    checkpoint = with_sets(0.01)
    path = tmp_path / "model.onnx"
    done = export_onnx(reference_of(checkpoint), path, graphs=DATA)
    about = json.loads(done.metadata_path.read_text())
    assert about["card"]["conformal"]["threshold"] == 0.01
    assert about["outputs"]["prediction_set"]["type"] == "uint8"
    classifier = load_onnx(path, "cpu")
    assert classifier.card.conformal == checkpoint.card.conformal
    empty = {"node_labels": np.zeros((0, 1)), "adjacency": np.zeros((0, 1, 1))}
    assert classifier.run(empty).prediction_set.shape == (0, len(DATA.class_values))
    graph = {"node_labels": ["a", "b"], "edges": [[0, 1]]}
    (found,) = Predictor(classifier).predict([graph])
    ranked = sorted(found.probabilities, key=lambda each: -found.probabilities[each])
    assert found.prediction_set == tuple(ranked)
    assert found.as_entry()["prediction_set"] == [str(each) for each in ranked]
    assert check_golden(path).passed
    golden = json.loads(done.golden_path.read_text())
    values = golden["outputs"]["prediction_set"]["data"]
    golden["outputs"]["prediction_set"]["data"] = [1 - each for each in values]
    done.golden_path.write_text(json.dumps(golden))
    assert not check_golden(path).passed
    with pytest.raises(IhgnnError, match="in prediction_set"):
        verify(reference_of(with_sets(0.95)), classifier, DATA)  # whose sets have one class each
