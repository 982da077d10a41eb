"""Evaluates a stored model on its own data or on other data."""

from collections.abc import Sequence
from pathlib import Path

from ihgnn_cli.api.messages import in_python
from ihgnn_cli.api.settings import Graphs, access, dataset_of
from ihgnn_cli.data.access import DEFAULT, Access
from ihgnn_cli.data.dataset import GraphDataset
from ihgnn_cli.data.sources import Source, locate, read, refuse_overwriting
from ihgnn_cli.deploy.predictor import load
from ihgnn_cli.display import Display
from ihgnn_cli.errors import IhgnnError, InputError, retold
from ihgnn_cli.inference import evaluation
from ihgnn_cli.inference.conformal import calibrated, refuse_uncalibrated
from ihgnn_cli.inference.kinds import Part
from ihgnn_cli.inference.prediction import Classifier
from ihgnn_cli.inference.vocabulary import with_model_edges
from ihgnn_cli.models.card import ModelCard
from ihgnn_cli.models.conformal import Conformal, check_alpha
from ihgnn_cli.training import folder as folders
from ihgnn_cli.training.unfinished import TUNE


@in_python
def evaluate(
    model: Path | str,
    dataset: Graphs | None = None,
    part: Part | str | None = None,
    *,
    allow_unknown: bool = False,
    conformal: float | None = None,
    device: str = "auto",
    data_root: Path | str | None = None,
    offline: bool = False,
    progress: bool | None = None,
) -> evaluation.Evaluation:
    """Evaluate a model on its test graphs, on another part of its data, or on other data.

    Args:
        model: the folder of a run or a search, its checkpoint (ckpt.pt), or an exported .onnx.
        dataset: as in `load_dataset`; by default the model's own.
        part: `"test"` (the default for the model's own data), `"validation"`, `"train"` or
            `"all"` (the default for other data, and for a model that was trained on all graphs).
        allow_unknown: evaluate even if the model does not know the labels of more than 9 in 10
            nodes; above 1 in 10 an `UnknownLabelsWarning` is issued.
        conformal: calibrate prediction sets on the model's validation graphs, and measure how often
            they contain the true class; about this share, such as 0.1, misses it on average.
        device: auto, cpu, cuda or cuda:N.
        data_root: folder that holds NAME.zip or NAME/ and receives downloads.
        offline: never download.
        progress: show a bar while data is read; by default in terminals and notebooks only.

    Raises:
        InputError: the model or the data cannot be read, or the data does not fit the model.
    """
    if conformal is not None:
        check_alpha(conformal)
    path = folders.best_of(Path(model))
    classifier = load(path, device).classifier
    where = access(data_root, offline, Display(progress))
    if dataset is not None and not isinstance(dataset, str | Path):
        graphs = dataset_of(dataset)
    else:
        given = None if dataset is None else str(dataset)
        _, graphs = data_for(path, classifier.card, given, where)
    thresholds = None
    if conformal is not None:
        thresholds = calibrate_model(path, classifier, conformal, graphs, where)
    found = evaluation.evaluate(
        classifier, graphs, part, allow_unknown=allow_unknown, conformal=thresholds
    )
    found.labels.warn()
    return found


def data_for(
    model: Path,
    card: ModelCard,
    given: str | None,
    where: Access = DEFAULT,
    *,
    outputs: Sequence[Path] = (),
) -> tuple[Source, GraphDataset]:
    """The data set `given` by name or path, or by default the model's own.

    Raises:
        InputError: the data is not available, has changed since training, or contains one of
            `outputs`.
    """
    name = given or card.dataset
    if not name:
        raise InputError(
            f"{model} was trained on a file ({card.dataset_name}) and does not store its path. "
            "Give it with --dataset."
        )
    try:
        source = locate(name, where)
    except IhgnnError as error:
        if given is not None:
            raise
        raise retold(
            error, f"Cannot find the model's data: {error}\nOr name it with --dataset."
        ) from error
    refuse_overwriting(outputs, [source])
    graphs = with_model_edges(card, read(source, where.progress))
    if given is None and graphs.fingerprint != card.fingerprint:
        raise InputError(
            f"{name} has changed since the model was trained. Restore the original data, or "
            f"evaluate on the new data: --dataset {name}"
        )
    return source, graphs


def also_chosen(card: ModelCard, model: Path) -> str:
    """What the model's validation graphs have chosen, so that they are not new to it.

    "", "the epoch", "the settings" of a search, or both. A checkpoint outside the folder of its
    search is like any other.
    """
    searched = (model.absolute().parent.parent / TUNE).is_file()
    chosen = card.snapshot is not None and card.snapshot.chosen
    return " and ".join(["the settings"] * searched + ["the epoch"] * chosen)


def calibrate_model(
    model: Path,
    classifier: Classifier,
    alpha: float,
    graphs: GraphDataset | None = None,
    where: Access = DEFAULT,
) -> Conformal:
    """The thresholds of prediction sets, from the validation graphs of the model's own data.

    `graphs` is used if it is that data, which is read otherwise.

    Raises:
        InputError: alpha is not valid, the model has no validation graphs, or its data is not
            available.
    """
    card = classifier.card
    check_alpha(alpha)
    refuse_uncalibrated(card)
    if graphs is not None:
        graphs = with_model_edges(card, graphs)
    if graphs is None or graphs.fingerprint != card.fingerprint:
        try:
            _, graphs = data_for(model, card, None, where)
        except IhgnnError as error:
            raise retold(
                error,
                f"Prediction sets are calibrated on the data of the model ({card.dataset_name}), "
                f"which is not available. {str(error).splitlines()[0]}",
            ) from error
    return calibrated(classifier, graphs, alpha)
