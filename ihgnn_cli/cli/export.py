"""`ihgnn export`: a checkpoint as an ONNX file, verified in onnxruntime."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ihgnn_cli.cli.options import AsJson, DataRoot, Offline, OtherData

if TYPE_CHECKING:
    from ihgnn_cli.deploy.export import Export, Parity, Sample
    from ihgnn_cli.training.checkpoint import Checkpoint


def export(
    checkpoint: Annotated[
        Path, typer.Argument(metavar="CHECKPOINT", help="ckpt.pt of a run folder.")
    ],
    model: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL", help="The .onnx file to write; a .json beside it tells what it takes."
        ),
    ],
    verify: Annotated[
        bool,
        typer.Option(
            "--verify/--no-verify",
            help="Compare the file with the checkpoint on graphs of the model's data set.",
        ),
    ] = True,
    dataset: OtherData = None,
    force: Annotated[
        bool, typer.Option("--force", "-f", help="Replace files that are there.")
    ] = False,
    data_root: DataRoot = None,
    offline: Offline = False,
    as_json: AsJson = False,
) -> None:
    """Export a checkpoint to ONNX, and make sure that both answer alike."""
    # Mistakes that are seen at once are told before torch is loaded.
    from ihgnn_cli.cli import console
    from ihgnn_cli.deploy.onnx_model import check_target
    from ihgnn_cli.errors import InputError

    outputs = check_target(model)
    existing = [each for each in outputs if each.exists()]
    if existing and not force:
        raise InputError(f"{existing[0]} is there already. Give another name, or use --force.")
    if dataset is not None and not verify:
        raise InputError("--dataset is what is compared on, and --no-verify says not to. Drop one.")

    from ihgnn_cli.deploy.export import export_onnx
    from ihgnn_cli.training.checkpoint import load_checkpoint

    loaded = load_checkpoint(checkpoint)
    samples = (
        _samples(loaded, dataset or loaded.card.dataset, outputs, data_root, offline)
        if verify
        else []
    )
    done = export_onnx(loaded, model, samples)
    if as_json:
        console.show_json({"checkpoint": str(checkpoint), **asdict(done)})
        return
    _show(done)


def _samples(
    checkpoint: "Checkpoint",
    given: str,
    outputs: list[Path],
    data_root: Path | None,
    offline: bool,
) -> "list[Sample]":
    from ihgnn_cli.cli import console
    from ihgnn_cli.data.sources import locate, read, refuse_overwriting
    from ihgnn_cli.deploy.export import samples_of
    from ihgnn_cli.errors import IhgnnError
    from ihgnn_cli.training.evaluation import in_words_of

    progress = console.ProgressDisplay()
    try:
        source = locate(given, data_root=data_root, offline=offline, progress=progress)
        graphs = read(source, progress)
    except IhgnnError as error:
        raise type(error)(
            f"There is no data to compare on: {error}\n"
            "Name it with --dataset, or export without comparing (--no-verify)."
        ) from error
    refuse_overwriting(outputs, [source])
    return samples_of(checkpoint.card, in_words_of(checkpoint.card, graphs).dataset)


def _show(done: "Export") -> None:
    from ihgnn_cli.cli import console

    inputs = console.table(f"{done.path} ({done.size / 1e6:.2f} MB)", "", "Type", "Shape")
    for name, what in done.inputs.items():
        shape = ", ".join(str(each) for each in what["shape"])
        inputs.add_row(name, what["type"], f"[{shape}]")
    console.show(inputs)
    if done.parity is None:
        console.note("Not compared with the checkpoint.")
    else:
        _show_parity(done.parity)
    console.note(f"Wrote {done.path} and {done.metadata_path}")


def _show_parity(parity: "Parity") -> None:
    from ihgnn_cli.cli import console
    from ihgnn_cli.words import counted

    compared = console.table(
        "Beside the checkpoint", "", "Largest difference", "Graphs", "Largest value"
    )
    certain = f"{parity.graphs - parity.swapped:,}"
    compared.add_row("logits", f"{parity.logits:.1e}", certain, f"{parity.scale:.1f}")
    compared.add_row("probabilities", f"{parity.probabilities:.1e}", certain, "1.0")
    console.show(compared)
    if parity.swapped:
        console.show(
            f"- In {counted(parity.swapped, 'more graph')} nodes are so close in the sort key "
            f"that their order is chance; {parity.swapped_changed:,} of them change class."
        )
