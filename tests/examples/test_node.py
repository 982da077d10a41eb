"""Exported models in onnxruntime-node."""

import json
import shutil
from pathlib import Path

import pytest
from elsewhere import BUNDLED, EXAMPLES, NODE_MODULES, needs_npm

from ihgnn_cli import UnknownLabelsWarning, export
from ihgnn_cli.deploy.predictor import load
from ihgnn_cli.errors import InputError

pytestmark = needs_npm("onnxruntime-node")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The example beside an installed onnxruntime-node."""
    copied = shutil.copytree(
        EXAMPLES / "node", tmp_path / "node", ignore=lambda *_: ["node_modules"]
    )
    (copied / "node_modules").symlink_to(NODE_MODULES, target_is_directory=True)
    return copied


def test_the_command_in_the_readme_prints_what_it_says(folder: Path, run_node) -> None:
    done = run_node(folder / "predict.mjs", BUNDLED, folder / "nitrobenzene.jsonl")
    readme = (EXAMPLES / "node" / "README.md").read_text(encoding="utf-8")
    assert done.stdout.startswith('{"graph": 0, "class": "-1"')
    assert done.stdout in readme
    assert (folder / "nitrobenzene.jsonl").read_text() in readme


def test_files_that_do_not_fit_are_refused_in_a_line(folder: Path, run_node) -> None:
    graphs = folder / "nitrobenzene.jsonl"
    shutil.copy(BUNDLED.with_suffix(".json"), folder / "broken.json")
    (folder / "broken.onnx").write_text("nothing")
    for script, *args in (
        ("predict.mjs", "none.onnx", graphs),
        ("predict.mjs", graphs, graphs),
        ("predict.mjs", folder / "broken.onnx", graphs),
        ("predict.mjs", BUNDLED, "none.jsonl"),
        ("predict.mjs",),
        ("golden.mjs", "none.golden.json"),
        ("golden.mjs", graphs),
        ("golden.mjs",),
    ):
        done = run_node(folder / script, *args)
        assert (done.returncode, done.stdout) == (2, ""), args
        assert len(done.stderr.splitlines()) == 1, done.stderr


def test_every_graph_of_mutag_is_answered_as_by_python(
    folder: Path, run_node, exported, mutag_lines: Path
) -> None:
    done = run_node(folder / "predict.mjs", exported.model, mutag_lines)
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    graphs = [json.loads(line) for line in mutag_lines.read_text().splitlines()]
    expected = load(exported.model).predict(graphs)
    assert len(found) == len(expected) == 188
    for mine, theirs in zip(found, expected, strict=True):
        assert mine["graph"] == theirs.graph
        assert mine["class"] == str(theirs.class_value)
        for value, probability in theirs.probabilities.items():
            assert mine["probabilities"][str(value)] == pytest.approx(probability, abs=1e-4)


def test_fixed_shapes_are_filled_with_padding(
    folder: Path, run_node, mutag_model, mutag_lines: Path, tmp_path: Path
) -> None:
    model = tmp_path / "fixed.onnx"
    export(mutag_model.checkpoint, model, max_nodes=28, batch=3, verify=False)
    some = tmp_path / "some.jsonl"
    some.write_text("".join(mutag_lines.read_text().splitlines(keepends=True)[:4]))
    done = run_node(folder / "predict.mjs", model, some)
    assert done.returncode == 0, done.stderr
    expected = load(model).predict([json.loads(line) for line in some.read_text().splitlines()])
    found = [json.loads(line)["probabilities"] for line in done.stdout.splitlines()]
    assert len(found) == 4
    for mine, theirs in zip(found, expected, strict=True):
        assert list(mine.values()) == pytest.approx(list(theirs.probabilities.values()), abs=1e-5)


def test_golden_vectors_are_the_same(folder: Path, run_node, exported) -> None:
    done = run_node(folder / "golden.mjs", exported.golden)
    assert done.returncode == 0, done.stderr + done.stdout
    assert done.stdout.count(": same (") == len(json.loads(exported.golden.read_text())["cases"])


def test_a_different_answer_or_input_or_model_is_noticed(
    folder: Path, run_node, exported, tmp_path: Path
) -> None:
    golden = json.loads(exported.golden.read_text())
    golden["cases"][0]["outputs"]["logits"]["data"][1] += 2e-4 * max(
        1, *map(abs, golden["cases"][0]["outputs"]["logits"]["data"])
    )
    golden["cases"][1]["graphs"][0]["node_labels"][0] = 2
    golden["cases"][2]["outputs"]["class"]["values"] = ["other"]
    changed = exported.model.with_name("changed.golden.json")
    changed.write_text(json.dumps(golden))
    done = run_node(folder / "golden.mjs", changed)
    assert done.returncode == 1
    told = done.stdout.splitlines()
    assert "DIFFERENT: logits (" in told[0]
    assert "DIFFERENT: node_labels (" in told[1]
    assert "DIFFERENT: class (" in told[2]

    changed.write_text(json.dumps({**golden, "model_sha256": "0"}))
    done = run_node(folder / "golden.mjs", changed)
    assert done.returncode == 2
    assert "belongs to another model.onnx" in done.stderr


def test_bad_lines_are_reported_and_the_others_answered(folder: Path, run_node, exported) -> None:
    good = '{"node_labels": [0, 9], "edges": [[0, 1]], "id": [1.50, "é", 12345678901234567890]}'
    large = json.dumps({"node_labels": [0] * 40, "edges": []})
    given = f'\ufeff{good}\n\n{{"edges": []}}\n{large}\n'
    done = run_node(folder / "predict.mjs", exported.model, "-", input=given)
    assert done.returncode == 1
    refusal = "-, line 3: no node_labels. Add them, or num_nodes for a graph without labels."
    assert refusal in done.stderr
    first, second = map(json.loads, done.stdout.splitlines())
    assert first["id"] == [1.5, "é", 12345678901234567890]
    assert (first["unknown_nodes"], "larger_than_m" in first) == (1, False)
    assert (second["graph"], second["larger_than_m"]) == (2, True)


def test_unknown_labels_warn_and_at_last_refuse_as_in_python(
    folder: Path, run_node, exported
) -> None:
    model = load(exported.model)
    some = {"node_labels": [0, 0, 0, 0, 99], "edges": []}
    done = run_node(folder / "predict.mjs", exported.model, "-", input=json.dumps(some))
    assert done.returncode == 0
    with pytest.warns(UnknownLabelsWarning) as warned:
        model.predict([some])
    assert done.stderr.strip() == str(warned[0].message)

    nearly_all = {"node_labels": [99, 98, 97, 96, 95, 94, 93], "edges": []}
    done = run_node(folder / "predict.mjs", exported.model, "-", input=json.dumps(nearly_all))
    assert (done.returncode, done.stdout) == (2, "")
    with pytest.raises(InputError) as raised:
        model.predict([nearly_all])
    python = str(raised.value).replace("--allow-unknown (allow_unknown=True in Python)", "")
    assert done.stderr.replace("allowUnknown", "").strip() == python.strip()


@needs_npm("typescript")
def test_the_types_fit_onnxruntime(folder: Path, run_node) -> None:
    (folder / "use.mts").write_text(
        """
import * as ort from 'onnxruntime-node';
import { checkGraph, Model, type Prediction } from './ihgnn.mjs';
const session = await ort.InferenceSession.create('model.onnx');
const graph = checkGraph({ node_labels: new Int32Array([0, 1]), edges: [[0, 1]] });
const found: Prediction[] = await new Model('{}').predict(ort, session, [graph]);
const classes: number[] = found[0].probabilities;
// @ts-expect-error: edges are required
checkGraph({ node_labels: [1] });
"""
    )
    compiler = NODE_MODULES / "typescript" / "bin" / "tsc"
    options = ("--noEmit", "--strict", "--skipLibCheck", "--module", "nodenext")
    done = run_node(compiler, *options, folder / "use.mts")
    assert done.returncode == 0, done.stdout
