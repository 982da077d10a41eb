"""`ihgnn docs`: the documentation in the terminal, as installed."""

import re
from importlib.resources import files
from pathlib import Path
from typing import Annotated

from ihgnn_cli.cli.help import argument, examples
from ihgnn_cli.cli.options import AsJson
from ihgnn_cli.errors import InputError
from ihgnn_cli.words import hint

EXAMPLES = examples(
    ("ihgnn docs", "List the pages"),
    ("ihgnn docs quickstart", "From your own graphs to predictions"),
    ("ihgnn docs data", "Formats of data sets"),
)
_LINK = re.compile(r"\[([^\]]*)\]\((\w+)\.md(?:#[^)]*)?\)")
_COMMENT = re.compile(r"<!--.*?-->\n?", re.DOTALL)


def complete_topic(incomplete: str) -> list[str]:
    """Names of pages for shell completion."""
    return [name for name in _pages() if name.startswith(incomplete)]


def docs(
    topic: Annotated[
        str | None,
        argument(
            "TOPIC",
            "The page to show; without it, the pages are listed.",
            autocompletion=complete_topic,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show a page of the documentation, or list the pages."""
    from ihgnn_cli.cli import console

    pages = _pages()
    if topic is None:
        if as_json:
            console.show_json({"topics": {name: _title(page) for name, page in pages.items()}})
            return
        shown = console.table(None, "Name", "")
        for name, page in pages.items():
            shown.add_row(name, _title(page))
        console.show(shown)
        console.show("'ihgnn docs NAME' shows a page.")
        return
    found = pages.get(topic.removesuffix(".md").lower())
    if found is None:
        raise InputError(f"No page '{topic}'. {hint(topic, list(pages))}")
    text = _COMMENT.sub("", found.read_text(encoding="utf-8"))
    if as_json:
        console.show_json({"topic": topic, "markdown": text})
    elif console.out.is_terminal:
        from rich.markdown import Markdown

        console.show(Markdown(_LINK.sub(r"\1 (`ihgnn docs \2`)", text), hyperlinks=False))
    else:
        console.show(text.rstrip())


def _pages() -> dict[str, Path]:
    """The pages by name: those in the package, or in a checkout those of the repository."""
    package = Path(str(files("ihgnn_cli")))
    installed = package / "docs"
    folder = installed if installed.is_dir() else package.parent / "docs"
    return {path.stem: path for path in sorted(folder.glob("*.md"))}


def _title(page: Path) -> str:
    return page.read_text(encoding="utf-8").partition("\n")[0].lstrip("# ")
