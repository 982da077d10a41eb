"""Progress where nothing can be redrawn."""

import io

from rich.console import Console

from ihgnn_cli.display import ProgressDisplay, in_steps, work


def plain() -> tuple[io.StringIO, Console]:
    out = io.StringIO()
    return out, Console(file=out, width=100)


def test_reading_a_large_file_is_announced_and_a_small_one_is_not() -> None:
    out, console = plain()
    for name, size in (("small", 1_000), ("large", 50_000_000), ("unknown", None)):
        with ProgressDisplay(console).task(f"Reading {name}", size) as advance:
            advance(1)
    with ProgressDisplay(console, shown=False).task("Reading quietly", 50_000_000) as advance:
        advance(1)
    assert out.getvalue() == "Reading large\n"


def test_work_is_reported_once_per_tenth_and_not_if_quiet() -> None:
    out, console = plain()
    with work(console, "epochs") as update:
        for epoch in range(1, 351):
            update(epoch, 350, "fine")
    lines = out.getvalue().splitlines()
    assert len(lines) == 11
    assert lines[-1] == "350 of 350 epochs: fine"
    with work(console, "epochs", quiet=True) as update:
        update(1, 1, "not shown")
    assert len(out.getvalue().splitlines()) == 11


def test_no_work_at_all_is_reported_too() -> None:
    out, console = plain()
    with work(console, "epochs") as update:
        update(0, 0, "nothing")
    assert out.getvalue() == "0 of 0 epochs: nothing\n"


def test_each_step_has_a_bar_of_its_own() -> None:
    out, console = plain()
    with in_steps(lambda units: work(console, units)) as tell:
        for step, total in (("fits", 2), ("shuffles", 3)):
            for done in range(total + 1):
                tell(step, done, total, "fine")
    lines = out.getvalue().splitlines()
    assert lines[0] == "0 of 2 fits: fine"
    assert lines[2:4] == ["2 of 2 fits: fine", "0 of 3 shuffles: fine"]
    assert lines[-1] == "3 of 3 shuffles: fine"
