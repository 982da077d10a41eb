"""Units: their names, their seeds, and their files of one line."""

import json
import math
import re
from dataclasses import asdict, replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from known_unit import FIRST, KNOWN, A

from ihgnn_cli.studies.grid import Configuration, grid
from ihgnn_cli.studies.units import Record, Stage, Unit, Validated, parsed
from ihgnn_cli.studies.units import Tested as OnTest  # pytest takes Test... for tests
from ihgnn_cli.training.config import MAX_SEED, RunConfig
from ihgnn_cli.training.epoch import Epoch

NUMBERS = st.integers(0, 10**6)
REALS = st.floats(allow_nan=False, allow_infinity=False)
UNITS = st.builds(
    Unit,
    st.sampled_from(Stage),
    NUMBERS,
    NUMBERS,
    st.builds(Configuration, REALS, NUMBERS, NUMBERS),
    NUMBERS,
)
COUNTS = st.lists(NUMBERS, max_size=4).map(tuple)
TEXTS = st.text(max_size=6)
RECORDS = st.builds(
    Record,
    st.builds(
        Validated,
        unit=UNITS,
        seed=NUMBERS,
        split_sha256=TEXTS,
        epochs=NUMBERS,
        diverged=st.booleans(),
        best=st.none() | st.builds(Epoch, st.integers(1, 3), REALS, REALS, REALS, REALS),
        validation_graphs=st.integers(1, 10**6),
        hits=st.lists(NUMBERS, min_size=3, max_size=4).map(tuple),
        losses=st.lists(REALS, max_size=4).map(tuple),
        seconds=REALS,
        members=NUMBERS,
        device=TEXTS,
    ),
    st.none() | st.builds(OnTest, NUMBERS, st.none() | REALS, COUNTS, COUNTS),
)


def all_units() -> list[Unit]:
    """Of the paper's grid with three folds of two splits, and two runs."""
    return [
        Unit(stage, fold, split, configuration, run)
        for stage in Stage
        for fold in range(3)
        for split in range(2)
        for configuration in grid(RunConfig())
        for run in range(2)
    ]


# Names and seeds


def test_a_name_tells_all_of_a_unit() -> None:
    unit = Unit(Stage.FINAL, 9, 1, Configuration(0.0001, 128, 5), 2)
    assert unit.name == "final-fold9-split1-lr0.0001-batch128-k5-run2"


def test_names_are_unique_and_valid_as_file_names() -> None:
    names = [unit.name for unit in all_units()]
    assert len(set(map(str.lower, names))) == len(names) == 2 * 3 * 2 * 27 * 2
    assert all(re.fullmatch(r"[a-z0-9.-]{1,100}", name) for name in names)
    tiny = replace(FIRST, configuration=Configuration(1e-30, 10**6, 99)).name
    assert re.fullmatch(r"[a-z0-9.-]{1,100}", tiny)


def test_close_learning_rates_have_names_of_their_own() -> None:
    found = grid(RunConfig(), lr=(0.12345678, 0.12345679), batch_size=(32,), layers=(3,))
    assert [Unit(Stage.SELECT, 0, 0, each, 0).name for each in found] == [
        "select-fold0-split0-lr0.12345678-batch32-k3-run0",
        "select-fold0-split0-lr0.12345679-batch32-k3-run0",
    ]


def test_a_seed_is_the_first_four_bytes_of_a_digest() -> None:
    # printf '0 select-fold0-split0-lr0.01-batch32-k3-run0' | sha256sum
    assert FIRST.seed(0) == 0x017EACA2
    unit = Unit(Stage.FINAL, 9, 1, Configuration(0.0001, 128, 5), 2)
    assert unit.seed(7) == 0x588E697A


def test_units_and_masters_have_seeds_of_their_own() -> None:
    units = all_units()
    seeds = {unit.seed(master) for unit in units for master in (0, 1, MAX_SEED)}
    assert len(seeds) == 3 * len(units)
    assert all(0 <= seed <= MAX_SEED for seed in seeds)
    assert [unit.seed(3) for unit in units] == [unit.seed(3) for unit in all_units()]


# What a training is worth


def test_the_score_is_accuracy_and_then_the_lower_loss() -> None:
    assert KNOWN.score == (Fraction(9, 10), -0.25)
    lower = replace(KNOWN, best=Epoch(2, 0.5, 0.75, 0.125, 0.9))
    surer_but_wrong = replace(KNOWN, best=Epoch(2, 0.5, 0.75, 0.0, 0.8), hits=(4, 8))
    assert lower.score > KNOWN.score > surer_but_wrong.score


def test_the_score_is_that_of_the_best_epoch() -> None:
    first = replace(KNOWN, best=Epoch(1, 0.5, 0.75, 0.5, 0.4))
    assert first.score == (Fraction(4, 10), -0.5)


def test_accuracies_are_exact() -> None:
    """In floating point a third is no third, and as torch gives it in single precision less so."""
    third = replace(KNOWN, best=Epoch(2, 0.5, 0.75, 0.25, 0.3333333432674408), hits=(0, 1))
    assert replace(third, validation_graphs=3).score == (Fraction(1, 3), -0.25)
    twice = replace(third, validation_graphs=6, hits=(0, 2))
    assert twice.score == replace(third, validation_graphs=3).score


def test_one_without_a_finite_epoch_is_below_all_others() -> None:
    nothing = replace(KNOWN, best=None, diverged=True, hits=(), losses=())
    all_wrong = replace(KNOWN, best=Epoch(1, 0.0, 0.0, 1e300, 0.0), hits=(0, 0))
    assert nothing.score == (0.0, -math.inf)
    assert nothing.score < all_wrong.score


# Lines


@given(RECORDS)
@settings(max_examples=40)
def test_a_record_is_one_line_and_comes_back_the_same(record: Record) -> None:
    line = record.line()
    assert line.endswith("\n")
    assert len(line.splitlines()) == 1
    assert parsed(line) == record


@pytest.mark.parametrize(
    "wrong", [{"hits": ()}, {"validation_graphs": 0}, {"best": Epoch(0, 0.0, 0.0, 0.0, 0.0)}]
)
def test_a_best_epoch_outside_the_curve_is_no_record(wrong: dict) -> None:
    with pytest.raises(ValueError, match="not in the curve"):
        parsed(Record(replace(KNOWN, **wrong), None).line())


def test_what_is_diverged_has_no_best_epoch_and_comes_back_so() -> None:
    record = Record(replace(KNOWN, best=None, diverged=True, epochs=1, hits=(), losses=()), None)
    assert json.loads(record.line())["best"] is None
    assert parsed(record.line()) == record


def test_test_stands_apart_from_what_is_chosen_by() -> None:
    plain = json.loads(Record(KNOWN, OnTest(20, 0.5, (0, 1), (7, 8), ((0.9, 0.1),))).line())
    assert plain["test"] == {
        "graphs": 20,
        "accuracy": 0.5,
        "predictions": [0, 1],
        "hits": [7, 8],
        "probabilities": [[0.9, 0.1]],
    }
    assert json.loads(Record(KNOWN, None).line()) == {**plain, "test": None}
    assert not any("test" in name for name in vars(KNOWN))


def without(key: str) -> str:
    plain = json.loads(Record(KNOWN, None).line())
    del plain[key]
    return json.dumps(plain)


def with_value(key: str, value: object) -> str:
    return json.dumps({**json.loads(Record(KNOWN, None).line()), key: value})


@pytest.mark.parametrize(
    "line",
    [
        "",
        "{",
        "{}",
        "[]",
        "[3]",
        "null",
        "3",
        '"text"',
        pytest.param("[" * 100_000, id="deep list"),
        pytest.param('{"unit":' * 100_000, id="deep object"),
        Record(KNOWN, None).line()[:-20],
        without("unit"),
        without("seed"),
        without("test"),
        without("best"),
        with_value("unknown", 1),
        with_value("unit", {"stage": "select"}),
        with_value("unit", None),
        with_value("unit", "text"),
        with_value("unit", {**asdict(FIRST), "stage": "other"}),
        with_value("unit", {**asdict(FIRST), "configuration": 3}),
        with_value("best", 3),
        with_value("best", {"epoch": 1}),
        with_value("hits", 3),
        with_value("test", []),
        with_value("test", {"graphs": 3}),
        with_value("test", {"graphs": 3, "predictions": 1, "hits": []}),
    ],
)
def test_what_is_no_record_is_refused(line: str) -> None:
    with pytest.raises((ValueError, KeyError, TypeError, RecursionError)):
        parsed(line)


# Settings beyond the three


MORE = replace(A, others=(("width", 16), ("dropout", 0.5), ("learn_eps", True), ("kind", "a/b c")))


def test_a_name_tells_the_other_settings_too_and_is_one_of_a_file() -> None:
    assert replace(FIRST, configuration=MORE).name == (
        "select-fold0-split0-lr0.01-batch32-k3-width16-dropout0.5-learn_epstrue-kinda_b_c-run0"
    )


def test_close_values_of_other_settings_have_names_of_their_own() -> None:
    names = {
        replace(FIRST, configuration=replace(A, others=(("alpha", value),))).name
        for value in (0.12345678, 0.12345679, 1e-5, 0.00001000001)
    }
    assert len(names) == 4


def test_a_record_with_other_settings_comes_back_the_same() -> None:
    record = Record(replace(KNOWN, unit=replace(FIRST, configuration=MORE)), None)
    assert json.loads(record.line())["unit"]["configuration"] == {
        "lr": 0.01,
        "batch_size": 32,
        "layers": 3,
        **dict(MORE.others),
    }
    assert parsed(record.line()) == record


def test_a_line_of_before_there_were_other_settings_is_read() -> None:
    line = (
        '{"unit":{"stage":"final","fold":9,"split":1,"configuration":{"lr":0.0001,"batch_size":128,'
        '"layers":5},"run":2},"seed":5,"split_sha256":"ab","epochs":1,"diverged":false,"best":'
        '{"epoch":1,"train_loss":0.5,"train_accuracy":0.75,"validation_loss":0.25,'
        '"validation_accuracy":0.9},"validation_graphs":10,"hits":[9],"losses":[0.25],'
        '"seconds":1.5,"members":3,"device":"cpu","test":null}\n'
    )
    found = parsed(line)
    assert found.validated.unit == Unit(Stage.FINAL, 9, 1, Configuration(0.0001, 128, 5), 2)
    assert found.line() == line
