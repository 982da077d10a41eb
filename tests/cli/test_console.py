"""Tables in narrow terminals."""

from collections.abc import Callable

import pytest
from rich.console import Console

from ihgnn_cli.cli import console
from ihgnn_cli.cli.app import app
from ihgnn_cli.cli.predict_table import PredictionTable
from ihgnn_cli.inference.prediction import Prediction

Narrow = Callable[[int], None]


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> Narrow:
    """Gives standard output this many columns."""

    def set_width(columns: int) -> None:
        monkeypatch.setenv("COLUMNS", str(columns))
        made = Console(width=columns, highlight=False, markup=False, emoji=False)
        monkeypatch.setattr(console, "out", made)

    return set_width


def wide_table() -> None:
    shown = console.table("Results", "Name", "Graphs per second", "p50", "p90", "p99", console.BARS)
    shown.add_row(
        "a rather long description of a batch", "123,456", "0.123", "0.234", "0.345", "█" * 20
    )
    console.show(shown)


@pytest.mark.parametrize("columns", [30, 40, 60])
def test_a_wide_table_is_wrapped_between_words_and_between_cells(
    narrow: Narrow, columns: int, capsys: pytest.CaptureFixture[str]
) -> None:
    narrow(columns)
    wide_table()
    text = capsys.readouterr().out
    assert max(len(line.rstrip()) for line in text.splitlines()) <= columns
    for word in ("Graphs", "second", "description", "123,456", "0.123", "0.234", "0.345"):
        assert word in text
    assert "█" not in text  # does not fit


def test_bars_stay_where_they_fit_and_whole(
    narrow: Narrow, capsys: pytest.CaptureFixture[str]
) -> None:
    narrow(110)
    wide_table()
    assert "█" * 20 in capsys.readouterr().out


def test_what_does_not_fit_goes_into_further_tables_with_the_first_column(
    narrow: Narrow, capsys: pytest.CaptureFixture[str]
) -> None:
    narrow(21)
    shown = console.table("Title", "Trial", "Accuracy", "Loss", "Batch")
    shown.add_row("7", "88.9", "0.321", "32")
    console.show(shown)
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines() if line.strip()]
    assert lines == [
        "Title",
        " Trial  Accuracy",
        " ───────────────",
        "     7      88.9",
        " Trial   Loss  Batch",
        " ───────────────────",
        "     7  0.321     32",
    ]


def test_a_file_gets_whole_lines(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(console, "out", console._console(stderr=False))
    shown = console.table(None, "Fold", *(f"column {number}" for number in range(20)))
    shown.add_row("1", *["12.345"] * 20)
    console.show(shown)
    assert any(line.count("12.345") == 20 for line in capsys.readouterr().out.splitlines())


@pytest.mark.parametrize(
    "line",
    [
        "models",
        "models gnnml",
        "datasets --all",
        "homophily MUTAG -m node -m edge -m adjusted --compare-paper",
    ],
)
def test_lists_and_tables_fit_60_columns(
    line: str, narrow: Narrow, capsys: pytest.CaptureFixture[str]
) -> None:
    narrow(60)
    app(line.split(), standalone_mode=False)
    rows = [row for row in capsys.readouterr().out.splitlines() if row.startswith(" ")]
    assert rows
    assert max(len(row.rstrip()) for row in rows) <= 60


def test_predictions_of_many_classes_show_the_chosen_one_where_columns_are_few(
    narrow: Narrow, capsys: pytest.CaptureFixture[str]
) -> None:
    narrow(40)
    chances = {f"class {number}": 0.25 for number in range(4)}
    PredictionTable(tuple(chances)).write([Prediction(0, "class 2", chances)])
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= 40
    assert "Probability" in text
