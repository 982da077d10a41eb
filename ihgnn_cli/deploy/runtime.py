"""Predicting in Python: `load(path).predict(graphs)`.

Exported models need only NumPy and onnxruntime.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from ihgnn_cli.deploy.onnx_model import SUFFIX, load_onnx
from ihgnn_cli.deploy.stream import BATCH_SIZE, collected, of_objects
from ihgnn_cli.errors import InputError
from ihgnn_cli.inference.prediction import Classifier, Prediction, predictions
from ihgnn_cli.models.archive import check_archive
from ihgnn_cli.models.card import ModelCard
from ihgnn_cli.training import folder
from ihgnn_cli.training.devices import check_device_name, resolve_device


@dataclass(frozen=True, eq=False)
class Predictor:
    """A loaded model."""

    classifier: Classifier

    @property
    def card(self) -> ModelCard:
        """The model's inputs and classes: `card.label_values`, `card.class_values`, ..."""
        return self.classifier.card

    @property
    def runs_on(self) -> str:
        """The onnxruntime provider or torch device that is really used."""
        return self.classifier.runs_on

    def predict(self, graphs: Iterable[Any]) -> list[Prediction]:
        """Predict graphs given in the form of JSON lines (docs/data.md), in order.

            {"node_labels": ["C", "C", "O"], "edges": [[0, 1], [1, 2]]}

        Tuples and arrays work as well as lists. A class is not needed. networkx graphs (with the
        node attribute `label`) and torch-geometric `Data` are accepted too.

        Raises:
            DataError: a graph is malformed, or the model cannot read it.
        """
        return list(self.stream(graphs))

    def stream(self, graphs: Iterable[Any], batch_size: int = BATCH_SIZE) -> Iterator[Prediction]:
        """Predict graphs one by one, with at most one batch of graphs in memory.

        Raises:
            InputError: the batch size is below 1.
            DataError: a graph is malformed; those before it were predicted.
        """
        if batch_size < 1:
            raise InputError(f"The batch size must be at least 1, not {batch_size}.")
        batches = collected(of_objects(graphs), self.card, batch_size, report=None)
        return chain.from_iterable(predictions(self.classifier, batches, report=None))


def load(
    path: Path | str, device: str = "auto", providers: Sequence[str] | None = None
) -> Predictor:
    """Load a model from an exported .onnx file, or (with torch) from a checkpoint or run folder.

    Args:
        path: the file or folder.
        device: auto (a GPU if there is one), cpu, cuda or cuda:N.
        providers: for an exported model, onnxruntime providers to use instead of a device, the
            preferred one first.

    Raises:
        InputError: the path has no model, or the device or provider is not available.
    """
    path = Path(path)
    if path.suffix.lower() == SUFFIX:
        return Predictor(load_onnx(path, device, providers))
    if providers is not None:
        raise InputError(
            f"{path} is not a {SUFFIX} file, and only exported models use onnxruntime providers. "
            "Choose a device, or export it."
        )
    # Refuse what is not there before torch is imported.
    best = folder.best_of(path)
    if best.is_dir():
        raise InputError(
            f"{path} is a folder without {folder.BEST}. Give a run folder, its {folder.BEST}, or "
            f"an exported {SUFFIX} file."
        )
    check_archive(best)
    check_device_name(device)
    try:
        from ihgnn_cli.training.classifier import load_torch
    except ModuleNotFoundError as error:
        raise InputError(
            f"{path} is not a {SUFFIX} file, and a checkpoint needs {error.name}, which is not "
            "installed. Install it, or export the checkpoint on a machine that has it."
        ) from error
    return Predictor(load_torch(best, resolve_device(device)))
