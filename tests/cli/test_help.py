"""The help of all commands, as the app lists them: readable, complete, in plain English."""

import re
from collections.abc import Iterator
from functools import cache

import pytest
import typer
from typer.core import TyperCommand, TyperGroup, TyperOption
from typer.testing import CliRunner

from ihgnn_cli.cli.app import app

PANELS = ["Arguments", "Service", "Data", "Model", "Training", "Protocol", "Search"]
PANELS += ["Compute", "Limits", "Output", "Advanced"]
NOT_PLAIN = re.compile(r"\btold\b|whoever|whomever|commonest|\banew\b|is to be had|^[│ ]*Of ", re.M)


def commands(
    command: TyperCommand | TyperGroup, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], TyperCommand | TyperGroup]]:
    yield path, command
    for name, each in getattr(command, "commands", {}).items():
        yield from commands(each, (*path, name))


ALL = dict(commands(typer.main.get_command(app)))
SUBCOMMANDS = [path for path in ALL if path]


@cache
def shown(path: tuple[str, ...], columns: int = 100) -> str:
    result = CliRunner().invoke(
        app, [*path, "--help"], prog_name="ihgnn", env={"COLUMNS": str(columns), "TERM": "dumb"}
    )
    assert result.exit_code == 0
    return result.stdout


def test_the_commands_are_grouped() -> None:
    text = shown(())
    assert re.findall(r"╭─ (\w+) ─", text) == ["Options", "Data", "Models", "Deployment", "Other"]
    for path in SUBCOMMANDS:
        if len(path) == 1:
            (line,) = re.findall(rf"^│ {path[0]} +(.*\w)", text, re.M)
            assert line


@pytest.mark.parametrize("columns", [80, 100])
@pytest.mark.parametrize("path", ALL, ids=" ".join)
def test_help_fits_the_terminal_and_ends_with_examples(path: tuple[str, ...], columns: int) -> None:
    text = shown(path, columns)
    assert max(map(len, text.splitlines())) <= columns
    assert "…" not in text
    usage, examples = text.split(" Examples")
    assert " ".join(["Usage: ihgnn", *path]) in usage
    assert re.search(rf"^   .*{' '.join(['ihgnn', *path])}", examples, re.M)


@pytest.mark.parametrize("path", ALL, ids=" ".join)
def test_help_is_plain(path: tuple[str, ...]) -> None:
    text = shown(path)
    assert not NOT_PLAIN.search(text)
    for odd in ("Default:", "<", "(default", "default)"):
        assert odd not in text.replace("<=", "")
    for option in ALL[path].params:
        if isinstance(option, TyperOption):
            assert option.help, option.name


@pytest.mark.parametrize("path", SUBCOMMANDS, ids=" ".join)
def test_panels_have_the_same_names_and_order_everywhere(path: tuple[str, ...]) -> None:
    panels = [each for each in re.findall(r"╭─ (\w+) ─", shown(path)) if each != "Commands"]
    assert panels == [each for each in PANELS if each in panels]


@pytest.mark.parametrize("path", ALL, ids=" ".join)
def test_an_option_takes_at_most_two_lines(path: tuple[str, ...]) -> None:
    text = shown(path).split(" Examples")[0]
    for panel in re.findall(r"╭[^╯]*╯", text):
        rows = re.split(r"^│ (?=--|\*|\w| {5}[A-Z]+ )", panel, flags=re.M)[1:]
        for row in rows:
            assert row.count("\n│") <= 1, row


def test_a_default_in_words_is_in_brackets() -> None:
    text = shown(("train",), columns=200)
    assert "[default: MUTAG]" in text  # of an argument
    assert "[default: holdout]" in text  # of an option


def test_a_list_keeps_its_lines() -> None:
    lines = [each.strip() for each in shown(("reproduce",)).splitlines()]
    first = lines.index("- table1: IHGNN and fourteen other methods")
    assert [each.split(":")[0] for each in lines[first + 1 : first + 5]] == [
        *("- table2", "- figure1", "- sensitivity", "- homophily-sweep")
    ]


@pytest.mark.parametrize("path", SUBCOMMANDS, ids=" ".join)
def test_every_command_has_json(path: tuple[str, ...]) -> None:
    assert "--json" in {name for option in ALL[path].params for name in option.opts}


@pytest.mark.parametrize("path", ALL, ids=" ".join)
def test_an_unknown_option_is_refused(path: tuple[str, ...]) -> None:
    result = CliRunner().invoke(app, [*path, "--frobnicate"])
    assert result.exit_code == 2
    assert "--frobnicate" in result.output


@pytest.mark.parametrize("path", ALL, ids=" ".join)
def test_examples_are_valid_command_lines(path: tuple[str, ...]) -> None:
    lines = re.findall(r"^   .*?ihgnn (.+?) *$", shown(path), re.M)
    assert lines
    for line in lines:
        args = tuple(line.split())
        command = max((each for each in ALL if each == args[: len(each)]), key=len)
        ALL[command].make_context(command[-1], list(args[len(command) :]))
