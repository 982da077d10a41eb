"""Prediction sets in exported files: constants, golden vectors, metadata and answers."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from tiny_models import ALL, dataset, untrained

from ihgnn_cli.deploy import load
from ihgnn_cli.deploy.cases import Case
from ihgnn_cli.deploy.checking import check_export
from ihgnn_cli.deploy.export import Export, export_onnx
from ihgnn_cli.deploy.form import Form, Layout
from ihgnn_cli.deploy.onnx_model import load_onnx
from ihgnn_cli.deploy.verification import compare
from ihgnn_cli.errors import IhgnnError
from ihgnn_cli.inference.vocabulary import encode_dataset
from ihgnn_cli.models.conformal import Conformal, HomophilyThreshold
from ihgnn_cli.training.checkpoint import Checkpoint

BIN = HomophilyThreshold(0.2, 0.3, 12, 0.5, own=True)
DATA = dataset(*ALL)
EVERY = np.arange(len(DATA))


def with_sets(threshold: float, members: int = 1) -> Checkpoint:
    checkpoint = untrained(DATA, members=members)
    sets = Conformal(0.1, 20, threshold, (BIN,))
    return replace(checkpoint, card=replace(checkpoint.card, conformal=sets))


def exported(checkpoint: Checkpoint, folder: Path, layout: Layout) -> Export:
    cases = [Case("all", encode_dataset(checkpoint.card, DATA).dataset)]
    return export_onnx(checkpoint, folder / "model.onnx", Form(layout), cases, cases)


@pytest.mark.parametrize("layout", list(Layout))
@pytest.mark.parametrize("members", [1, 2])
def test_a_file_lists_the_classes_that_reach_its_threshold(
    tmp_path: Path, layout: Layout, members: int
) -> None:
    plain = untrained(DATA, members=members)
    path = export_onnx(plain, tmp_path / "plain.onnx", Form(layout)).path
    encoded = encode_dataset(plain.card, DATA).dataset
    likely = load_onnx(path, "cpu").answers(encoded, EVERY).probabilities
    second = np.sort(likely, axis=1)[:, -2]
    threshold = float((second.min() + second.max()) / 2)  # so that some sets have two classes
    found = load_onnx(exported(with_sets(threshold, members), tmp_path, layout).path, "cpu")
    answers = found.answers(encoded, EVERY)
    assert answers.prediction_set is not None
    assert answers.prediction_set.dtype == np.uint8
    largest = likely.max(axis=1, keepdims=True)
    expected = (likely >= threshold) | (likely == largest)
    assert answers.prediction_set.tolist() == expected.astype(int).tolist()
    assert {1, 2} <= set(expected.sum(axis=1).tolist())
    assert load_onnx(path, "cpu").answers(encoded, EVERY).prediction_set is None


def test_the_threshold_is_a_constant_of_the_file_and_in_its_metadata(tmp_path: Path) -> None:
    done = exported(with_sets(0.25), tmp_path, Layout.SPARSE)
    constants = {
        each.name: numpy_helper.to_array(each) for each in onnx.load(done.path).graph.initializer
    }
    assert constants["prediction_set.threshold"].tolist() == [[0.25]]
    about = json.loads(done.metadata_path.read_text())
    assert about["card"]["conformal"]["threshold"] == 0.25
    assert about["card"]["conformal"]["bins"][0]["threshold"] == 0.5
    assert about["outputs"]["prediction_set"]["type"] == "uint8"
    assert load_onnx(done.path, "cpu").card.conformal == with_sets(0.25).card.conformal


def test_an_empty_batch_has_empty_sets(tmp_path: Path) -> None:
    path = exported(with_sets(0.25), tmp_path, Layout.SPARSE).path
    empty = {"node_labels": np.empty(0, np.int64), "edge_index": np.empty((2, 0), np.int64)}
    found = load_onnx(path, "cpu").session.run(
        ["prediction_set"], {**empty, "ptr": np.zeros(1, np.int64)}
    )
    assert found[0].shape == (0, len(DATA.class_values))


def test_a_wrong_set_is_found_by_the_verification_and_by_check_export(tmp_path: Path) -> None:
    done = exported(with_sets(0.05), tmp_path, Layout.PADDED)
    golden = json.loads(done.golden_path.read_text())  # type: ignore[union-attr]
    assert golden["cases"][0]["outputs"]["prediction_set"]["type"] == "uint8"
    assert check_export(done.path, ["CPUExecutionProvider"]).runtimes[0].passed
    other = with_sets(0.95)  # whose sets have one class each
    case = Case("all", encode_dataset(other.card, DATA).dataset)
    with pytest.raises(IhgnnError, match=r"differs from the checkpoint.* in prediction_set"):
        compare(other, load_onnx(done.path, "cpu"), [case])
    values = golden["cases"][0]["outputs"]["prediction_set"]["data"]
    golden["cases"][0]["outputs"]["prediction_set"]["data"] = [1 - each for each in values]
    done.golden_path.write_text(json.dumps(golden))  # type: ignore[union-attr]
    assert not check_export(done.path, ["CPUExecutionProvider"]).runtimes[0].passed


def test_a_class_at_the_threshold_may_be_listed_or_not(tmp_path: Path) -> None:
    encoded = encode_dataset(untrained(DATA).card, DATA).dataset
    path = export_onnx(untrained(DATA), tmp_path / "plain.onnx").path
    at = float(load_onnx(path, "cpu").answers(encoded, EVERY).probabilities.min())
    just_above = float(np.nextafter(np.float32(at), np.float32(1)))
    exported(with_sets(just_above), tmp_path, Layout.PADDED)  # does not raise


def test_predictions_list_the_set_with_the_most_probable_class_first(tmp_path: Path) -> None:
    path = exported(with_sets(0.01), tmp_path, Layout.PADDED).path
    graph = {"node_labels": ["a", "b"], "edges": [[0, 1]]}
    (found,) = load(path).predict([graph])
    ranked = sorted(found.probabilities, key=lambda each: -found.probabilities[each])
    assert found.prediction_set == tuple(ranked)
    assert found.as_entry()["prediction_set"] == [str(each) for each in ranked]
