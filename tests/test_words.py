"""Sentences: counts as people write them."""

import pytest

from ihgnn_cli.words import counted


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0 lines"), (1, "1 line"), (2, "2 lines"), (2000, "2,000 lines")]
)
def test_things_are_counted(number: int, text: str) -> None:
    assert counted(number, "line") == text
