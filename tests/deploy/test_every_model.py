"""Every model of the registry says the same in its exported file as in its checkpoint."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from tiny_models import (
    ALL,
    KITE,
    NO_EDGES,
    PATH,
    SINGLE,
    STAR,
    TRIANGLE,
    Graph,
    dataset,
    torch_logits,
    untrained,
)

from ihgnn_cli.data.dataset import GraphDataset
from ihgnn_cli.data.features import Features
from ihgnn_cli.data.sources import locate, read
from ihgnn_cli.deploy.cases import Case, cases_of
from ihgnn_cli.deploy.export import Export, check_exportable, export_onnx
from ihgnn_cli.deploy.form import Form, Layout
from ihgnn_cli.deploy.inputs import padded_inputs, sparse_inputs
from ihgnn_cli.deploy.onnx_model import OnnxClassifier, load_onnx
from ihgnn_cli.deploy.reference import Reference
from ihgnn_cli.deploy.traced import PaddedModel, SparseModel
from ihgnn_cli.errors import InputError
from ihgnn_cli.models.registry import IHGNN, find_model, model_names
from ihgnn_cli.training.checkpoint import Checkpoint, build
from ihgnn_cli.training.config import RunConfig

TWO_PARTS: Graph = ([0, 1, 0, 2, 2, 1], [(0, 1), (1, 2), (3, 4)])
RING: Graph = ([0] * 9, [(at, (at + 1) % 9) for at in range(9)])
GRAPHS = (*ALL, KITE, TWO_PARTS, RING)

LAYOUTS = [
    (name, Layout(layout))
    for name in model_names()
    for layout in find_model(name).layouts
    if name != IHGNN
]
OTHERWISE: list[tuple[str, dict[str, Any]]] = [
    ("acm", {"order": "acmii"}),
    ("diffpool", {"pools": 2, "cluster_share": 0.5}),
    ("gin", {"learn_eps": True}),
    ("gnnml", {"kind": "gnnml1"}),
    ("gnnml", {"design": "proteins", "bands": 1}),
    ("gnnml", {"design": "enzymes", "hops": 3, "sharpness": 20.0}),
    ("gnnml", {"learn_supports": True, "bands": 5}),
    ("graphormer", {"max_distance": 2, "max_degree": 2}),
    ("kgnn", {"order": 2, "set_layers": 1}),
    ("pgcn", {"operator": "laplacian", "readout": "restricted-funnel", "project": False}),
    ("ppgn", {"suffix": "last", "depth": 3}),
]


@pytest.fixture(scope="module")
def mutag() -> GraphDataset:
    """Graphs of ten sizes, from 10 to 28 nodes."""
    whole = read(locate("MUTAG"))
    order = np.argsort(np.diff(whole.node_ptr), kind="stable")
    return whole.select(order[np.linspace(0, len(order) - 1, 10).astype(np.int64)])


def checkpoint_of(
    name: str,
    data: GraphDataset,
    features: Features = Features.LABELS,
    members: int = 1,
    **settings: Any,
) -> Checkpoint:
    """Initial weights, and running statistics that are not the initial ones."""
    config = RunConfig(model=find_model(name).settings(**settings), model_name=name)
    card = untrained(data, features=features).card
    drawn = torch.Generator().manual_seed(0)
    weights = {
        key: value + 0.5 * torch.rand(value.shape, generator=drawn) if "running" in key else value
        for key, value in build(config, card.inputs, range(members)).state_dict().items()
    }
    return Checkpoint(config, card, weights, members, None)


def traced_logits(checkpoint: Checkpoint, data: GraphDataset, layout: Layout) -> torch.Tensor:
    """By the module that is exported, with padding beyond the largest graph."""
    everything = np.arange(len(data))
    if layout is Layout.PADDED:
        module: torch.nn.Module = PaddedModel(checkpoint)
        arrays = padded_inputs(checkpoint.card, data, everything, data.max_nodes + 2)
    else:
        module, arrays = SparseModel(checkpoint), sparse_inputs(checkpoint.card, data, everything)
    with torch.no_grad():
        given = {key: torch.tensor(each) for key, each in arrays.items()}
        found: torch.Tensor = module(**given)["logits"]
    return found


def agree(checkpoint: Checkpoint, data: GraphDataset, layout: Layout) -> None:
    expected = torch.tensor(torch_logits(checkpoint, data)[0])
    found = traced_logits(checkpoint, data, layout)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("name", "layout"), LAYOUTS)
def test_its_forward_says_the_same_on_the_inputs_of_a_file(name: str, layout: Layout) -> None:
    data = dataset(*GRAPHS)
    agree(checkpoint_of(name, data), data, layout)


@pytest.mark.parametrize(("name", "layout"), LAYOUTS)
def test_so_it_does_on_mutag(name: str, layout: Layout, mutag: GraphDataset) -> None:
    agree(checkpoint_of(name, mutag), mutag, layout)


@pytest.mark.parametrize(("name", "settings"), OTHERWISE)
def test_so_it_does_with_other_settings(name: str, settings: dict[str, Any]) -> None:
    data = dataset(*GRAPHS)
    for layout in find_model(name).layouts:
        agree(checkpoint_of(name, data, **settings), data, Layout(layout))


@pytest.mark.parametrize("layout", Layout)
def test_attributes_and_degrees_are_features(layout: Layout) -> None:
    data, degrees = dataset(*GRAPHS), dataset(*GRAPHS, labelled=False)
    agree(checkpoint_of("pgcn", data, Features.BOTH), data, layout)
    agree(checkpoint_of("pgcn", degrees), degrees, layout)


def test_the_values_of_padding_do_not_matter() -> None:
    data = dataset(PATH, SINGLE, NO_EDGES)
    checkpoint = checkpoint_of("pgcn", data, Features.ATTRIBUTES)
    arrays = padded_inputs(checkpoint.card, data, np.arange(3))
    given = {key: torch.tensor(each) for key, each in arrays.items()}
    module = PaddedModel(checkpoint)
    with torch.no_grad():
        expected = module(**given)["logits"]
        given["attributes"][given["node_labels"] == -1] = 1e6
        assert torch.equal(module(**given)["logits"], expected)


@pytest.fixture(scope="module", params=Layout)
def exported(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Export, OnnxClassifier]:
    """Two models of GIN, compared on every case."""
    data = dataset(TRIANGLE, PATH, STAR, NO_EDGES, SINGLE)
    checkpoint = checkpoint_of("gin", data, members=2, layers=1, width=4)
    cases = [*cases_of(checkpoint, data), Case("all", dataset(*GRAPHS))]
    path = tmp_path_factory.mktemp("gin") / "gin.onnx"
    done = export_onnx(checkpoint, path, Form(request.param), cases)
    return done, load_onnx(path)


def test_an_exported_ensemble_passes_every_check(exported: tuple[Export, OnnxClassifier]) -> None:
    done, classifier = exported
    assert done.parity is not None
    assert max(each.logits for each in done.parity.cases) < 1e-5
    assert (classifier.described.model_name, classifier.node_limit) == ("gin", None)
    data = dataset(*GRAPHS)
    answers = classifier.answers(data, np.arange(len(data)))
    assert answers.graph_embedding is not None
    assert answers.graph_embedding.shape == (len(data), 4)  # the sum over nodes of the last layer
    file = onnx.load(done.path)
    assert [(each.domain, each.version) for each in file.opset_import] == [("", 18)]
    assert file.ir_version == 8


def test_a_graph_that_takes_too_much_memory_is_refused(
    exported: tuple[Export, OnnxClassifier],
) -> None:
    _, classifier = exported
    limits = replace(classifier.described.limits, numbers=(1, 1, 128), layouts=("padded",))
    about = replace(classifier.described, limits=limits)
    classifier = replace(classifier, described=about)
    classifier.refuse_too_large(np.array([100]))
    if about.layout is Layout.PADDED:
        with pytest.raises(InputError, match="padded to 620 nodes takes 113"):
            classifier.refuse_too_large(np.array([620]))
        # The rows of all members of an ensemble, for a batch of small graphs.
        limits = replace(limits, numbers=(6_400, 1, 0))
        about = replace(about, limits=limits, batch=1_000)
        with pytest.raises(InputError, match=r"A batch of 1,000 graphs padded to 100 nodes .*2\."):
            replace(classifier, described=about).refuse_too_large(np.array([100]))
    else:
        classifier.refuse_too_large(np.array([620]))


@pytest.mark.long
@pytest.mark.parametrize(("name", "layout"), LAYOUTS)
def test_every_exported_file_passes_every_check(name: str, layout: Layout, tmp_path: Path) -> None:
    data = dataset(*GRAPHS)
    checkpoint = checkpoint_of(name, data, layers=2, width=8)
    cases = [*cases_of(checkpoint, data), Case("all", data)]
    for form in (Form(layout), Form(layout, nodes=12) if layout is Layout.PADDED else None):
        if form is not None:
            done = export_onnx(checkpoint, tmp_path / "model.onnx", form, cases)
            assert done.parity is not None


def test_a_model_without_the_layout_says_why() -> None:
    data = dataset(*ALL)
    with pytest.raises(InputError, match=r"kgnn has no sparse layout\. Sets of two or three"):
        check_exportable(checkpoint_of("kgnn", data), Form(Layout.SPARSE))
    with pytest.raises(InputError, match=r"tokengt cannot be exported\. Its node identifiers"):
        check_exportable(checkpoint_of("tokengt", data), Form())


def test_nodes_that_nearly_tie_are_found_in_any_model_that_sorts() -> None:
    data = dataset(PATH, RING)
    sorting = Reference(checkpoint_of("dgcnn", data)).key_gaps(data, np.arange(2))
    assert 0 < sorting[0] < 1
    assert sorting[1] == np.inf  # all nodes are alike
    summing = Reference(checkpoint_of("gin", data)).key_gaps(data, np.arange(2))
    assert summing.tolist() == [np.inf, np.inf]
