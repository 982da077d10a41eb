"""Predicting in Python: `load(path).predict(graphs)`.

Exported models need only NumPy and onnxruntime.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Literal, get_args, overload

from ihgnn_cli.data import jsonl, smiles
from ihgnn_cli.data.catalogue import catalogue
from ihgnn_cli.data.sources import is_own_name
from ihgnn_cli.deploy.onnx_model import SUFFIX, Answers, OnnxClassifier, load_onnx
from ihgnn_cli.errors import InputError, SettingError
from ihgnn_cli.inference.prediction import (
    BATCH_SIZE,
    Answer,
    Classifier,
    Errors,
    Prediction,
    collected,
    of_objects,
    predictions,
)
from ihgnn_cli.inference.vocabulary import UnknownLabels
from ihgnn_cli.models.archive import check_archive
from ihgnn_cli.models.card import ModelCard
from ihgnn_cli.training import folder
from ihgnn_cli.training.devices import check_device_name, resolve_device
from ihgnn_cli.words import counted

_GIVE_A_MODEL = f"Give a run folder, its ckpt.pt, or a {SUFFIX} file that 'ihgnn export' wrote."
_DATA = (jsonl.SUFFIX, smiles.SUFFIX, ".zip")


@dataclass(frozen=True, eq=False, repr=False)
class Predictor:
    """A loaded model."""

    classifier: Classifier

    def __repr__(self) -> str:
        card = self.card
        classes = ", ".join(map(str, card.class_values[:5]))
        more = ", ..." if len(card.class_values) > 5 else ""
        members = counted(self.classifier.members, "member")
        return (
            f"<Predictor: {card.dataset_name}, {members}, classes {classes}{more}, {self.runs_on}>"
        )

    @property
    def card(self) -> ModelCard:
        """The model's inputs and classes: `card.label_values`, `card.class_values`, ..."""
        return self.classifier.card

    @property
    def runs_on(self) -> str:
        """The onnxruntime provider or torch device that is really used."""
        return self.classifier.runs_on

    @overload
    def predict(
        self,
        graphs: Iterable[Any],
        *,
        allow_unknown: bool = False,
        errors: Literal["raise"] = "raise",
    ) -> list[Prediction]: ...

    @overload
    def predict(
        self, graphs: Iterable[Any], *, allow_unknown: bool = False, errors: Literal["return"]
    ) -> list[Answer]: ...

    def predict(
        self, graphs: Iterable[Any], *, allow_unknown: bool = False, errors: Errors = "raise"
    ) -> Sequence[Answer]:
        """Predict graphs given in the form of JSON lines (docs/data.md), in order.

            {"node_labels": ["C", "C", "O"], "edges": [[0, 1], [1, 2]]}

        Tuples and arrays work as well as lists. A class is not needed. networkx graphs (with the
        node attribute `label`) and torch-geometric `Data` are accepted too.

        Labels are values as in the training data (`card.label_values`), not positions. If the model
        does not know the labels of more than 1 in 10 nodes, an `UnknownLabelsWarning` is issued.

        Args:
            graphs: the graphs.
            allow_unknown: predict a graph even if more than 9 in 10 of its nodes are unknown.
            errors: "raise" refuses all graphs if one is wrong. "return" gives one answer per graph,
                a `Failure` for each that is wrong.

        Raises:
            DataError: a graph is malformed, or the model cannot read it or knows hardly any label.
        """
        return list(self.stream(graphs, allow_unknown=allow_unknown, errors=errors))

    def stream(
        self,
        graphs: Iterable[Any],
        batch_size: int = BATCH_SIZE,
        *,
        allow_unknown: bool = False,
        errors: Errors = "raise",
    ) -> Iterator[Any]:
        """Predict graphs one by one, with at most one batch of graphs in memory.

        Arguments and answers are as in `predict`; the warning comes at the end.

        Raises:
            InputError: the batch size is below 1.
            DataError: a graph is a failure; those before it were predicted.
        """
        if batch_size < 1:
            raise SettingError("batch_size", f"must be at least 1, not {batch_size}.")
        if errors not in get_args(Errors):
            raise SettingError("errors", f"must be 'raise' or 'return', not {errors!r}.")
        labels = UnknownLabels(self.card, allow_unknown)
        batches = collected(of_objects(graphs), self.card, batch_size, labels)
        return self._warned(
            chain.from_iterable(predictions(self.classifier, batches, errors)), labels
        )

    def run(self, inputs: Mapping[str, Any]) -> Answers:
        """The outputs of an exported model for its raw input arrays (docs/export.md).

        Raises:
            InputError: the arrays are wrong, or the model is not an exported one.
        """
        if not isinstance(self.classifier, OnnxClassifier):
            raise InputError("A checkpoint has no input arrays. Export it, or use 'predict'.")
        return self.classifier.run(inputs)

    @staticmethod
    def _warned(answers: Iterable[Answer], labels: UnknownLabels) -> Iterator[Answer]:
        yield from answers
        labels.warn()


def load(
    path: Path | str,
    device: str = "auto",
    providers: Sequence[str] | None = None,
    threads: int | None = None,
) -> Predictor:
    """Load a model from an exported .onnx file, or (with torch) from a checkpoint or run folder.

    Args:
        path: the file or folder.
        device: auto (a GPU if there is one), cpu, cuda or cuda:N.
        providers: for an exported model, onnxruntime providers to use instead of a device, the
            preferred one first.
        threads: for an exported model, the number of CPU threads; `None` leaves it to onnxruntime.

    Raises:
        InputError: the path has no model, the device or provider is not available, or there are too
            many threads.
    """
    path = Path(path)
    if path.suffix.lower() == SUFFIX:
        return Predictor(load_onnx(path, device, providers, threads))
    _refuse_other_things(path)
    if providers is not None:
        raise InputError(
            f"{path} is not a {SUFFIX} file, and only exported models use onnxruntime providers. "
            "Choose a device, or export it."
        )
    if threads is not None:
        raise InputError(
            f"{path} is not a {SUFFIX} file, and threads are set per exported model. Use "
            "torch.set_num_threads, or export it."
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
