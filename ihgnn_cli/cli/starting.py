"""The start of commands that need torch: read and refuse first, because torch is slow to import."""

import errno
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ihgnn_cli.cli import console
from ihgnn_cli.errors import InputError
from ihgnn_cli.files import cannot_write
from ihgnn_cli.training.devices import check_device_name
from ihgnn_cli.training.folder import SPLITS
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
    progress = console.ProgressDisplay()
    _, data = load_data(config, data_root=data_root, offline=offline, progress=progress)
    if not quiet:
        if config.data.background_edge_label:
            label, edges = config.data.background_edge_label, counted(data.num_edges, "edge")
            console.note(f"Left out edges with the label {label}: {edges} remain.")
        if data.edge_bins is not None:
            console.note(data.edge_bins.sentence(config.data.edge_bins))
        console.note(
            f"Read {data.name}: {counted(len(data), 'graph')}, {counted(data.num_nodes, 'node')}, "
            f"{counted(len(data.label_values), 'node label')}, {len(data.class_values):,} classes. "
            "Starting PyTorch ..."
        )
    return data


def refuse_unusable(out: Path | None, job: str) -> None:
    """Check that the folder of a resumable job, marked by the file `job`, can be made or opened.

    The job itself checks the rest of the folder's content.

    Raises:
        IhgnnError: it cannot be written, or holds something else.
    """
    if out is None:
        return
    try:
        if out.is_dir():
            # Another process may be making the job: files of one begin with the splits.
            files = [each.name for each in out.iterdir() if each.is_file()]
            others = [name for name in files if name != SPLITS and not name.startswith(".")]
            if others and not (out / job).is_file():
                raise InputError(f"{out} is not empty and holds no {job}. Choose another --out.")
        elif out.exists():
            raise InputError(f"{out} is not a folder. Choose another --out.")
        there = next(each for each in (out.absolute(), *out.absolute().parents) if each.exists())
    except OSError as error:
        raise cannot_write(out, error) from error
    for wrong, number in (
        (not there.is_dir(), errno.ENOTDIR),
        (not os.access(there, os.W_OK), errno.EACCES),
    ):
        if wrong:
            raise cannot_write(out, OSError(number, os.strerror(number)))


def say_loading(model: Path) -> None:
    """Say that a checkpoint is being loaded, if torch, which is slow to import, has to start."""
    if model.suffix.lower() != ".onnx" and model.exists() and "torch" not in sys.modules:
        console.note(f"Loading {model} with PyTorch ...")
