"""What a training takes: parameters as they are, and a refusal before the memory is full."""

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch

from ihgnn_cli.data.build import ListedGraphs, build
from ihgnn_cli.data.dataset import GraphDataset
from ihgnn_cli.data.features import Features
from ihgnn_cli.models import registry
from ihgnn_cli.models.autograd import PAIRS_AT_ONCE
from ihgnn_cli.models.card import inputs_of
from ihgnn_cli.models.settings import Inputs, ModelSettings
from ihgnn_cli.models.spec import Cost, Load, ModelSpec
from ihgnn_cli.training import checkpoint
from ihgnn_cli.training.config import RunConfig, configure
from ihgnn_cli.training.loading import store_for
from ihgnn_cli.training.loss import CrossEntropy
from ihgnn_cli.training.needs import NoRoomError, model_bytes, parameter_count, require_room
from ihgnn_cli.words import file_size

CPU = torch.device("cpu")
MB = 2**20


def paths(*sizes: int) -> GraphDataset:
    """Paths of so many nodes, all of one label."""
    starts = np.concatenate([[0], np.cumsum(sizes)])
    source = np.concatenate([np.arange(low, high - 1) for low, high in pairwise(starts)])
    return build(
        ListedGraphs(
            name="PATHS",
            sizes=np.array(sizes),
            source=source.astype(np.int32),
            target=(source + 1).astype(np.int32),
            classes=(np.arange(len(sizes), dtype=np.int32) % 2, (0, 1)),
            node_labels=(np.zeros(sum(sizes), dtype=np.int32), ("a",)),
            undirected=True,
        )
    )


class Map(torch.nn.Module):
    """One linear map of the features."""

    def __init__(self, _: ModelSettings, inputs: Inputs) -> None:
        super().__init__()
        self.map = torch.nn.Linear(inputs.features, inputs.classes)


@dataclass
class Registered:
    """A model of a test: what it says that it needs, and for which loads it was asked."""

    loads: list[Load]

    def numbers(self, _: ModelSettings, load: Load) -> float:
        self.loads.append(load)
        return load.pairs


@pytest.fixture
def quadratic(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Registered]:
    """Register the model `pairs`, which keeps a number for each pair of nodes."""

    def register(**changes: Any) -> Registered:
        made = Registered([])
        spec = ModelSpec(
            name="pairs",
            title="Pairs",
            reference="nobody",
            settings=ModelSettings,
            cost=Cost.PAIRS,
            numbers=made.numbers,
            make=Map,
        )
        monkeypatch.setattr(Map, "MODEL", replace(spec, **changes), raising=False)
        monkeypatch.setitem(registry._OWN, "pairs", "pairs_of_a_test")
        monkeypatch.setitem(sys.modules, "pairs_of_a_test", Map)
        return made

    return register


# Parameters


@pytest.mark.parametrize("name", ["gin", "pgcn", "dgcnn", "acm"])
@pytest.mark.parametrize("inputs", [Inputs(7, 0, 2, 28), Inputs(3, 29, 6, 90)])
def test_the_parameters_of_a_baseline_are_those_of_its_module(name: str, inputs: Inputs) -> None:
    config = RunConfig().of_model(name)
    assert config.spec.make is not None
    module = config.spec.make(config.model, inputs)
    assert parameter_count(config, inputs) == sum(each.numel() for each in module.parameters())


def test_the_parameters_of_gin_are_counted_by_hand() -> None:
    config = configure(overrides={"layers": 1, "width": 3}, model="gin")
    inputs = Inputs(labels=5, attributes=0, classes=2, max_nodes=9)
    # An MLP of 5→3→3 with biases, two normalizations of 3 with scale and shift, and the scores of
    # the features and of the layer; GIN-0 has no eps.
    expected = (5 * 3 + 3) + (3 * 3 + 3) + 2 * (3 + 3) + (5 * 2 + 2) + (3 * 2 + 2)
    assert parameter_count(config, inputs) == expected
    learned = config.with_values({"learn_eps": True})
    assert parameter_count(learned, inputs) == expected + 1


def test_parameters_are_counted_without_memory_for_them() -> None:
    config = configure(overrides={"width": 200_000}, model="gin")  # 100s of gigabytes
    assert parameter_count(config, Inputs(7, 0, 2, 28)) > 10**11


# Loads


def test_a_step_is_a_batch_of_average_graphs_and_the_largest(quadratic) -> None:
    asked = quadratic()
    # 2, 2 and 8 nodes: on average 4 nodes, 6 adjacent pairs and 24 pairs of nodes.
    data = paths(2, 2, 8)
    model_bytes(data, configure(overrides={"batch_size": 2}, model="pairs"))
    assert set(asked.loads) == {Load(3, 2 * 4 + 8, 2 * 6 + 14, largest=8, pairs=2 * 24 + 64)}


def test_a_batch_is_no_larger_than_the_data_set(quadratic) -> None:
    quadratic()
    data = paths(2, 2, 8)
    sizes = [
        model_bytes(data, configure(overrides={"batch_size": size}, model="pairs"))
        for size in (2, 3, 1000)
    ]
    assert sizes[0] < sizes[1] == sizes[2]


def test_where_graphs_come_by_size_the_largest_counts_alone(quadratic) -> None:
    asked = quadratic(by_size=True)
    data = paths(*[10] * 99, 300)
    needed = model_bytes(data, configure(overrides={"batch_size": 64}, model="pairs"))
    alone = Load(1, 300, 598, largest=300, pairs=300**2)
    assert alone in asked.loads
    (other,) = set(asked.loads) - {alone}
    assert other.pairs <= PAIRS_AT_ONCE + 1
    # Six times the parameters of a map of 1 feature to 2 classes, the pairs, and the features.
    assert needed == 4 * (6 * 4 + max(300**2, other.pairs) + max(300, other.nodes))
    # A larger step has more parts, not larger ones.
    larger = configure(overrides={"batch_size": 100}, model="pairs")
    assert model_bytes(data, larger) == pytest.approx(needed, rel=1e-4)


def test_estimates_of_ihgnn_grow_with_the_nodes_and_edges_of_a_step() -> None:
    small, large = (
        model_bytes(paths(*[10] * 64), configure(overrides={"batch_size": size}))
        for size in (8, 16)
    )
    # By node: 32 units of 4 layers of 6 numbers and a readout of 3; by adjacent pair 6.
    by_graph = 4 * (10 * 32 * (4 * 6 + 3) + 18 * 6)
    assert large - small == 8 * by_graph


# Room


def test_what_fits_is_let_through(quadratic) -> None:
    quadratic()
    config = configure(model="pairs")
    needed = model_bytes(paths(4, 4), config)
    require_room(config, paths(4, 4), CPU, needed)
    with pytest.raises(NoRoomError):
        require_room(config, paths(4, 4), CPU, needed - 1)


def test_a_refusal_tells_the_estimate_the_cost_and_what_to_do(quadratic) -> None:
    quadratic()
    # As in DD, one graph has thousands of nodes.
    data = paths(*[284] * 20, 5748)
    with pytest.raises(NoRoomError) as caught:
        require_room(configure(model="pairs"), data, CPU, 64 * MB)
    error = caught.value
    assert error.exit_code == 1
    assert error.needed == model_bytes(data, configure(model="pairs"))
    told = str(error)
    assert told.startswith(
        "Pairs does not fit in memory: on PATHS (up to 5,748 nodes per graph, batches of 32) it "
        "takes about "
    )
    assert f", and {file_size(64 * MB)} are free. " in told
    assert told.endswith(
        "Use a smaller --width, a smaller --batch-size, data without its largest graphs, or a "
        "machine with more memory."
    )
    require_room(configure(model="gin"), data, CPU, 2**30)  # linear in nodes and edges


def test_without_a_number_it_is_what_is_free(quadratic, monkeypatch: pytest.MonkeyPatch) -> None:
    quadratic()
    monkeypatch.setattr("ihgnn_cli.training.needs.free_memory", lambda device: 3000)
    with pytest.raises(NoRoomError, match="3 kB are free"):
        require_room(configure(model="pairs"), paths(40, 40), CPU)


def test_an_estimate_is_about_what_a_step_of_a_baseline_keeps() -> None:
    """Within a factor of three of the numbers that autograd saves."""
    data = paths(*[20] * 40)
    config = configure(overrides={"batch_size": 40, "layers": 3}, model="gin")
    inputs = inputs_of(data, Features.LABELS)
    saved: dict[int, int] = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        saved[storage.data_ptr()] = storage.nbytes()
        return tensor

    model = checkpoint.build(config, inputs, [0])
    model.train()
    batch = store_for(config, data, data.max_nodes, CPU).batch([np.arange(40)])
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        model.train_step(batch, torch.empty(0), [0], CrossEntropy())
    copies = 4 * 6 * parameter_count(config, inputs)
    estimated = model_bytes(data, config) - copies
    assert sum(saved.values()) / 3 < estimated < 3 * sum(saved.values())
