"""Numbers are written as the paper writes them."""

import pytest

from ihgnn_cli.report.layout import p_value, percent, signed, spread


def test_accuracies_are_in_percent_with_one_digit() -> None:
    assert percent(0.8541) == "85.4"
    assert spread(0.678, 0.187) == "67.8 ± 18.7"


@pytest.mark.parametrize(
    ("share", "told"),
    [(0.012, "+1.2"), (-0.045, "−4.5"), (0.0, "0.0"), (-0.0004, "0.0"), (0.0004, "0.0")],
)
def test_a_difference_has_its_sign_unless_it_rounds_to_nothing(share: float, told: str) -> None:
    assert signed(share) == told


def test_tiny_p_values_are_not_nought() -> None:
    assert [p_value(p) for p in (1, 0.0494, 0.0009, 0.0004)] == [
        "1.000",
        "0.049",
        "0.001",
        "<0.001",
    ]
