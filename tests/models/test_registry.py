"""The registry: models by name, and those that other packages bring."""

import random
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest
import torch
from graph_makers import (
    ALL,
    LABELS,
    accuracy_after_training,
    batch_of,
    dataset_of,
    logits_of,
    model_of,
    relabelled,
)

from ihgnn_cli.data.features import Features
from ihgnn_cli.errors import InputError
from ihgnn_cli.models import registry
from ihgnn_cli.models.autograd import AutogradStack
from ihgnn_cli.models.card import inputs_of
from ihgnn_cli.models.factory import shapes
from ihgnn_cli.models.registry import all_models, find_model, model_names, models_with
from ihgnn_cli.models.settings import Inputs
from ihgnn_cli.training.config import RunConfig
from ihgnn_cli.training.loss import CrossEntropy

EXAMPLE = Path(__file__).parent.parent.parent / "examples" / "third_party"


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Puts a package with entry points where Python looks, as pip would."""

    def install(package, entries, source=None):
        about = tmp_path / f"{package.replace('-', '_')}-0.1.0.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 0.1.0\n")
        (about / "entry_points.txt").write_text("[ihgnn.models]\n" + "\n".join(entries) + "\n")
        monkeypatch.syspath_prepend(str(source or tmp_path))
        monkeypatch.syspath_prepend(str(tmp_path))
        _forget()

    before = set(sys.modules)
    yield install
    monkeypatch.undo()
    _forget()
    for name in set(sys.modules) - before:
        if name.startswith(("ihgnn_example", "somebodys")):
            del sys.modules[name]


def _forget():
    registry._others.cache_clear()
    registry._loaded.cache_clear()


@pytest.fixture
def example(installed):
    (line,) = [
        each for each in (EXAMPLE / "pyproject.toml").read_text().splitlines() if ":MODEL" in each
    ]
    installed("ihgnn-example-model", [line.replace('"', "")], EXAMPLE)


def test_names_are_known_without_an_import(installed, tmp_path):
    (tmp_path / "somebodys_model.py").write_text("raise RuntimeError('imported')")
    installed("somebodys-models", ["their-model = somebodys_model:MODEL"])
    names = model_names()
    assert names[:2] == ("ppgn", "kgnn")
    assert names[14] == "ihgnn"
    assert names[15:] == ("their-model",)
    assert "somebodys_model" not in sys.modules


def test_a_name_may_be_written_in_any_case():
    assert find_model("GIN") is find_model("gin")
    assert RunConfig().of_model("Gin") == RunConfig().of_model("gin")


def test_models_are_found_by_a_setting():
    assert models_with("sort_key") == ["ihgnn"]
    assert set(models_with("layers")) == set(model_names())


def test_an_unknown_name_gets_a_hint():
    with pytest.raises(InputError, match=r"No model 'graphormr'\. Did you mean graphormer\?"):
        find_model("graphormr")


def test_a_name_like_no_other_gets_the_list():
    with pytest.raises(InputError, match=r"There are ppgn, kgnn, .*, ihgnn"):
        find_model("xyzzy")


def test_a_package_that_does_not_load_is_named(installed, tmp_path):
    (tmp_path / "somebodys_model.py").write_text("raise RuntimeError('no such thing')")
    installed("somebodys-models", ["their-model = somebodys_model:MODEL"])
    said = r"somebodys-models does not load \(RuntimeError: no such thing\)"
    with pytest.raises(InputError, match=said):
        find_model("their-model")


def test_a_package_without_the_object_is_named(installed, tmp_path):
    (tmp_path / "somebodys_model.py").write_text("")
    installed("somebodys-models", ["their-model = somebodys_model:MODEL"])
    with pytest.raises(InputError, match=r"somebodys-models does not load \(AttributeError"):
        find_model("their-model")


@pytest.mark.parametrize("entry", ["their-model = math:pi", "renamed = ihgnn_example_model:MODEL"])
def test_an_object_that_is_not_what_the_entry_says_is_refused(installed, entry):
    installed("somebodys-models", [entry], EXAMPLE)
    name = entry.split()[0]
    said = f"of the package somebodys-models is not a ModelSpec named {name}"
    with pytest.raises(InputError, match=said):
        find_model(name)


def test_one_broken_package_does_not_hide_the_others(installed, tmp_path, monkeypatch):
    (tmp_path / "somebodys_model.py").write_text("raise RuntimeError")
    entries = ["broken = somebodys_model:MODEL", "sage = ihgnn_example_model:MODEL"]
    installed("somebodys-models", entries, EXAMPLE)
    monkeypatch.setattr(registry, "_OWN", {})
    found = dict(all_models())
    assert isinstance(found["broken"], InputError)
    assert found["sage"].title == "GraphSAGE"


def test_the_name_of_a_model_of_this_package_cannot_be_taken(installed):
    installed("somebodys-models", ["graphormer = math:pi"])
    assert model_names().count("graphormer") == 1
    assert find_model("graphormer").package == "ihgnn"


def test_the_example_is_found_by_its_entry_point(example):
    assert "sage" in [each.name for each in entry_points(group="ihgnn.models")]
    spec = find_model("sage")
    assert (spec.name, spec.package) == ("sage", "ihgnn-example-model")
    assert find_model("sage") is spec
    with pytest.raises(InputError, match="layers must be at least 1"):
        spec.settings(layers=0)


def test_the_example_does_not_see_the_order_of_nodes_or_what_else_is_in_a_batch(example):
    drawn = random.Random(1)
    other = [relabelled(each, drawn.sample(range(len(each[0])), len(each[0]))) for each in ALL]
    dataset = dataset_of(ALL)
    model = model_of("sage", dataset)
    together = logits_of(model, dataset)
    torch.testing.assert_close(logits_of(model, dataset_of(other)), together, rtol=1e-4, atol=1e-5)
    alone = torch.cat([logits_of(model, dataset_of([each, each]))[:1] for each in ALL])
    torch.testing.assert_close(alone, together, rtol=1e-4, atol=1e-5)


@torch.no_grad()
def test_the_example_computes_what_it_says(example):
    """A path of two labels 0 and 1 and a node beside it, one layer."""
    dataset = dataset_of([([0, 1, 2], [(0, 1)])])
    model = model_of("sage", dataset, layers=1)
    layer, unit = model.layers[0], torch.eye(LABELS)
    neighbour = [unit[1], unit[0], torch.zeros(LABELS)]
    h = [
        (layer.lin_r.weight @ unit[at] + layer.lin_l.weight @ mean + layer.lin_l.bias).relu()
        for at, mean in enumerate(neighbour)
    ]
    hidden = (model.first.weight @ (sum(h) / 3) + model.first.bias).relu()
    expected = model.second.weight @ hidden + model.second.bias
    torch.testing.assert_close(logits_of(model, dataset)[0], expected)


def test_the_example_trains_on_odd_graphs_every_parameter(example):
    dataset = dataset_of(ALL)
    spec, inputs = find_model("sage"), inputs_of(dataset, Features.LABELS)
    generators = [torch.Generator().manual_seed(0)]
    stack = AutogradStack(lambda: spec.make(spec.settings(), inputs), generators).train()
    stack.train_step(batch_of(dataset), torch.empty(0), [0], CrossEntropy())
    assert all(each.grad is not None and each.grad.isfinite().all() for each in stack.parameters())


def test_the_example_learns_which_label_is_the_most_frequent(example):
    drawn = random.Random(0)
    graphs = []
    for most in (0, 1) * 20:
        labels = [most] * 4 + [drawn.randrange(LABELS) for _ in range(3)]
        graphs.append((labels, [(at, at + 1) for at in range(6)]))
    classes = [each[0][0] for each in graphs]
    assert accuracy_after_training("sage", dataset_of(graphs, classes), steps=60) >= 0.95


@pytest.mark.parametrize("name", model_names())
def test_an_entry_states_the_number_of_parameters_for_mutag(name):
    spec = find_model(name)
    _, parameters = shapes(spec, spec.settings(), Inputs(7, 0, 2, 28))
    assert spec.parameters == parameters
