"""Epochs of training against a plain torch-geometric loop of the same model, and peak memory.

The loop is the one that one writes: a DataLoader, `to_dense_batch`, torch.optim.Adam. Both sides
take turns epoch by epoch, so that whatever disturbs the machine disturbs both. An epoch is one
pass over the graphs for training and one over those for validation.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from _measure import (
    DATA_VARIABLE,
    Claim,
    Timing,
    duration,
    mebibytes,
    parser,
    peak_memory,
    report,
    skip,
    table,
)

BATCH_SIZE = 32
LAYERS = 4
LR = 0.001
WARM_UP = 3
# Epochs each by data set: enough for a steady median, few enough to wait for.
EPOCHS = {"MUTAG": 60, "IMDB-BINARY": 20, "PROTEINS": 12}
TARGETS = {"MUTAG": 1.6, "IMDB-BINARY": 2.5, "PROTEINS": 3.0}
MEMORY = ("DD", "COLLAB")
MEMORY_TARGET = 3 * 2**30
TESTS = Path(__file__).parent.parent / "tests"  # the plain model is the tests' reference


def main() -> None:
    options = parser("Time training against a plain torch-geometric loop.", runs=1)
    options.add_argument("--threads", type=int, default=2, help="of torch, both sides (2)")
    options.add_argument("--memory-of", help="train one epoch of this data set, print the peak")
    given = options.parse_args()
    if given.memory_of:
        one_epoch(given.memory_of)
        return
    folder = os.environ.get(DATA_VARIABLE)
    here = {
        name: name == "MUTAG" or bool(folder and Path(folder, f"{name}.zip").is_file())
        for name in (*EPOCHS, *MEMORY)
    }
    # Memory first: a child process starts with the peak of its parent, which is small as yet.
    peaks = {name: memory(name) for name in MEMORY if here[name]}
    times = {
        name: compare(name, epochs * given.runs, given.threads)
        for name, epochs in EPOCHS.items()
        if here[name]
    }
    for name, present in here.items():
        if not present:
            skip(f"training on {name}", f"there is no {name}.zip at hand.", as_json=given.json)
    claims = [
        Claim(f"epochs a second on {name}", TARGETS[name], peer.median / ours.median)
        for name, (ours, peer) in times.items()
    ]
    claims += [
        Claim(f"3 GB over the peak memory of an epoch on {name}", 1, MEMORY_TARGET / peak)
        for name, (_, peak) in peaks.items()
    ]
    figures = {
        "batch_size": BATCH_SIZE,
        "layers": LAYERS,
        "threads": given.threads,
        "seconds_an_epoch": {
            name: {"ihgnn": ours.seconds, "torch-geometric": peer.seconds}
            for name, (ours, peer) in times.items()
        },
        "one_epoch": {
            name: {"seconds": seconds, "peak_bytes": peak}
            for name, (seconds, peak) in peaks.items()
        },
    }
    report("training", figures, as_text(times, peaks, given.threads), claims, as_json=given.json)


def compare(name: str, epochs: int, threads: int) -> tuple[Timing, Timing]:
    """Seconds an epoch, ours and the plain loop's, in turns."""
    import torch

    torch.set_num_threads(threads)
    torch.set_flush_denormal(True)  # as in `ihgnn train`; it serves both sides
    sides = prepared(name)
    seconds: list[list[float]] = [[] for _ in sides]
    for epoch in range(WARM_UP + epochs):
        for side, epoch_of in enumerate(sides):
            start = time.perf_counter()
            epoch_of()
            if epoch >= WARM_UP:
                seconds[side].append(time.perf_counter() - start)
    ours, peer = (Timing(tuple(each)) for each in seconds)
    return ours, peer


def prepared(name: str) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """One epoch of ours and of the plain loop, as functions, on the same graphs."""
    import torch

    from ihgnn_cli.data import load_dataset
    from ihgnn_cli.data.splits import protocol_folds
    from ihgnn_cli.models.settings import IHGNNSettings, Inputs

    dataset = load_dataset(name, offline=True)
    split = protocol_folds(dataset.graph_class, seed=0)[0]
    settings = IHGNNSettings(layers=LAYERS)
    classes = len(dataset.class_values)
    inputs = Inputs(len(dataset.label_values), 0, classes, dataset.max_nodes)
    torch.manual_seed(0)
    return ours(dataset, split, settings, inputs), plain(dataset, split, settings, inputs)


def ours(dataset: Any, split: Any, settings: Any, inputs: Any) -> Callable[[], Any]:
    import torch

    from ihgnn_cli.data.batches import GraphStore
    from ihgnn_cli.data.features import Features
    from ihgnn_cli.models.ihgnn import IHGNN
    from ihgnn_cli.training.seeds import generator
    from ihgnn_cli.training.stack import Member, Stack

    device = torch.device("cpu")
    store = GraphStore(dataset, Features.LABELS, inputs.max_nodes, settings.layers, device)
    stack = Stack(
        IHGNN(settings, inputs, [generator(0, "parameters")]),
        store,
        [Member(0, LR, split.train, split.validation)],
        batch_size=BATCH_SIZE,
        hidden=settings.hidden,
        dropout=settings.dropout,
    )
    return stack.train_epoch


def plain(dataset: Any, split: Any, settings: Any, inputs: Any) -> Callable[[], Any]:
    import torch
    from torch.nn.functional import cross_entropy
    from torch_geometric.loader import DataLoader

    from ihgnn_cli.data.features import node_features
    from ihgnn_cli.data.pyg import to_pyg

    sys.path.insert(0, str(TESTS))
    from plain_ihgnn import PlainIHGNN

    graphs = to_pyg(dataset)
    x = torch.tensor(node_features(dataset))
    for number, graph in enumerate(graphs):
        graph.x = x[dataset.node_ptr[number] : dataset.node_ptr[number + 1]].clone()
    model = PlainIHGNN(settings, inputs)
    optimizer = torch.optim.Adam(model.parameters(), lr=LR)
    train = DataLoader([graphs[i] for i in split.train], batch_size=BATCH_SIZE, shuffle=True)
    validation = DataLoader([graphs[i] for i in split.validation], batch_size=BATCH_SIZE)

    def epoch() -> None:
        model.train()
        for batch in train:
            optimizer.zero_grad()
            cross_entropy(model(batch), batch.y).backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            for batch in validation:
                logits = model(batch)
                cross_entropy(logits, batch.y).item()
                (logits.argmax(1) == batch.y).sum().item()

    return epoch


def memory(name: str) -> tuple[float, int]:
    """Seconds and peak memory of reading a data set and training one epoch, in its own process."""
    done = subprocess.run(
        [sys.executable, __file__, "--memory-of", name], check=True, capture_output=True, text=True
    )
    seconds, peak = done.stdout.split()
    return float(seconds), int(peak)


def one_epoch(name: str) -> None:
    """What `ihgnn train --epochs 1` does, without its folder."""
    from ihgnn_cli.data import load_dataset
    from ihgnn_cli.data.splits import protocol_folds
    from ihgnn_cli.models.settings import IHGNNSettings, Inputs

    dataset = load_dataset(name, offline=True)
    split = protocol_folds(dataset.graph_class, seed=0)[0]
    classes = len(dataset.class_values)
    inputs = Inputs(len(dataset.label_values), 0, classes, dataset.max_nodes)
    epoch = ours(dataset, split, IHGNNSettings(layers=LAYERS), inputs)
    start = time.perf_counter()
    epoch()
    print(time.perf_counter() - start, peak_memory())


def as_text(
    times: dict[str, tuple[Timing, Timing]], peaks: dict[str, tuple[float, int]], threads: int
) -> str:
    rows = [
        (name, *ours.cells(), *peer.cells(), f"{peer.median / ours.median:.2f}×")
        for name, (ours, peer) in times.items()
    ]
    memories = [
        (name, duration(seconds), mebibytes(peak)) for name, (seconds, peak) in peaks.items()
    ]
    head = ("an epoch", "ihgnn", "range", "torch-geometric", "range", "faster")
    return "\n".join(
        [
            f"K = {LAYERS}, batches of {BATCH_SIZE}, {threads} threads, medians, in turns.",
            "",
            table(head, rows),
            "",
            "One epoch in a process of its own (imports and reading included in the memory):",
            "",
            table(("", "epoch", "peak memory"), memories),
        ]
    )


if __name__ == "__main__":
    main()
