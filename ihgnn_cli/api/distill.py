"""Distills an ensemble: trains one model on its probabilities."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from ihgnn_cli.api.messages import in_python
from ihgnn_cli.api.settings import Graphs, access, dataset_of
from ihgnn_cli.api.train import Begun, Run, begin, finished_run
from ihgnn_cli.data.access import DEFAULT, Access
from ihgnn_cli.data.dataset import GraphDataset
from ihgnn_cli.display import Display
from ihgnn_cli.training.checkpoint import load_checkpoint
from ihgnn_cli.training.config import RunConfig
from ihgnn_cli.training.devices import AUTO
from ihgnn_cli.training.folder import checkpoint_of
from ihgnn_cli.training.kinds import ClassWeights
from ihgnn_cli.training.teacher import refuse_single


@in_python
def distill(
    checkpoint: Path | str,
    *,
    label_share: float = 0.0,
    epochs: int | None = None,
    seed: int | None = None,
    device: str | None = None,
    out: Path | str | None = None,
    dataset: Graphs | None = None,
    data_root: Path | str | None = None,
    offline: bool = False,
    progress: bool | None = None,
) -> Run:
    """Train one model on the probabilities of an ensemble, on the same training graphs.

    Args:
        checkpoint: the folder of a run with several members, or its checkpoint (ckpt.pt).
        label_share: the share of the true class in the targets; the rest are the ensemble's
            probabilities.
        epochs: number of epochs; by default that of the ensemble.
        seed: random seed; by default the first of the ensemble.
        device: auto, cpu, cuda or cuda:N; by default auto.
        out: the run folder; by default `runs/NAME-student-1`, `-2`, ...
        dataset: the ensemble's data, if it is not stored by name.
        data_root: folder that holds NAME.zip or NAME/ and receives downloads.
        offline: never download.
        progress: show a bar; by default in terminals and notebooks only.

    Raises:
        InputError: the checkpoint holds a single model, or a setting or the data is not valid.
        IhgnnError: the training failed.
    """
    display = Display(progress)
    where = access(data_root, offline, display)
    begun = begin_distillation(
        Path(checkpoint),
        {"label_share": label_share, "epochs": epochs, "seed": seed, "device": device},
        None if out is None else Path(out),
        graphs=None if dataset is None else dataset_of(dataset, where),
        where=where,
    )
    return finished_run(begun, display)


def begin_distillation(
    checkpoint: Path,
    given: dict[str, Any],
    out: Path | None = None,
    *,
    graphs: GraphDataset | None = None,
    name: str | None = None,
    where: Access = DEFAULT,
) -> Begun:
    """Prepare the training of a student and make its folder.

    Args:
        checkpoint: the ensemble.
        given: settings of the student that differ from the ensemble's; `None` is not given.
        out: the folder.
        graphs: the ensemble's data.
        name: the name or path of that data; by default the ensemble's own.
        where: where it may come from.

    Raises:
        InputError: the checkpoint holds a single model, or a value, the data or the folder is not
            valid.
    """
    path = checkpoint_of(checkpoint)
    ensemble = load_checkpoint(path)
    refuse_single(ensemble, path)
    asked = {key: value for key, value in {**given, "dataset": name}.items() if value is not None}
    return begin(
        student_config(ensemble.config, path).with_values(asked),
        out,
        dataset=graphs,
        split=ensemble.card.split,
        suffix="-student",
        where=where,
    )


def student_config(config: RunConfig, teacher: Path) -> RunConfig:
    """The configuration of a single model that learns from an ensemble with this configuration.

    The targets replace label smoothing and class weights. If the ensemble averages snapshots, so
    that no epoch is chosen, the student keeps its last epoch.
    """
    training = replace(
        config.training,
        ensemble=1,
        snapshots=min(1, config.training.snapshots),
        label_smoothing=0.0,
        class_weights=ClassWeights.NONE,
        device=AUTO,
        teacher=str(teacher.absolute()),
    )
    return replace(config, training=training)
