"""Figures are written in the format of their name, and whole or not at all."""

import subprocess
import sys
from pathlib import Path

import pytest

from ihgnn_cli.errors import IhgnnError, InputError
from ihgnn_cli.report.figures import check_figure_path, literal, new_figure, save_figure, shortened


@pytest.mark.parametrize(
    ("name", "start"),
    [("a.png", b"\x89PNG"), ("a.svg", b"<?xml"), ("a.pdf", b"%PDF"), ("new/a.PNG", b"\x89PNG")],
)
def test_a_figure_is_written_in_the_format_of_its_name(
    tmp_path: Path, name: str, start: bytes
) -> None:
    figure = new_figure((2, 1))
    figure.subplots().plot([0, 1])
    save_figure(figure, tmp_path / name)
    assert (tmp_path / name).read_bytes().startswith(start)
    assert [file.name for file in (tmp_path / name).parent.iterdir()] == [Path(name).name]


@pytest.mark.parametrize("name", ["a.txt", "a", "png"])
def test_other_names_are_refused(tmp_path: Path, name: str) -> None:
    for act in (check_figure_path, lambda path: save_figure(new_figure((2, 1)), path)):
        with pytest.raises(InputError, match=r"Cannot draw to .* Use a name in \.png, \.svg"):
            act(tmp_path / name)
    assert not any(tmp_path.iterdir())


def test_a_figure_that_cannot_be_drawn_leaves_the_old_file(tmp_path: Path) -> None:
    target = tmp_path / "a.png"
    target.write_bytes(b"old")
    figure = new_figure((2, 1))
    figure.suptitle(r"$\unknown$")
    with pytest.raises(ValueError, match="unknown"):
        save_figure(figure, target)
    assert target.read_bytes() == b"old"
    assert [file.name for file in tmp_path.iterdir()] == ["a.png"]


def test_a_place_that_cannot_be_written_is_said_before_and_after_drawing(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for act in (check_figure_path, lambda path: save_figure(new_figure((2, 1)), path)):
        with pytest.raises(IhgnnError, match="Cannot write"):
            act(tmp_path / "file" / "a.png")


@pytest.mark.parametrize("text", [r"costs $\frac$ or $x_", "图 $", "long " * 40 + r"$\frac$"])
def test_any_text_can_be_drawn_literally(tmp_path: Path, text: str) -> None:
    figure = new_figure((2, 1))
    figure.subplots().set_title(literal(text), wrap=True)
    save_figure(figure, tmp_path / "a.png")


def test_long_text_keeps_its_beginning_and_its_end() -> None:
    assert shortened("begin" + "-" * 50 + "end", 16) == "begin---…----end"
    assert shortened("no-concat", 16) == "no-concat"


def test_matplotlib_waits_until_there_is_something_to_draw() -> None:
    script = (
        "import sys\n"
        "import ihgnn_cli.report.crossval, ihgnn_cli.report.evaluation\n"
        "import ihgnn_cli.report.homophily, ihgnn_cli.report.training\n"
        "import ihgnn_cli.report.comparison_figure, ihgnn_cli.report.curves\n"
        "import ihgnn_cli.report.reproduction_page\n"
        "assert not {'torch', 'matplotlib'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
