"""Speed and peak memory of `ihgnn predict` on a stream of graphs.

The benchmark exports a model trained on MUTAG for one epoch. It then sends MUTAG graphs repeatedly
through a pipe, first a short stream, then a long one.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from _measure import parser, positive, report, skip, table
from startup import find_command

FEW = 1000


def main() -> None:
    options = parser("Time ihgnn predict on a stream of graphs.", runs=1)
    options.add_argument(
        "--graphs", type=positive, default=100_000, help="graphs of the stream (%(default)s)"
    )
    given = options.parse_args()
    ihgnn = find_command()
    if ihgnn is None or not hasattr(os, "wait4"):
        reason = "the command ihgnn is not installed." if ihgnn is None else "no os.wait4 here."
        skip("predict", reason, as_json=given.json)
        return
    with tempfile.TemporaryDirectory() as folder:
        model, lines = prepare(ihgnn, Path(folder))
        found = {count: stream(ihgnn, model, lines, count) for count in (FEW, given.graphs)}
    rows = [
        (
            f"{count:,}",
            f"{each['seconds']:.1f} s",
            f"{each['processor_seconds']:.1f} s",
            f"{count / each['seconds']:,.0f}",
            f"{each['peak_bytes'] / 1e6:.0f} MB",
        )
        for count, each in found.items()
    ]
    text = "\n".join(
        [
            "Graphs of MUTAG through a pipe into 'ihgnn predict MODEL - --json', which is started",
            "for it; padded export, the defaults.",
            "",
            table(("graphs", "time", "processor time", "graphs a second", "peak memory"), rows),
        ]
    )
    report("predict", {str(count): each for count, each in found.items()}, text, as_json=given.json)


def prepare(ihgnn: str, folder: Path) -> tuple[Path, list[bytes]]:
    """An exported model and the lines of MUTAG; made in other processes to save memory."""
    done([ihgnn, "train", "--epochs", "1", "--quiet", "--out", folder / "run"])
    done([ihgnn, "export", folder / "run" / "ckpt.pt", folder / "model.onnx"])
    code = (
        "import sys; from pathlib import Path; from ihgnn_cli.data import load_dataset;"
        "from ihgnn_cli.data.jsonl import write_jsonl;"
        "write_jsonl(load_dataset('MUTAG'), Path(sys.argv[1]))"
    )
    done([sys.executable, "-c", code, folder / "mutag.jsonl"])
    return folder / "model.onnx", (folder / "mutag.jsonl").read_bytes().splitlines(keepends=True)


def done(command: list[str | Path]) -> None:
    """Run a command and discard its output."""
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def stream(ihgnn: str, model: Path, lines: list[bytes], count: int) -> dict[str, float]:
    """Wall time and processor time in seconds, and peak memory in bytes."""
    start = time.perf_counter()
    process = subprocess.Popen(
        [ihgnn, "predict", model, "-", "--json"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    if process.stdin is None:
        raise RuntimeError("there is no pipe")
    with process.stdin as pipe:
        whole, rest = divmod(count, len(lines))
        for part in [*[lines] * whole, lines[:rest]]:
            pipe.writelines(part)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"ihgnn predict ended with {process.returncode}")
    return {
        "seconds": time.perf_counter() - start,
        "processor_seconds": usage.ru_utime + usage.ru_stime,
        "peak_bytes": usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024),
    }


if __name__ == "__main__":
    main()
