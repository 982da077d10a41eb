"""Exported models in onnxruntime against torch, batch by batch, one thread each.

Torch runs a straightforward model for padded graphs (`_padded_plain.py`), and also the module that
the padded export is made from, in which everything fixed after training is precomputed. Graphs are
padded to m for these two and for the padded export; the sparse export takes nodes and edges. All
sides get prepared inputs and take turns on the same batches. The weights are untrained, which costs
the same.
"""

import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from _measure import Claim, Timing, parser, report, skip, table
from _plain import LAYERS, at_hand, load_task

BATCHES = (1, 32, 256)
# Number of different batches by size, and rounds over them: enough for a stable median.
DRAWN = {1: 24, 32: 6, 256: 3}
ROUNDS = {"MUTAG": 30, "IMDB-BINARY": 8, "PROTEINS": 4}
WARM_UP = 1
TORCH, FOLDED, PADDED, SPARSE = "torch", "torch, exported module", "ONNX, padded", "ONNX, sparse"
TARGETS: Mapping[str, Mapping[str, tuple[float, ...]]] = {
    "MUTAG": {PADDED: (2.5, 1.2, 1.2), SPARSE: (4, 2, 1.8)},
    "IMDB-BINARY": {SPARSE: (2.5, 4, 4)},
    "PROTEINS": {SPARSE: (2.5, 10, 10)},
}

Times = dict[int, dict[str, Timing]]
"""By batch size and side."""


def main() -> None:
    options = parser("Time exported models against torch.", runs=1)
    given = options.parse_args()
    times: dict[str, Times] = {}
    for name, rounds in ROUNDS.items():
        if at_hand(name):
            times[name] = compare(name, rounds * given.runs)
        else:
            skip(f"export of {name}", f"there is no {name}.zip at hand.", as_json=given.json)
    figures = {
        "layers": LAYERS,
        "threads": 1,
        "seconds_a_batch": {
            name: {
                size: {side: each.seconds for side, each in of.items()}
                for size, of in sizes.items()
            }
            for name, sizes in times.items()
        },
    }
    report("export", figures, as_text(times), claims(times), as_json=given.json)


def claims(times: Mapping[str, Times]) -> list[Claim]:
    """The speedups over torch that have a target."""
    return [
        Claim(
            f"{side} on {name}, batches of {size}",
            target,
            times[name][size][TORCH].median / times[name][size][side].median,
        )
        for name, sides in TARGETS.items()
        if name in times
        for side, targets in sides.items()
        for size, target in zip(BATCHES, targets, strict=True)
    ]


def compare(name: str, rounds: int) -> Times:
    """Seconds per batch; the sides take turns."""
    with tempfile.TemporaryDirectory() as folder:
        sides = prepare(name, Path(folder))
    found: Times = {}
    for size in BATCHES:
        seconds: dict[str, list[float]] = {side: [] for side in sides(1, 0)}
        for turn in range(WARM_UP + rounds):
            for number in range(DRAWN[size]):
                for side, run in sides(size, number).items():
                    start = time.perf_counter()
                    run()
                    if turn >= WARM_UP:
                        seconds[side].append(time.perf_counter() - start)
        found[size] = {side: Timing(tuple(each)) for side, each in seconds.items()}
    return found


def prepare(name: str, folder: Path) -> Callable[[int, int], dict[str, Callable[[], Any]]]:
    """Export an untrained model; returns a function from batch size and number to the sides."""
    from functools import cache

    import numpy as np
    import torch
    from _padded_plain import PaddedPlain

    from ihgnn_cli.data.features import Features
    from ihgnn_cli.deploy.export import export_onnx
    from ihgnn_cli.deploy.inputs import padded_inputs, sparse_inputs
    from ihgnn_cli.deploy.modules import MODULES
    from ihgnn_cli.deploy.onnx_model import load_onnx
    from ihgnn_cli.deploy.verification import reference_of
    from ihgnn_cli.models.card import describe
    from ihgnn_cli.models.spec import Layout
    from ihgnn_cli.models.stacked import readable_weights
    from ihgnn_cli.training.checkpoint import Checkpoint, build
    from ihgnn_cli.training.config import RunConfig

    torch.set_num_threads(1)
    task = load_task(name)
    dataset, settings = task.dataset, task.settings
    card = describe(name, dataset, Features.LABELS, task.splits[0])
    config = RunConfig(model=settings)
    stack = build(config, card.inputs, [0])
    checkpoint = Checkpoint(config, card, stack.state_dict(), 1, None)
    reference = reference_of(checkpoint)
    inputs, folded = card.inputs, MODULES[Layout.PADDED](reference.members)
    plain = PaddedPlain(inputs.features, inputs.classes, inputs.max_nodes, **vars(settings)).eval()
    plain.load_state_dict(readable_weights(stack.state_dict(), 0))
    exported = {}
    for layout in Layout:
        path = export_onnx(reference, folder / f"{layout}.onnx", layout).path
        exported[layout] = load_onnx(path, "cpu", threads=1).session

    @cache
    def sides(size: int, number: int) -> dict[str, Callable[[], Any]]:
        drawn = np.random.default_rng([size, number])
        graphs = drawn.choice(len(dataset), size, replace=size > len(dataset))
        padded = padded_inputs(card, dataset, graphs, card.max_nodes)
        sparse = sparse_inputs(card, dataset, graphs)
        tensors = {key: torch.from_numpy(value) for key, value in padded.items()}

        @torch.no_grad()
        def eager(model: torch.nn.Module) -> Any:
            return model(**tensors)

        return {
            TORCH: lambda: eager(plain),
            FOLDED: lambda: eager(folded),
            PADDED: lambda: exported[Layout.PADDED].run(None, padded),
            SPARSE: lambda: exported[Layout.SPARSE].run(None, sparse),
        }

    return sides


def as_text(times: Mapping[str, Times]) -> str:
    rows = []
    for name, sizes in times.items():
        for size, sides in sizes.items():
            torch = sides[TORCH].median
            cells = [f"{torch * 1e3:.3g} ms"]
            for side in (FOLDED, PADDED, SPARSE):
                median = sides[side].median
                cells += [f"{median * 1e3:.3g} ms", f"{torch / median:.2f}×"]
            rows.append((f"{name}, {size}", *cells))
    head = ("a batch of", TORCH, FOLDED, "faster", PADDED, "faster", SPARSE, "faster")
    return "\n".join([f"K = {LAYERS}, one thread, medians, in turns.", "", table(head, rows)])


if __name__ == "__main__":
    main()
