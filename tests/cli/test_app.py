"""What happens to failures that nobody foresaw."""

import pytest

from ihgnn_cli.cli import app as module


def fail_with(error: BaseException):
    def app(**_: object) -> None:
        raise error

    return app


def test_a_mistake_of_ours_asks_for_a_report(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(module, "app", fail_with(ZeroDivisionError("division by zero")))
    assert module._run() == 1
    said = capsys.readouterr().err
    assert "division by zero" in said
    assert "ihgnn env" in said
    assert "Traceback" not in said


def test_debugging_shows_the_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IHGNN_DEBUG", "1")
    monkeypatch.setattr(module, "app", fail_with(ZeroDivisionError()))
    with pytest.raises(ZeroDivisionError):
        module._run()


@pytest.mark.parametrize(
    ("stop", "code", "told"),
    [
        (KeyboardInterrupt(), 130, "Error: Interrupted.\n"),
        (SystemExit(143), 143, "Error: Interrupted.\n"),
        (SystemExit(), 0, ""),
        (SystemExit(2), 2, ""),
        (SystemExit("No."), 1, "Error: No.\n"),
    ],
)
def test_what_stops_a_command_gives_its_exit_code(
    stop: BaseException,
    code: int,
    told: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(module, "app", fail_with(stop))
    assert module._run() == code
    assert capsys.readouterr().err == told
