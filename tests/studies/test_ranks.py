"""Average ranks, Friedman's and Nemenyi's tests: worked out by hand, and from published tables."""

import pytest
from compared import cell

from ihgnn_cli.studies.comparison import Comparison, compare, refused_cell
from ihgnn_cli.studies.ranks import Ranks, critical_difference, rank_methods

MODELS = ("gin", "acm", "ihgnn")


def compared(*rows: tuple[float, ...], models: tuple[str, ...] = MODELS) -> Comparison:
    """Data sets in rows, methods in columns."""
    return compare(
        [
            cell(model, mean, mean, dataset=f"D{number}")
            for number, row in enumerate(rows)
            for model, mean in zip(models, row, strict=True)
        ]
    )


def ranked(*rows: tuple[float, ...], models: tuple[str, ...] = MODELS) -> Ranks:
    found = rank_methods(compared(*rows, models=models))
    assert isinstance(found, Ranks)
    return found


def test_equal_means_share_the_average_of_their_ranks() -> None:
    """Ranks 3 2 1, 2.5 2.5 1, 2 1 3, 3 1.5 1.5 of GIN, ACM and IHGNN."""
    rows = ((0.7, 0.8, 0.9), (0.7, 0.7, 0.9), (0.8, 0.9, 0.7), (0.5, 0.6, 0.6))
    found = ranked(*rows)
    assert found.models == ("ihgnn", "acm", "gin")
    assert found.titles == ("IHGNN", "ACM", "GIN")
    assert found.average == pytest.approx((6.5 / 4, 7 / 4, 10.5 / 4))
    # 2 · (1.5² + 1² + 2.5²) / (3² + 2² + 1² + ... - 4 · 3 · 4²/4): squares 14 + 13.5 + 14 + 13.5.
    assert found.chi_square == pytest.approx(2 * (1.5**2 + 1 + 2.5**2) / (55 - 48))


def test_friedmans_statistic_without_ties_is_the_textbooks() -> None:
    """12 N / (k (k + 1)) · (sum of R² - k (k + 1)² / 4) with R = 1, 2, 3 and N = 4: 8; p = e⁻⁴."""
    found = ranked(*[(0.1, 0.2, 0.3)] * 4)
    assert found.chi_square == pytest.approx(12 * 4 / 12 * (14 - 12))
    assert found.p == pytest.approx(0.0183156, abs=1e-7)
    assert found.pairs == 3


@pytest.mark.parametrize(
    ("methods", "q"),
    list(enumerate((1.960, 2.343, 2.569, 2.728, 2.850, 2.949, 3.031, 3.102, 3.164), start=2)),
)
def test_critical_values_are_those_of_demsars_table(methods: int, q: float) -> None:
    assert critical_difference(methods, 10) == pytest.approx(
        q * (methods * (methods + 1) / 60) ** 0.5, rel=5e-4
    )


def test_the_sentence_says_what_differs_or_that_nothing_does() -> None:
    """Ranks 1, 2, 3 on 8 data sets: the critical difference is 2.343 · sqrt(12 / 48) = 1.17."""
    found = ranked(*[(0.1, 0.2, 0.3)] * 8)
    assert found.critical_difference == pytest.approx(1.1715, abs=1e-3)
    assert "differ by 1.17 or more (Nemenyi's test over all 3 pairs, level 0.05)" in found.sentence
    nothing = ranked((0.1, 0.2, 0.3), (0.3, 0.2, 0.1), (0.2, 0.2, 0.2))
    assert nothing.p == 1
    assert nothing.sentence.endswith("No difference between the methods is significant.")
    assert ranked(*[(0.5, 0.5, 0.5)] * 3).p == 1  # which scipy cannot divide by


def test_data_sets_without_a_result_of_every_method_are_left_out_and_named() -> None:
    full = compared(*[(0.1, 0.2, 0.3)] * 3)
    cells = [entry.cell for entry in full.entries]
    more = [cell("gin", 0.5, 0.5, dataset="DD"), cell("ihgnn", 0.5, 0.5, dataset="DD")]
    more += [refused_cell("DD", "acm", "does not fit"), refused_cell("D0", "ppgn", "no time")]
    found = rank_methods(compare([*cells, *more]))
    assert isinstance(found, Ranks)
    assert (len(found.datasets), found.left_out) == (3, ("DD",))
    assert "ppgn" not in found.models  # it has no result anywhere
    assert "Left out, because a method has no result there: DD." in found.sentence


def test_too_few_data_sets_or_methods_give_a_sentence() -> None:
    assert rank_methods(compared((0.1, 0.2, 0.3), (0.1, 0.2, 0.3))) == (
        "No ranks: they need at least 3 data sets on which all 3 methods have a result, and there "
        "are 2."
    )
    two = compared(*[(0.1, 0.2)] * 3, models=("gin", "ihgnn"))
    assert "results of at least 3 methods" in str(rank_methods(two))
    none = compare([refused_cell("DD", model, "no time") for model in MODELS])
    assert "results of at least 3 methods" in str(rank_methods(none))  # the paper's are not ranked
