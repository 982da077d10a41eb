"""How the command refuses."""

import subprocess


def assert_refused(result: subprocess.CompletedProcess[str], code: int, *said: str) -> None:
    """One or two lines that say what was wrong, the exit code, and nothing on standard output."""
    assert result.returncode == code, result.stderr
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    assert result.stderr.startswith("Error: ")
    assert len(result.stderr.strip().splitlines()) <= 2
    for each in said:
        assert each in result.stderr
