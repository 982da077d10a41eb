"""A trained model in a few lines: `load(path).predict(graphs)`.

With an exported model NumPy and onnxruntime are all that is needed.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ihgnn_cli.deploy.onnx_model import SUFFIX, load_onnx
from ihgnn_cli.deploy.stream import BATCH_SIZE, collected, of_objects
from ihgnn_cli.errors import InputError
from ihgnn_cli.models.card import ModelCard
from ihgnn_cli.training.prediction import Prediction, predictions

if TYPE_CHECKING:
    from ihgnn_cli.training.classifier import Classifier


@dataclass(frozen=True, eq=False)
class Predictor:
    """A model that is ready to answer."""

    classifier: "Classifier"

    @property
    def card(self) -> ModelCard:
        """What the model takes and answers: `card.label_values`, `card.class_values`, ..."""
        return self.classifier.card

    @property
    def runs_on(self) -> str:
        """The provider of onnxruntime or the device of torch, as it really is."""
        return self.classifier.runs_on

    def predict(self, graphs: Iterable[Any]) -> list[Prediction]:
        """The answers for graphs in the form of JSON lines (docs/data.md), in their order.

            {"node_labels": ["C", "C", "O"], "edges": [[0, 1], [1, 2]]}

        Tuples and arrays do as well as lists, and a class is not needed. Graphs of networkx (with
        the node attribute `label`) and torch-geometric's `Data` are accepted as well.

        Raises:
            DataError: a graph is not in this form or does not fit the model; says which and why.
        """
        return list(self.stream(graphs))

    def stream(self, graphs: Iterable[Any], batch_size: int = BATCH_SIZE) -> Iterator[Prediction]:
        """The same one after the other, with no more than a batch of graphs in memory.

        Raises:
            InputError: a batch of so many graphs cannot be.
            DataError: a graph is bad; those before it were answered for.
        """
        if batch_size < 1:
            raise InputError(f"A batch of {batch_size} graphs cannot be. Use 1 or more.")
        batches = collected(of_objects(graphs), self.card, batch_size, report=None)
        return chain.from_iterable(predictions(self.classifier, batches, report=None))


def load(
    path: Path | str, device: str = "auto", providers: Sequence[str] | None = None
) -> Predictor:
    """A model from an exported .onnx file, or from a checkpoint or run folder, which needs torch.

    Args:
        path: the file or folder.
        device: auto (a GPU where there is one), cpu, cuda or cuda:N.
        providers: of an exported model: those of onnxruntime by name instead of a device, the
            best first.

    Raises:
        InputError: there is no model in it, or the device or provider is not to be had.
    """
    path = Path(path)
    if path.suffix.lower() == SUFFIX:
        return Predictor(load_onnx(path, device, providers))
    if providers is not None:
        raise InputError(
            f"{path} is no {SUFFIX} file, and only exported models run on providers of "
            "onnxruntime. Choose a device, or export it."
        )
    try:
        from ihgnn_cli.training import folder
        from ihgnn_cli.training.classifier import load_torch
        from ihgnn_cli.training.devices import resolve_device
    except ModuleNotFoundError as error:
        raise InputError(
            f"{path} is no {SUFFIX} file, and a checkpoint needs {error.name}, which is not "
            "installed. Install it, or export the checkpoint where it is."
        ) from error
    best = folder.best_of(path)
    if best.is_dir():
        raise InputError(
            f"{path} is a folder without {folder.BEST}. Give a run folder, its {folder.BEST}, or "
            f"an exported {SUFFIX} file."
        )
    return Predictor(load_torch(best, resolve_device(device)))
