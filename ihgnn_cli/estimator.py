"""IHGNN with scikit-learn's interface: `fit(graphs, y)`, `predict`, `predict_proba`, `score`."""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ihgnn_cli.api.messages import in_python
from ihgnn_cli.api.settings import configured
from ihgnn_cli.data.objects import from_graphs
from ihgnn_cli.deploy.predictor import Predictor
from ihgnn_cli.errors import InputError
from ihgnn_cli.training.classifier import TorchClassifier
from ihgnn_cli.training.devices import resolve_device
from ihgnn_cli.training.in_memory import fit_in_memory

if TYPE_CHECKING:
    from ihgnn_cli.deploy.export import Export

AUTO = "auto"


@dataclass(kw_only=True, eq=False, repr=False)
class IHGNNClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """IHGNN as a scikit-learn classifier of graphs.

    Graphs are torch-geometric `Data` (one-hot or integer `x` as node labels; `y` is not read),
    networkx graphs (node attribute `label`) or dicts as in JSON lines, all of the same kind. If
    graphs have no node labels, node degrees are used as labels. A label that did not occur in
    `fit` is a zero vector in `predict`, with a warning if more than 1 in 10 nodes have one and an
    error if more than 9 in 10 have.

    By default, it trains on all graphs for `epochs` epochs and keeps the last one. If
    `validation_fraction` is above 0, that share of the graphs, stratified by class, is held out to
    choose the best epoch.

    Args:
        layers: K, the number of layers on top of the input layer.
        width: width of the layers.
        hidden: hidden width of the classifier.
        dropout: dropout rate in the classifier.
        variant: `"full"`, or an ablation: `"no-integration"`, `"no-separation"`,
            `"no-adaptive"`, `"no-concat"`.
        lr: Adam's learning rate.
        batch_size: graphs per step.
        weight_decay: Adam's weight decay.
        epochs: maximum number of epochs.
        patience: stop after this many epochs without improvement; 0 never stops early.
        validation_fraction: share of the graphs held out to choose the epoch.
        label_smoothing: share of each graph's target that the training loss spreads over all
            classes.
        equal_batches: batches of equal size, without a small last one.
        ensemble: number of models, with different seeds, whose predictions are averaged.
        snapshots: average this many epochs, evenly spaced, instead of keeping one.
        inputs: node inputs to compute from the graph: `"degree"`, `"homophily"`, `"triangles"`,
            `"random-walk"`, or several separated by commas.
        edge_labels: whether to tell edges apart by label.
        background_edge_label: edges with this label are left out.
        edge_bins: number of bins of the edge attribute to tell edges apart by; 0: none.
        features: node features that the model reads: `"labels"`, `"attributes"`, `"both"` or
            `"auto"` (labels if there are any, otherwise attributes).
        device: auto, cpu, cuda or cuda:N.
        random_state: seed of weights, order, dropout and validation part: a number, a NumPy
            `RandomState`, or `None` for a different seed each time.

    Attributes:
        classes_: the classes, sorted.
        history_: losses and accuracies of each epoch.
        n_iter_: number of epochs run.
        best_epoch_: epoch of the model in use, counted from 1.
        checkpoint_: the trained model.
    """

    layers: int = 3
    width: int = 32
    hidden: int = 128
    dropout: float = 0.5
    variant: str = "full"
    lr: float = 0.001
    batch_size: int = 32
    weight_decay: float = 0.0
    epochs: int = 350
    patience: int = 0
    validation_fraction: float = 0.0
    label_smoothing: float = 0.0
    equal_batches: bool = False
    ensemble: int = 1
    snapshots: int = 0
    inputs: str = ""
    edge_labels: bool = False
    background_edge_label: str = ""
    edge_bins: int = 0
    features: str = AUTO
    device: str = AUTO
    random_state: int | np.random.RandomState | None = 0

    @in_python
    def fit(self, graphs: Iterable[Any], y: Sequence[Hashable]) -> "IHGNNClassifier":
        """Train on graphs and their classes, one per graph, of any sortable type.

        Raises:
            InputError: a setting, a graph or a class is not valid; the message says which.
            IhgnnError: the training diverged.
        """
        values, given = _encoded(y)
        dataset = from_graphs(graphs, given)
        settings = {
            name: value
            for name, value in self.get_params().items()
            if name not in ("validation_fraction", "random_state")
        }
        settings["seed"] = _seed(self.random_state)
        config = configured(settings)
        fitted = fit_in_memory(config, dataset, self.validation_fraction)
        self.classes_ = values
        self.checkpoint_ = fitted.checkpoint
        self.history_ = fitted.history
        self.n_iter_ = len(fitted.history)
        self.best_epoch_ = self.n_iter_
        if fitted.checkpoint.epoch is not None:
            self.best_epoch_ = fitted.checkpoint.epoch.epoch
        return self

    def predict(self, graphs: Iterable[Any], *, allow_unknown: bool = False) -> NDArray[Any]:
        """[G] the most probable class of each graph; the arguments are those of `predict_proba`.

        Raises:
            InputError: a graph does not fit the model; the message says which and why.
        """
        probabilities = self.predict_proba(graphs, allow_unknown=allow_unknown)
        found: NDArray[Any] = self.classes_[probabilities.argmax(axis=1)]
        return found

    @in_python
    def predict_proba(
        self, graphs: Iterable[Any], *, allow_unknown: bool = False
    ) -> NDArray[np.float64]:
        """[G, C] the probability of each class, in the order of `classes_`.

        Args:
            graphs: the graphs.
            allow_unknown: predict even if the labels of more than 9 in 10 nodes did not occur in
                `fit`.

        Raises:
            InputError: a graph does not fit the model; the message says which and why.
        """
        check_is_fitted(self)
        device = resolve_device(self.device)
        predictor = Predictor(TorchClassifier(self.checkpoint_, device))
        answers = predictor.predict(graphs, allow_unknown=allow_unknown)
        rows = [list(each.probabilities.values()) for each in answers]
        return np.array(rows, dtype=np.float64).reshape(len(rows), len(self.classes_))

    @in_python
    def export(self, path: Path | str, *, force: bool = False) -> "Export":
        """Write the model as an ONNX file that `ihgnn_cli.load` reads.

        The training graphs are not kept, so the file is checked to be valid but not compared with
        the model. Unless classes are all integers or all strings, the file gives their positions
        in `classes_`.

        Args:
            path: of the .onnx file; its metadata goes to a .json file beside it.
            force: replace files that exist.

        Raises:
            InputError: the path does not end in .onnx, or the file exists.
        """
        from ihgnn_cli.deploy.export import export_onnx
        from ihgnn_cli.deploy.onnx_model import check_target
        from ihgnn_cli.deploy.verification import reference_of

        check_is_fitted(self)
        check_target(Path(path), force=force)
        return export_onnx(reference_of(self.checkpoint_), Path(path))


def _encoded(y: Sequence[Hashable]) -> tuple[NDArray[Any], list[Any]]:
    """The sorted classes, and each graph's class, or its position if it cannot be stored."""
    given: list[Any] = [_plain(each) for each in y]
    if any(each != each for each in given if isinstance(each, float)):  # noqa: PLR0124
        raise InputError("y holds NaN. Give every graph a class.")
    try:
        distinct = sorted(set(given))
    except TypeError as error:
        raise InputError(f"y cannot be sorted: {error}. Use classes of one type.") from error
    classes = np.array(distinct)
    if classes.ndim != 1:  # tuples and the like
        classes = np.empty(len(distinct), dtype=object)
        classes[:] = distinct
    if {type(each) for each in distinct} in ({int}, {str}):
        return classes, given
    place = {value: position for position, value in enumerate(distinct)}
    return classes, [place[value] for value in given]


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _seed(random_state: int | np.random.RandomState | None) -> int:
    if isinstance(random_state, int | np.integer):
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31 - 1))
