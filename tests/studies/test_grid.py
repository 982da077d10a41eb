"""The grid: which configurations compete, and in which order."""

import json
import math
from dataclasses import asdict, replace

import pytest

from ihgnn_cli.errors import InputError
from ihgnn_cli.models.entries.pgcn import Readout
from ihgnn_cli.studies.grid import (
    Configuration,
    configuration,
    grid,
    listed_settings,
    own_grid,
    shown,
    with_plain,
)
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
        ({"lr": ()}, "lr is empty"),
        ({"batch_size": ()}, "batch_size is empty"),
        ({"layers": ()}, "layers is empty"),
        ({"lr": (0.1, 0.01, 0.1)}, "lr names 0.1 twice"),
        ({"batch_size": (32, 32)}, "batch_size names 32 twice"),
        ({"layers": (3, 4, 3)}, "layers names 3 twice"),
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


# Other models, and settings beyond the three


OTHERS = (("width", 16), ("dropout", 0.5), ("learn_eps", True), ("readout", "funnel"))
MORE = Configuration(0.01, 32, 4, OTHERS)


def test_without_a_word_it_is_the_grid_of_the_model_s_own_paper() -> None:
    found = own_grid(configure(model="gin"))
    # Widths, batch sizes, dropouts; one learning rate; K stays.
    assert len(set(found)) == len(found) == 3 * 2 * 2
    assert {(each.lr, each.layers) for each in found} == {(0.01, 4)}
    assert {each.batch_size for each in found} == {32, 128}
    assert {each.others for each in found} == {
        (("width", width), ("dropout", dropout)) for width in (16, 32, 64) for dropout in (0.0, 0.5)
    }
    assert own_grid(CONFIG) == grid(CONFIG)


def test_what_is_given_stands_in_for_the_model_s_own_lists() -> None:
    found = own_grid(
        configure(overrides={"lr": 0.5}, model="gin"),
        {"width": (8,), "batch_size": (4, 2), "dropout": (0.25,), "learn_eps": (False, True)},
    )
    assert found == tuple(
        Configuration(0.01, size, 4, (("width", 8), ("dropout", 0.25), ("learn_eps", learned)))
        for size in (4, 2)
        for learned in (False, True)
    )


def test_other_settings_are_applied_to_model_and_training() -> None:
    config = configure(model="pgcn")
    each = own_grid(config)[-1]
    after = each.applied(config)
    assert after.model.readout is Readout.RESTRICTED  # type: ignore[attr-defined]
    assert after.training.weight_decay == 5e-4
    assert (after.model.layers, after.model.width) == (8, 50)
    assert after.data == config.data


def test_other_settings_are_told_in_words() -> None:
    assert str(MORE) == (
        "lr 0.01, batch size 32, K = 4, width 16, dropout 0.5, learn_eps true, readout funnel"
    )
    assert [shown(each) for each in (True, False, 1e-5, 3, "x")] == [
        *("true", "false", "1e-05", "3", "x")
    ]


def test_plain_values_are_configurations_again() -> None:
    plain = MORE.as_plain()
    assert plain == {"lr": 0.01, "batch_size": 32, "layers": 4, **dict(OTHERS)}
    assert configuration(json.loads(json.dumps(plain))) == MORE
    of_record = with_plain({"fold": 3, "configuration": asdict(MORE)})
    assert of_record == {"fold": 3, "configuration": plain}
    assert with_plain({"configuration": None}) == {"configuration": None}


def test_choices_of_a_model_survive_as_texts() -> None:
    for each in own_grid(configure(model="pgcn")):
        again = configuration(json.loads(json.dumps(each.as_plain())))
        assert again == each
        assert hash(again) == hash(each)
        assert str(again) == str(each)


@pytest.mark.parametrize(
    "plain",
    [
        {"lr": 0.1, "batch_size": 3},
        {"lr": 0.1, "batch_size": 3, "layers": 3, "width": None},
        {"lr": 0.1, "batch_size": 3, "layers": 3, "width": [3]},
        {"lr": 0.1, "batch_size": 3, "layers": 3, "others": {}},
    ],
)
def test_what_is_no_configuration_is_none(plain: dict[str, object]) -> None:
    with pytest.raises((KeyError, TypeError)):
        configuration(plain)


def test_lists_of_settings_are_read_from_texts() -> None:
    gin, pgcn = configure(model="gin"), configure(model="pgcn")
    assert listed_settings(gin, ["learn_eps=true,false", "width= 8 , 16"]) == {
        "learn_eps": (True, False),
        "width": (8, 16),
    }
    found = listed_settings(pgcn, ["readout=funnel"])
    assert found == {"readout": ("funnel",)}
    assert type(found["readout"][0]) is str
    assert listed_settings(gin, []) == {}


@pytest.mark.parametrize(
    ("texts", "told"),
    [
        (["learn_eps"], "--set takes NAME=LIST"),
        (["learn_eps=true,maybe"], "learn_eps must be true or false, not 'maybe'"),
        (["width=8,"], "width must be a whole number, not ''"),
        (["variant=full"], "variant is a setting of ihgnn, not of gin"),
    ],
)
def test_texts_that_are_no_lists_are_refused(texts: list[str], told: str) -> None:
    with pytest.raises(InputError) as caught:
        listed_settings(configure(model="gin"), texts)
    assert told in str(caught.value)


@pytest.mark.parametrize(
    ("others", "told"),
    [
        ({"width": ()}, "width is empty"),
        ({"learn_eps": (True, True)}, "learn_eps names true twice"),
        ({"width": (8, 0)}, "width must be at least 1, not 0"),
    ],
)
def test_lists_of_other_settings_are_checked_as_well(
    others: dict[str, tuple[float, ...]], told: str
) -> None:
    with pytest.raises(InputError) as caught:
        own_grid(configure(model="gin"), others)
    assert told in str(caught.value)
