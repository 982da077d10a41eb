"""Results beside each other: who is ahead, what may be tested, what the paper has."""

from dataclasses import replace
from typing import Any

import pytest
from compared import GIN, OURS, WORSE, cell
from finished_crossvals import fold_result, result

from ihgnn_cli.errors import InputError
from ihgnn_cli.studies.comparison import Cell, Place, against, cell_of, compare, refused_cell
from ihgnn_cli.studies.paper import PaperCell
from ihgnn_cli.studies.statistics import corrected_t_test, holm


def test_a_finished_cross_validation_becomes_a_cell() -> None:
    folds = (fold_result(0, 0.9, 1.0), fold_result(1, 0.5, 0.6))
    found = cell_of(result(dataset="MUTAG", folds=folds), "ihgnn")
    assert (found.dataset, found.model, found.title) == ("MUTAG", "ihgnn", "IHGNN")
    assert (found.mean, found.std) == pytest.approx((0.75, 0.2))
    assert found.accuracies == pytest.approx((0.95, 0.55))
    assert (found.folds, found.test_graphs, found.graphs) == ((0, 1), (2, 2), 4)
    assert (found.runs, found.repeats, found.epochs) == (2, 1, 3)
    assert found.paper == PaperCell(0.899, 0.06)
    assert found.difference == pytest.approx(0.75 - 0.899)
    assert (found.data_sha256, found.splits_sha256) == ("a", "s")


def test_a_method_that_was_not_run_says_why_and_keeps_the_papers_cell() -> None:
    found = refused_cell("DD", "ppgn", "does not fit: about 96 GB")
    assert found.refused == "does not fit: about 96 GB"
    assert (found.mean, found.difference) == (None, None)
    assert found.paper == PaperCell(None, None)


def test_the_test_is_of_the_fold_wise_differences_with_a_share_of_one_to_the_other_folds() -> None:
    """Five folds of ten graphs: 10 are tested, 40 are trained on."""
    found = against(GIN, OURS)
    by_hand = corrected_t_test(GIN.accuracies, OURS.accuracies, 10 / 40)
    assert by_hand is not None
    assert (found.t, found.p) == (by_hand.t, by_hand.p)
    assert found.p == pytest.approx(0.399162, abs=1e-6)
    assert found.difference == pytest.approx(-0.02)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"splits_sha256": "others"}, "its splits differ from IHGNN's"),
        ({"data_sha256": "others"}, "its data differ from IHGNN's"),
        ({"splits_sha256": None}, "the splits of one of the two are unknown"),
        ({"folds": (1, 2, 3, 4, 5)}, "its folds differ from IHGNN's"),
        ({"test_graphs": (10, 10, 10, 11, 9)}, "its folds differ from IHGNN's"),
        ({"accuracies": (0.7, 0.8, 0.75, 0.65, 0.8)}, "same in all folds"),
    ],
)
def test_what_cannot_be_compared_fold_by_fold_has_no_p_value_and_says_why(
    changes: dict[str, Any], why: str
) -> None:
    found = against(replace(GIN, **changes), OURS)
    assert (found.t, found.p, found.p_holm) == (None, None, None)
    assert why in str(found.untested)
    assert not found.significant


def test_one_fold_is_not_tested() -> None:
    found = against(cell("gin", 0.5, graphs=100), cell("ihgnn", 0.6, graphs=100))
    assert found.untested == "there are fewer than two folds"


def places(*cells: Cell) -> dict[str, Place]:
    return {each.cell.model: each.place for each in compare(cells).entries}


def test_a_highest_mean_inside_the_noise_is_tied_and_not_the_best() -> None:
    refused = refused_cell("MUTAG", "ppgn", "does not fit")
    assert places(OURS, GIN, WORSE, refused) == {
        "ihgnn": Place.TIED,  # 2 points above GIN: p = 0.399
        "gin": Place.TIED,
        "acm": Place.OTHER,  # p = 0.0013, and 0.0027 after Holm's correction
        "ppgn": Place.OTHER,
    }


def test_the_best_is_significantly_better_than_every_other_method() -> None:
    assert places(OURS, WORSE) == {"ihgnn": Place.BEST, "acm": Place.OTHER}


def test_a_method_on_other_folds_cannot_be_separated() -> None:
    other = replace(WORSE, splits_sha256="others")
    assert places(OURS, other) == {"ihgnn": Place.TIED, "acm": Place.TIED}


def test_the_difference_from_ihgnn_is_paired_over_graphs() -> None:
    ours = replace(OURS, graph_accuracies=(1.0,) * 25 + (0.5,) * 25)
    gin = replace(GIN, graph_accuracies=(0.5,) * 25 + (0.5,) * 25)
    gap = against(gin, ours).gap
    assert gap is not None
    assert gap.difference == pytest.approx(-0.25)
    # Gaps of -1/2 and 0, half of each: sample variance 50/49 · 1/16.
    assert gap.error == pytest.approx((1 / 49 / 16) ** 0.5)


def test_a_method_alone_is_not_the_best_of_anything() -> None:
    assert compare([OURS]).entries[0].place is Place.OTHER


def test_each_data_set_is_a_family_of_its_own_for_holms_correction() -> None:
    here = [OURS, GIN, cell("acm", 0.6, 0.62, 0.61, 0.6, 0.65)]
    there = [replace(each, dataset="KKI") for each in here[:2]]
    found = compare([*here, *there])
    tests = [found.of("MUTAG", model) for model in ("gin", "acm")]
    alone = [against(each, OURS).p for each in here[1:]]
    assert [each.against.p_holm for each in tests if each and each.against] == list(
        holm([p for p in alone if p is not None])
    )
    only = found.of("KKI", "gin")
    assert only is not None
    assert only.against is not None
    assert only.against.p_holm == only.against.p == alone[0]
    second = tests[1]
    assert second is not None
    assert second.against is not None
    assert second.against.significant


def test_untested_methods_are_not_counted_in_the_family() -> None:
    other = cell("acm", 0.6, 0.62, 0.61, 0.6, 0.65, splits_sha256="others")
    entry = compare([OURS, GIN, other]).of("MUTAG", "gin")
    assert entry is not None
    assert entry.against is not None
    assert entry.against.p_holm == entry.against.p


def test_without_ihgnn_nothing_is_tested() -> None:
    assert all(each.against is None for each in compare([GIN]).entries)
    refused = refused_cell("MUTAG", "ihgnn", "no time")
    assert all(each.against is None for each in compare([GIN, refused]).entries)


def test_rows_and_columns_are_in_the_papers_order_and_others_come_last() -> None:
    cells = [replace(OURS, dataset=name) for name in ("mine", "MUTAG", "KKI")]
    cells += [replace(GIN, model=model) for model in ("new", "acm", "ihgnn:no-concat", "gin")]
    found = compare(cells)
    assert found.datasets == ("KKI", "MUTAG", "mine")
    assert found.models == ("gin", "acm", "ihgnn:no-concat", "ihgnn", "new")
    assert compare(cells, datasets=["DD"], models=["gin"]).entries == ()


def test_two_results_of_the_same_method_and_data_are_refused() -> None:
    with pytest.raises(InputError, match="two results for gin on MUTAG"):
        compare([GIN, OURS, GIN])
