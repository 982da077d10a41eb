"""The documentation in the terminal, and messages that refer to it."""

import ast
import json
import re
from pathlib import Path

import pytest
from rich.console import Console

import ihgnn_cli
from ihgnn_cli.cli import console, docs
from ihgnn_cli.cli.app import app
from ihgnn_cli.errors import InputError

PACKAGE = Path(ihgnn_cli.__file__).parent
PAGES = docs._pages()


def texts() -> list[str]:
    """All texts in the code of the package that are not documentation of the code."""
    found = []
    for file in PACKAGE.rglob("*.py"):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        comments = {
            id(node.value)
            for node in ast.walk(tree)
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        }
        found += [
            node.value
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in comments
        ]
    return found


def test_messages_cite_pages_that_are_installed_and_no_paths_of_the_repository() -> None:
    assert not [text for text in texts() if re.search(r"\b(docs|examples|results)/\w", text)]
    cited = {name for text in texts() for name in re.findall(r"ihgnn docs ([a-z]+)", text)}
    assert {"data", "models", "quickstart"} <= cited <= set(PAGES)


def test_pages_are_listed_and_shown(capsys: pytest.CaptureFixture[str]) -> None:
    app(["docs", "--json"], standalone_mode=False)
    topics = json.loads(capsys.readouterr().out)["topics"]
    assert topics["quickstart"] == "Quick start"
    assert set(topics) == set(PAGES)
    app(["docs", "data.md"], standalone_mode=False)
    shown = capsys.readouterr().out
    assert shown.startswith("# ")
    assert "<!--" not in shown
    with pytest.raises(InputError, match=r"No page 'dat'. Did you mean data\?"):
        app(["docs", "dat"], standalone_mode=False)


def test_in_a_terminal_links_are_commands(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(console, "out", Console(width=80, force_terminal=True, no_color=True))
    app(["docs", "quickstart"], standalone_mode=False)
    shown = re.sub(r"\x1b\[[\d;]*m", "", capsys.readouterr().out)
    assert "ihgnn docs crossval" in shown.replace("\n", " ")
    assert "](" not in shown
