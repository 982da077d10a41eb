"""How many models fit: more of anything takes more, and there is always room for one."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch

from ihgnn_cli.data.build import ListedGraphs, build
from ihgnn_cli.data.dataset import GraphDataset
from ihgnn_cli.data.splits import draw_folds
from ihgnn_cli.jobs.executor import Executor
from ihgnn_cli.models.settings import IHGNNSettings, Inputs, Variant
from ihgnn_cli.studies.grid import Configuration
from ihgnn_cli.studies.memory import (
    member_bytes,
    require_room_for,
    stack_size,
    worker_bytes,
)
from ihgnn_cli.studies.plan import Protocol
from ihgnn_cli.studies.work import Job
from ihgnn_cli.training import checkpoint
from ihgnn_cli.training.config import RunConfig, configure
from ihgnn_cli.training.needs import NoRoomError, parameter_count

CPU, CUDA = torch.device("cpu"), torch.device("cuda", 0)
A = Configuration(0.01, 32, 3)
PLENTY = 2**50


def paths(*sizes: int, edges: bool = True) -> GraphDataset:
    """Paths of so many nodes, all of one label."""
    starts = np.concatenate([[0], np.cumsum(sizes)])
    source = np.concatenate([np.arange(low, high - 1) for low, high in pairwise(starts)])
    source = source.astype(np.int32) if edges else np.zeros(0, dtype=np.int32)
    return build(
        ListedGraphs(
            name="PATHS",
            sizes=np.array(sizes),
            source=source,
            target=source + 1,
            classes=(np.arange(len(sizes), dtype=np.int32) % 2, (0, 1)),
            node_labels=(np.zeros(sum(sizes), dtype=np.int32), ("a",)),
            undirected=True,
        )
    )


def job(
    *configurations: Configuration,
    dataset: GraphDataset | None = None,
    model: str | None = None,
    **settings: object,
) -> Job:
    dataset = dataset or paths(*[10] * 8)
    protocol = Protocol(configure(overrides=settings, model=model), configurations or (A,))
    return Job(protocol, dataset, tuple(draw_folds(dataset.graph_class, 0, 2)))


def idle(*_: object) -> None:
    pass


def fitting(
    memory: int | None, *, units: int = 1000, workers: int = 1, device: torch.device = CPU
) -> int:
    """The models that a worker with so much memory trains together."""
    return stack_size(job(), units, Executor(workers, device, memory, idle))


# What a member takes


def test_the_parameters_of_a_small_model_are_counted_by_hand() -> None:
    config = RunConfig(model=IHGNNSettings(layers=1, width=2, hidden=3))
    # MLP0 has matrices of 4×2 and 2×2, the layer of 6×2 and 2×2, the classifier of 10×3 and 3×2.
    found = parameter_count(config, Inputs(labels=4, attributes=0, classes=2, max_nodes=5))
    # Each MLP has three vectors of 2 besides, the classifier biases of 3 and 2; theta has 2.
    assert found == (8 + 4) + (12 + 4) + (30 + 6) + 2 * 6 + 5 + 2


@pytest.mark.parametrize("variant", Variant)
@pytest.mark.parametrize("layers", [3, 5])
@pytest.mark.parametrize("inputs", [Inputs(7, 0, 2, 28), Inputs(3, 29, 6, 90)])
def test_the_parameters_are_those_of_the_model(
    variant: Variant, layers: int, inputs: Inputs
) -> None:
    config = RunConfig(model=IHGNNSettings(layers=layers, variant=variant))
    model = checkpoint.build(config, inputs, [0])
    real = sum(parameter.numel() for parameter in model.parameters())
    assert parameter_count(config, inputs) == real


@pytest.mark.parametrize(
    ("variant", "layer", "classifier"),
    [
        ("full", 6 * 2 + 4, 10 * 3),
        ("no-integration", 4 * 2 + 4, 10 * 3),
        ("no-separation", 2 * 2 + 4, 10 * 3),
        ("no-adaptive", 6 * 2 + 4, 2 * 10 * 3),  # both layers of each node
        ("no-concat", 6 * 2 + 4, 2 * 3),  # the sum of the nodes
    ],
)
def test_the_parameters_follow_the_variant(variant: str, layer: int, classifier: int) -> None:
    settings = IHGNNSettings(layers=1, width=2, hidden=3, variant=Variant(variant))
    config = RunConfig(model=settings)
    found = parameter_count(config, Inputs(labels=4, attributes=0, classes=2, max_nodes=5))
    vectors = 2 * 6 + 5 + 2 * (variant != "no-adaptive")  # theta
    assert found == (8 + 4) + layer + classifier + 6 + vectors


def test_more_of_anything_takes_more() -> None:
    least = member_bytes(job())
    assert member_bytes(job(width=64)) > least
    assert member_bytes(job(hidden=256)) > least
    assert member_bytes(job(replace(A, layers=4))) > least
    assert member_bytes(job(replace(A, batch_size=4))) < least
    assert member_bytes(job(replace(A, batch_size=64))) == least  # there are 8 graphs
    # As many nodes in all, but the largest graph has 17.
    assert member_bytes(job(dataset=paths(17, *[9] * 7))) > least
    assert member_bytes(job(dataset=paths(*[10] * 8, edges=False))) < least


def test_the_largest_graph_counts_also_where_no_parameter_depends_on_it() -> None:
    one_large, alike = paths(17, *[9] * 7, edges=False), paths(*[10] * 8, edges=False)
    sizes = [member_bytes(job(dataset=each, variant="no-concat")) for each in (one_large, alike)]
    assert sizes[0] > sizes[1]


def test_the_largest_of_the_grid_counts() -> None:
    wide, deep = replace(A, batch_size=6), replace(A, batch_size=4, layers=5)
    assert member_bytes(job(deep, wide)) == member_bytes(job(Configuration(0.01, 6, 5)))
    assert member_bytes(job(A, replace(A, lr=0.5))) == member_bytes(job())


def test_the_parameters_are_kept_several_times() -> None:
    inputs = Inputs(labels=1, attributes=0, classes=2, max_nodes=10)
    parameters = parameter_count(RunConfig(), inputs)
    assert member_bytes(job()) > 4 * 4 * parameters  # value, gradient and two moments at least


# What a worker takes besides


def test_a_worker_takes_python_with_torch_and_the_graphs() -> None:
    # A path of 10 nodes has 9 edges, each stored from both of its ends.
    few, many = (worker_bytes(paths(*[10] * count)) for count in (8, 80))
    assert many - few == 32 * 72 * (10 + 18)
    assert 2**28 < few < 2**29


# How many fit


def test_a_worker_has_no_more_models_than_its_share_of_the_units() -> None:
    assert fitting(PLENTY, units=8, workers=2) == 4
    assert fitting(PLENTY, units=9, workers=2) == 5
    assert fitting(PLENTY, units=1, workers=4) == 1


def test_a_gpu_has_room_for_more_than_a_core() -> None:
    assert 1 < fitting(PLENTY) < fitting(PLENTY, device=CUDA) < 1000


def test_of_what_a_worker_has_left_half_is_for_models() -> None:
    enough = worker_bytes(job().dataset) + 2 * 5 * member_bytes(job())
    assert fitting(enough) == 5
    assert fitting(enough - 10) == 4
    assert fitting(enough, workers=3) == 5  # it is what each has


def test_the_process_of_a_worker_takes_nothing_of_its_gpu() -> None:
    enough = 2 * 5 * member_bytes(job())
    assert fitting(enough, device=CUDA) == 5
    assert fitting(enough - 10, device=CUDA) == 4


@pytest.mark.parametrize("device", [CPU, CUDA])
@pytest.mark.parametrize("memory", [0, 1000])
def test_one_model_is_always_tried(memory: int, device: torch.device) -> None:
    assert fitting(memory, device=device) == 1


@pytest.mark.parametrize("device", [CPU, CUDA])
def test_where_the_memory_is_not_known_it_is_no_limit(device: torch.device) -> None:
    assert fitting(None, device=device) == fitting(PLENTY, device=device)
    assert fitting(None, device=device, units=9, workers=2) == 5


# Other models, and whether there is room at all


def with_memory(memory: int | None, device: torch.device = CPU) -> Executor:
    return Executor(1, device, memory, idle)


def test_models_that_take_turns_are_trained_one_at_a_time() -> None:
    assert stack_size(job(model="gin"), 1000, with_memory(PLENTY)) == 1
    assert stack_size(job(model="gin"), 1000, with_memory(None, CUDA)) == 1


def test_the_largest_of_the_other_settings_counts() -> None:
    wide, narrow = (replace(A, others=(("width", width),)) for width in (64, 8))
    assert member_bytes(job(narrow, wide, model="gin")) == member_bytes(job(model="gin", width=64))
    # Whatever is the largest: each combination has the largest K and batch size of the grid.
    deep = replace(narrow, layers=9)
    assert member_bytes(job(wide, deep, model="gin")) == member_bytes(
        job(replace(A, layers=9), model="gin", width=64)
    )


@pytest.mark.parametrize("model", ["ihgnn", "gin"])
def test_a_worker_has_to_have_room_for_itself_and_one_model(model: str) -> None:
    asked = job(model=model)
    enough = worker_bytes(asked.dataset) + member_bytes(asked)
    require_room_for(asked, with_memory(enough))
    require_room_for(asked, with_memory(None))  # not known, and tried
    with pytest.raises(NoRoomError, match="does not fit in memory") as caught:
        require_room_for(asked, with_memory(enough - 1))
    assert caught.value.needed == member_bytes(asked)
    with pytest.raises(NoRoomError, match="0 kB are free"):
        require_room_for(asked, with_memory(0))


def test_a_gpu_has_to_have_room_for_the_model_alone() -> None:
    asked = job(model="gin")
    require_room_for(asked, with_memory(member_bytes(asked), CUDA))
    with pytest.raises(NoRoomError):
        require_room_for(asked, with_memory(member_bytes(asked) - 1, CUDA))


def test_one_configuration_without_room_refuses_the_grid() -> None:
    narrow, wide = (replace(A, others=(("width", width),)) for width in (8, 4096))
    memory = worker_bytes(job().dataset) + 10 * member_bytes(job(narrow, model="gin"))
    require_room_for(job(narrow, model="gin"), with_memory(memory))
    with pytest.raises(NoRoomError):
        require_room_for(job(narrow, wide, model="gin"), with_memory(memory))


def test_large_models_are_trained_one_by_one_on_the_cpu() -> None:
    """A model of DD takes 0.7 GB, this one 0.9; a stack of them is slower than one."""
    huge = job(dataset=paths(9_000, *[10] * 7))
    assert stack_size(huge, 1000, with_memory(PLENTY)) == 1
    assert stack_size(huge, 1000, with_memory(PLENTY, CUDA)) > 10
