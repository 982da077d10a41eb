"""What the README and the documentation say can be typed, imported and followed."""

import ast
import importlib
import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import typer

from ihgnn_cli.cli.app import app

ROOT = Path(__file__).parent.parent
PATTERNS = ("*.md", "docs/*.md", "results/**/README.md", "benchmarks/*.md", "examples/*/*.md")
PAGES = sorted(
    path.relative_to(ROOT).as_posix() for pattern in PATTERNS for path in ROOT.glob(pattern)
)
GUIDES = [page for page in PAGES if page == "README.md" or page.startswith("docs/")]
SHELL = {"", "sh", "bash", "console"}
LANGUAGES = SHELL | {"python", "json", "toml", "text"}
OTHER_LANGUAGES = {"js", "cpp", "rust", "go", "java", "csharp"}
OTHER_PROGRAMS = {"--help", "--install-completion"}  # options that typer adds
NOT_RUN = re.compile(r"<!-- not run(?:: (?P<reason>.+?))? -->")


@dataclass(frozen=True)
class Block:
    """A fenced block, and why it is not run (None: it is)."""

    where: str
    language: str
    text: str
    not_run: str | None

    def __str__(self) -> str:
        return self.where


def text_of(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def blocks(page: str) -> list[Block]:
    found = []
    lines = iter(enumerate(text_of(page).splitlines(), start=1))
    above = ""
    for number, line in lines:
        if line.startswith("```"):
            inside = []
            for _, each in lines:
                if each.startswith("```"):
                    break
                inside.append(each)
            comment = NOT_RUN.fullmatch(above)
            reason = comment["reason"] if comment else None
            found.append(Block(f"{page}:{number}", line[3:], "\n".join(inside), reason))
        above = line
    return found


def prose(page: str) -> str:
    return re.sub(r"^```.*?^```", "", text_of(page), flags=re.DOTALL | re.MULTILINE)


def script(block: Block) -> str:
    """What one types: everything, or what follows the prompt."""
    if block.language != "console":
        return block.text
    return "\n".join(line[2:] for line in block.text.splitlines() if line.startswith("$ "))


def ihgnn_commands(block: Block) -> list[list[str]]:
    """The words after `ihgnn` of every call, also in a pipe or behind srun."""
    found = []
    for line in re.sub(r"\\\n", " ", script(block)).splitlines():
        words = shlex.shlex(re.sub(r"\$\w+", "4", line), posix=True, punctuation_chars="|&;")
        words.whitespace_split = True
        calls: list[list[str]] = [[]]
        for word in words:
            if set(word) <= set("|&;"):
                calls.append([])
            else:
                calls[-1].append(word)
        found += [
            call[call.index("ihgnn") + 1 :]
            for call in calls
            if "ihgnn" in call and call[0] in {"ihgnn", "srun"}
        ]
    return found


def command_line() -> Any:
    """The real command line, whose commands do nothing."""

    def silence(command: Any) -> Any:
        command.callback = lambda **_: None
        for each in getattr(command, "commands", {}).values():
            silence(each)
        return command

    return silence(typer.main.get_command(app))


def options_of(command: Any) -> set[str]:
    own = {name for each in command.params for name in (*each.opts, *each.secondary_opts)}
    return own.union(*map(options_of, getattr(command, "commands", {}).values()))


ALL = [block for page in PAGES for block in blocks(page)]
COMMANDS = [block for block in ALL if block.language in SHELL and ihgnn_commands(block)]
PYTHON = [block for block in ALL if block.language == "python"]


def test_the_pages_have_commands_and_python() -> None:
    assert len(COMMANDS) > 20
    assert len(PYTHON) > 5
    assert {block.language for block in ALL} <= LANGUAGES | OTHER_LANGUAGES


def test_blocks_in_other_languages_say_why_they_are_not_run() -> None:
    others = [block for block in ALL if block.language in OTHER_LANGUAGES]
    assert [str(block) for block in others if not block.not_run] == []


@pytest.mark.parametrize("block", COMMANDS, ids=str)
def test_every_command_is_understood(
    block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "splits").mkdir()  # the folder of --splits has to exist
    for words in ihgnn_commands(block):
        command_line().main(words, prog_name="ihgnn", standalone_mode=False)


@pytest.mark.parametrize("words", [["train", "--no-such-option"], ["train", "--epochs", "many"]])
def test_a_wrong_command_is_noticed(words: list[str]) -> None:
    with pytest.raises(typer.TyperException):
        command_line().main(words, prog_name="ihgnn", standalone_mode=False)


@pytest.mark.parametrize("page", GUIDES)
def test_options_named_in_the_text_exist(page: str) -> None:
    command = command_line()
    spans = [" ".join(span.split()) for span in re.findall(r"`([^`]+)`", prose(page))]
    for words in (span.split() for span in spans if span.startswith(("ihgnn ", "--"))):
        known = options_of(command) | OTHER_PROGRAMS
        if words[0] == "ihgnn" and not words[1].startswith("-"):
            assert words[1] in command.commands, words
            known = options_of(command.commands[words[1]]) | OTHER_PROGRAMS
        for word in words:
            if word.startswith("--"):
                assert word.split("=")[0] in known, words


@pytest.mark.parametrize("block", PYTHON, ids=str)
def test_every_python_block_compiles_and_its_imports_exist(block: Block) -> None:
    for node in ast.walk(ast.parse(block.text)):
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("ihgnn_cli"):
            module = importlib.import_module(str(node.module))
            for name in node.names:
                if not hasattr(module, name.name):
                    importlib.import_module(f"{node.module}.{name.name}")
        elif isinstance(node, ast.Import):
            for name in node.names:
                importlib.import_module(name.name)


@pytest.mark.parametrize("page", PAGES)
def test_a_block_that_is_not_run_says_why(page: str) -> None:
    comments = list(NOT_RUN.finditer(text_of(page)))
    assert all(comment["reason"] for comment in comments)
    # Each comment stands directly above its block, or is quoted to explain it.
    quoted = len(re.findall(r"`<!-- not run.*?-->`", text_of(page)))
    assert len(comments) - quoted == sum(block.not_run is not None for block in blocks(page))


def anchors(path: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub and MkDocs make them."""
    text = re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.S | re.M)
    headings = re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", each.lower()).strip().replace(" ", "-") for each in headings}


@pytest.mark.parametrize("page", PAGES)
def test_every_link_leads_somewhere(page: str) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        path = (ROOT / page).parent / name if name else ROOT / page
        assert path.exists(), target
        if anchor:
            assert anchor in anchors(path), target


def test_the_files_that_contributing_names_exist() -> None:
    spans = re.findall(r"`((?:ihgnn_cli|tests|docs|examples)/[^`\s]*)`", text_of("CONTRIBUTING.md"))
    assert len(spans) > 10
    assert [span for span in spans if "NAME" not in span and not (ROOT / span).exists()] == []


def runnable(page: str) -> list[Block]:
    return [
        block
        for block in blocks(page)
        if block.not_run is None and (block.language == "python" or block in COMMANDS)
    ]


@pytest.mark.long
@pytest.mark.skipif(shutil.which("bash") is None, reason="the blocks are written for bash")
@pytest.mark.parametrize("page", [page for page in PAGES if runnable(page)])
def test_the_blocks_of_a_page_run_in_order(page: str, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    for block in runnable(page):
        if block.language == "python":
            command = [sys.executable, "-c", block.text]
        else:
            command = ["bash", "-euo", "pipefail", "-c", script(block)]
        done = subprocess.run(
            command,
            cwd=tmp_path,
            env={**os.environ, "PATH": path},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{block}\n{done.stdout}\n{done.stderr}"
