"""Exported models say what their checkpoints say, and files that do not are never written."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from numpy.typing import NDArray

from ihgnn_cli.cli.export import export as command
from ihgnn_cli.data.batches import GraphStore
from ihgnn_cli.data.build import ListedGraphs, build
from ihgnn_cli.data.dataset import GraphDataset
from ihgnn_cli.data.features import Features
from ihgnn_cli.data.jsonl_write import write_jsonl
from ihgnn_cli.data.splits import Split
from ihgnn_cli.deploy import export as module
from ihgnn_cli.deploy.export import Export, Sample, compare, export_onnx, samples_of
from ihgnn_cli.deploy.onnx_model import METADATA_KEY, Answers, load_onnx, padded_inputs
from ihgnn_cli.deploy.padded import PaddedIHGNN
from ihgnn_cli.errors import IhgnnError, InputError
from ihgnn_cli.models.card import describe
from ihgnn_cli.models.settings import IHGNNSettings, SortKey, SortOrder, Variant
from ihgnn_cli.training import checkpoint as checkpoints
from ihgnn_cli.training.checkpoint import Checkpoint, save_checkpoint
from ihgnn_cli.training.config import RunConfig
from ihgnn_cli.training.metrics import mean_probabilities
from ihgnn_cli.training.stack import predict

Graph = tuple[Sequence[int], Sequence[tuple[int, int]]]
"""Labels of the nodes, edges between them."""

TRIANGLE: Graph = ([0, 1, 2], [(0, 1), (1, 2), (0, 2)])
PATH: Graph = ([0, 0, 1, 2, 0], [(0, 1), (1, 2), (2, 3), (3, 4)])
STAR: Graph = ([1, 0, 0, 0, 2], [(0, 1), (0, 2), (0, 3), (0, 4)])
NO_EDGES: Graph = ([0, 1, 1], [])
SINGLE: Graph = ([2], [])
UNKNOWN_LABELS: Graph = ([-1, 0, -1], [(0, 1), (1, 2)])
LARGER_THAN_M: Graph = ([0, 1, 2, 0, 1, 2, 0], [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (2, 6)])
ALL = (TRIANGLE, PATH, STAR, NO_EDGES, SINGLE, UNKNOWN_LABELS, LARGER_THAN_M)
M = 6

PAPER: dict[str, Any] = {}
AUTHORS: dict[str, Any] = {
    "sort_key": SortKey.LAST_LAYER,
    "sort_order": SortOrder.DESCENDING,
    "readout_relu": True,
}
SMALL = IHGNNSettings(layers=2, width=16, hidden=8)
CPU = torch.device("cpu")


def dataset(*graphs: Graph) -> GraphDataset:
    """Graphs of the classes x and y with labels a, b, c, or -1 for unknown; two attributes."""
    sizes = np.array([len(labels) for labels, _ in graphs])
    starts = np.cumsum(sizes) - sizes
    edges = [
        (start + one, start + other)
        for start, (_, listed) in zip(starts, graphs, strict=True)
        for one, other in listed
    ]
    source, target = np.array(edges, dtype=np.int32).reshape(-1, 2).T
    labels = np.concatenate([np.array(labels, dtype=np.int32) for labels, _ in graphs])
    drawn = np.random.default_rng(0)
    return build(
        ListedGraphs(
            name="tiny",
            sizes=sizes,
            source=source,
            target=target,
            classes=((np.arange(len(graphs)) % 2).astype(np.int32), ("x", "y")),
            node_labels=(labels, ("a", "b", "c")),
            node_attributes=drawn.normal(size=(len(labels), 2)).astype(np.float32),
            undirected=True,
        )
    )


def untrained(
    data: GraphDataset,
    settings: IHGNNSettings = SMALL,
    features: Features = Features.LABELS,
    members: int = 1,
) -> Checkpoint:
    """A checkpoint with weights and running statistics as good as any."""
    config = RunConfig(model=settings)
    card = replace(describe("tiny", data, features, Split([0], [1], [2])), max_nodes=M)
    model = checkpoints.build(config.model, card.inputs, list(range(members)))
    drawn = torch.Generator().manual_seed(0)
    weights = {
        name: value
        if name.endswith(("weight", "bias"))
        else value + 0.5 * torch.rand(value.shape, generator=drawn)
        for name, value in model.state_dict().items()
    }
    return Checkpoint(config, card, weights, members, None)


def torch_logits(checkpoint: Checkpoint, data: GraphDataset) -> NDArray[np.float32]:
    """[S, G, C] node by node."""
    card = checkpoint.card
    store = GraphStore(data, card.features, card.max_nodes, None, CPU)
    return predict(checkpoint.model(CPU), store, np.arange(len(data)))


class Eager:
    """What an exported file would say, by the torch module that it is exported from."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self.card = checkpoint.card
        self.model = PaddedIHGNN(checkpoint)

    def answers(self, data: GraphDataset, graphs: NDArray[np.int64]) -> Answers:
        inputs = padded_inputs(self.card, data, graphs)
        found = self.model(**{name: torch.from_numpy(each) for name, each in inputs.items()})
        return Answers(*(each.numpy() for each in found))


def all_of(data: GraphDataset) -> list[Sample]:
    return [Sample(data, np.arange(len(data)))]


@pytest.mark.parametrize("members", [1, 3])
@pytest.mark.parametrize("variant", Variant)
@pytest.mark.parametrize("options", [PAPER, AUTHORS], ids=["paper", "authors"])
def test_the_padded_model_is_the_model(
    variant: Variant, options: dict[str, Any], members: int
) -> None:
    if variant is Variant.NO_SEPARATION and options is AUTHORS:
        pytest.skip("nodes of a triangle are equal in the last layer: their order is anybody's")
    data = dataset(*ALL)
    checkpoint = untrained(data, replace(SMALL, variant=variant, **options), members=members)
    logits = torch_logits(checkpoint, data)
    found = Eager(checkpoint).answers(data, np.arange(len(data)))
    p = mean_probabilities(logits)
    expected = logits[0] if members == 1 else np.log(p)
    np.testing.assert_allclose(found.logits, expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(found.probabilities, p, atol=1e-6)
    assert found.graph_embedding.shape == (len(data), SMALL.hidden)
    assert (found.graph_embedding >= 0).all()


@pytest.mark.parametrize("features", Features)
@pytest.mark.parametrize("layers", [0, 1])
def test_the_padded_model_reads_what_the_model_reads(features: Features, layers: int) -> None:
    data = dataset(*ALL)
    checkpoint = untrained(data, replace(SMALL, layers=layers), features)
    found = Eager(checkpoint).answers(data, np.arange(len(data)))
    expected = torch_logits(checkpoint, data)[0]
    np.testing.assert_allclose(found.logits, expected, rtol=1e-5, atol=1e-5)


def test_answers_do_not_depend_on_the_other_graphs_of_a_batch() -> None:
    data = dataset(*ALL)
    exported = Eager(untrained(data))
    together = exported.answers(data, np.arange(len(data))).logits
    for graph in range(len(data)):
        alone = exported.answers(data, np.array([graph])).logits[0]
        np.testing.assert_allclose(alone, together[graph], rtol=1e-5, atol=1e-5)


def test_another_model_is_told_apart() -> None:
    data = dataset(*ALL)
    with pytest.raises(IhgnnError, match=r"does not answer .* of 7 differ"):
        compare(untrained(data), Eager(untrained(data, members=2)), all_of(data))


def test_a_model_that_answers_nothing_is_told_apart() -> None:
    data = dataset(*ALL)
    checkpoint = untrained(data)
    exported = Eager(checkpoint)
    exported.model.members[0].classifier.bias.fill_(torch.nan)
    with pytest.raises(IhgnnError, match="does not answer"):
        compare(checkpoint, exported, all_of(data))


def test_graphs_whose_order_is_chance_are_counted_and_not_held_against_the_file() -> None:
    # Without separation the nodes of a complete graph are equal in the last layer, and only there.
    complete = ([0, 1, 2, 0, 1], [(i, j) for i in range(5) for j in range(i)])
    turned = ([1, 0, 2, 1, 0], complete[1])
    settings = replace(SMALL, variant=Variant.NO_SEPARATION, **AUTHORS)
    data = dataset(complete, PATH, SINGLE)
    checkpoint = untrained(data, settings)

    class Turned(Eager):
        def answers(self, data: GraphDataset, graphs: NDArray[np.int64]) -> Answers:
            return super().answers(dataset(turned, PATH, SINGLE), graphs)

    found = compare(checkpoint, Turned(checkpoint), all_of(data))
    assert found.swapped == 1
    assert found.logits < 1e-5
    # Sorted by the aggregate, their order is certain.
    checkpoint = untrained(data, replace(settings, sort_key=SortKey.AGGREGATED))
    assert compare(checkpoint, Turned(checkpoint), all_of(data)).swapped == 0


def test_samples_hold_the_extremes_and_a_graph_larger_than_m() -> None:
    data = dataset(*[PATH, STAR] * 40, SINGLE, NO_EDGES, TRIANGLE)
    card = untrained(data).card
    real, beyond = samples_of(card, data)
    assert {80, 0} <= set(real.graphs.tolist())
    assert len(real.graphs) <= 36
    assert np.diff(beyond.dataset.node_ptr).tolist() == [10]
    assert card.max_nodes < 10


@pytest.fixture(scope="module")
def one_member(tmp_path_factory: pytest.TempPathFactory) -> tuple[Checkpoint, Export]:
    """A checkpoint of one model of labels, and its export."""
    data = dataset(*ALL)
    checkpoint = untrained(data, replace(SMALL, layers=1))
    path = tmp_path_factory.mktemp("one") / "model.onnx"
    return checkpoint, export_onnx(
        checkpoint, path, [*all_of(data), *samples_of(checkpoint.card, data)]
    )


@pytest.fixture(scope="module")
def three_members(tmp_path_factory: pytest.TempPathFactory) -> tuple[Checkpoint, Export]:
    """Three models that read labels and attributes and do most things the other way."""
    data = dataset(*ALL)
    settings = replace(SMALL, layers=1, variant=Variant.NO_ADAPTIVE, **AUTHORS)
    checkpoint = untrained(data, settings, Features.BOTH, members=3)
    checkpoint = replace(checkpoint, card=replace(checkpoint.card, dataset="/home/me/tiny.jsonl"))
    path = tmp_path_factory.mktemp("three") / "model.onnx"
    return checkpoint, export_onnx(checkpoint, path, all_of(data))


@pytest.fixture(params=["one_member", "three_members"])
def exported(request: pytest.FixtureRequest) -> tuple[Checkpoint, Export]:
    found: tuple[Checkpoint, Export] = request.getfixturevalue(request.param)
    return found


def test_the_file_answers_as_the_checkpoint_does(exported: tuple[Checkpoint, Export]) -> None:
    _, done = exported
    assert done.parity is not None
    assert done.parity.graphs >= len(ALL)
    assert done.parity.logits < 1e-5
    assert done.parity.probabilities < 1e-6
    assert done.parity.swapped == 0


def test_the_file_takes_any_batch(exported: tuple[Checkpoint, Export]) -> None:
    checkpoint, done = exported
    classifier = load_onnx(done.path)
    for graphs in [(SINGLE,), (SINGLE, SINGLE), (LARGER_THAN_M,), (NO_EDGES, NO_EDGES, PATH)]:
        compare(checkpoint, classifier, all_of(dataset(*graphs)))
    inputs = padded_inputs(checkpoint.card, dataset(*ALL), np.array([], dtype=np.int64))
    assert classifier.session.run(["logits"], inputs)[0].shape == (0, 2)


def test_every_value_but_0_is_an_edge(exported: tuple[Checkpoint, Export]) -> None:
    checkpoint, done = exported
    session = load_onnx(done.path).session
    inputs = padded_inputs(checkpoint.card, dataset(*ALL), np.arange(len(ALL)))
    expected = session.run(["logits"], inputs)[0]
    inputs["adjacency"] *= 255
    np.testing.assert_array_equal(session.run(["logits"], inputs)[0], expected)


def test_every_label_beyond_the_vocabulary_is_unknown(exported: tuple[Checkpoint, Export]) -> None:
    checkpoint, done = exported
    session = load_onnx(done.path).session
    inputs = padded_inputs(checkpoint.card, dataset(*ALL), np.array([5]))
    expected = session.run(["logits"], inputs)[0]
    for other in (-3, 3, 2**62):
        labels = np.where(inputs["node_labels"] == -2, other, inputs["node_labels"])
        found = session.run(["logits"], {**inputs, "node_labels": labels})[0]
        np.testing.assert_array_equal(found, expected)


def test_the_file_is_valid_old_enough_and_names_its_axes(
    exported: tuple[Checkpoint, Export],
) -> None:
    _, done = exported
    proto = onnx.load(done.path)
    onnx.checker.check_model(proto, full_check=True)
    assert proto.ir_version == 8
    assert [(each.domain, each.version) for each in proto.opset_import] == [("", 18)]
    shapes = {
        each.name: [dim.dim_param or dim.dim_value for dim in each.type.tensor_type.shape.dim]
        for each in (*proto.graph.input, *proto.graph.output)
    }
    assert {name: shapes[name] for name in done.inputs} == {
        name: what["shape"] for name, what in done.inputs.items()
    }
    assert shapes["probabilities"] == ["batch", 2]
    assert shapes["graph_embedding"] == ["batch", SMALL.hidden]


def test_nothing_in_the_files_tells_of_this_machine(exported: tuple[Checkpoint, Export]) -> None:
    _, done = exported
    content = done.path.read_bytes() + done.metadata_path.read_bytes()
    for place in (Path.cwd(), Path.home(), Path(module.__file__).parent, Path("/home/me")):
        assert str(place).encode() not in content
    for sign in (b"site-packages", b".py", b"Traceback", b"stack_trace"):
        assert sign not in content


def test_the_metadata_is_in_the_file_and_beside_it(exported: tuple[Checkpoint, Export]) -> None:
    checkpoint, done = exported
    beside = json.loads(done.metadata_path.read_text(encoding="utf-8"))
    inside = {each.key: each.value for each in onnx.load(done.path).metadata_props}
    assert beside == json.loads(inside[METADATA_KEY])
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
    one_member: tuple[Checkpoint, Export], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint, done = one_member
    monkeypatch.setattr(module, "_as_onnx", lambda _: without_metadata(done.path))
    other = replace(checkpoint, weights={k: v * 1.5 for k, v in checkpoint.weights.items()})
    data = dataset(*ALL)
    (tmp_path / "old.onnx").write_text("mine")
    for name in ("new.onnx", "old.onnx"):
        with pytest.raises(IhgnnError, match="No file was written"):
            export_onnx(other, tmp_path / name, all_of(data))
    assert [each.name for each in tmp_path.iterdir()] == ["old.onnx"]
    assert (tmp_path / "old.onnx").read_text() == "mine"


def test_an_invalid_export_is_never_written(
    one_member: tuple[Checkpoint, Export], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint, done = one_member
    proto = without_metadata(done.path)
    del proto.graph.node[5]
    monkeypatch.setattr(module, "_as_onnx", lambda _: proto)
    with pytest.raises(IhgnnError, match="not valid ONNX"):
        export_onnx(checkpoint, tmp_path / "model.onnx")
    assert not list(tmp_path.iterdir())


def test_other_names_and_models_too_large_for_the_format_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint = untrained(dataset(*ALL))
    with pytest.raises(InputError, match=r"does not end in \.onnx"):
        export_onnx(checkpoint, tmp_path / "model.pt")
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
    command(saved, model, as_json=True)
    out, err = capfd.readouterr()
    assert err == ""
    told = json.loads(out)
    assert told["path"] == str(model)
    assert told["parity"]["graphs"] == 7
    assert list(told["inputs"]) == ["node_labels", "adjacency"]

    with pytest.raises(InputError, match=r"model\.onnx is there already.*--force"):
        command(saved, model)
    again = without_metadata(model)  # exporting takes seconds, and gives the same
    monkeypatch.setattr(module, "_as_onnx", lambda _: again)
    command(saved, model, force=True)
    out, err = capfd.readouterr()
    assert "logits" in out
    assert "[batch, nodes, nodes]" in out
    assert err.startswith("Wrote ")


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
    proto = onnx.helper.make_model(onnx.helper.make_graph([], "empty", [], []), ir_version=8)
    monkeypatch.setattr(module, "_as_onnx", lambda _: proto)
    command(saved, model, verify=False)
    assert "Not compared" in capfd.readouterr().err
    assert model.exists()
