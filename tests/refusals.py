"""How the command refuses."""

import subprocess


def assert_refused(result: subprocess.CompletedProcess[str], code: int, *said: str) -> None:
    """One or two lines that say what was wrong, the exit code, and nothing on standard output.

    Lines about what was read before may come first.
    """
    assert result.returncode == code, result.stderr
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    lines = result.stderr.strip().splitlines()
    while lines and (lines[0].endswith(" ...") or lines[0].startswith("Note: ")):
        del lines[0]
    assert lines
    assert lines[0].startswith("Error: ")
    assert len(lines) <= 2
    for each in said:
        assert each in result.stderr
