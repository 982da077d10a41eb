"""Why two jobs are not the same, in words that a user can act on."""

from copy import deepcopy
from typing import Any

import pytest

from ihgnn_cli.studies.differences import difference

JOB: dict[str, Any] = {
    "protocol": {
        "data": {"dataset": "MUTAG", "features": "labels"},
        "model": {"name": "ihgnn", "width": 32, "variant": "full"},
        "training": {"epochs": 2, "patience": 0, "seed": 0},
        "grid": [
            {"lr": lr, "batch_size": size, "layers": 3} for lr in (0.01, 0.001) for size in (32, 64)
        ],
        "runs": 3,
    },
    "data_sha256": "ab",
    "splits_sha256": "cd",
    "folds": 10,
    "inner_folds": 1,
}


def changed(*changes: tuple[str, Any]) -> dict[str, Any]:
    """The job with other values at places like `protocol.runs`."""
    made = deepcopy(JOB)
    for place, value in changes:
        *path, last = place.split(".")
        section = made
        for key in path:
            section = section[key]
        section[last] = value
    return made


def test_equal_jobs_do_not_differ() -> None:
    assert difference(JOB, deepcopy(JOB)) is None
    assert difference({}, {}) is None


@pytest.mark.parametrize(
    ("place", "value", "told"),
    [
        ("protocol.training.epochs", 350, "--epochs was 2, is 350"),
        ("protocol.runs", 1, "--runs was 3, is 1"),
        ("inner_folds", 5, "--inner-folds was 1, is 5"),
        ("protocol.model.variant", "no-concat", "--variant was full, is no-concat"),
        ("protocol.model.width", 64, "width was 32, is 64"),
        ("protocol.data.dataset", "x" * 61, "--dataset differs"),
        ("data_sha256", "ef", "the content of the data set differs"),
        ("splits_sha256", "ef", "the splits differ"),
    ],
)
def test_a_setting_has_the_name_of_its_option_where_there_is_one(
    place: str, value: Any, told: str
) -> None:
    assert difference(JOB, changed((place, value))) == told


@pytest.mark.parametrize(
    ("grid", "told"),
    [
        (
            [{"lr": 0.02, "batch_size": size, "layers": 3} for size in (32, 64)],
            "--lr was 0.01,0.001, is 0.02",
        ),
        (
            [{"lr": 0.01, "batch_size": 32, "layers": 4}],
            "--lr was 0.01,0.001, is 0.01; --batch-size was 32,64, is 32; --layers was 3, is 4",
        ),
        (JOB["protocol"]["grid"][:-1], "its settings differ"),
        ([], "--lr was 0.01,0.001, is not set; --batch-size was 32,64, is not set; "),
        ([1], "--lr was 0.01,0.001, is not set; --batch-size was 32,64, is not set; "),
    ],
)
def test_a_grid_is_told_as_the_lists_that_it_was_made_of(grid: list[Any], told: str) -> None:
    found = difference(JOB, changed(("protocol.grid", grid)))
    assert found is not None
    assert found.startswith(told)


def test_three_differences_are_told_and_the_others_counted() -> None:
    three = (
        ("protocol.training.epochs", 350),
        ("protocol.training.patience", 9),
        ("protocol.runs", 1),
    )
    told = "--epochs was 2, is 350; --patience was 0, is 9; --runs was 3, is 1"
    assert difference(JOB, changed(*three)) == told
    more = changed(*three, ("folds", 3), ("inner_folds", 2))
    assert difference(JOB, more) == f"{told}; 2 more"


def test_what_follows_from_a_setting_is_not_told_beside_it() -> None:
    seed, data = ("protocol.training.seed", 1), ("protocol.data.dataset", "KKI")
    splits, content = ("splits_sha256", "ef"), ("data_sha256", "ef")
    assert difference(JOB, changed(seed, splits)) == "--seed was 0, is 1"
    assert difference(JOB, changed(data, splits, content)) == "--dataset was MUTAG, is KKI"
    told = "--runs was 3, is 1; the splits differ"
    assert difference(JOB, changed(("protocol.runs", 1), splits)) == told


def test_a_search_tells_its_space_by_setting_whether_it_is_searched_or_not() -> None:
    lr = {"low": 0.001, "high": 0.1, "log": True}
    searched = {"space": {"lr": lr, "width": {"values": [16, 32]}}, "training": {"epochs": 9}}
    fixed = {"space": {"width": {"values": [16]}}, "training": {"epochs": 9, "lr": 0.01}}
    assert difference(searched, fixed) == (
        "--lr was 0.001 to 0.1, log scale, is 0.01; width was 16,32, is 16"
    )


@pytest.mark.parametrize("before", [3, None, [], "text", {"protocol": 3}, {"protocol": []}])
def test_whatever_stands_there_differs(before: Any) -> None:
    assert difference(before, JOB)
    assert difference(JOB, before)


def test_what_differs_is_never_taken_for_equal() -> None:
    """The same name in two sections, of which one has changed."""
    one, other = ({"a": {"x": value}, "b": {"x": 1}} for value in (1, 2))
    assert difference(one, other) == "its settings differ"
