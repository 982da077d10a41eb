"""The model that the benchmarks train, in a plain torch-geometric loop and as an ihgnn stack.

The loop is the usual one: a DataLoader, `to_dense_batch`, torch.optim.Adam. On both sides an epoch
is one pass over a fold's training graphs and one over its validation graphs.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from _measure import DATA_VARIABLE

if TYPE_CHECKING:  # heavy; the scripts must stay small until they train
    from ihgnn_cli.data.dataset import GraphDataset
    from ihgnn_cli.data.splits import Split
    from ihgnn_cli.models.settings import IHGNNSettings, Inputs
    from ihgnn_cli.training.stack import Stack

BATCH_SIZE = 32
LAYERS = 4
LR = 0.001


@dataclass(frozen=True)
class Task:
    """A data set, the folds of the protocol, and the model for them."""

    dataset: "GraphDataset"
    splits: "Sequence[Split]"
    settings: "IHGNNSettings"
    inputs: "Inputs"


def at_hand(name: str) -> bool:
    """Whether a data set can be read without a download."""
    folder = os.environ.get(DATA_VARIABLE)
    return name == "MUTAG" or bool(folder and Path(folder, f"{name}.zip").is_file())


def load_task(name: str) -> Task:
    """The task on a local data set."""
    from ihgnn_cli.data import load_dataset

    return task_on(load_dataset(name, offline=True))


def task_on(dataset: "GraphDataset") -> Task:
    """The task on these graphs."""
    from ihgnn_cli.data.splits import draw_folds
    from ihgnn_cli.models.settings import IHGNNSettings, Inputs

    classes = len(dataset.class_values)
    return Task(
        dataset,
        [fold.splits[0] for fold in draw_folds(dataset.graph_class, seed=0)],
        IHGNNSettings(layers=LAYERS),
        Inputs(len(dataset.label_values), 0, classes, dataset.max_nodes),
    )


def stack(task: Task, members: int = 1) -> "Stack":
    """A stack of this many models, assigned to the folds in turn."""
    import torch

    from ihgnn_cli.data.batching.batches import GraphStore
    from ihgnn_cli.data.features import Features
    from ihgnn_cli.models.stacked import StackedIHGNN
    from ihgnn_cli.training.seeds import generator
    from ihgnn_cli.training.stack import Member, Stack

    settings, inputs = task.settings, task.inputs
    device = torch.device("cpu")
    splits = [task.splits[seed % len(task.splits)] for seed in range(members)]
    return Stack(
        StackedIHGNN(settings, inputs, [generator(seed, "parameters") for seed in range(members)]),
        GraphStore(task.dataset, Features.LABELS, inputs.max_nodes, settings.layers, device),
        [Member(seed, LR, split.train, split.validation) for seed, split in enumerate(splits)],
        batch_size=BATCH_SIZE,
        dropout=settings.dropout,
    )


def late(trained: "Stack") -> "Stack":
    """The stack as if it had taken 300 steps: from then on Adam leaves out ranks."""
    state: Any = trained.state()
    state["optimizer"]["steps"] = [300] * len(trained.members)
    trained.restore(state)
    return trained


def plain(
    task: Task, fold: int = 0, *, lr: float = LR, batch_size: int = BATCH_SIZE
) -> Callable[[], Any]:
    """A function that runs an epoch of the plain loop on a fold and returns validation hits."""
    import torch
    from torch.nn.functional import cross_entropy
    from torch_geometric.loader import DataLoader

    from ihgnn_cli.data.features import node_features
    from ihgnn_cli.data.pyg import to_pyg
    from ihgnn_cli.models.ihgnn import IHGNN

    dataset, split = task.dataset, task.splits[fold]
    graphs = to_pyg(dataset)
    x = torch.tensor(node_features(dataset))
    for number, graph in enumerate(graphs):
        graph.x = x[dataset.node_ptr[number] : dataset.node_ptr[number + 1]].clone()
    torch.manual_seed(fold)
    inputs = task.inputs
    model = IHGNN(inputs.features, inputs.classes, inputs.max_nodes, **vars(task.settings))
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    train = DataLoader([graphs[i] for i in split.train], batch_size=batch_size, shuffle=True)
    validation = DataLoader([graphs[i] for i in split.validation], batch_size=batch_size)

    def epoch() -> int:
        hits = 0
        model.train()
        for batch in train:
            optimizer.zero_grad()
            logits = model(batch.x, batch.edge_index, batch.batch)
            cross_entropy(logits, batch.y).backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            for batch in validation:
                logits = model(batch.x, batch.edge_index, batch.batch)
                cross_entropy(logits, batch.y).item()
                hits += int((logits.argmax(1) == batch.y).sum().item())
        return hits

    return epoch
