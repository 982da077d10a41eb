"""Prediction sets in exported files: constants, golden vectors, metadata and answers."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from tiny_models import ALL, Eager, dataset, untrained

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

Exported = Callable[..., Export]
BIN = HomophilyThreshold(0.2, 0.3, 12, 0.5, own=True)
DATA = dataset(*ALL)
EVERY = np.arange(len(DATA))


def with_sets(threshold: float | None, members: int = 1) -> Checkpoint:
    """A checkpoint whose predictions have sets, unless the threshold is `None`."""
    checkpoint = untrained(DATA, members=members)
    sets = None if threshold is None else Conformal(0.1, 20, threshold, (BIN,))
    return replace(checkpoint, card=replace(checkpoint.card, conformal=sets))


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Exported:
    """The exported file of `with_sets`, made once for the same arguments."""

    @cache
    def export(threshold: float | None, layout: Layout, members: int = 1) -> Export:
        checkpoint = with_sets(threshold, members)
        cases = [Case("all", encode_dataset(checkpoint.card, DATA).dataset)]
        path = tmp_path_factory.mktemp("sets") / "model.onnx"
        return export_onnx(checkpoint, path, Form(layout), cases, cases)

    return export


@pytest.mark.parametrize("layout", list(Layout))
@pytest.mark.parametrize("members", [1, 2])
def test_a_file_lists_the_classes_that_reach_its_threshold(
    exported: Exported, layout: Layout, members: int
) -> None:
    plain = with_sets(None, members)
    encoded = encode_dataset(plain.card, DATA).dataset
    second = np.sort(Eager(plain, layout).answers(encoded, EVERY).probabilities, axis=1)[:, -2]
    threshold = float((second.min() + second.max()) / 2)  # so that some sets have two classes
    found = load_onnx(exported(threshold, layout, members).path, "cpu")
    answers = found.answers(encoded, EVERY)
    assert answers.prediction_set is not None
    assert answers.prediction_set.dtype == np.uint8
    likely = answers.probabilities
    largest = likely.max(axis=1, keepdims=True)
    expected = (likely >= threshold) | (likely == largest)
    assert answers.prediction_set.tolist() == expected.astype(int).tolist()
    assert {1, 2} <= set(expected.sum(axis=1).tolist())


def test_the_threshold_is_a_constant_of_the_file_and_in_its_metadata(exported: Exported) -> None:
    done = exported(0.25, Layout.SPARSE)
    constants = {
        each.name: numpy_helper.to_array(each) for each in onnx.load(done.path).graph.initializer
    }
    assert constants["prediction_set.threshold"].tolist() == [[0.25]]
    about = json.loads(done.metadata_path.read_text())
    assert about["card"]["conformal"]["threshold"] == 0.25
    assert about["card"]["conformal"]["bins"][0]["threshold"] == 0.5
    assert about["outputs"]["prediction_set"]["type"] == "uint8"
    assert load_onnx(done.path, "cpu").card.conformal == with_sets(0.25).card.conformal


def test_an_empty_batch_has_empty_sets(exported: Exported) -> None:
    path = exported(0.25, Layout.SPARSE).path
    empty = {"node_labels": np.empty(0, np.int64), "edge_index": np.empty((2, 0), np.int64)}
    found = load_onnx(path, "cpu").session.run(
        ["prediction_set"], {**empty, "ptr": np.zeros(1, np.int64)}
    )
    assert found[0].shape == (0, len(DATA.class_values))


def test_a_wrong_set_is_found_by_the_verification_and_by_check_export(
    exported: Exported, tmp_path: Path
) -> None:
    copied = Path(shutil.copytree(exported(0.01, Layout.PADDED).path.parent, tmp_path / "copy"))
    path, golden_path = copied / "model.onnx", copied / "model.golden.json"
    golden = json.loads(golden_path.read_text())
    assert golden["cases"][0]["outputs"]["prediction_set"]["type"] == "uint8"
    assert check_export(path, ["CPUExecutionProvider"]).runtimes[0].passed
    other = with_sets(0.95)  # whose sets have one class each
    case = Case("all", encode_dataset(other.card, DATA).dataset)
    with pytest.raises(IhgnnError, match=r"differs from the checkpoint.* in prediction_set"):
        compare(other, load_onnx(path, "cpu"), [case])
    values = golden["cases"][0]["outputs"]["prediction_set"]["data"]
    golden["cases"][0]["outputs"]["prediction_set"]["data"] = [1 - each for each in values]
    golden_path.write_text(json.dumps(golden))
    assert not check_export(path, ["CPUExecutionProvider"]).runtimes[0].passed


def test_a_class_at_the_threshold_may_be_listed_or_not(exported: Exported) -> None:
    encoded = encode_dataset(with_sets(None).card, DATA).dataset
    plain = load_onnx(exported(None, Layout.PADDED).path, "cpu").answers(encoded, EVERY)
    assert plain.prediction_set is None
    at = float(plain.probabilities.min())
    just_above = float(np.nextafter(np.float32(at), np.float32(1)))
    exported(just_above, Layout.PADDED)  # does not raise


def test_predictions_list_the_set_with_the_most_probable_class_first(exported: Exported) -> None:
    path = exported(0.01, Layout.PADDED).path
    graph = {"node_labels": ["a", "b"], "edges": [[0, 1]]}
    (found,) = load(path).predict([graph])
    ranked = sorted(found.probabilities, key=lambda each: -found.probabilities[each])
    assert found.prediction_set == tuple(ranked)
    assert found.as_entry()["prediction_set"] == [str(each) for each in ranked]
