"""The table of predictions: aligned, growing, and without what a terminal would obey."""

import pytest

from ihgnn_cli.cli.predict_table import PredictionTable
from ihgnn_cli.inference.prediction import Prediction


def test_rows_stand_under_their_heads(capsys: pytest.CaptureFixture[str]) -> None:
    table = PredictionTable((-1, 1))
    table.write([Prediction(0, 1, {-1: 0.25, 1: 0.75})])
    table.write([])
    table.write([Prediction(1, -1, {-1: 1.0, 1: 0.0}, unknown_nodes=1, larger_than_m=True)])
    assert capsys.readouterr().out.splitlines() == [
        "  Graph  Class  p(-1)   p(1)",
        " ───────────────────────────",
        "      0  1      0.250  0.750",
        "      1  -1     1.000  0.000  1 unknown label, larger than m",
    ]


def test_ids_have_a_column_where_the_first_graphs_have_them(
    capsys: pytest.CaptureFixture[str],
) -> None:
    table = PredictionTable(("alcohol", "ether"))
    table.write([Prediction(0, "ether", {"alcohol": 0.0, "ether": 1.0}, id="C2H6O\x1b[31m")])
    table.write([Prediction(1, "ether", {"alcohol": 0.0, "ether": 1.0}, id="a much longer name")])
    assert capsys.readouterr().out.splitlines()[2:] == [
        "      0  C2H6O?[31m  ether         0.000     1.000",
        "      1  a much longer name  ether         0.000     1.000",
    ]


def test_of_many_classes_the_chosen_one_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    values = tuple(range(10))
    chances = {value: 0.55 if value == 4 else 0.05 for value in values}
    PredictionTable(values).write([Prediction(0, 4, chances)])
    assert capsys.readouterr().out.splitlines()[::2] == [
        "  Graph  Class  Probability",
        "      0  4            0.550",
    ]
