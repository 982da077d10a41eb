"""Exported files answer as their checkpoints do, and files that do not are never written."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from google.protobuf.json_format import MessageToDict
from onnx.reference import ReferenceEvaluator
from tiny_models import (
    ALL,
    LARGER_THAN_M,
    NO_EDGES,
    PATH,
    SINGLE,
    SMALL,
    STAR,
    TRIANGLE,
    dataset,
    torch_logits,
    untrained,
)

from ihgnn_cli.cli.export import export as command
from ihgnn_cli.data.jsonl import write_jsonl
from ihgnn_cli.deploy import export as module
from ihgnn_cli.deploy.export import as_onnx, export_onnx
from ihgnn_cli.deploy.metadata import KEY
from ihgnn_cli.deploy.onnx_model import OUTPUTS, check_target, load_onnx
from ihgnn_cli.deploy.verification import reference_of
from ihgnn_cli.errors import IhgnnError, InputError
from ihgnn_cli.inference.metrics import member_probabilities, member_spread
from ihgnn_cli.models.settings import IHGNNSettings
from ihgnn_cli.models.spec import Layout
from ihgnn_cli.training.checkpoint import save_checkpoint

EVERY = np.arange(len(ALL))


def test_the_file_answers_as_the_training_forward(exported) -> None:
    logits = torch_logits(exported.checkpoint, exported.data)
    found = load_onnx(exported.done.path, "cpu").answers(exported.data, EVERY)
    likely = member_probabilities(logits)
    np.testing.assert_allclose(found.probabilities, likely.mean(axis=0), atol=1e-6)
    if exported.checkpoint.members == 1:
        np.testing.assert_allclose(found.logits, logits[0], atol=1e-5)
        assert found.uncertainty is None
    else:
        np.testing.assert_allclose(found.logits, np.log(likely.mean(axis=0)), atol=1e-5)
        np.testing.assert_allclose(found.uncertainty, member_spread(likely), atol=1e-5)
    assert found.graph_embedding.shape == (len(ALL), SMALL.hidden)
    parity = exported.done.parity
    assert max(each.logits for each in parity.cases) < 1e-5
    assert parity.near_ties == 0


def test_the_file_takes_any_batch_also_none_and_graphs_without_nodes(exported) -> None:
    classifier = load_onnx(exported.done.path, "cpu")
    whole = classifier.answers(exported.data, EVERY).logits
    for graphs in ([4], [4, 4], [6], [3, 3, 1]):
        inputs = classifier.inputs(exported.data, np.array(graphs))
        np.testing.assert_allclose(classifier.run(inputs).logits, whole[graphs], atol=1e-5)
    inputs = classifier.inputs(exported.data, np.array([], dtype=np.int64))
    shapes = {
        name: each.shape for name, each in vars(classifier.run(inputs)).items() if each is not None
    }
    assert shapes["logits"] == shapes["probabilities"] == (0, 2)
    assert shapes["graph_embedding"] == (0, SMALL.hidden)
    assert shapes.get("uncertainty", (0,)) == (0,)
    if exported.done.layout is Layout.PADDED:
        bare = {"node_labels": np.zeros((2, 0)), "adjacency": np.zeros((2, 0, 0))}
        rows = (2, 0)
    else:
        bare = {"node_labels": [], "edge_index": np.zeros((2, 0)), "ptr": [0, 0, 0]}
        rows = (0,)
    if exported.data.node_attributes is not None and exported.checkpoint.card.attributes:
        bare["attributes"] = np.zeros((*rows, 2))
    found = classifier.run(bare)
    assert found.logits.shape == (2, 2)
    assert np.isfinite(found.logits).all()


def test_other_runtimes_and_harmless_mistakes_answer_the_same(exported) -> None:
    """Self-loops, one direction, and a graph without nodes, also in ONNX's reference evaluator."""
    classifier = load_onnx(exported.done.path, "cpu")
    inputs = classifier.inputs(exported.data, EVERY)
    expected = classifier.session.run(None, inputs)
    if exported.done.layout is Layout.PADDED:
        inputs["adjacency"] = np.triu(inputs["adjacency"]) + np.eye(7, dtype=np.uint8)
        inputs = {name: np.concatenate([each, each[:1]]) for name, each in inputs.items()}
        inputs["node_labels"][-1] = -1
    else:
        loops = np.tile(np.arange(3), (2, 1))
        inputs["edge_index"] = np.concatenate([loops, inputs["edge_index"], loops], 1)
        inputs["ptr"] = np.append(inputs["ptr"], inputs["ptr"][-1])
    found = classifier.session.run(None, inputs)
    for values, right in zip(found, expected, strict=True):
        np.testing.assert_allclose(values[:-1], right, rtol=1e-6, atol=1e-7)
    with np.errstate(over="ignore"):
        others = ReferenceEvaluator(str(exported.done.path)).run(None, inputs)
    for values, right in zip(others, found, strict=True):
        np.testing.assert_allclose(values, right, rtol=1e-4, atol=1e-5)


def test_every_label_beyond_the_vocabulary_is_unknown(exported) -> None:
    classifier = load_onnx(exported.done.path, "cpu")
    inputs = classifier.inputs(exported.data, np.array([5]))
    assert -2 in inputs["node_labels"]
    expected = classifier.session.run(["logits"], inputs)[0]
    others = (-3, 3, 2**62) if exported.done.layout is Layout.PADDED else (-1, -3, 3, 2**62)
    for other in others:
        changed = np.where(inputs["node_labels"] == -2, other, inputs["node_labels"])
        found = classifier.session.run(["logits"], {**inputs, "node_labels": changed})[0]
        np.testing.assert_array_equal(found, expected)


def test_neither_threads_nor_the_order_of_edges_change_a_sparse_answer(exported_file) -> None:
    path = exported_file(1, Layout.SPARSE).done.path
    size = 300
    dense = [(i, j) for i in range(size) for j in range(i) if (i * j) % 7 == 1]
    data = dataset(([node % 3 for node in range(size)], dense), PATH, STAR)
    one, four = (load_onnx(path, "cpu", threads=threads) for threads in (1, 2))
    inputs = one.inputs(data, np.arange(3))
    expected = one.session.run(["logits"], inputs)[0]
    for _ in range(10):
        np.testing.assert_array_equal(four.session.run(["logits"], inputs)[0], expected)
    turned = np.random.default_rng(0).permutation(inputs["edge_index"].shape[1])
    inputs["edge_index"] = inputs["edge_index"][:, turned]
    np.testing.assert_array_equal(one.session.run(["logits"], inputs)[0], expected)


def test_the_graph_has_no_operation_that_a_runtime_gets_wrong(exported) -> None:
    graph = onnx.shape_inference.infer_shapes(onnx.load(exported.done.path)).graph
    operations = {node.op_type for node in graph.node}
    assert not operations & {"Einsum", "ScatterND", "GatherElements"}
    # onnxruntime has no CUDA kernel for a Pad of integers.
    kinds = {
        each.name: each.type.tensor_type.elem_type for each in (*graph.input, *graph.value_info)
    }
    padded = {kinds[node.input[0]] for node in graph.node if node.op_type == "Pad"}
    assert padded <= {onnx.TensorProto.FLOAT}


def test_more_members_add_no_operations(exported_file) -> None:
    for layout in Layout:
        three = exported_file(3, layout)
        weights = {name: each[:2] for name, each in three.checkpoint.weights.items()}
        two = reference_of(replace(three.checkpoint, weights=weights, members=2)).members
        nodes = len(onnx.load(three.done.path).graph.node)
        assert len(as_onnx(two, layout).graph.node) == nodes


def test_the_file_is_valid_old_enough_and_described_as_it_is(exported) -> None:
    proto = onnx.load(exported.done.path)
    onnx.checker.check_model(proto, full_check=True)
    assert (proto.ir_version, [(each.domain, each.version) for each in proto.opset_import]) == (
        8,
        [("", 18)],
    )
    about = json.loads(exported.done.metadata_path.read_text(encoding="utf-8"))
    for name, what in (about["inputs"] | about["outputs"]).items():
        (value,) = (v for v in (*proto.graph.input, *proto.graph.output) if v.name == name)
        kind = value.type.tensor_type
        assert [dim.dim_param or dim.dim_value for dim in kind.shape.dim] == what["shape"]
        assert onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type).name == what["type"]
        assert what["meaning"]
    assert about["outputs"]["graph_embedding"]["shape"] == ["batch", SMALL.hidden]


def test_nothing_in_the_files_tells_of_this_machine(exported) -> None:
    done = exported.done
    content = done.path.read_bytes() + done.metadata_path.read_bytes()
    content += done.golden_path.read_bytes()
    for place in (Path.cwd(), Path.home(), Path(module.__file__).parent, Path("/home/me")):
        assert str(place).encode() not in content
    for sign in (b"site-packages", b".py", b"Traceback", b"stack_trace"):
        assert sign not in content
    # Nor any other place: a slash or backslash that does not stand inside of a name.
    for text in strings(MessageToDict(onnx.load(done.path))):
        assert not re.search(r"(?<![\w/])/\w|[A-Za-z]:\\\\", text), text


def strings(value: object) -> Iterator[str]:
    """All text in a file but the weights."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, each in value.items():
            if key not in {"rawData", "t"}:
                yield from strings(each)
    elif isinstance(value, list):
        for each in value:
            yield from strings(each)


def test_a_fixed_size_is_the_size_and_larger_graphs_are_refused(tmp_path: Path) -> None:
    data = dataset(TRIANGLE, PATH, STAR, NO_EDGES, SINGLE)
    checkpoint = untrained(data, replace(SMALL, layers=1))
    reference = reference_of(checkpoint)
    done = export_onnx(reference, tmp_path / "model.onnx", nodes=4, graphs=data)
    assert done.inputs["adjacency"]["shape"] == ["batch", 4, 4]
    classifier = load_onnx(done.path)
    assert classifier.nodes == 4
    small = dataset(TRIANGLE, NO_EDGES, SINGLE)
    found = classifier.answers(small, np.arange(3)).logits
    np.testing.assert_allclose(found, torch_logits(checkpoint, small)[0], atol=1e-5)
    assert classifier.inputs(small, np.array([2]))["node_labels"].tolist() == [[2, -1, -1, -1]]
    with pytest.raises(InputError, match=r"A graph has 5 nodes.* up to 4 .*--layout sparse"):
        classifier.answers(dataset(SINGLE, PATH), np.arange(2))


def without_metadata(path: Path) -> onnx.ModelProto:
    """The network before the metadata is added."""
    proto = onnx.load(path)
    del proto.metadata_props[:]
    return proto


def test_a_file_that_answers_otherwise_is_never_written(
    exported_file, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    exported = exported_file(1, Layout.PADDED)
    monkeypatch.setattr(module, "as_onnx", lambda *_: without_metadata(exported.done.path))
    weights = {name: each * 1.5 for name, each in exported.checkpoint.weights.items()}
    other = reference_of(replace(exported.checkpoint, weights=weights))
    (tmp_path / "old.onnx").write_text("mine")
    for name in ("new.onnx", "old.onnx"):
        with pytest.raises(IhgnnError, match="No file was written"):
            export_onnx(other, tmp_path / name, graphs=exported.data.select([0, 1, 2]))
    assert [each.name for each in tmp_path.iterdir()] == ["old.onnx"]
    assert (tmp_path / "old.onnx").read_text() == "mine"


def test_nothing_is_left_where_an_export_is_interrupted_or_invalid(
    exported_file, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    exported = exported_file(1, Layout.PADDED)
    reference, proto = reference_of(exported.checkpoint), without_metadata(exported.done.path)
    monkeypatch.setattr(module, "as_onnx", lambda *_: proto)

    def interrupted(*_: object) -> None:
        assert len(list(tmp_path.iterdir())) == 2
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "verify", interrupted)
    with pytest.raises(KeyboardInterrupt):
        export_onnx(reference, tmp_path / "model.onnx", graphs=exported.data)
    del proto.graph.node[5], proto.metadata_props[:]
    with pytest.raises(IhgnnError, match="not valid ONNX"):
        export_onnx(reference, tmp_path / "model.onnx")
    proto.opset_import[0].version = 20
    with pytest.raises(IhgnnError, match="does not export to opset 18"):
        export_onnx(reference, tmp_path / "model.onnx")
    assert not list(tmp_path.iterdir())


def test_what_cannot_be_exported_is_refused_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: object, **__: object) -> None:
        raise torch.onnx.OnnxExporterError("many lines")

    reference = reference_of(untrained(dataset(*ALL)))
    with pytest.raises(InputError, match=r"does not end in \.onnx"):
        export_onnx(reference, tmp_path / "model.pt")
    files = ["X.ONNX", "X.json", "X.golden.json"]
    assert check_target(Path("X.ONNX")) == [Path(each) for each in files]
    monkeypatch.setattr(torch.onnx, "export", failing)
    with pytest.raises(IhgnnError, match="cannot export the model"):
        export_onnx(reference, tmp_path / "model.onnx")
    monkeypatch.setattr(module, "_MOST_BYTES", 1000)
    with pytest.raises(IhgnnError, match="too large"):
        export_onnx(reference, tmp_path / "model.onnx")
    assert not list(tmp_path.iterdir())


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """The checkpoint of a model of a data set in a file."""
    data = dataset(*ALL[:5], LARGER_THAN_M)
    write_jsonl(data, tmp_path / "tiny.jsonl")
    checkpoint = untrained(data, IHGNNSettings(layers=0, width=4, hidden=3))
    card = replace(checkpoint.card, dataset=str(tmp_path / "tiny.jsonl"))
    save_checkpoint(replace(checkpoint, card=card), tmp_path / "ckpt.pt")
    return tmp_path / "ckpt.pt"


def test_the_command_exports_verifies_and_shows(
    saved: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    model = saved.with_name("model.onnx")
    command(saved, model, layout=Layout.SPARSE, as_json=True)
    out, err = capfd.readouterr()
    assert err == "Exporting IHGNN ...\n"
    told = json.loads(out)
    assert told["path"] == str(model)
    assert {each["case"] for each in told["parity"]["cases"]} == {
        *("small to large", "without edges", "larger than m", "nodes permuted", "unknown labels"),
    }
    assert told["golden_path"] == str(model.with_name("model.golden.json"))
    assert (told["layout"], told["adjacency_bytes_per_graph"]) == ("sparse", None)
    with pytest.raises(InputError, match=r"model\.onnx already exists.*--force"):
        command(saved, model)
    again = without_metadata(model)  # exporting takes seconds, and gives the same
    monkeypatch.setattr(module, "as_onnx", lambda *_: again)
    command(saved, model, layout=Layout.SPARSE, force=True)
    out, err = capfd.readouterr()
    for said in ("sparse", "[2, edges]", "small to large", "nodes permuted"):
        assert said in out
    # A golden file of an earlier export does not stay beside a new one.
    again.ClearField("metadata_props")
    command(saved, model, layout=Layout.SPARSE, force=True, verify=False)
    assert "Not compared" in capfd.readouterr().err
    assert sorted(each.name for each in saved.parent.iterdir()) == [
        *("ckpt.pt", "model.json", "model.onnx", "tiny.jsonl")
    ]


def test_the_command_needs_the_data_unless_it_does_not_verify(saved: Path) -> None:
    saved.with_name("tiny.jsonl").unlink()
    model = saved.with_name("model.onnx")
    with pytest.raises(IhgnnError, match="--no-verify"):
        command(saved, model, offline=True)
    with pytest.raises(InputError, match="Drop one"):
        command(saved, model, verify=False, dataset="MUTAG")
    with pytest.raises(InputError, match="which does not pad"):
        command(saved, model, layout=Layout.SPARSE, max_nodes=30)
    with pytest.raises(InputError, match="at least 1"):
        command(saved, model, max_nodes=0)
    assert not model.exists()


def test_the_metadata_in_the_file_is_that_beside_it_and_more(exported) -> None:
    beside = json.loads(exported.done.metadata_path.read_text(encoding="utf-8"))
    inside = {each.key: each.value for each in onnx.load(exported.done.path).metadata_props}
    whole = json.loads(inside[KEY])
    assert whole["card"].pop("split").keys() == {"test", "model_selection"}
    assert len(whole["card"].pop("seen")) == 2
    assert beside == whole
    assert beside["members"] == exported.checkpoint.members
    assert beside["card"]["label_values"] == ["a", "b", "c"]
    assert beside["card"]["dataset"] in {"", "tiny"}  # a path means nothing elsewhere
    assert set(beside["outputs"]) <= set(OUTPUTS)
    assert exported.done.size == exported.done.path.stat().st_size
