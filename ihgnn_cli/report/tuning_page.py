"""A search for settings on one page for a browser, which needs nothing but itself.

Figures are in the page, and its policy forbids the browser to load anything. A click on the head
of a column sorts the table; without scripts it is a table like any other.
"""

import base64
import math
import struct
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path

from ihgnn_cli.files import written_whole
from ihgnn_cli.report.tuning import TrialRow, names_of
from ihgnn_cli.report.tuning_scales import Value
from ihgnn_cli.words import counted

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
.wide { overflow: auto; max-height: 85vh; border: 1px solid var(--line); border-radius: .4rem; }
table { border-collapse: separate; border-spacing: 0; width: 100%; font-size: .875rem;
  font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .7rem; text-align: left; white-space: nowrap; vertical-align: top;
  border-bottom: 1px solid var(--line); }
th.number, td.number { text-align: right; }
thead th { position: sticky; top: 0; z-index: 1; background: var(--band); }
td.long:not(:empty) { white-space: normal; min-width: 16rem; overflow-wrap: anywhere; }
tbody th { font-weight: inherit; }
tr.pruned, tr.running, tr.waiting { color: var(--quiet); }
tr.failed td { color: var(--failed); }
tr.best th, tr.best td { background: var(--best); font-weight: 600; }
th button { all: unset; cursor: pointer; }
th button:focus-visible { outline: 2px solid var(--mark); outline-offset: 2px; }
[aria-sort=ascending] button::after { content: " \\2191"; }
[aria-sort=descending] button::after { content: " \\2193"; }
@media (max-width: 40rem) { body { padding: .8rem; } dl { grid-template-columns: 1fr; gap: 0; }
  dd { margin-bottom: .5rem; } img { max-width: none; width: 44rem; } }
"""

# Empty cells stay at the end in both directions.
_SCRIPT = """
for (const head of document.querySelectorAll("thead th")) {
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

_FINER = 1.4  # pixels of a figure for one of the page
_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'"


def write_page(
    path: Path,
    title: str,
    facts: Sequence[tuple[str, str]],
    rows: Sequence[TrialRow],
    *,
    best: int | None,
    figures: Mapping[str, Path],
) -> None:
    """Write a search as one HTML file, whole or not at all.

    Args:
        path: of the page.
        title: its heading.
        facts: what there is to know of the search, each with its name.
        rows: the trials.
        best: number of the best trial.
        figures: PNG files by their captions.

    Raises:
        InputError: the path is a folder.
        IhgnnError: the page cannot be written.
    """
    page = "\n".join(_page(title, facts, rows, best, figures)) + "\n"
    with written_whole(path) as temporary:
        # Half a character, as a damaged name of a file may hold, becomes a reference.
        temporary.write_text(page, encoding="utf-8", errors="xmlcharrefreplace")


def _page(
    title: str,
    facts: Sequence[tuple[str, str]],
    rows: Sequence[TrialRow],
    best: int | None,
    figures: Mapping[str, Path],
) -> Iterator[str]:
    yield "<!DOCTYPE html>"
    yield '<html lang="en">\n<head>\n<meta charset="utf-8">'
    yield f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>"
    yield f"<h1>{escape(title)}</h1>"
    if facts:
        yield "<dl>"
        for name, content in facts:
            yield f"<dt>{escape(name)}</dt><dd>{escape(content)}</dd>"
        yield "</dl>"
    if figures:
        yield "<h2>Figures</h2>"
    for caption, file in figures.items():
        yield f"<figure><figcaption>{escape(caption)}</figcaption>"
        yield _image(file.read_bytes(), f"Figure: {caption}. See the table of trials for numbers.")
        yield "</figure>"
    yield from _table(rows, best)
    yield f"<script>{_SCRIPT}</script>\n</body>\n</html>"


def _image(png: bytes, told: str) -> str:
    """A figure with the size at which its letters are as large as those of the page."""
    width, height = (round(pixels / _FINER) for pixels in struct.unpack(">II", png[16:24]))
    data = base64.b64encode(png).decode("ascii")
    size = f'width="{width}" height="{height}"'
    return f'<img src="data:image/png;base64,{data}" {size} alt="{escape(told)}">'


def _table(rows: Sequence[TrialRow], best: int | None) -> Iterator[str]:
    names = names_of(rows)
    numeric = {name for name in names if all(_is_numeric(row.params.get(name)) for row in rows)}
    yield f"<h2>{counted(len(rows), 'trial')}</h2>"
    yield "<p>Accuracy and loss are on validation; of a pruned trial, when it was given up.</p>"
    yield '<div class="wide" tabindex="0" role="region" aria-label="Trials">\n<table>\n<thead><tr>'
    yield _head("trial", True) + _head("state", False) + _head("accuracy", True)
    yield _head("loss", True) + "".join(_head(name, name in numeric) for name in names)
    yield "".join(_head(name, True) for name in ("best epoch", "seconds", "tries"))
    yield _head("failure", False) + "</tr></thead>\n<tbody>"
    for row in rows:
        chosen = row.number == best
        state = f"{row.state}, best" if chosen else row.state
        yield (
            f'<tr class="{escape(row.state)}{" best" if chosen else ""}">'
            + "".join(
                (
                    f'<th scope="row" class="number" data-key="{row.number}">{row.number}</th>',
                    _cell(state, state),
                    _number(row.accuracy, f"{row.percent:.2f} %"),
                    _number(row.loss, f"{row.loss or 0:.4f}"),
                    *(_setting(row.params.get(name)) for name in names),
                    _number(row.best_epoch, f"{row.best_epoch or 0:g}"),
                    _number(row.seconds, f"{row.seconds or 0:.1f}"),
                    _number(row.tries, str(row.tries)),
                    _cell(row.failure or "", row.failure or "", "long"),
                )
            )
            + "</tr>"
        )
    yield "</tbody>\n</table>\n</div>"


def _head(name: str, numeric: bool) -> str:
    kind = ' class="number"' if numeric else ""
    return f'<th scope="col"{kind}>{escape(name)}</th>'


def _setting(value: Value | None) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        told = "" if value is None else str(value)
        told = told.lower() if isinstance(value, bool) else told
        return _cell(told, told)
    return _number(value, f"{value:.4g}" if isinstance(value, float) else str(value))


def _number(value: float | None, told: str) -> str:
    """A cell that is empty where there is nothing to tell, and sorted by all its digits."""
    known = value is not None and math.isfinite(value)
    return _cell(told if known else "", repr(value) if known else "", "number")


def _cell(told: str, key: str, kind: str = "") -> str:
    kind = f' class="{kind}"' if kind else ""
    return f'<td{kind} data-key="{escape(key)}">{escape(told)}</td>'


def _is_numeric(value: Value | None) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))
