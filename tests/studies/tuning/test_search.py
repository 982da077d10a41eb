"""What a search hands to its workers: as many trials as pay and fit, and no class of a test."""

import numpy as np
import pytest
import torch
from ihgnn_cli.studies.memory import worker_bytes

from ihgnn_cli.data import load_dataset
from ihgnn_cli.studies.places import Places
from ihgnn_cli.studies.tuning.kinds import PrunerName, SamplerName
from ihgnn_cli.studies.tuning.search import Search, prepare, trials_together
from ihgnn_cli.studies.tuning.space import make_space
from ihgnn_cli.training.config import configure
from ihgnn_cli.training.needs import NoRoomError, model_bytes

CPU, CUDA = torch.device("cpu"), torch.device("cuda", 0)
PLENTY = 2**50


def search(
    sampler: SamplerName = SamplerName.TPE,
    *,
    inner: int = 1,
    pruner: PrunerName = PrunerName.MEDIAN,
    model: str | None = None,
) -> Search:
    grid = sampler is SamplerName.GRID
    space, config = make_space(configure(overrides={"epochs": 9}, model=model), {}, grid=grid)
    dataset = load_dataset("MUTAG")
    return prepare(config, space, dataset, sampler=sampler, pruner=pruner, inner=inner)


def places(device: torch.device = CPU, memory: int = PLENTY) -> Places:
    return Places((str(device),), device, memory)


@pytest.mark.parametrize(
    ("sampler", "cpu", "cuda"),
    [
        (SamplerName.TPE, 5, 16),
        (SamplerName.GP, 5, 16),
        (SamplerName.RANDOM, 15, 64),
        (SamplerName.GRID, 15, 64),
    ],
)
def test_samplers_that_learn_begin_fewer_trials_at_a_time(
    sampler: SamplerName, cpu: int, cuda: int
) -> None:
    asked = search(sampler)
    assert trials_together(asked, places(CPU)) == cpu
    assert trials_together(asked, places(CUDA)) == cuda


@pytest.mark.parametrize(
    ("sampler", "inner", "together"),
    [(SamplerName.TPE, 2, 2), (SamplerName.RANDOM, 2, 7), (SamplerName.TPE, 6, 1)],
)
def test_a_trial_is_as_many_models_as_it_has_inner_folds(
    sampler: SamplerName, inner: int, together: int
) -> None:
    assert trials_together(search(sampler, inner=inner), places()) == together


@pytest.mark.parametrize("device", [CPU, CUDA])
def test_of_little_memory_half_is_for_models_of_the_largest_kind(device: torch.device) -> None:
    asked = search(SamplerName.RANDOM)
    largest = asked.config.with_values({"layers": 5, "batch_size": 128})
    assert max(asked.space.parts["layers"].values) == 5  # type: ignore[union-attr]
    assert max(asked.space.parts["batch_size"].values) == 128  # type: ignore[union-attr]
    each = model_bytes(asked.dataset, largest)
    taken = worker_bytes(asked.dataset) if device is CPU else 0
    assert trials_together(asked, places(device, taken + 2 * 3 * each)) == 3
    assert trials_together(asked, places(device, taken + 2 * 3 * each - 2)) == 2
    assert trials_together(asked, places(device, taken + each)) == 1
    with pytest.raises(NoRoomError, match="does not fit in memory"):
        trials_together(asked, places(device, 0))


@pytest.mark.parametrize("inner", [1, 3])
def test_workers_are_handed_no_class_of_a_test_graph(inner: int) -> None:
    asked = search(inner=inner)
    before = asked.dataset.graph_class.copy()
    handed = asked.without_test_classes().dataset.graph_class
    test = asked.split.test
    assert set(before[test]) == {0, 1}
    assert set(handed[test]) == {0}
    rest = np.setdiff1d(np.arange(len(before)), test)
    assert np.array_equal(handed[rest], before[rest])
    assert np.array_equal(asked.dataset.graph_class, before)  # the final run has them
    for split in asked.inner:
        assert not {*split.train, *split.validation} & set(test)


@pytest.mark.parametrize("sampler", [SamplerName.TPE, SamplerName.GRID])
def test_trials_of_models_that_take_turns_are_trained_one_at_a_time(sampler: SamplerName) -> None:
    asked = search(sampler, model="gin")
    assert trials_together(asked, places()) == 1
    (least,) = asked.space.smallest(asked.config)
    enough = model_bytes(asked.dataset, least)
    assert trials_together(asked, places(memory=enough)) == 1
    with pytest.raises(NoRoomError, match="GIN does not fit in memory"):
        trials_together(asked, places(memory=enough - 1))
