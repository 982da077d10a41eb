"""Settings have the values that were asked for, however they are spelled, or are refused."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
import pytest

from ihgnn_cli.data.access import Access
from ihgnn_cli.data.features import node_features
from ihgnn_cli.data.sources import locate, read
from ihgnn_cli.errors import InputError
from ihgnn_cli.homophily.kinds import Measure
from ihgnn_cli.homophily.measures import graph_homophily
from ihgnn_cli.models.entries.gin import GINSettings
from ihgnn_cli.models.registry import find_model, model_names
from ihgnn_cli.models.settings import IHGNNSettings, Inputs
from ihgnn_cli.settings import Settings, field_types
from ihgnn_cli.training.checkpoint import build
from ihgnn_cli.training.config import DataSettings, RunConfig, TrainingSettings

CLASSES = [find_model(name).settings for name in model_names()]


class Kind(StrEnum):
    ONE = "one"
    TWO = "two"


@dataclass(frozen=True)
class Example(Settings):
    kind: Kind = Kind.ONE
    count: int = 1
    share: float = 0.5
    flag: bool = False
    name: str = ""
    limit: int | None = None
    others: tuple[int, ...] = ()


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({"kind": "two"}, Kind.TWO),
        ({"count": np.int64(3)}, 3),
        ({"share": 1}, 1.0),
        ({"share": np.float32(0.25)}, 0.25),
        ({"flag": np.True_}, True),
        ({"limit": None}, None),
        ({"limit": np.int32(4)}, 4),
        ({"others": (1, 2)}, (1, 2)),
    ],
)
def test_a_value_becomes_its_fields_type(given: dict[str, Any], found: Any) -> None:
    (name,) = given
    value = getattr(Example(**given), name)
    assert value == found
    assert type(value) is type(found)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"kind": "three"}, "kind must be one of one, two, not 'three'."),
        ({"count": 1.0}, "count must be a whole number, not 1.0."),
        ({"count": True}, "count must be a whole number, not True."),
        ({"count": "1"}, "count must be a whole number, not '1'."),
        ({"share": "much"}, "share must be a number, not 'much'."),
        ({"flag": "no"}, "flag must be true or false, not 'no'."),
        ({"name": 3}, "name must be a text, not 3."),
        ({"limit": "all"}, "limit must be a whole number, not 'all'."),
        ({"count": 10**400}, "count is too large a number."),
    ],
)
def test_any_other_value_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as refused:
        Example(**given)
    assert str(refused.value) == message


@pytest.mark.parametrize("settings", [*CLASSES, DataSettings, TrainingSettings])
def test_every_choice_of_every_settings_class_can_be_given_as_text(settings: type[Any]) -> None:
    for name, kind in field_types(settings).items():
        if isinstance(kind, type) and issubclass(kind, StrEnum):
            for choice in kind:
                assert getattr(settings(**{name: str(choice)}), name) is choice
            with pytest.raises(InputError, match=f"{name} must be one of"):
                settings(**{name: "another"})


@pytest.mark.parametrize("settings", CLASSES)
def test_every_field_of_a_model_is_of_a_type_that_is_checked(settings: type[Any]) -> None:
    for kind in field_types(settings).values():
        assert kind in (int, float, bool, str) or issubclass(kind, StrEnum)


def test_an_ablation_given_as_text_is_the_ablation() -> None:
    inputs = Inputs(labels=3, attributes=0, classes=2, max_nodes=10)
    config = RunConfig(model=IHGNNSettings(variant="no-concat"))  # type: ignore[arg-type]
    readout = build(config, inputs, [0]).state_dict()["classifier.first.weight"]
    assert readout.shape == (1, 32, 128)  # the sum of the nodes, not 10 of them side by side


def test_settings_of_one_model_do_not_go_with_the_name_of_another() -> None:
    with pytest.raises(InputError, match="The model ihgnn has settings of type IHGNNSettings"):
        RunConfig(model=GINSettings())
    with pytest.raises(InputError, match="No model 'gjn'"):
        RunConfig(model=GINSettings(), model_name="gjn")


def test_functions_take_choices_as_text_and_refuse_others() -> None:
    data = read(locate("MUTAG", Access(offline=True)))
    edge = graph_homophily(data, "edge")  # type: ignore[arg-type]
    np.testing.assert_array_equal(edge, graph_homophily(data, Measure.EDGE))
    with pytest.raises(InputError, match="measure must be one of node, edge, adjusted, not 'edgy'"):
        graph_homophily(data, "edgy")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="features must be one of"):
        node_features(data, "colours")  # type: ignore[arg-type]
