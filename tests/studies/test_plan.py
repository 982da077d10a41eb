"""The plan: what is trained, and which of it together."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ihgnn_cli.data.splits import Fold, draw_folds
from ihgnn_cli.errors import InputError
from ihgnn_cli.studies.grid import Configuration, grid
from ihgnn_cli.studies.plan import Bundle, Protocol, Rung, bundles, final_units, selection_units
from ihgnn_cli.studies.units import Stage, Unit
from ihgnn_cli.training.config import RunConfig, configure

A, B = Configuration(0.01, 32, 3), Configuration(0.001, 32, 3)


def folds(number: int, inner: int = 1) -> list[Fold]:
    return draw_folds(np.arange(40) % 2, 0, number, inner)


def protocol(*configurations: Configuration, runs: int = 3) -> Protocol:
    return Protocol(RunConfig(), configurations, runs)


def select(configuration: Configuration, fold: int) -> Unit:
    return Unit(Stage.SELECT, fold, 0, configuration, 0)


# What is trained


def test_every_configuration_is_trained_once_on_every_split_of_every_fold() -> None:
    units = selection_units(protocol(A, B), folds(3, inner=2))
    assert Counter(units) == Counter(
        Unit(Stage.SELECT, fold, split, configuration, 0)
        for configuration in (A, B)
        for fold in range(3)
        for split in range(2)
    )


def test_the_paper_selects_by_270_trainings_and_tests_by_30() -> None:
    plan = Protocol(RunConfig(), grid(RunConfig()))
    assert len(selection_units(plan, folds(10))) == 270
    assert len(final_units(plan, folds(10), dict.fromkeys(range(10), A))) == 30


def test_a_race_trains_the_best_third_three_times_longer() -> None:
    race = Protocol(RunConfig(), grid(RunConfig()), race=True)
    assert race.rungs == (Rung(13, 27), Rung(39, 9), Rung(117, 3), Rung(None, 1))
    trained = sum(rung.configurations * (rung.epochs or 350) for rung in race.rungs)
    assert trained == 27 * 13 + 9 * 39 + 3 * 117 + 350  # 1,403 instead of 9,450


@pytest.mark.parametrize(
    ("configurations", "rungs"),
    [
        (1, [(None, 1)]),
        (2, [(117, 2), (None, 1)]),
        (3, [(117, 3), (None, 1)]),
        (4, [(39, 4), (117, 2), (None, 1)]),
        (100, [(13, 100), (39, 34), (117, 12), (None, 4)]),
    ],
)
def test_a_race_of_any_size_ends_with_full_trainings(configurations: int, rungs: list) -> None:
    made = [Configuration(0.001 * (number + 1), 32, 3) for number in range(configurations)]
    race = Protocol(RunConfig(), tuple(made), race=True)
    assert [(rung.epochs, rung.configurations) for rung in race.rungs] == rungs


def test_the_rungs_of_a_race_train_with_the_same_seed_and_have_files_of_their_own() -> None:
    race = Protocol(RunConfig(), (A, B, replace(A, lr=0.1)), race=True)
    (first,) = selection_units(race, folds(2), 0, {0: [A], 1: []})
    (last,) = selection_units(race, folds(2), 1, {0: [A], 1: []})
    assert (first.epochs, last.epochs) == (117, None)
    assert last == select(A, 0)  # the same training as without a race
    assert first.seed(5) == last.seed(5)
    assert first.name == f"{last.name}-epochs117"


def test_final_runs_are_of_the_choice_of_their_fold_and_take_turns_with_its_splits() -> None:
    units = final_units(protocol(A, B, runs=3), folds(2, inner=2), {0: B, 1: A})
    assert units == [
        Unit(Stage.FINAL, 0, 0, B, 0),
        Unit(Stage.FINAL, 0, 1, B, 1),
        Unit(Stage.FINAL, 0, 0, B, 2),
        Unit(Stage.FINAL, 1, 0, A, 0),
        Unit(Stage.FINAL, 1, 1, A, 1),
        Unit(Stage.FINAL, 1, 0, A, 2),
    ]


def test_there_is_at_least_one_final_run() -> None:
    with pytest.raises(InputError, match="runs must be at least 1, not 0"):
        protocol(A, runs=0)


# The protocol as plain values


def test_the_plain_protocol_has_the_grid_in_place_of_what_it_sets() -> None:
    config = configure(overrides={"epochs": 7, "seed": 3, "width": 8, "dataset": "data.jsonl"})
    plain = Protocol(config, (A, B), runs=2).as_plain()
    assert plain["grid"] == [
        {"lr": 0.01, "batch_size": 32, "layers": 3},
        {"lr": 0.001, "batch_size": 32, "layers": 3},
    ]
    assert plain["runs"] == 2
    assert plain["data"] == {"dataset": "data.jsonl", "features": "auto"}
    assert plain["training"] == {"epochs": 7, "patience": 0, "seed": 3}
    assert plain["model"]["width"] == 8
    assert "layers" not in plain["model"]


def test_what_the_numbers_do_not_depend_on_makes_no_other_protocol() -> None:
    other = configure(
        overrides={"lr": 0.5, "batch_size": 7, "layers": 9, "split": "fold:3", "device": "cuda"}
    )
    plan = protocol(A)
    assert plan.on(other).as_plain() == plan.as_plain()
    assert plan.on(other).config == other
    assert plan.on(configure(overrides={"patience": 9})).as_plain() != plan.as_plain()


# Which of it together


def test_bundles_are_of_nearly_equal_size() -> None:
    units = [select(A, fold) for fold in range(10)]
    made = bundles(units, 4)
    assert [len(bundle.units) for bundle in made] == [4, 3, 3]
    assert [len(bundle.units) for bundle in bundles(units, 10)] == [10]
    assert [len(bundle.units) for bundle in bundles(units, 1)] == [1] * 10


def test_large_stacks_come_before_small_ones_of_more_layers() -> None:
    many = [select(A, fold) for fold in range(9)]
    one = select(replace(A, layers=A.layers + 1), 0)
    assert [len(bundle) for bundle in bundles([one, *many], 9)] == [9, 1]


def test_only_one_k_and_batch_size_is_trained_together_and_the_costly_come_first() -> None:
    """More layers are costly, and so are smaller batches, of which there are more."""
    shapes = [(3, 64), (4, 32), (3, 32), (4, 64)]
    units = [select(Configuration(0.01, size, layers), 0) for layers, size in shapes]
    names = [bundle.name for bundle in bundles(units, 9)]
    assert names == [
        "select-k4-batch32-0",
        "select-k4-batch64-0",
        "select-k3-batch32-0",
        "select-k3-batch64-0",
    ]


def test_equal_learning_rates_are_neighbours() -> None:
    units = [select(each, fold) for fold in range(2) for each in (A, B)]
    (bundle,) = bundles(units, 4)
    assert bundle.units == (select(B, 0), select(B, 1), select(A, 0), select(A, 1))


@st.composite
def some_units(draw: st.DrawFn) -> list[Unit]:
    configurations = st.builds(
        Configuration,
        st.sampled_from([0.01, 0.001]),
        st.sampled_from([32, 64]),
        st.sampled_from([3, 4]),
    )
    stage = draw(st.sampled_from(Stage))
    numbers = st.integers(0, 3)
    unit = st.builds(Unit, st.just(stage), numbers, numbers, configurations, numbers)
    return draw(st.lists(unit, unique=True, max_size=40))


@settings(max_examples=40)
@given(some_units(), st.integers(1, 20), st.randoms(use_true_random=False))
def test_bundles_follow_from_the_units_and_hold_each_once(
    units: list[Unit], stack: int, random: object
) -> None:
    made = bundles(units, stack)
    assert Counter(unit for bundle in made for unit in bundle.units) == Counter(units)
    assert len({bundle.name for bundle in made}) == len(made)
    by_shape: dict[tuple[int, int], list[int]] = {}
    for bundle in made:
        (shape,) = {
            (each.configuration.layers, each.configuration.batch_size) for each in bundle.units
        }
        by_shape.setdefault(shape, []).append(len(bundle.units))
    for sizes in by_shape.values():
        assert max(sizes) <= stack
        assert max(sizes) - min(sizes) <= 1
        assert len(sizes) == -(-sum(sizes) // stack)  # no more stacks than needed
    shuffled = list(units)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert bundles(shuffled, stack) == made


def test_part_of_a_bundle_has_a_name_of_its_own() -> None:
    units = tuple(select(A, fold) for fold in range(5))
    whole = Bundle("select-k3-batch32-0", units)
    assert whole.part(units) is whole
    assert whole.part(units[:3]) == Bundle("select-k3-batch32-0-0-3", units[:3])
    assert whole.part(units[3:]) == Bundle("select-k3-batch32-0-3-5", units[3:])


# Other models


def other(*pairs: tuple[str, object]) -> Configuration:
    return Configuration(0.01, 32, 3, pairs)  # type: ignore[arg-type]


def test_only_one_of_the_other_settings_is_trained_together_under_a_name_of_its_own() -> None:
    settings = [other(("width", width), ("eps", eps)) for width in (8, 16) for eps in (True, False)]
    units = [select(each, fold) for each in (*settings, A) for fold in range(3)]
    made = bundles(units, 2)
    assert len(made) == 5 * 2
    assert len({bundle.name for bundle in made}) == len(made)
    assert all(len({each.configuration for each in bundle.units}) == 1 for bundle in made)
    assert Counter(unit for bundle in made for unit in bundle.units) == Counter(units)
    assert bundles(reversed(units), 2) == made


def test_names_of_bundles_do_not_depend_on_what_else_competes() -> None:
    one, two = other(("width", 8)), other(("width", 16))
    alone = {bundle.name for bundle in bundles([select(two, 0)], 4)}
    both = {bundle.name for bundle in bundles([select(one, 0), select(two, 0)], 4)}
    assert alone < both
    assert {bundle.name for bundle in bundles([select(A, 0)], 4)} == {"select-k3-batch32-0"}


def test_models_that_differ_in_the_learning_rate_only_make_a_stack() -> None:
    slow = Configuration(0.001, 32, 3, (("width", 8),))
    (bundle,) = bundles([select(other(("width", 8)), 0), select(slow, 0)], 4)
    assert [each.configuration.lr for each in bundle.units] == [0.001, 0.01]


def test_the_plain_protocol_of_another_model_names_it_and_what_competes() -> None:
    config = configure(overrides={"weight_decay": 0.1, "epochs": 7}, model="gin")
    plain = Protocol(config, (other(("width", 8), ("weight_decay", 0.5)),)).as_plain()
    assert plain["model"] == {
        "name": "gin",
        "hidden": 128,
        "dropout": 0.5,
        "learn_eps": False,
    }
    assert plain["training"] == {"epochs": 7, "patience": 0, "seed": 0}
    assert plain["grid"] == [
        {"lr": 0.01, "batch_size": 32, "layers": 3, "width": 8, "weight_decay": 0.5}
    ]


def test_a_protocol_of_before_weight_decay_is_still_the_same() -> None:
    assert "weight_decay" not in protocol(A).as_plain()["training"]
    decay = configure(overrides={"weight_decay": 0.1})
    assert protocol(A).on(decay).as_plain()["training"]["weight_decay"] == 0.1
