"""Predicting in Python: `load(path).predict(graphs)`.

Exported models need only NumPy and onnxruntime.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from ihgnn_cli.data.readers import jsonl, smiles
from ihgnn_cli.data.sources import is_own_name
from ihgnn_cli.data.sources.catalogue import catalogue
from ihgnn_cli.deploy.onnx_model import SUFFIX, load_onnx
from ihgnn_cli.deploy.stream import BATCH_SIZE, collected, of_objects
from ihgnn_cli.errors import InputError, SettingError
from ihgnn_cli.inference.prediction import Classifier, Prediction, predictions
from ihgnn_cli.inference.vocabulary import UnknownLabels
from ihgnn_cli.models.archive import check_archive
from ihgnn_cli.models.card import ModelCard
from ihgnn_cli.training import folder
from ihgnn_cli.training.devices import check_device_name, resolve_device

_GIVE_A_MODEL = f"Give a run folder, its ckpt.pt, or a {SUFFIX} file that 'ihgnn export' wrote."
_DATA = (jsonl.SUFFIX, smiles.SUFFIX, ".zip")


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

    def predict(self, graphs: Iterable[Any], *, allow_unknown: bool = False) -> list[Prediction]:
        """Predict graphs given in the form of JSON lines (docs/data.md), in order.

            {"node_labels": ["C", "C", "O"], "edges": [[0, 1], [1, 2]]}

        Tuples and arrays work as well as lists. A class is not needed. networkx graphs (with the
        node attribute `label`) and torch-geometric `Data` are accepted too.

        Labels are values as in the training data (`card.label_values`), not positions. If the model
        does not know the labels of more than 1 in 10 nodes, an `UnknownLabelsWarning` is issued.

        Args:
            graphs: the graphs.
            allow_unknown: predict even if more than 9 in 10 nodes are unknown.

        Raises:
            DataError: a graph is malformed, or the model cannot read it.
            InputError: the labels of more than 9 in 10 nodes are unknown.
        """
        labels = UnknownLabels(self.card, allow_unknown, enough=math.inf)
        found = list(self._answers(graphs, BATCH_SIZE, labels))
        labels.warn()
        return found

    def stream(
        self,
        graphs: Iterable[Any],
        batch_size: int = BATCH_SIZE,
        *,
        allow_unknown: bool = False,
    ) -> Iterator[Prediction]:
        """Predict graphs one by one, with at most one batch of graphs in memory.

        Unknown labels are counted over all graphs so far, and checked before each batch once there
        were 256 graphs, and before the last one; the warning comes at the end.

        Raises:
            InputError: the batch size is below 1, or the labels of more than 9 in 10 nodes so far
                are unknown, unless `allow_unknown`.
            DataError: a graph is malformed; those before it were predicted.
        """
        if batch_size < 1:
            raise SettingError("batch_size", f"must be at least 1, not {batch_size}.")
        return self._watched(graphs, batch_size, UnknownLabels(self.card, allow_unknown))

    def _watched(
        self, graphs: Iterable[Any], batch_size: int, labels: UnknownLabels
    ) -> Iterator[Prediction]:
        yield from self._answers(graphs, batch_size, labels)
        labels.warn()

    def _answers(
        self, graphs: Iterable[Any], batch_size: int, labels: UnknownLabels
    ) -> Iterator[Prediction]:
        batches = collected(of_objects(graphs), self.card, batch_size, None, labels)
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
    _refuse_other_things(path)
    if providers is not None:
        raise InputError(
            f"{path} is not a {SUFFIX} file, and only exported models use onnxruntime providers. "
            "Choose a device, or export it."
        )
    # Refuse what is not there before torch is imported.
    best = folder.best_of(path)
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


def _refuse_other_things(path: Path) -> None:
    """Refuse a path that does not exist, or that is a data set."""
    name = str(path)
    if path.suffix.lower() in _DATA or is_own_name(name) or name in catalogue():
        if not folder.is_model(path):
            raise InputError(f"{path} is a data set, not a model. {_GIVE_A_MODEL}")
    elif not path.exists():
        raise InputError(f"{path} does not exist. {_GIVE_A_MODEL}")
