"""What must stay tested, wherever its tests are."""

import re
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


def test_the_places_of_the_table_exist() -> None:
    text = (HERE / "README.md").read_text(encoding="utf-8")
    table = text.partition("## What must stay tested elsewhere")[2]
    named = re.findall(r"`(tests/[^`]+)`", table)
    assert len(named) > 25
    gone = [each for each in named if not (ROOT / each).exists()]
    assert not gone, f"tests/contract/README.md: name the places that test this now, not {gone}"


def test_mutants_are_numbered_once() -> None:
    text = (HERE / "mutants.md").read_text(encoding="utf-8")
    numbers = re.findall(r"^- \*\*(\w+)\*\* ", text, flags=re.MULTILINE)
    assert len(numbers) == len(set(numbers)) >= 60
