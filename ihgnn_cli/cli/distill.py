"""`ihgnn distill`: train one model on the probabilities of an ensemble."""

from pathlib import Path
from typing import Annotated

from ihgnn_cli.cli import options
from ihgnn_cli.cli.help import argument, examples, option

EXAMPLES = examples(
    (
        "ihgnn distill runs/robust -o runs/student",
        "One model instead of the members of an ensemble",
    ),
    ("ihgnn distill runs/robust --label-share 0.5", "Targets half from the true classes"),
)


def distill(
    checkpoint: Annotated[
        Path,
        argument(
            "CHECKPOINT", "Folder of a run with several members, or its checkpoint (ckpt.pt)."
        ),
    ],
    dataset: options.OtherData = None,
    data_root: options.DataRoot = None,
    offline: options.Offline = False,
    label_share: Annotated[
        float | None,
        option(
            "Training", "Share of the true class in the targets, from 0 to below 1.", default="0"
        ),
    ] = None,
    epochs: Annotated[
        int | None,
        option("Training", "Number of epochs.", "--epochs", "-e", default="that of the ensemble"),
    ] = None,
    seed: Annotated[
        int | None, option("Training", "Random seed.", default="the first of the ensemble")
    ] = None,
    device: options.Device = None,
    out: Annotated[
        Path | None,
        options.output_folder(
            "runs/NAME-student-1, runs/NAME-student-2, ...", "Folder of the run."
        ),
    ] = None,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
) -> None:
    """Train one model on the probabilities of an ensemble.

    The student has the settings, the data and the split of the ensemble, and is one model instead
    of many. Its run folder is like any other; 'ihgnn train --resume' continues an interrupted run.
    """
    options.refuse_missing(dataset, checkpoint, options.TRAINED)
    from ihgnn_cli.cli import console
    from ihgnn_cli.cli.starting import say_loading
    from ihgnn_cli.cli.train import complete_run, show_run
    from ihgnn_cli.models.archive import check_archive
    from ihgnn_cli.training.config import TrainingSettings
    from ihgnn_cli.training.devices import check_device_name
    from ihgnn_cli.training.folder import checkpoint_of, refuse_used

    given = {"label_share": label_share, "epochs": epochs, "seed": seed, "device": device}
    asked = {key: value for key, value in given.items() if value is not None}
    TrainingSettings(teacher="-", **asked)  # type: ignore[arg-type]  # refused before torch starts
    if device is not None:
        check_device_name(device)
    if out is not None:
        refuse_used(out)
    check_archive(checkpoint_of(checkpoint))
    say_loading(checkpoint)
    from ihgnn_cli.api.distill import begin_distillation

    begun = begin_distillation(
        checkpoint,
        given,
        out,
        name=dataset,
        where=console.access(data_root, offline),
    )
    show_run(complete_run(begun, log=None, quiet=quiet), begun.folder, as_json)
