"""Building blocks of self-contained HTML pages.

Figures are embedded, and the content security policy forbids loading anything. Clicking a column
head sorts a table of class `sorted`. Colours follow the browser's light or dark mode; figures keep
a white background.
"""

import base64
import math
import re
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from pathlib import Path

from ihgnn_cli.files import written_whole

_STYLE = """
:root { color-scheme: light dark; --ground: #fff; --text: #1d1d1f; --quiet: #63636b;
  --line: #dcdce0; --band: #f5f5f7; --best: #fbe6d8; --mark: #b4531a; --failed: #b3373c; }
@media (prefers-color-scheme: dark) { :root { --ground: #16171a; --text: #e8e8ea; --quiet: #a0a0a8;
  --line: #3a3b40; --band: #202126; --best: #47301f; --mark: #f0a878; --failed: #f08a8e; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.2rem; max-width: 76rem; background: var(--ground);
  color: var(--text); font: 1rem/1.5 system-ui, sans-serif; }
h1, h2 { line-height: 1.2; overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.2rem; margin-top: 2.2rem; }
p { color: var(--quiet); }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .25rem 1.2rem; }
dt { color: var(--quiet); } dd { margin: 0; overflow-wrap: anywhere; }
figure { margin: 1.2rem 0; overflow-x: auto; }
figcaption { font-weight: 600; margin-bottom: .4rem; }
img { display: block; max-width: 100%; height: auto; padding: .5rem; background: #fff;
  border: 1px solid var(--line); border-radius: .4rem; }
svg { display: block; max-width: 100%; height: auto; padding: .5rem; background: #fff;
  border: 1px solid var(--line); border-radius: .4rem; }
.wide { overflow: auto; max-height: 85vh; border: 1px solid var(--line); border-radius: .4rem; }
table { border-collapse: separate; border-spacing: 0; width: 100%; font-size: .875rem;
  font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .7rem; text-align: left; white-space: nowrap; vertical-align: top;
  border-bottom: 1px solid var(--line); }
th.number, td.number { text-align: right; }
thead th { position: sticky; top: 0; z-index: 1; background: var(--band); }
td.long:not(:empty) { white-space: normal; min-width: 16rem; overflow-wrap: anywhere; }
tbody th { font-weight: inherit; }
td small { color: var(--quiet); } ul { padding-left: 1.2rem; color: var(--quiet); }
pre { white-space: pre-wrap; overflow-wrap: anywhere; margin: 0; font-size: .8125rem; }
tr.pruned, tr.running, tr.waiting { color: var(--quiet); }
tr.failed td { color: var(--failed); }
tr.best th, tr.best td { background: var(--best); font-weight: 600; }
th button { all: unset; cursor: pointer; }
th button:focus-visible { outline: 2px solid var(--mark); outline-offset: 2px; }
[aria-sort=ascending] button::after { content: " \\2191"; }
[aria-sort=descending] button::after { content: " \\2193"; }
@media (max-width: 40rem) { body { padding: .8rem; } dl { grid-template-columns: 1fr; gap: 0; }
  dd { margin-bottom: .5rem; } img, svg { max-width: none; width: 44rem; } }
"""

# Empty cells sort last in both directions.
_SCRIPT = """
for (const head of document.querySelectorAll("table.sorted thead th")) {
  const button = document.createElement("button");
  button.append(...head.childNodes);
  head.append(button);
  button.onclick = () => {
    const body = head.closest("table").tBodies[0], sign = head.ariaSort === "ascending" ? -1 : 1;
    const key = row => row.cells[head.cellIndex].dataset.key ?? "";
    const order = (a, b) => a === "" || b === "" ? (a === "") - (b === "")
      : sign * (isNaN(a) || isNaN(b) ? a.localeCompare(b) : a - b);
    for (const other of head.parentNode.cells) other.removeAttribute("aria-sort");
    head.ariaSort = sign > 0 ? "ascending" : "descending";
    body.append(...[...body.rows].sort((one, two) => order(key(one), key(two))));
  };
}
"""


_FINER = 1.4  # pixels of a figure per pixel of the page
_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'"
_SVG_START = re.compile(r"<svg\b[^>]*>")
_SVG_SIZE = re.compile(r'\bviewBox="[^"]*"')
_ASIDE = re.compile(r"<metadata>.*?</metadata>|<!--.*?-->", re.DOTALL)
_NAMES = re.compile(r'(\bid="|url\(#|href="#)')


def write_document(path: Path, title: str, body: Iterable[str]) -> None:
    """Write a page with this body.

    Raises:
        InputError: the path is a folder.
        IhgnnError: the page cannot be written.
    """
    page = "\n".join(_document(title, body)) + "\n"
    with written_whole(path) as temporary:
        # Lone surrogates, as in damaged file names, become character references.
        temporary.write_text(page, encoding="utf-8", errors="xmlcharrefreplace")


def _document(title: str, body: Iterable[str]) -> Iterator[str]:
    yield "<!DOCTYPE html>"
    yield '<html lang="en">\n<head>\n<meta charset="utf-8">'
    yield f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>"
    yield f"<h1>{escape(title)}</h1>"
    yield from body
    yield f"<script>{_SCRIPT}</script>\n</body>\n</html>"


def fact_list(facts: Sequence[tuple[str, str]]) -> Iterator[str]:
    """A list of names and values."""
    if facts:
        yield "<dl>"
        for name, content in facts:
            yield f"<dt>{escape(name)}</dt><dd>{escape(content)}</dd>"
        yield "</dl>"


def figure_list(figures: Mapping[str, Path], see: str) -> Iterator[str]:
    """PNG or SVG figures under a heading.

    Args:
        figures: the files by caption.
        see: a sentence for screen readers that says where the numbers are.
    """
    if figures:
        yield "<h2>Figures</h2>"
    for number, (caption, file) in enumerate(figures.items()):
        text = f"Figure: {caption}. {see}"
        yield f"<figure><figcaption>{escape(caption)}</figcaption>"
        if file.suffix.lower() == ".svg":
            yield _drawing(file.read_text(encoding="utf-8"), text, f"f{number}-")
        else:
            yield _image(file.read_bytes(), text)
        yield "</figure>"


def _image(png: bytes, text: str) -> str:
    """An image, sized so that its text is as large as that of the page."""
    width, height = (round(pixels / _FINER) for pixels in struct.unpack(">II", png[16:24]))
    data = base64.b64encode(png).decode("ascii")
    size = f'width="{width}" height="{height}"'
    return f'<img src="data:image/png;base64,{data}" {size} alt="{escape(text)}">'


def _drawing(svg: str, text: str, prefix: str) -> str:
    """An inline SVG drawing, with a prefix on all ids to keep them unique within the page.

    Only reads SVG files of matplotlib, in which all text is drawn as paths.
    """
    start = _SVG_START.search(svg)
    box = _SVG_SIZE.search(start.group()) if start else None
    if start is None or box is None:
        raise ValueError("this is not a drawing of matplotlib")
    _, _, width, height = (float(each) for each in box.group()[9:-1].split())
    # Points of 1/72 inch, shown as large as `_image` shows 150 dots per inch.
    size = " ".join(
        f'{name}="{round(points * 150 / 72 / _FINER)}"'
        for name, points in (("width", width), ("height", height))
    )
    inside = _ASIDE.sub("", svg[start.end() : svg.rindex("</svg>")])
    inside = _NAMES.sub(rf"\g<1>{prefix}", inside.replace("xlink:href", "href"))
    return f'<svg {box.group()} {size} role="img" aria-label="{escape(text)}">{inside}</svg>'


def table_frame(label: str, table: Iterable[str]) -> Iterator[str]:
    """A frame in which a table scrolls if it is too large for the window."""
    yield f'<div class="wide" tabindex="0" role="region" aria-label="{escape(label)}">'
    yield from table
    yield "</div>"


def column_head(name: str, numeric: bool) -> str:
    """The head of a column."""
    kind = ' class="number"' if numeric else ""
    return f'<th scope="col"{kind}>{escape(name)}</th>'


def number_cell(value: float | None, text: str) -> str:
    """A cell that is empty without a value, and sorted by all its digits."""
    known = value is not None and math.isfinite(value)
    return text_cell(text if known else "", repr(value) if known else "", "number")


def text_cell(text: str, key: str, kind: str = "") -> str:
    """A cell, the key that it is sorted by, and its class."""
    kind = f' class="{kind}"' if kind else ""
    return f'<td{kind} data-key="{escape(key)}">{escape(text)}</td>'
