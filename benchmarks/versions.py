"""The training loop of this checkout against that of another revision, in turns.

Both sides train the same number of models in a stack, on one thread, as a worker of `ihgnn
crossval` does, or a single model, as `ihgnn train` does. Each side is a process that runs
`_epochs.py` of its own checkout; the two take turns, epoch by epoch. Model-epochs are timed by
processor time, so that other work on the machine matters less. Peak memory is that of the whole
process, with imports and data. Launches are operations per training step with its share of the
validation; on a GPU, where small models wait for launches, they are the time.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from _measure import Claim, mebibytes, parser, report, skip, table
from _plain import BATCH_SIZE, LAYERS, at_hand

REVISION = "a813f91"
HERE = Path(__file__).parent
CHILD = "_epochs.py"
CHILD_OF_REVISION = "_epochs_a813f91.py"
"""For a checkout without a child of its own."""
SINGLE = ("MUTAG", "PROTEINS")
STACKS = {"MUTAG": 15, "BZR_MD": 15, "IMDB-BINARY": 15, "PROTEINS": 15, "COLLAB": 15, "DD": 2}
"""Models per stack: what `ihgnn crossval --stack auto` chose in the first of these revisions."""
EPOCHS = {"MUTAG": 10, "BZR_MD": 10, "IMDB-BINARY": 4, "PROTEINS": 2}
"""Epochs per run, so that short ones are timed more often; 1 for the others."""
SLOWER_STACK, SLOWER_DD, SLOWER_SINGLE = 1.2, 1.1, 1.3
MORE_MEMORY, MORE_LAUNCHES = 1.3, 1.1


@dataclass(frozen=True)
class Side:
    """What a checkout took."""

    seconds: tuple[float, ...]
    """Processor time per model-epoch."""
    memory: int
    """Peak of the process in bytes."""
    launches: float
    """Operations per training step."""
    reads: int
    """Values of tensors that an epoch read."""


def main() -> None:
    options = parser("Time training epochs against another revision of this repository.", runs=3)
    options.add_argument("--against", default=REVISION, help="a revision or folder (%(default)s)")
    options.add_argument(
        "--python", default=sys.executable, help="interpreter of the other checkout (this one)"
    )
    options.add_argument("--dataset", action="append", help="one data set (repeatable); all")
    options.add_argument("--models", type=int, help="models per stack (up to 15, 2 on DD)")
    given = options.parse_args()
    names = given.dataset or list(STACKS)
    work = [(name, given.models or STACKS.get(name, 15)) for name in names]
    work += [(name, 1) for name in names if name in SINGLE and given.models is None]
    rows, figures, claims = [], [], []
    with checkout(given.against) as other:
        for name, models in work:
            if not at_hand(name):
                skip(f"versions on {name}", f"there is no {name}.zip at hand.", as_json=given.json)
                continue
            try:
                before, now = compare(name, models, (other, given.python), given.runs)
            except RuntimeError as error:  # the others are worth having
                skip(f"versions on {name}", str(error), as_json=given.json)
                continue
            figures.append({"dataset": name, "models": models, **as_json(before, now)})
            rows.append(row(name, models, before, now))
            claims += claims_of(name, models, before, now)
    head = (
        "",
        "models",
        *("before", "now", "now/before"),
        *("memory", "now"),
        *("launches", "now"),
    )
    text = (
        f"Before: {given.against}. Processor time per model-epoch, K = {LAYERS}, batches of "
        f"{BATCH_SIZE}, one thread, medians of epochs in turns; peak memory of the process; "
        f"operations per training step.\n\n{table(head, rows)}"
    )
    document = {"against": given.against, "datasets": figures}
    report("versions", document, text, claims, as_json=given.json)


def as_json(before: Side, now: Side) -> dict[str, Any]:
    return {"before": vars(before), "now": vars(now)}


def row(name: str, models: int, before: Side, now: Side) -> tuple[str, ...]:
    times = [median(side.seconds) for side in (before, now)]
    return (
        name,
        str(models),
        *(f"{1e3 * each:.1f} ms" for each in times),
        f"{times[1] / times[0]:.2f}×",
        *(mebibytes(side.memory) for side in (before, now)),
        *(f"{side.launches:.0f}" for side in (before, now)),
    )


def claims_of(name: str, models: int, before: Side, now: Side) -> Iterator[Claim]:
    what = f"{name}, {'one model' if models == 1 else f'{models} models'}"
    slower = SLOWER_SINGLE if models == 1 else SLOWER_DD if name == "DD" else SLOWER_STACK
    ratio = median(now.seconds) / median(before.seconds)
    yield Claim(f"time per model-epoch on {what}", slower, ratio, at_most=True)
    share = now.memory / before.memory
    yield Claim(f"peak memory on {what}", MORE_MEMORY, share, at_most=True)
    launches = now.launches / before.launches
    yield Claim(f"launches per step on {what}", MORE_LAUNCHES, launches, at_most=True)


@contextmanager
def checkout(of: str) -> Iterator[Path]:
    """A folder with another revision: the folder itself, or a temporary work tree."""
    if Path(of, "ihgnn_cli").is_dir():
        yield Path(of).resolve()
        return
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder, "other")
        git = ["git", "-C", str(HERE.parent), "worktree"]
        subprocess.run([*git, "add", "--detach", "--quiet", str(place), of], check=True)
        try:
            yield place
        finally:
            subprocess.run([*git, "remove", "--force", str(place)], check=True)


def compare(name: str, models: int, other: tuple[Path, str], runs: int) -> tuple[Side, Side]:
    """Epochs of the other and of this checkout in turns, after one each that does not count."""
    with ExitStack() as opened:
        sides = [
            opened.enter_context(child(place, python, name, models))
            for place, python in (other, (HERE.parent, sys.executable))
        ]
        epochs: list[list[dict[str, Any]]] = [[] for _ in sides]
        for _ in range(1 + runs * EPOCHS.get(name, 1)):
            for side, found in zip(sides, epochs, strict=True):
                found.append(answer(side, "epoch"))
        launches = [answer(side, "launches") for side in sides]
    before, now = (
        Side(tuple(each["seconds"] for each in found[1:]), found[-1]["memory"], **counted)
        for found, counted in zip(epochs, launches, strict=True)
    )
    return before, now


@contextmanager
def child(place: Path, python: str, name: str, models: int) -> Iterator[Any]:
    """A process that trains with the package of a checkout, by its own child script."""
    own = place / "benchmarks" / CHILD
    script = own if own.is_file() else HERE / CHILD_OF_REVISION
    # The frozen child finds `_plain.py` in its checkout, and the rest beside itself.
    paths = os.pathsep.join(map(str, (place, place / "benchmarks", HERE)))
    environment = {**os.environ, "PYTHONPATH": paths, "PYTHONSAFEPATH": "1", "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(
        [python, script, name, str(models)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    ) as process:
        package = Path(read(process)["package"])
        if package != place / "ihgnn_cli":
            raise RuntimeError(f"{script} of {place} trains with {package}.")
        yield process


def answer(process: Any, request: str) -> dict[str, Any]:
    """What a child says to a request."""
    process.stdin.write(f"{request}\n")
    process.stdin.flush()
    return read(process)


def read(process: Any) -> dict[str, Any]:
    """The next line of a child."""
    line = process.stdout.readline()
    if not line:
        raise RuntimeError(f"a side ended with exit code {process.wait()}.")
    found: dict[str, Any] = json.loads(line)
    return found


if __name__ == "__main__":
    main()
