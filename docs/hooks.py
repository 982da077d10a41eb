"""MkDocs hook: pages outside docs/ are part of the site, and links keep working in both places."""

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parent.parent
OUTSIDE = (
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "CITATION.cff",
    "benchmarks/README.md",
    "examples/molecules.jsonl",
    "examples/*/README.md",
    "ihgnn_cli/data/bundled/IMDB-BINARY/README.md",
    "ihgnn_cli/data/bundled/*/README.md",
    "results/README.md",
    "results/reproduction/*.svg",
)
LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#)([^)\s#]+)")


def on_files(files: Files, config: Any) -> Files:
    """Add the files outside docs/, under their paths in the repository."""
    for pattern in OUTSIDE:
        for path in sorted(ROOT.glob(pattern)):
            name = path.relative_to(ROOT).as_posix()
            files.append(File.generated(config, name, abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Links are written for the repository; in the site, docs/ is the top folder."""
    source = page.file.src_uri
    outside = (ROOT / source).exists()
    folder = posixpath.dirname(source if outside else f"docs/{source}")

    def in_site(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(folder, link[1]))
        target = target.removeprefix("docs/")
        return posixpath.relpath(target, posixpath.dirname(source) or ".")

    return LINK.sub(in_site, markdown)
