"""The start of commands that need torch: read and refuse first, because torch is slow to import."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ihgnn_cli.cli import console
from ihgnn_cli.models.node_inputs import degree_adds_nothing
from ihgnn_cli.training.devices import check_device_name
from ihgnn_cli.training.loading import load_data
from ihgnn_cli.words import counted

if TYPE_CHECKING:
    from ihgnn_cli.data.dataset import GraphDataset
    from ihgnn_cli.training.config import RunConfig


def read_data(
    config: "RunConfig", *, data_root: Path | None, offline: bool, quiet: bool
) -> "GraphDataset":
    """Read the data set of a training and report its size; torch is imported after this.

    Raises:
        InputError: the data or the name of the device is not valid.
    """
    check_device_name(config.training.device)
    config, data = load_data(config, console.access(data_root, offline))
    if not quiet:
        if config.data.background_edge_label:
            label, edges = config.data.background_edge_label, counted(data.num_edges, "edge")
            console.note(f"Left out edges with the label {label}: {edges} remain.")
        if degree_adds_nothing(config.data.inputs, data.label_source, config.data.features):
            console.note(
                f"Degrees are the node labels of {data.name}, so the input 'degree' adds nothing."
            )
        if data.edge_bins is not None:
            console.note(data.edge_bins.sentence(config.data.edge_bins))
        console.note(
            f"Read {data.name}: {counted(len(data), 'graph')}, {counted(data.num_nodes, 'node')}, "
            f"{counted(len(data.label_values), 'node label')}, {len(data.class_values):,} classes. "
            "Starting PyTorch ..."
        )
    return data


def say_loading(model: Path) -> None:
    """Say that a checkpoint is being loaded, if torch, which is slow to import, has to start."""
    if model.suffix.lower() != ".onnx" and model.exists() and "torch" not in sys.modules:
        console.note(f"Loading {model} with PyTorch ...")
