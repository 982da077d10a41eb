"""The command as a whole: help, version, completion, failures, terminals and pipes."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from refusals import assert_refused

from ihgnn_cli import __version__
from ihgnn_cli.versions import code_sha256

ESCAPE = "\x1b["


def test_version(ihgnn) -> None:
    assert ihgnn("--version").stdout == f"ihgnn {__version__}\n"


def python(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    """Run Python where the source tree is not in sight: the installed package is meant."""
    return subprocess.run(
        [sys.executable, *args],
        cwd=folder,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=True,
    )


def test_the_module_runs_as_the_command_does(tmp_path: Path) -> None:
    result = python(tmp_path, "-m", "ihgnn_cli", "--version")
    assert result.stdout == f"ihgnn {__version__}\n"


def test_help_imports_nothing_heavy(tmp_path: Path) -> None:
    code = (
        "import sys; from ihgnn_cli.cli.app import app; app(['--help'], standalone_mode=False);"
        "heavy = {'torch', 'torch_geometric', 'onnxruntime', 'numpy', 'matplotlib', 'optuna'};"
        "print('heavy:', sorted(heavy & set(sys.modules)))"
    )
    result = python(tmp_path, "-c", code)
    assert result.stdout.endswith("heavy: []\n")


def test_the_shell_completes_data_set_names(ihgnn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_IHGNN_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "ihgnn homophily IMDB")
    monkeypatch.setenv("COMP_CWORD", "2")
    assert set(ihgnn().stdout.split()) == {"IMDB-BINARY", "IMDB-MULTI"}


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["nonsense"], "nonsense"),
        (["homophily"], "argument"),
        (["homophily", "MUTAG", "--frobnicate"], "--frobnicate"),
        (["homophily", "MUTAG", "--measure", "luck"], "adjusted"),
        (["homophily", "MUTAGG"], "MUTAG"),
        (["homophily", "./nowhere"], "./nowhere"),
        (["homophily", "MUTAG", "--plot", "figure.gif"], ".svg"),
        (["homophily", "."], "TU"),
        (["homophily", "pipe.jsonl"], "pipe.jsonl"),
    ],
)
def test_mistakes_end_in_two_lines_and_code_2(
    ihgnn, tmp_path: Path, args: list[str], said: str
) -> None:
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe.jsonl")
    assert_refused(ihgnn(*args), 2, said)


def test_a_path_that_cannot_be_written_is_a_failure(ihgnn, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert_refused(ihgnn("homophily", "MUTAG", "--csv", "file/x.csv"), 1, "x.csv")
    assert_refused(ihgnn("homophily", "MUTAG", "--plot", "file/x.png"), 1, "x.png")
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


def test_offline_says_where_the_file_belongs(ihgnn) -> None:
    said = ("--offline", "NCI1.zip", os.environ["IHGNN_DATA"], "IHGNN_DATA", "--data-root")
    assert_refused(ihgnn("homophily", "NCI1", "--offline"), 1, *said)


def test_a_reader_that_leaves_early_is_no_error(command: str) -> None:
    if os.name == "nt":
        pytest.skip("no SIGPIPE on Windows")
    result = subprocess.run(
        f"'{command}' homophily MUTAG --json | true",
        shell=True,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (result.stdout, result.stderr) == ("", "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full on this system")
def test_a_full_disk_is_told_in_a_line(command: str) -> None:
    with Path("/dev/full").open("w") as full:
        result = subprocess.run(
            [command, "homophily", "MUTAG"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert result.returncode == 1
    assert "No space left" in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_a_cache_that_cannot_be_written_is_noted(
    ihgnn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("IHGNN_CACHE", str(tmp_path / "file" / "cache"))
    result = ihgnn("homophily", "MUTAG")
    assert result.returncode == 0
    assert "Note: " in result.stderr
    assert "cache" in result.stderr


@pytest.mark.parametrize(
    "args",
    [["datasets", "--all"], ["homophily", "MUTAG", "--compare-paper", "-m", "node", "-m", "edge"]],
)
def test_a_terminal_of_80_columns_gets_colours_and_whole_tables(
    in_terminal, args: list[str]
) -> None:
    shown = in_terminal(*args)
    assert ESCAPE in shown
    assert "…" not in shown


def test_a_terminal_without_unicode_gets_plain_bars(
    ihgnn_process, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    result = ihgnn_process("homophily", "MUTAG")
    assert result.returncode == 0
    assert "####" in result.stdout


def test_env_is_a_block_for_a_bug_report(ihgnn) -> None:
    import json

    shown = ihgnn("env")
    assert shown.returncode == 0
    assert shown.stderr == ""
    for name in ("ihgnn", "python", "torch", "onnx", "CPUExecutionProvider", "data root", "cache"):
        assert re.search(rf"^{re.escape(name)} ", shown.stdout, re.MULTILINE)
    found = json.loads(ihgnn("env", "--json").stdout)
    assert found["ihgnn"] == __version__
    assert found["code_sha256"] == code_sha256()
    assert found["onnx_providers"]["CPUExecutionProvider"] is True
    assert found["data_root"] == os.environ["IHGNN_DATA"]
    assert {"torch", "torch-geometric", "onnx"} <= set(found["packages"])


def test_numbers_stay_whole_in_a_pipe_and_without_colours(ihgnn, monkeypatch) -> None:
    for columns in ("40", "80"):
        monkeypatch.setenv("COLUMNS", columns)
        result = ihgnn("homophily", "MUTAG", "--compare-paper")
        assert ESCAPE not in result.stdout
        assert result.stderr == ""
        for number in ("188", "17.93", "0.647 ± 0.145", "0.26", "0.51", "0.69", "0.88", "81%"):
            assert number in result.stdout


@pytest.mark.skipif(os.name == "nt", reason="descriptors are closed this way on Unix")
@pytest.mark.parametrize("closed", [">&-", "2>&-"])
def test_a_closed_stream_is_no_mistake(command: str, closed: str) -> None:
    result = subprocess.run(
        f"'{command}' homophily MUTAG {closed}",
        shell=True,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0
    assert "Traceback" not in result.stdout + result.stderr
