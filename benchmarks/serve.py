"""Processor time of `ihgnn serve` per request, with and without batching, under concurrent load.

The benchmark exports a model trained on MUTAG for one epoch. It starts the service twice, with the
default batching and with a batch per request, and sends the same graphs of MUTAG to both in turn,
over persistent connections on loopback. Each answer is compared with the one that a request alone
gets: none may be lost or belong to another graph. Memory is read after each round.
"""

import asyncio
import json
import subprocess
import sys
import tempfile
import time
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path

from _measure import Claim, mebibytes, parser, positive, report, skip, table
from predict import prepare
from startup import find_command

BATCHED, SINGLE = "batches", "one request at a time"
OPTIONS = {BATCHED: [], SINGLE: ["--batch-size", "1", "--batch-wait", "0"]}
TOLERANCE = 1e-5


@dataclass
class Side:
    """A running service, and what was measured of it."""

    process: subprocess.Popen[str]
    port: int
    cpu: list[float] = field(default_factory=list)
    """Seconds of processor time per request, one entry per round."""
    rates: list[float] = field(default_factory=list)
    """Requests per second."""
    memory: list[float] = field(default_factory=list)
    """Resident bytes after each round."""
    wrong: int = 0

    def metric(self, name: str) -> float:
        """A value of /metrics."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics") as answer:
            lines = answer.read().decode().splitlines()
        return float(next(line for line in lines if line.startswith(f"{name} ")).split()[1])


def main() -> None:
    options = parser("Measure ihgnn serve with and without batching.", runs=5)
    options.add_argument(
        "--requests", type=positive, default=3_000, help="requests per round (%(default)s)"
    )
    options.add_argument(
        "--clients", type=positive, default=32, help="concurrent connections (%(default)s)"
    )
    given = options.parse_args()
    ihgnn = find_command()
    if ihgnn is None or not sys.platform.startswith("linux"):
        reason = "the command ihgnn is not installed." if ihgnn is None else "needs /proc."
        skip("serve", reason, as_json=given.json)
        return
    with tempfile.TemporaryDirectory() as folder:
        model, lines = prepare(ihgnn, Path(folder))
        graphs = [numbered(line, number) for number, line in enumerate(lines)]
        sides = {name: start(ihgnn, model, extra) for name, extra in OPTIONS.items()}
        try:
            measure(sides, graphs, given.requests, given.clients, given.runs)
        finally:
            for side in sides.values():
                side.process.terminate()
                side.process.wait()
    show(sides, given.requests, given.clients, as_json=given.json)


def numbered(line: bytes, number: int) -> bytes:
    """The bytes of a request for a graph whose id is its number."""
    body = json.dumps({**json.loads(line), "id": number}).encode()
    head = (
        "POST /predict HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def start(ihgnn: str, model: Path, extra: list[str]) -> Side:
    """A service on a free port, with one thread."""
    command = [ihgnn, "serve", str(model), "--port", "0", "--threads", "1", "--json", *extra]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    if process.stdout is None:
        raise RuntimeError("there is no pipe")
    told = ""
    while not told.endswith("}\n"):
        told += process.stdout.readline()
    return Side(process, int(json.loads(told)["url"].rpartition(":")[2]))


def measure(
    sides: dict[str, Side], graphs: list[bytes], requests: int, clients: int, runs: int
) -> None:
    """Rounds in turn, after one that is not counted."""
    for turn in range(runs + 1):
        for side in sides.values():
            alone = asyncio.run(load(side.port, graphs, len(graphs), 1))
            before, began = side.metric("process_cpu_seconds_total"), time.perf_counter()
            found = asyncio.run(load(side.port, graphs, requests, clients))
            seconds = time.perf_counter() - began
            spent = side.metric("process_cpu_seconds_total") - before
            expected = {answer["id"]: answer for answer in alone}
            side.wrong += requests - sum(is_right(expected, answer) for answer in found)
            if turn:
                side.cpu.append(spent / requests)
                side.rates.append(requests / seconds)
                side.memory.append(side.metric("process_resident_memory_bytes"))


async def load(port: int, graphs: list[bytes], requests: int, clients: int) -> list[dict]:
    """The answers to many requests; each says which graph was asked for."""
    numbers = iter(range(requests))
    answers: list[dict] = []

    async def client() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for number in numbers:
            graph = number % len(graphs)
            writer.write(graphs[graph])
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            length = int(head.partition(b"content-length:")[2].split()[0])
            answer = json.loads(await reader.readexactly(length))
            answers.append({**answer, "asked": graph})
        writer.close()

    await asyncio.gather(*(client() for _ in range(clients)))
    return answers


def is_right(expected: dict[int, dict], answer: dict) -> bool:
    """Whether the answer belongs to the graph that was asked for."""
    own = expected[answer["asked"]]
    return answer.get("id") == answer["asked"] and all(
        abs(p - answer["probabilities"][name]) < TOLERANCE
        for name, p in own["probabilities"].items()
    )


def show(sides: dict[str, Side], requests: int, clients: int, *, as_json: bool) -> None:
    """Report the ratios."""
    rows = []
    for name, side in sides.items():
        cpu, rate = median(side.cpu), median(side.rates)
        rows.append(
            (
                name,
                f"{1000 * cpu:.2f} ms ({1000 * min(side.cpu):.2f} – {1000 * max(side.cpu):.2f})",
                f"{rate:,.0f}",
                f"{mebibytes(side.memory[0])} → {mebibytes(side.memory[-1])}",
                str(side.wrong),
            )
        )
    heads = ("", "CPU per request", "requests/s", "memory, first and last round", "wrong")
    text = "\n".join(
        [
            f"{clients} clients, {requests:,} requests per round with one graph of MUTAG each,",
            "one thread for the model; medians over rounds in turn.",
            "",
            table(heads, rows),
        ]
    )
    batched, single = sides[BATCHED], sides[SINGLE]
    claims = [
        Claim("CPU per request, one at a time to batches", 2, ratio(single.cpu, batched.cpu)),
        Claim(
            "memory, last round to first",
            1.05,
            batched.memory[-1] / batched.memory[0],
            at_most=True,
        ),
        Claim("answers lost or mixed up", 0, batched.wrong + single.wrong, at_most=True),
    ]
    figures = {
        name: {
            "cpu_seconds_per_request": side.cpu,
            "requests_per_second": side.rates,
            "resident_bytes": side.memory,
            "wrong": side.wrong,
        }
        for name, side in sides.items()
    }
    report("serve", figures, text, claims, as_json=as_json)


def median(values: list[float]) -> float:
    return sorted(values)[len(values) // 2]


def ratio(above: list[float], below: list[float]) -> float:
    return median(above) / median(below)


if __name__ == "__main__":
    main()
