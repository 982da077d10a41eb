"""The grid: which configurations compete, and in which order."""

import math
from dataclasses import replace

import pytest

from ihgnn_cli.errors import InputError
from ihgnn_cli.selection.grid import Configuration, grid
from ihgnn_cli.training.config import RunConfig, configure

CONFIG = RunConfig()


def test_the_grid_of_the_paper_has_27_configurations() -> None:
    found = grid(CONFIG)
    assert len(set(found)) == len(found) == 27
    assert {each.lr for each in found} == {0.01, 0.001, 0.0001}
    assert {each.batch_size for each in found} == {32, 64, 128}
    assert {each.layers for each in found} == {3, 4, 5}


def test_combinations_stand_in_the_order_given() -> None:
    assert grid(CONFIG, lr=(0.1, 0.2), batch_size=(8,), layers=(5, 3)) == (
        Configuration(0.1, 8, 5),
        Configuration(0.1, 8, 3),
        Configuration(0.2, 8, 5),
        Configuration(0.2, 8, 3),
    )


def test_a_configuration_changes_its_own_three_values_and_no_other() -> None:
    before = configure(overrides={"width": 4, "hidden": 8, "epochs": 7, "seed": 3})
    after = Configuration(0.5, 64, 2).applied(before)
    assert (after.training.lr, after.training.batch_size, after.model.layers) == (0.5, 64, 2)
    assert after.data == before.data
    assert replace(after.model, layers=before.model.layers) == before.model
    own = {"lr": before.training.lr, "batch_size": before.training.batch_size}
    assert replace(after.training, **own) == before.training


def test_a_configuration_is_told_in_words() -> None:
    assert str(Configuration(0.0001, 32, 3)) == "lr 0.0001, batch size 32, K = 3"


@pytest.mark.parametrize(
    ("lists", "told"),
    [
        ({"lr": ()}, "--lr is empty"),
        ({"batch_size": ()}, "--batch-size is empty"),
        ({"layers": ()}, "--layers is empty"),
        ({"lr": (0.1, 0.01, 0.1)}, "--lr names 0.1 twice"),
        ({"batch_size": (32, 32)}, "--batch-size names 32 twice"),
        ({"layers": (3, 4, 3)}, "--layers names 3 twice"),
        ({"lr": (0.1, 0.0)}, "lr must be a finite number above 0, not 0"),
        ({"lr": (math.nan,)}, "lr must be a finite number above 0, not nan"),
        ({"batch_size": (32, 0)}, "batch_size must be at least 1, not 0"),
        ({"layers": (3, -1)}, "layers must be at least 0, not -1"),
    ],
)
def test_empty_lists_repetitions_and_values_out_of_range_are_refused(
    lists: dict[str, tuple[float, ...]], told: str
) -> None:
    with pytest.raises(InputError) as caught:
        grid(CONFIG, **lists)
    assert told in str(caught.value)
