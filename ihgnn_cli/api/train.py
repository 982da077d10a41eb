"""Training in a run folder, from the configuration to the curves."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ihgnn_cli.api.messages import in_python
from ihgnn_cli.api.settings import Graphs, access, configured, dataset_of
from ihgnn_cli.data.dataset import GraphDataset
from ihgnn_cli.deploy.predictor import Predictor, load
from ihgnn_cli.display import Display
from ihgnn_cli.errors import IhgnnError, InputError
from ihgnn_cli.inference import evaluation
from ihgnn_cli.inference.kinds import Part
from ihgnn_cli.inference.metrics import Metrics
from ihgnn_cli.inference.prediction import Prediction
from ihgnn_cli.report.training import draw_curves
from ihgnn_cli.training import folder as folders
from ihgnn_cli.training import run
from ihgnn_cli.training.config import RunConfig
from ihgnn_cli.training.epoch import Epoch
from ihgnn_cli.training.final import asks_for_final, final_config

if TYPE_CHECKING:
    from ihgnn_cli.deploy.export import Export

Showing = Callable[[run.Prepared, Path], AbstractContextManager[run.Watch]]
"""Opens the display of a training in its folder; yields what is called after each epoch."""


@dataclass(frozen=True, eq=False)
class Run:
    """A finished training."""

    folder: Path
    config: RunConfig = field(repr=False)
    """Every setting, including defaults."""
    best: Epoch
    """The epoch that was chosen on validation; the last one of a final training."""
    test: Metrics | None
    """Metrics of that epoch's model on the test graphs: `test.accuracy`, `test.roc_auc`, ...;
    `None` for a final training, which leaves no graphs to test."""
    history: tuple[Epoch, ...] = field(repr=False)
    result: dict[str, Any] = field(repr=False)
    """The content of `result.json` in the folder: all of this and its provenance."""
    dataset: GraphDataset = field(repr=False)

    @property
    def best_epoch(self) -> int:
        """The number of the chosen epoch, counted from 1."""
        return self.best.epoch

    @property
    def checkpoint(self) -> Path:
        """Path of the chosen model's checkpoint."""
        return self.folder / folders.BEST

    def load(self, device: str = "auto") -> Predictor:
        """The chosen model, ready to predict."""
        return load(self.checkpoint, device)

    def predict(
        self, graphs: Iterable[Any], device: str = "auto", *, allow_unknown: bool = False
    ) -> list[Prediction]:
        """Predict graphs with the chosen model; see `Predictor.predict`."""
        return self.load(device).predict(graphs, allow_unknown=allow_unknown)

    @in_python
    def evaluate(
        self,
        dataset: Graphs | None = None,
        part: Part | str | None = None,
        *,
        allow_unknown: bool = False,
        device: str = "auto",
    ) -> evaluation.Evaluation:
        """Evaluate the model on its test graphs, on another part of its data, or on other data.

        Raises:
            InputError: the part does not exist, the data does not fit the model, or the labels of
                more than 9 in 10 nodes are unknown to it (unless `allow_unknown`).
        """
        graphs = self.dataset if dataset is None else dataset_of(dataset)
        found = evaluation.evaluate(
            self.load(device).classifier, graphs, part, allow_unknown=allow_unknown
        )
        found.labels.warn()
        return found

    def export(self, path: Path | str | None = None, **form: Any) -> "Export":
        """Write the model as ONNX and compare it with the checkpoint; see `export`."""
        from ihgnn_cli.api.export import export

        compared = {"dataset": self.dataset} if form.get("verify", True) else {}
        return export(self.checkpoint, path, **{**compared, **form})


@in_python
def train(
    dataset: Graphs = "MUTAG",
    *,
    final: bool = False,
    out: Path | str | None = None,
    model: str | None = None,
    recipe: str | None = None,
    config: RunConfig | Path | str | None = None,
    data_root: Path | str | None = None,
    offline: bool = False,
    progress: bool | None = None,
    **settings: Any,
) -> Run:
    """Train a model, choose the epoch on validation, and test once at the end.

    Args:
        dataset: as in `load_dataset`.
        final: train on all graphs, for a model to use: nothing is left to choose the epoch or to
            measure an accuracy. The number of epochs is `epochs` or that of `config`; with a
            file of a run or search, its best epoch.
        out: the run folder, which must be new or empty. By default `runs/NAME-1`, `-2`, ... in
            the working directory, as with `ihgnn train`.
        model: `"ihgnn"` (the default) or another model listed by `ihgnn models`.
        recipe: `"paper"` (the defaults), `"authors"` or `"robust"` (an ensemble).
        config: a TOML file or the `config` of another run, for settings not given here.
        data_root: folder that holds NAME.zip or NAME/ and receives downloads.
        offline: never download.
        progress: show a bar; by default in terminals and notebooks only.
        settings: named as in `config.toml`: `lr`, `batch_size`, `epochs`, `patience`, `seed`,
            `device`, `split`, `features`, `layers`, `width`, `hidden`, `dropout`, `variant`, ...

    Raises:
        InputError: a setting, the data or the folder is not valid.
        IhgnnError: the training failed.
    """
    final = asks_for_final(settings, final=final)
    chosen = configured(settings, model=model, recipe=recipe, config=config, call=train)
    if final:
        given = config.training.epochs if isinstance(config, RunConfig) else None
        file = Path(config) if isinstance(config, str | Path) else None
        chosen = final_config(chosen, epochs=settings.get("epochs") or given, file=file)
    display = Display(progress)
    graphs = dataset_of(dataset, access(data_root, offline, display))

    @contextmanager
    def showing(prepared: run.Prepared, _folder: Path) -> Iterator[run.Watch]:
        training = prepared.config.training
        with display.work("epochs") as update:
            yield lambda epoch, best: update(
                epoch.epoch, training.epochs, epoch_line(epoch, best, training.ensemble)
            )

    return carry_out(chosen, graphs, showing, out=None if out is None else Path(out))


def carry_out(
    config: RunConfig,
    dataset: GraphDataset,
    showing: Showing,
    *,
    out: Path | None = None,
    resume: Path | None = None,
    command: str = "",
) -> Run:
    """Train to the end, test once and draw the curves.

    A new folder is removed if the training fails before it begins.

    Args:
        config: the configuration, or that of the run to continue.
        dataset: the graphs.
        showing: shows the progress.
        out: the folder of a new run; by default `runs/NAME-1`, `-2`, ...
        resume: the folder of a run to continue.
        command: the command line to record.

    Raises:
        InputError: the data or the folder is not valid.
        IhgnnError: the training failed.
    """
    if out is not None:
        if out == Path():
            raise InputError("--out needs the name of a folder.")
        folders.refuse_used(out)
    prepared = run.prepare(config, folder=resume, dataset=dataset)
    asked = prepared.config  # a split from a file is given by the file's name
    folder = resume or out
    if folder is None:
        name = folders.run_name(prepared.dataset.name, asked)
        prepared, folder = run.start_numbered(prepared, folders.RUNS, name)
    elif resume is None:
        prepared = run.start(prepared, folder)
    try:
        with showing(prepared, folder) as watch:
            outcome = run.fit(prepared, folder, watch, command=command)
    except IhgnnError:
        if resume is None:
            folders.discard_unbegun(folder)
        raise
    draw(folder, outcome.result)
    return Run(
        folder,
        asked,
        outcome.best,
        outcome.test,
        outcome.history,
        outcome.result,
        prepared.dataset,
    )


def draw(folder: Path, result: Mapping[str, Any]) -> None:
    """Draw the curves of a finished run."""
    title = f"{result['dataset']}, seed {result['seeds'][0]}"
    history = folders.read_metrics(folder)
    averaged = result["test"] is None or result["snapshots"]  # no epoch was chosen
    best = None if averaged else result["best_epoch"]
    draw_curves(history, title, best, folder / folders.CURVES)


def epoch_line(epoch: Epoch, best: Epoch | None, models: int = 1) -> str:
    """One line about an epoch and the best epoch so far, if there are validation graphs.

    Of several models it has the means, each at its own best epoch.
    """
    line = f"train loss {epoch.train_loss:.4f} acc {epoch.train_accuracy:.3f}"
    if math.isnan(epoch.validation_loss):
        return line
    line += f"  val loss {epoch.validation_loss:.4f} acc {epoch.validation_accuracy:.3f}"
    if best is None:
        return line
    if models > 1:
        return f"{line}  mean of {models} best epochs {best.validation_accuracy:.3f}"
    return f"{line}  best {best.epoch} ({best.validation_accuracy:.3f})"
