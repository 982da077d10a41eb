"""Every model of the registry is exported as its checkpoint answers, or says why it is not."""

import importlib.util
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tiny_models import (
    ALL,
    KITE,
    NO_EDGES,
    PATH,
    SINGLE,
    Graph,
    dataset,
    torch_logits,
    untrained,
)

from ihgnn_cli.data import load_dataset
from ihgnn_cli.data.dataset import GraphDataset
from ihgnn_cli.data.features import Features
from ihgnn_cli.deploy.export import check_exportable, export_onnx
from ihgnn_cli.deploy.inputs import padded_inputs, sparse_inputs
from ihgnn_cli.deploy.modules import MODULES
from ihgnn_cli.deploy.onnx_model import load_onnx
from ihgnn_cli.deploy.verification import reference_of
from ihgnn_cli.errors import InputError
from ihgnn_cli.models import registry
from ihgnn_cli.models.registry import IHGNN, find_model, model_names
from ihgnn_cli.models.spec import Layout
from ihgnn_cli.training.checkpoint import Checkpoint, build
from ihgnn_cli.training.config import RunConfig

TWO_PARTS: Graph = ([0, 1, 0, 2, 2, 1], [(0, 1), (1, 2), (3, 4)])
RING: Graph = ([0] * 9, [(at, (at + 1) % 9) for at in range(9)])
GRAPHS = (*ALL, KITE, TWO_PARTS, RING)
MESSAGE_PASSING = ("acm", "gin", "gprgnn", "pcnet", "pgcn")
OTHERWISE: list[tuple[str, dict[str, Any]]] = [
    *((name, {}) for name in MESSAGE_PASSING),
    ("acm", {"order": "acmii"}),
    ("gin", {"learn_eps": True}),
    ("pgcn", {"operator": "laplacian", "readout": "restricted-funnel", "project": False}),
]
EXAMPLE = Path(__file__).parents[2] / "examples" / "third_party" / "ihgnn_example_model.py"


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
    everything, card = np.arange(len(data)), checkpoint.card
    if layout is Layout.PADDED:
        arrays = padded_inputs(card, data, everything, data.max_nodes + 2)
    else:
        arrays = sparse_inputs(card, data, everything)
    module = MODULES[layout](reference_of(checkpoint).members)
    with torch.no_grad():
        given = {key: torch.tensor(each) for key, each in arrays.items()}
        found: torch.Tensor = module(**given)["logits"]
    return found


def agree(checkpoint: Checkpoint, data: GraphDataset) -> None:
    expected = torch.tensor(torch_logits(checkpoint, data)[0])
    for layout in Layout:
        found = traced_logits(checkpoint, data, layout)
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("name", "settings"), OTHERWISE)
def test_the_exported_module_is_the_model(name: str, settings: dict[str, Any]) -> None:
    for data in (dataset(*GRAPHS), load_dataset("MUTAG").select(range(0, 188, 12))):
        agree(checkpoint_of(name, data, **settings), data)


def test_attributes_and_degrees_are_features() -> None:
    data, degrees = dataset(*GRAPHS), dataset(*GRAPHS, labelled=False)
    agree(checkpoint_of("pgcn", data, Features.BOTH), data)
    agree(checkpoint_of("pgcn", degrees), degrees)


def test_the_values_of_padding_do_not_matter() -> None:
    data = dataset(PATH, SINGLE, NO_EDGES)
    checkpoint = checkpoint_of("pgcn", data, Features.ATTRIBUTES)
    arrays = padded_inputs(checkpoint.card, data, np.arange(3))
    given = {key: torch.tensor(each) for key, each in arrays.items()}
    module = MODULES[Layout.PADDED](reference_of(checkpoint).members)
    with torch.no_grad():
        expected = module(**given)["logits"]
        given["attributes"][given["node_labels"] == -1] = 1e6
        assert torch.equal(module(**given)["logits"], expected)


@pytest.fixture
def sage(monkeypatch: pytest.MonkeyPatch) -> str:
    """The model of the third-party example, as an installed package would provide it."""
    about = importlib.util.spec_from_file_location("ihgnn_example_model", EXAMPLE)
    module = importlib.util.module_from_spec(about)
    monkeypatch.setitem(sys.modules, "ihgnn_example_model", module)
    about.loader.exec_module(module)
    monkeypatch.setitem(registry._OWN, "sage", "ihgnn_example_model")
    return "sage"


def test_layers_of_torch_geometric_are_exported(sage: str, tmp_path: Path) -> None:
    data = dataset(*GRAPHS)
    checkpoint = checkpoint_of(sage, data, layers=1, width=4)
    agree(checkpoint, data)
    done = export_onnx(reference_of(checkpoint), tmp_path / "sage.onnx", Layout.SPARSE, graphs=data)
    assert done.parity.near_ties == 0


def test_an_ensemble_passes_every_check(tmp_path: Path) -> None:
    data = dataset(*GRAPHS)
    checkpoint = checkpoint_of("gin", data, members=2, layers=1, width=4)
    done = export_onnx(reference_of(checkpoint), tmp_path / "gin.onnx", graphs=data)
    classifier = load_onnx(done.path)
    assert (classifier.model_name, classifier.node_limit, classifier.members) == ("gin", None, 2)
    assert classifier.answers(data, np.arange(len(data))).graph_embedding is None


@pytest.mark.parametrize("layout", Layout)
@pytest.mark.parametrize("name", ["acm", "pgcn"])
def test_empty_batches_and_graphs_without_nodes_are_answered(
    name: str, layout: Layout, tmp_path: Path
) -> None:
    data = dataset(*GRAPHS)
    checkpoint = checkpoint_of(name, data, layers=1, width=4)
    # The verification runs them.
    export_onnx(reference_of(checkpoint), tmp_path / "model.onnx", layout, graphs=data)


@pytest.mark.long
@pytest.mark.parametrize("layout", Layout)
@pytest.mark.parametrize("name", MESSAGE_PASSING)
def test_every_file_passes_every_check(name: str, layout: Layout, tmp_path: Path) -> None:
    data = dataset(*GRAPHS)
    checkpoint = checkpoint_of(name, data, layers=2, width=8)
    export_onnx(reference_of(checkpoint), tmp_path / "model.onnx", layout, graphs=data)


def test_models_with_dense_matrices_say_why_they_are_not_exported() -> None:
    data = dataset(*ALL)
    exported = {name for name in model_names() if find_model(name).layouts}
    assert exported == {*MESSAGE_PASSING, IHGNN}
    for name in set(model_names()) - exported:
        members = reference_of(checkpoint_of(name, data)).members
        with pytest.raises(InputError, match=rf"{name} cannot be exported\. \w.*\. Use its check"):
            check_exportable(members, Layout.SPARSE)
