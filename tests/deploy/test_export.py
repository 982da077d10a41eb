"""Exported files say what their checkpoints say, and files that do not are never written."""

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
    AUTHORS,
    KITE,
    LARGE_STAR,
    LARGER_THAN_M,
    NO_EDGES,
    PATH,
    SINGLE,
    SMALL,
    STAR,
    TRIANGLE,
    Eager,
    dataset,
    torch_logits,
    untrained,
)

from ihgnn_cli.cli.export import export as command
from ihgnn_cli.data.dataset import GraphDataset
from ihgnn_cli.data.features import Features
from ihgnn_cli.data.jsonl import write_jsonl
from ihgnn_cli.deploy import export as module
from ihgnn_cli.deploy.cases import Case, cases_of
from ihgnn_cli.deploy.export import Export, export_onnx
from ihgnn_cli.deploy.form import Form, Layout
from ihgnn_cli.deploy.golden import read_golden
from ihgnn_cli.deploy.metadata import KEY, LARGEST
from ihgnn_cli.deploy.onnx_model import OUTPUTS, check_target, load_onnx
from ihgnn_cli.deploy.verification import compare
from ihgnn_cli.errors import IhgnnError, InputError
from ihgnn_cli.inference.vocabulary import encode_dataset
from ihgnn_cli.models.card import Snapshot
from ihgnn_cli.models.settings import IHGNNSettings, Variant
from ihgnn_cli.training.checkpoint import Checkpoint, save_checkpoint

Exported = tuple[Checkpoint, Export]

SPARSE = Form(Layout.SPARSE)
ONE_LAYER = replace(SMALL, layers=1)


def all_of(data: GraphDataset) -> list[Case]:
    return [Case("all", data)]


def labels(folder: Path, form: Form) -> Exported:
    """One model of labels."""
    data = dataset(*ALL)
    checkpoint = untrained(data, ONE_LAYER)
    cases = [*all_of(data), *cases_of(checkpoint, data, form.nodes)]
    return checkpoint, export_onnx(checkpoint, folder / "model.onnx", form, cases)


def both(folder: Path, form: Form) -> Exported:
    """Three models that read labels and attributes and do most things the other way."""
    data = dataset(*ALL)
    settings = replace(ONE_LAYER, variant=Variant.NO_ADAPTIVE, **AUTHORS)
    checkpoint = untrained(data, settings, Features.BOTH, members=3)
    snapshot = Snapshot(1, True, (0, 1, 2), "/home/me/splits.json:0")
    card = replace(checkpoint.card, dataset="/home/me/tiny.jsonl", snapshot=snapshot)
    checkpoint = replace(checkpoint, card=card)
    return checkpoint, export_onnx(checkpoint, folder / "model.onnx", form, all_of(data))


@pytest.fixture(scope="module")
def padded(tmp_path_factory: pytest.TempPathFactory) -> Exported:
    return labels(tmp_path_factory.mktemp("padded"), Form())


@pytest.fixture(scope="module")
def padded_three(tmp_path_factory: pytest.TempPathFactory) -> Exported:
    return both(tmp_path_factory.mktemp("padded-three"), Form())


@pytest.fixture(scope="module")
def sparse(tmp_path_factory: pytest.TempPathFactory) -> Exported:
    return labels(tmp_path_factory.mktemp("sparse"), SPARSE)


@pytest.fixture(scope="module")
def sparse_three(tmp_path_factory: pytest.TempPathFactory) -> Exported:
    return both(tmp_path_factory.mktemp("sparse-three"), SPARSE)


@pytest.fixture(params=["padded", "padded_three", "sparse", "sparse_three"])
def exported(request: pytest.FixtureRequest) -> Exported:
    found: Exported = request.getfixturevalue(request.param)
    return found


def test_the_file_answers_as_the_checkpoint_does(exported: Exported) -> None:
    _, done = exported
    assert done.parity is not None
    assert sum(each.graphs for each in done.parity.cases) >= len(ALL)
    assert max(each.logits for each in done.parity.cases) < 1e-5
    assert max(each.probabilities for each in done.parity.cases) < 1e-6
    assert done.parity.swapped == 0


def test_the_file_takes_any_batch(exported: Exported) -> None:
    checkpoint, done = exported
    classifier = load_onnx(done.path)
    for graphs in [(SINGLE,), (SINGLE, SINGLE), (LARGER_THAN_M,), (NO_EDGES, NO_EDGES, PATH)]:
        compare(checkpoint, classifier, all_of(dataset(*graphs)))
    inputs = classifier.inputs(dataset(*ALL), np.array([], dtype=np.int64))
    shapes = [each.shape for each in classifier.session.run(None, inputs)]
    several = [(0,)] * (checkpoint.members > 1)  # uncertainty
    assert shapes == [(0, 2), (0, 2), (0, SMALL.hidden), (0,), *several]


def test_other_runtimes_answer_the_same(exported: Exported) -> None:
    """Graphs with mistakes and without nodes, in onnxruntime and ONNX's reference evaluator."""
    _, done = exported
    classifier = load_onnx(done.path)
    inputs = classifier.inputs(dataset(*ALL), np.arange(len(ALL)))
    expected = classifier.session.run(None, inputs)
    if done.form.layout is Layout.PADDED:
        inputs["adjacency"] = np.triu(inputs["adjacency"]) + np.eye(7, dtype=np.uint8)
        inputs = {name: np.concatenate([each, each[:1]]) for name, each in inputs.items()}
        inputs["node_labels"][-1] = -1
    else:
        loops = np.tile(np.arange(3), (2, 1))
        inputs["edge_index"] = np.concatenate([loops, inputs["edge_index"], loops], 1)
        inputs["ptr"] = np.append(inputs["ptr"], inputs["ptr"][-1])
    found = classifier.session.run(None, inputs)
    for values, right in zip(found, expected, strict=True):
        np.testing.assert_array_equal(values[:-1], right)
    assert found[OUTPUTS.index("order_margin")][-1] == LARGEST
    with np.errstate(over="ignore"):  # at padding, which is not selected
        others = ReferenceEvaluator(str(done.path)).run(None, inputs)
    for values, right in zip(others, found, strict=True):
        np.testing.assert_allclose(values, right, rtol=1e-4, atol=1e-5)


def test_no_pad_has_integers(exported: Exported) -> None:
    # onnxruntime has no CUDA kernel for it.
    graph = onnx.shape_inference.infer_shapes(onnx.load(exported[1].path)).graph
    kinds = {
        each.name: each.type.tensor_type.elem_type for each in (*graph.input, *graph.value_info)
    }
    padded = {kinds[node.input[0]] for node in graph.node if node.op_type == "Pad"}
    assert padded == {onnx.TensorProto.FLOAT}


def test_the_margin_of_a_graph_is_the_smallest_of_its_members(
    padded_three: Exported, sparse_three: Exported
) -> None:
    data = dataset(*ALL)
    checkpoint, _ = padded_three
    margins = [
        load_onnx(done.path).answers(data, np.arange(len(ALL))).order_margin
        for _, done in (padded_three, sparse_three)
    ]
    each = []
    for i in range(3):
        weights = {name: value[i : i + 1] for name, value in checkpoint.weights.items()}
        member = Eager(replace(checkpoint, members=1, weights=weights))
        each.append(member.answers(data, np.arange(len(ALL))).order_margin)
    for found in margins:
        np.testing.assert_allclose(found, np.min(each, axis=0), rtol=1e-3)


@pytest.mark.parametrize("name", ["padded", "padded_three"])
def test_every_value_but_0_is_an_edge(name: str, request: pytest.FixtureRequest) -> None:
    _, done = request.getfixturevalue(name)
    classifier = load_onnx(done.path)
    inputs = classifier.inputs(dataset(*ALL), np.arange(len(ALL)))
    expected = classifier.session.run(["logits"], inputs)[0]
    inputs["adjacency"] *= 255
    np.testing.assert_array_equal(classifier.session.run(["logits"], inputs)[0], expected)


def test_every_label_beyond_the_vocabulary_is_unknown(exported: Exported) -> None:
    _, done = exported
    classifier = load_onnx(done.path)
    inputs = classifier.inputs(dataset(*ALL), np.array([5]))
    assert -2 in inputs["node_labels"]
    expected = classifier.session.run(["logits"], inputs)[0]
    others = (-3, 3, 2**62) if done.form.layout is Layout.PADDED else (-1, -3, 3, 2**62)
    for other in others:
        changed = np.where(inputs["node_labels"] == -2, other, inputs["node_labels"])
        found = classifier.session.run(["logits"], {**inputs, "node_labels": changed})[0]
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("layout", Layout)
def test_degrees_are_counted_inside(layout: Layout, tmp_path: Path) -> None:
    seen = dataset(TRIANGLE, PATH, STAR, NO_EDGES, SINGLE, labelled=False)
    checkpoint = untrained(seen, ONE_LAYER)
    cases = cases_of(checkpoint, seen)
    done = export_onnx(checkpoint, tmp_path / "model.onnx", Form(layout), cases)
    assert done.parity is not None
    assert "degree above all seen" in {each.case for each in done.parity.cases}
    assert "computes degrees itself" in done.inputs["node_labels"]["meaning"]
    other = dataset(KITE, LARGE_STAR, STAR, labelled=False)
    words = encode_dataset(checkpoint.card, other).dataset
    classifier = load_onnx(done.path)
    expected = torch_logits(checkpoint, words)[0]
    np.testing.assert_allclose(classifier.answers(words, np.arange(3)).logits, expected, atol=1e-5)
    inputs = classifier.inputs(words, np.arange(3))
    inputs["node_labels"] = np.where(inputs["node_labels"] == -1, -1, 0)  # 0: here is a node
    found = classifier.session.run(["logits"], inputs)[0]
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_threads_do_not_change_a_sparse_answer(sparse: Exported) -> None:
    # onnxruntime's ScatterND loses some of what several threads add to the same row.
    checkpoint, done = sparse
    for node in onnx.load(done.path).graph.node:
        assert node.op_type != "ScatterND", "its rows have to be different ones"
    size = 300
    dense = [(i, j) for i in range(size) for j in range(i) if (i * j) % 7 == 1]
    data = dataset(([node % 3 for node in range(size)], dense), PATH, STAR)
    one, four = (load_onnx(done.path, "cpu", threads=threads) for threads in (1, 4))
    inputs = one.inputs(data, np.arange(3))
    expected = one.session.run(["logits"], inputs)[0]
    for _ in range(20):
        np.testing.assert_array_equal(four.session.run(["logits"], inputs)[0], expected)
    # Nor does the order of the edges.
    turned = np.random.default_rng(0).permutation(inputs["edge_index"].shape[1])
    inputs["edge_index"] = inputs["edge_index"][:, turned]
    np.testing.assert_allclose(one.session.run(["logits"], inputs)[0], expected, rtol=1e-3)
    compare(checkpoint, four, all_of(data))


def test_a_fixed_size_is_the_size_and_larger_graphs_are_refused(tmp_path: Path) -> None:
    checkpoint, done = labels_up_to(4, tmp_path)
    assert done.inputs["adjacency"]["shape"] == ["batch", 4, 4]
    assert done.parity is not None
    assert "graph larger than m" not in {each.case for each in done.parity.cases}
    proto = onnx.load(done.path)
    # Places that no graph can reach are left out.
    readout = {tuple(each.dims) for each in proto.graph.initializer if "readout" in each.name}
    assert readout == {(4 * SMALL.width, SMALL.hidden), (SMALL.hidden,)}
    classifier = load_onnx(done.path)
    small = dataset(TRIANGLE, NO_EDGES, SINGLE)
    compare(checkpoint, classifier, all_of(small))
    assert classifier.inputs(small, np.array([2]))["node_labels"].tolist() == [[2, -1, -1, -1]]
    with pytest.raises(InputError, match=r"A graph has 5 nodes.* up to 4 .*--layout sparse"):
        classifier.answers(dataset(SINGLE, PATH), np.arange(2))


def labels_up_to(nodes: int, folder: Path) -> Exported:
    data = dataset(TRIANGLE, PATH, STAR, NO_EDGES, SINGLE)
    checkpoint = untrained(data, ONE_LAYER)
    form = Form(nodes=nodes)
    cases = cases_of(checkpoint, data, nodes)
    return checkpoint, export_onnx(checkpoint, folder / "model.onnx", form, cases)


def test_the_file_is_valid_old_enough_and_names_its_axes(exported: Exported) -> None:
    _, done = exported
    proto = onnx.load(done.path)
    onnx.checker.check_model(proto, full_check=True)
    assert proto.ir_version == 8
    assert [(each.domain, each.version) for each in proto.opset_import] == [("", 18)]
    shapes = {
        each.name: [dim.dim_param or dim.dim_value for dim in each.type.tensor_type.shape.dim]
        for each in (*proto.graph.input, *proto.graph.output)
    }
    about = json.loads(done.metadata_path.read_text(encoding="utf-8"))
    assert shapes == {
        name: what["shape"] for name, what in (about["inputs"] | about["outputs"]).items()
    }
    assert shapes["graph_embedding"] == ["batch", SMALL.hidden]
    kinds = {each.name: each.type.tensor_type.elem_type for each in proto.graph.input}
    assert {
        name: onnx.helper.tensor_dtype_to_np_dtype(kind).name for name, kind in kinds.items()
    } == {name: what["type"] for name, what in done.inputs.items()}


def test_nothing_in_the_files_tells_of_this_machine(exported: Exported) -> None:
    _, done = exported
    content = done.path.read_bytes() + done.metadata_path.read_bytes()
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


def test_the_metadata_is_in_the_file_and_beside_it(exported: Exported) -> None:
    checkpoint, done = exported
    beside = json.loads(done.metadata_path.read_text(encoding="utf-8"))
    inside = {each.key: each.value for each in onnx.load(done.path).metadata_props}
    whole = json.loads(inside[KEY])
    assert whole["card"].pop("split").keys() == {"test", "model_selection"}
    assert len(whole["card"].pop("seen")) == 2
    assert beside == whole
    assert beside["members"] == checkpoint.members
    assert beside["card"]["label_values"] == ["a", "b", "c"]
    # A path says nothing elsewhere; a name does.
    assert beside["card"]["dataset"] in {"", "tiny"}
    assert "/" not in beside["card"]["dataset"]
    assert beside["card"]["dataset_name"] == "tiny"
    assert {"ihgnn", "torch", "onnx", "onnxscript"} <= beside["versions"].keys()
    assert done.size == done.path.stat().st_size


def without_metadata(path: Path) -> onnx.ModelProto:
    """The model as it is before the metadata is added."""
    proto = onnx.load(path)
    del proto.metadata_props[:]
    return proto


def test_a_file_that_answers_otherwise_is_never_written(
    padded: Exported, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint, done = padded
    monkeypatch.setattr(module, "as_onnx", lambda *_: without_metadata(done.path))
    other = replace(checkpoint, weights={k: v * 1.5 for k, v in checkpoint.weights.items()})
    data = dataset(*ALL)
    (tmp_path / "old.onnx").write_text("mine")
    for name in ("new.onnx", "old.onnx"):
        with pytest.raises(IhgnnError, match="No file was written"):
            export_onnx(other, tmp_path / name, cases=all_of(data))
    assert [each.name for each in tmp_path.iterdir()] == ["old.onnx"]
    assert (tmp_path / "old.onnx").read_text() == "mine"


def test_nothing_is_left_where_verification_is_interrupted(
    padded: Exported, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint, done = padded
    monkeypatch.setattr(module, "as_onnx", lambda *_: without_metadata(done.path))

    def interrupted(*_: object) -> None:
        assert len(list(tmp_path.iterdir())) == 2
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "compare", interrupted)
    with pytest.raises(KeyboardInterrupt):
        export_onnx(checkpoint, tmp_path / "model.onnx", cases=all_of(dataset(*ALL)))
    assert not list(tmp_path.iterdir())


def test_an_invalid_export_is_never_written(
    padded: Exported, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint, done = padded
    proto = without_metadata(done.path)
    monkeypatch.setattr(module, "as_onnx", lambda *_: proto)
    del proto.graph.node[5]
    with pytest.raises(IhgnnError, match="not valid ONNX"):
        export_onnx(checkpoint, tmp_path / "model.onnx")
    assert not list(tmp_path.iterdir())


def test_a_torch_that_cannot_export_is_told_in_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: object, **__: object) -> None:
        raise torch.onnx.OnnxExporterError("many lines")

    monkeypatch.setattr(torch.onnx, "export", failing)
    with pytest.raises(IhgnnError, match="cannot export the model"):
        export_onnx(untrained(dataset(*ALL)), tmp_path / "model.onnx")
    assert not list(tmp_path.iterdir())


def test_other_names_and_models_too_large_for_the_format_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint = untrained(dataset(*ALL))
    with pytest.raises(InputError, match=r"does not end in \.onnx"):
        export_onnx(checkpoint, tmp_path / "model.pt")
    files = ["X.ONNX", "X.json", "X.golden.json"]
    assert check_target(Path("X.ONNX")) == [Path(each) for each in files]
    monkeypatch.setattr(module, "_MOST_BYTES", 1000)
    with pytest.raises(IhgnnError, match="too large"):
        export_onnx(checkpoint, tmp_path / "model.onnx")
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
    assert [each["graphs"] for each in told["parity"]["cases"]] == [1, 1, 1, 6, 3, 1, 6, 6, 5]
    golden = read_golden(model)
    assert told["golden_path"] == str(model.with_name("model.golden.json"))
    assert (golden.tolerance, golden.layout, len(golden.cases)) == (1e-4, "sparse", 7)
    assert list(told["inputs"]) == ["node_labels", "edge_index", "ptr"]
    assert told["form"] == {"layout": "sparse", "nodes": None}
    assert told["adjacency_bytes_per_graph"] is None

    with pytest.raises(InputError, match=r"model\.onnx already exists.*--force"):
        command(saved, model)
    again = without_metadata(model)  # exporting takes seconds, and gives the same
    monkeypatch.setattr(module, "as_onnx", lambda *_: again)
    command(saved, model, layout=Layout.SPARSE, force=True)
    out, err = capfd.readouterr()
    assert "sparse, opset 18" in out
    assert "[2, edges]" in out
    for case in ("smallest graph", "largest graph", "graph without edges", "nodes permuted"):
        assert case in out
    assert err.startswith("Exporting IHGNN ...\nWrote ")

    # Golden vectors of an earlier file do not stay beside a new one.
    again.ClearField("metadata_props")
    command(saved, model, layout=Layout.SPARSE, force=True, verify=False)
    assert "no golden vectors" in capfd.readouterr().err
    assert model.exists()
    assert not model.with_name("model.golden.json").exists()


def with_an_empty_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Export in no time."""
    opset = onnx.helper.make_opsetid("", 18)
    empty = onnx.helper.make_graph([], "empty", [], [])
    proto = onnx.helper.make_model(empty, ir_version=8, opset_imports=[opset])
    monkeypatch.setattr(module, "as_onnx", lambda *_: proto)


def test_the_command_needs_the_data_set_or_leave_not_to_verify(
    saved: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    saved.with_name("tiny.jsonl").unlink()
    model = saved.with_name("model.onnx")
    with pytest.raises(IhgnnError, match="--no-verify"):
        command(saved, model, offline=True)
    with pytest.raises(InputError, match="Drop one"):
        command(saved, model, verify=False, dataset="MUTAG")
    assert not model.exists()
    with_an_empty_network(monkeypatch)
    command(saved, model, verify=False)
    assert "Not compared" in capfd.readouterr().err
    assert model.exists()


def test_the_command_tells_what_absurd_padding_costs(
    saved: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    with_an_empty_network(monkeypatch)
    options = {"verify": False, "max_nodes": 5_748, "as_json": True}
    command(saved, saved.with_name("model.onnx"), **options)
    out, err = capfd.readouterr()
    assert "WARNING: padded to 5,748 nodes" in err
    assert "132 MB" in err
    assert "WARNING: TensorRT cannot run this file: it sorts up to 3,840 nodes" in err
    assert "--layout sparse" in err
    assert json.loads(out)["adjacency_bytes_per_graph"] == 132_158_016
