"""Drawings are part of the page: well formed, apart from each other, and with words instead."""

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from ihgnn_cli.report.figures import new_figure, save_figure
from ihgnn_cli.report.page import figure_list

EVIL = '"><script>alert(1)</script>'


def drawing(path: Path, title: str = "a title") -> Path:
    figure = new_figure((2, 1))
    panel = figure.subplots()
    panel.plot([0, 1], [0, 1], "o-")
    panel.set_title(title)
    save_figure(figure, path)
    return path


def svg_of(text: str) -> ET.Element:
    return ET.fromstring(text[text.index("<svg") : text.rindex("</svg>") + 6])


def test_an_svg_file_is_drawn_in_the_page_with_size_and_words(tmp_path: Path) -> None:
    text = "".join(figure_list({"What it is": drawing(tmp_path / "a.svg")}, "See the table."))
    svg = svg_of(text)
    assert svg.attrib["viewBox"] == "0 0 144 72"
    assert (svg.attrib["width"], svg.attrib["height"]) == ("214", "107")
    assert svg.attrib["role"] == "img"
    assert svg.attrib["aria-label"] == "Figure: What it is. See the table."
    assert len(list(svg.iter("path"))) > 3
    assert "http" not in text
    assert "<!--" not in text


def test_two_drawings_share_no_names_and_refer_to_their_own(tmp_path: Path) -> None:
    file = drawing(tmp_path / "a.svg")
    pieces = list(figure_list({"one": file, "two": file}, "See."))
    found = [svg_of(piece) for piece in pieces if piece.startswith("<svg")]
    names = [{each.attrib["id"] for each in svg.iter() if "id" in each.attrib} for svg in found]
    assert names[0]
    assert not names[0] & names[1]
    for svg, known in zip(found, names, strict=True):
        links = {each.attrib["href"][1:] for each in svg.iter("use")}
        links |= {
            each.attrib["clip-path"][5:-1] for each in svg.iter() if "clip-path" in each.attrib
        }
        assert links
        assert links <= known


def test_text_of_a_drawing_or_its_caption_is_no_markup(tmp_path: Path) -> None:
    text = "".join(figure_list({EVIL: drawing(tmp_path / "a.svg", f"--> {EVIL}")}, EVIL))
    assert "<script" not in text


def test_what_is_no_drawing_of_ours_is_not_taken(tmp_path: Path) -> None:
    (tmp_path / "a.svg").write_text("<svg>", encoding="utf-8")
    with pytest.raises(ValueError, match="not a drawing"):
        list(figure_list({"a": tmp_path / "a.svg"}, "See."))
