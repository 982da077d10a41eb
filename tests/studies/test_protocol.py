"""What is trained: grids, races, seeds, and records as lines of JSON."""

import math
from dataclasses import replace
from fractions import Fraction

import pytest
from small_job import at, small_job, trained

from ihgnn_cli.errors import InputError
from ihgnn_cli.studies.crossval.protocol import (
    Protocol,
    Rung,
    Stage,
    Training,
    check_choices,
    configuration,
    final_trainings,
    listed_settings,
    own_grid,
    selection_trainings,
)
from ihgnn_cli.studies.crossval.records import Record, parsed
from ihgnn_cli.studies.crossval.records import Tested as OnTest  # pytest takes Test... for tests
from ihgnn_cli.training.config import RunConfig, configure
from ihgnn_cli.training.kinds import Recipe

PAPER = own_grid(RunConfig())


def test_the_default_grid_is_the_papers_with_the_learning_rate_outermost() -> None:
    assert len(PAPER) == 27
    assert PAPER[0] == at(0.01, 32, 3)
    assert PAPER[1] == at(0.01, 32, 4)
    assert PAPER[-1] == at(0.0001, 128, 5)


def test_given_lists_replace_those_of_the_models_own_grid() -> None:
    config = configure(model="gin")
    lists = {"lr": (0.1,), "batch_size": (8,), "layers": (2,), "learn_eps": (True,)}
    made = own_grid(config, {**lists, "dropout": (0.5,), "width": (16, 32)})
    assert set(made) == {
        at(0.1, 8, 2, width=width, dropout=0.5, learn_eps=True) for width in (16, 32)
    }
    assert {each.applied(config).model.width for each in made} == {16, 32}
    assert made[0].applied(config).training.lr == 0.1
    assert listed_settings(config, ["width=16,32"]) == {"width": (16, 32)}


@pytest.mark.parametrize(
    ("lists", "said"),
    [
        ({"lr": ()}, "lr is empty"),
        ({"lr": (0.1, 0.1)}, "lr names 0.1 twice"),
        ({"lr": (-1.0,)}, "lr must be"),
        ({"batch_size": (0,)}, "batch_size must be at least 1"),
    ],
)
def test_wrong_lists_are_refused(lists: dict, said: str) -> None:
    with pytest.raises(InputError, match=said):
        own_grid(RunConfig(), lists)


@pytest.mark.parametrize(
    ("recipe", "given", "said"),
    [
        (None, {"race": True, "rules": True}, "rules needs all configurations"),
        ("robust", {"race": True}, "--race has no meaning"),
        ("robust", {"rules": True}, "--rules has no meaning"),
        ("robust", {"inner_folds": 2}, "--inner-folds .* has no meaning"),
        ("robust", {"made": PAPER}, "a list of values has no meaning"),
    ],
)
def test_parts_that_do_not_go_together_are_refused(recipe, given: dict, said: str) -> None:
    config = configure(None if recipe is None else Recipe(recipe))
    given = {"made": PAPER[:1], **given}
    with pytest.raises(InputError, match=said):
        check_choices(config, given.pop("made"), **given)


@pytest.mark.parametrize(
    ("configurations", "epochs", "rungs"),
    [
        (27, 350, [(13, 27), (39, 9), (117, 3), (None, 1)]),
        (2, 350, [(117, 2), (None, 1)]),
        (10, 2, [(1, 10), (1, 4), (1, 2), (None, 1)]),
        (1, 350, [(None, 1)]),
    ],
)
def test_a_race_keeps_the_best_third_three_times(
    configurations: int, epochs: int, rungs: list[tuple[int | None, int]]
) -> None:
    config = configure(overrides={"epochs": epochs})
    protocol = Protocol(config, PAPER[:configurations], race=True)
    assert [(rung.epochs, rung.configurations) for rung in protocol.rungs] == rungs
    assert Protocol(config, PAPER[:configurations]).rungs == (Rung(None, configurations),)


def test_the_numbers_of_trainings_and_model_epochs() -> None:
    folds = small_job(folds=3, inner=2).folds
    whole = Protocol(RunConfig(), PAPER, runs=3)
    assert whole.trainings(folds) == 27 * 3 * 2 + 3 * 3
    assert whole.model_epochs(folds) == 350 * (27 * 3 * 2 + 3 * 3)
    race = replace(whole, race=True)
    steps = 27 * 13 + 9 * 39 + 3 * 117 + 350
    assert race.model_epochs(folds) == 6 * steps + 9 * 350
    selection = selection_trainings(whole, folds)
    final = final_trainings(whole, folds, dict.fromkeys(range(3), PAPER[0]))
    assert len({each.name for each in (*selection, *final)}) == whole.trainings(folds)
    assert [each.split for each in final[:3]] == [0, 1, 0]  # runs cycle through the splits


def test_a_seed_is_the_first_four_bytes_of_a_digest() -> None:
    """A change of the text would change every number."""
    training = Training(Stage.SELECT, 3, 0, at(0.001, 64, 4), 0)
    assert training.name == "select-fold3-split0-lr0.001-batch64-k4-run0"
    # printf '0 select-fold3-split0-lr0.001-batch64-k4-run0' | sha256sum
    assert training.seed(0) == 0xAC6E0A4D
    other = at(1e-05, 64, 4, eps=False, kind="a b")
    more = replace(training, configuration=other)
    assert more.name == "select-fold3-split0-lr1e-05-batch64-k4-epsfalse-kinda_b-run0"


def test_the_rungs_of_a_race_share_a_seed_and_have_names_of_their_own() -> None:
    last = Training(Stage.SELECT, 0, 0, at(0.01), 0)
    first = replace(last, epochs=13)
    assert first.seed(5) == last.seed(5) != last.seed(6)
    assert first.name == f"{last.name}-epochs13"


@pytest.mark.parametrize(
    "record",
    [
        trained(Training(Stage.SELECT, 0, 1, at(0.01, width=16), 0, 13), [4, 9], [0.5, 0.25]),
        trained(Training(Stage.SELECT, 0, 0, at(0.01), 0), [], test=[]),
        trained(Training(Stage.SELECT, 0, 0, at(0.01), 0), [4, 9], test=[1, 2]),
        Record(
            trained(Training(Stage.FINAL, 0, 0, at(0.01, eps=True), 2), [4]).validated,
            OnTest(2, 0.5, (0, 1), (), ((0.75, 0.25), (0.1, 0.9))),
        ),
    ],
)
def test_a_record_is_read_as_it_was_written(record: Record) -> None:
    line = record.line()
    assert line.endswith("\n")
    assert line.count("\n") == 1
    assert parsed(line) == record


@pytest.mark.parametrize(
    "change",
    [("{", ""), ('"seed"', '"seeds"'), ('"hits":[4,9]', '"hits":[]'), ('"lr":0.01,', "")],
)
def test_a_line_that_is_no_record_is_refused(change: tuple[str, str]) -> None:
    line = trained(Training(Stage.SELECT, 0, 0, at(0.01), 0), [4, 9]).line()
    with pytest.raises((ValueError, KeyError, TypeError)):
        parsed(line.replace(*change, 1))


def test_scores_are_exact_and_one_without_an_epoch_is_last() -> None:
    training = Training(Stage.SELECT, 0, 0, at(0.01), 0)
    assert trained(training, [1, 3], [0.5, 0.75]).validated.score == (Fraction(3, 10), -0.75)
    assert trained(training, []).validated.score == (0, -math.inf)


def test_a_configuration_needs_the_common_settings() -> None:
    assert configuration({"layers": 3, "lr": 0.01, "batch_size": 32}) == at(0.01)
    with pytest.raises(KeyError):
        configuration({"lr": 0.01, "batch_size": 32})
    with pytest.raises(TypeError):
        configuration({"lr": 0.01, "batch_size": 32, "layers": [3]})
