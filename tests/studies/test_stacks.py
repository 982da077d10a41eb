"""Which trainings share a stack, and how large stacks are."""

from dataclasses import replace

import pytest
import torch
from small_job import at, finish, folder_of, small_job

from ihgnn_cli.studies.crossval import stacks as module
from ihgnn_cli.studies.crossval.protocol import Configuration, Stage, Training, own_grid
from ihgnn_cli.studies.crossval.stacks import (
    Sizes,
    Stack,
    fitting,
    largest_stack,
    paying,
    require_room_for,
    stacks,
)
from ihgnn_cli.training.config import RunConfig
from ihgnn_cli.training.needs import NoRoomError

CPU, CUDA = torch.device("cpu"), torch.device("cuda")
MB = 2**20


def trainings(*layers: int, lr: tuple[float, ...] = (0.01,), folds: int = 1) -> list[Training]:
    return [
        Training(Stage.SELECT, fold, 0, at(each, layers=k), 0)
        for k in layers
        for each in lr
        for fold in range(folds)
    ]


def test_stacks_have_one_shape_and_nearly_equal_sizes_the_most_expensive_first() -> None:
    given = [*trainings(3, folds=7), *trainings(5, folds=3)]
    found = stacks(given, 4, fold_by_fold=False)
    assert [(each.name, len(each)) for each in found] == [
        ("select-k5-batch32-0", 3),
        ("select-k3-batch32-1", 4),
        ("select-k3-batch32-0", 3),
    ]
    assert stacks(given[::-1], 4, fold_by_fold=False) == found


def test_other_settings_are_shapes_of_their_own_and_learning_rates_are_not() -> None:
    one = Training(Stage.SELECT, 0, 0, at(0.01, width=16), 0)
    others = [
        replace(one, configuration=at(0.001, width=16)),
        replace(one, configuration=at(0.01, width=32)),
        replace(one, configuration=at(0.01, batch_size=64, width=16)),
    ]
    found = stacks([one, *others], 9, fold_by_fold=False)
    assert sorted(map(len, found)) == [1, 1, 2]
    assert len({each.name for each in found}) == 3


def test_fold_by_fold_no_stack_has_trainings_of_two_folds() -> None:
    found = stacks(trainings(3, lr=(0.1, 0.01), folds=3), 9, fold_by_fold=True)
    assert [len({each.fold for each in stack.trainings}) for stack in found] == [1, 1, 1]
    assert len({each.name for each in found}) == 3


@pytest.mark.parametrize(
    ("most", "workers", "trainings", "size"),
    [
        (15, 2, 270, 15),
        (15, 16, 90, 6),
        (15, 64, 90, 2),
        (15, 64, 30, 1),
        (4, 1, 2, 2),
        (4, 1, 9, 4),
    ],
)
def test_every_worker_gets_a_stack(most: int, workers: int, trainings: int, size: int) -> None:
    assert Sizes(most, workers).of(trainings) == size


@pytest.mark.parametrize(("race", "patience"), [(False, 0), (True, 0), (False, 5)])
def test_what_a_fold_decides_changes_no_stack_of_another_folds_selection(
    tmp_path, race: bool, patience: int
) -> None:
    """Trainings that may end early or be cut share stacks with others of their fold only."""
    grid = [at(lr, layers=k) for lr in (0.1, 0.01, 0.001) for k in (1, 2)]
    job = small_job(grid, race=race, patience=patience)

    def selection(right: dict[Configuration, int]) -> list[list[Stack]]:
        folder = folder_of(tmp_path / str(len(list(tmp_path.iterdir()))), job, most=15, workers=2)
        finish(folder, right)
        return folder._stages[:-1]

    stages = selection({grid[0]: 9})
    for number, stage in enumerate(stages):
        for stack in stage:
            together = {each.fold for each in stack.trainings}
            assert len(together) == 1 or (number == 0 and not patience)
    # The first stage does not depend on any result.
    assert selection({grid[5]: 9})[0] == stages[0]


def test_a_gpu_takes_larger_stacks_and_large_models_smaller_ones() -> None:
    assert paying(CUDA, 10**9) == 64
    assert paying(CPU, 1 * MB) == 15
    assert paying(CPU, 300 * MB) == 4
    assert paying(CPU, 5000 * MB) == 1


def test_half_of_the_memory_that_a_worker_leaves_is_for_models(monkeypatch) -> None:
    dataset = small_job().dataset
    monkeypatch.setattr(module, "worker_bytes", lambda _: 350 * MB)
    assert fitting(750 * MB, CPU, dataset, 100 * MB) == 2
    assert fitting(750 * MB, CUDA, dataset, 100 * MB) == 3
    assert fitting(300 * MB, CPU, dataset, 100 * MB) <= 0


def test_the_largest_configuration_of_the_grid_decides() -> None:
    job = small_job()
    seen = []

    def model_bytes(_: object, config: RunConfig) -> int:
        seen.append((config.model.layers, config.training.batch_size))
        return 100 * MB

    protocol = replace(job.protocol, grid=own_grid(job.protocol.config))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "model_bytes", model_bytes)
        patch.setattr(module, "worker_bytes", lambda _: 0)
        assert largest_stack(protocol, job.dataset, CPU, 600 * MB) == 3
        assert largest_stack(protocol, job.dataset, CPU, 10 * MB) == 1
        assert largest_stack(protocol, job.dataset, CPU, None) == 12
    assert set(seen) == {(5, 128)}
    gin = replace(protocol, config=RunConfig().of_model("gin"))
    assert largest_stack(gin, job.dataset, CPU, None) == 1


def test_a_model_that_does_not_fit_is_refused_with_a_remedy() -> None:
    job = small_job()

    def require(memory: int | None, workers: int, trainings: int = 9) -> None:
        require_room_for(
            *(job.protocol, job.dataset, trainings), device=CPU, memory=memory, workers=workers
        )

    require(None, 4)
    require(2**40, 4)
    with pytest.raises(NoRoomError, match="fewer --workers"):
        require(300 * MB, 4)
    require(300 * MB, 4, trainings=1)  # one training has the memory of all four
