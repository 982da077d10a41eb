"""The table and the page of a search: complete, self-contained, and safe against markup."""

import base64
import csv
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from optuna.trial import TrialState

from ihgnn_cli.errors import InputError
from ihgnn_cli.report.figures import new_figure, save_figure
from ihgnn_cli.report.tuning import write_page, write_trials
from ihgnn_cli.studies.tuning.rows import TrialRow

EVIL = '"><script>alert(1)</script><img src=x onerror=alert(2)>&amp;'
EMPTY = {"area", "br", "hr", "img", "input", "link", "meta"}


class Page(HTMLParser):
    """What a browser would find."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.opened: list[tuple[str, dict[str, str | None]]] = []
        self.words: dict[str, list[str]] = {}
        self.rows: list[list[str]] = []
        self._path: list[str] = []
        self.feed(text)
        self.close()
        assert self._path == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.opened.append((tag, dict(attrs)))
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
        if tag not in EMPTY:
            self._path.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._path.pop() == tag

    def handle_data(self, data: str) -> None:
        if not self._path:
            return
        self.words.setdefault(self._path[-1], []).append(data)
        if self._path[-1] in ("td", "th"):
            self.rows[-1][-1] += data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attrs for name, attrs in self.opened if name == tag]


def trial(number: int, **changes: Any) -> TrialRow:
    plain: dict[str, Any] = {
        "number": number,
        "state": TrialState.COMPLETE,
        "accuracy": 0.8125,
        "loss": 0.5,
        "params": {"lr": 0.00123456, "layers": 3, "readout_relu": True},
        "distributions": {},
        "best_epoch": 12.5,
        "seconds": 3.14159,
        "tries": 1,
        "failure": None,
    }
    return TrialRow(**{**plain, **changes})


LOST = trial(
    3,
    state=TrialState.FAIL,
    accuracy=None,
    loss=None,
    best_epoch=None,
    seconds=None,
    tries=2,
    failure="the loss is no number",
)


def test_the_csv_file_has_one_row_per_trial_and_one_column_per_setting(tmp_path: Path) -> None:
    rows = [
        trial(0, accuracy=1 / 3, params={"lr": 0.1 + 0.2, "variant": 'a,"b"\nc'}),
        replace(LOST, params={"lr": 1e-5, "readout_relu": True}),
    ]
    write_trials(tmp_path / "trials.csv", rows)
    with (tmp_path / "trials.csv").open(encoding="utf-8", newline="") as stream:
        first, second = csv.DictReader(stream)
    assert list(first) == [
        *("trial", "state", "validation_accuracy", "validation_loss"),
        *("lr", "variant", "readout_relu", "best_epoch", "seconds", "tries", "failure"),
    ]
    assert float(first["validation_accuracy"]) == 1 / 3
    assert float(first["lr"]) == 0.1 + 0.2
    assert (first["variant"], first["readout_relu"]) == ('a,"b"\nc', "")
    assert second["readout_relu"] == "true"
    assert second["validation_accuracy"] == second["seconds"] == ""
    assert (second["state"], second["failure"]) == ("failed", "the loss is no number")


def written(folder: Path, rows: list[TrialRow], **changes: Any) -> Page:
    options: dict[str, Any] = {"title": "A search", "facts": [], "best": None, "figures": {}}
    options |= changes
    write_page(folder / "page.html", rows=rows, **options)
    return Page((folder / "page.html").read_text(encoding="utf-8"))


def test_the_table_tells_all_of_a_trial_in_the_order_given(tmp_path: Path) -> None:
    page = written(tmp_path, [trial(2), LOST])
    assert page.rows == [
        [
            *("trial", "state", "accuracy", "loss", "lr", "layers", "readout_relu"),
            *("best epoch", "seconds", "tries", "failure"),
        ],
        ["2", "complete", "81.25 %", "0.5000", "0.001235", "3", "true", "12.5", "3.1", "1", ""],
        ["3", "failed", "", "", "0.001235", "3", "true", "", "", "2", "the loss is no number"],
    ]
    assert page.words["h2"] == ["2 trials"]


def test_a_search_that_chooses_no_epoch_has_no_column_for_it(tmp_path: Path) -> None:
    page = written(tmp_path, [trial(2, best_epoch=None), LOST])
    assert page.rows[0][-4:] == ["readout_relu", "seconds", "tries", "failure"]
    assert page.rows[1][-4:] == ["true", "3.1", "1", ""]


def test_every_trial_has_a_row(tmp_path: Path) -> None:
    page = written(tmp_path, [trial(3 * number) for number in range(500)])
    assert [row[0] for row in page.rows[1:]] == [str(3 * number) for number in range(500)]


def test_cells_are_sorted_by_all_digits_and_empty_ones_have_no_key(tmp_path: Path) -> None:
    page = written(tmp_path, [trial(2), trial(3, loss=float("nan"), accuracy=None)])
    keys = [cell["data-key"] for cell in page.all("td")]
    assert keys[1:4] == ["0.8125", "0.5", "0.00123456"]
    assert keys[11:13] == ["", ""]


def test_a_setting_that_a_trial_lacks_is_an_empty_cell(tmp_path: Path) -> None:
    page = written(tmp_path, [trial(0), trial(1, params={"lr": 0.1})])
    assert page.rows[2][4:7] == ["0.1", "", ""]


@pytest.mark.parametrize(("best", "marked"), [(1, ["1"]), (None, [])])
def test_the_best_row_is_marked_in_words_and_looks(
    tmp_path: Path, best: int | None, marked: list[str]
) -> None:
    page = written(tmp_path, [trial(0), trial(1)], best=best)
    assert [row[0] for row in page.rows if row[1] == "complete, best"] == marked
    looks = [attrs.get("class") for attrs in page.all("tr")]
    assert looks.count("complete best") == len(marked)


def test_title_and_facts_are_told(tmp_path: Path) -> None:
    page = written(tmp_path, [trial(0)], title="MUTAG & more", facts=[("sampler", "tpe <1>")])
    assert page.words["title"] == page.words["h1"] == ["MUTAG & more"]
    assert (page.words["dt"], page.words["dd"]) == (["sampler"], ["tpe <1>"])


def test_figures_are_in_the_page_with_caption_and_words_instead(tmp_path: Path) -> None:
    save_figure(new_figure((2, 1)), tmp_path / "figure.png")
    page = written(tmp_path, [trial(0)], figures={"What mattered": tmp_path / "figure.png"})
    (image,) = page.all("img")
    head, data = str(image["src"]).split(",")
    assert head == "data:image/png;base64"
    assert base64.b64decode(data) == (tmp_path / "figure.png").read_bytes()
    assert "What mattered" in str(image["alt"])
    assert page.words["figcaption"] == ["What mattered"]


def test_the_page_loads_nothing_and_forbids_to(tmp_path: Path) -> None:
    save_figure(new_figure((2, 1)), tmp_path / "figure.png")
    page = written(tmp_path, [trial(0)], figures={"What mattered": tmp_path / "figure.png"})
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "http://" not in text
    assert "https://" not in text
    assert "url(" not in text
    assert not {"link", "iframe", "object", "base"} & {tag for tag, _ in page.opened}
    sources = [attrs[name] for _, attrs in page.opened for name in ("src", "href") if name in attrs]
    assert len(sources) == 1
    assert str(sources[0]).startswith("data:image/png;base64,")
    (policy,) = [each["content"] for each in page.all("meta") if "http-equiv" in each]
    assert str(policy).startswith("default-src 'none'")


def test_nothing_that_is_given_becomes_markup(tmp_path: Path) -> None:
    save_figure(new_figure((2, 1)), tmp_path / "figure.png")
    row = trial(0, params={EVIL: EVIL}, failure=EVIL)
    figures = {EVIL: tmp_path / "figure.png"}
    page = written(tmp_path, [row], title=EVIL, facts=[(EVIL, EVIL)], figures=figures, best=0)
    assert len(page.all("script")) == 1
    assert "alert" not in page.words["script"][0]
    assert len(page.all("img")) == 1
    assert not any(name.startswith("on") for _, attrs in page.opened for name in attrs)
    for tag in ("title", "h1", "dt", "dd", "figcaption"):
        assert page.words[tag] == [EVIL]
    assert page.rows[0][4] == page.rows[1][4] == page.rows[1][-1] == EVIL


def test_without_trials_there_is_a_page_that_says_so(tmp_path: Path) -> None:
    page = written(tmp_path, [])
    assert page.words["h2"] == ["0 trials"]
    assert len(page.rows) == 1


def test_half_a_character_does_not_keep_the_page_from_being_written(tmp_path: Path) -> None:
    page = written(tmp_path, [trial(0, failure="no file \udcff.txt")])
    assert page.rows[1][-1] == "no file �.txt"


def test_what_cannot_be_written_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        written(tmp_path, [trial(0)], figures={"gone": tmp_path / "gone.png"})
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(InputError, match="folder"):
        write_page(tmp_path, "A search", [], [], best=None, figures={})
