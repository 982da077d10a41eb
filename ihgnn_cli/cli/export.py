"""`ihgnn export`: a checkpoint as an ONNX file, verified in onnxruntime."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ihgnn_cli.cli.options import AsJson, DataRoot, Offline, OtherData
from ihgnn_cli.deploy.form import OPSET, Form, Layout, is_absurd, padded_bytes

if TYPE_CHECKING:
    from ihgnn_cli.deploy.cases import Case
    from ihgnn_cli.deploy.export import Export
    from ihgnn_cli.deploy.verification import Parity
    from ihgnn_cli.training.checkpoint import Checkpoint


def export(
    checkpoint: Annotated[
        Path,
        typer.Argument(metavar="CHECKPOINT", help="A run folder, or its checkpoint (ckpt.pt)."),
    ],
    model: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL", help="The .onnx file to write; a .json beside it tells what it takes."
        ),
    ],
    layout: Annotated[
        Layout,
        typer.Option(
            help="What callers give: padded, matrices of one size; sparse, lists of nodes and "
            "edges, for large graphs and for speed."
        ),
    ] = Layout.PADDED,
    max_nodes: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Fix the padded size, for engines that want fixed shapes. Default: any size; a "
            "graph above the model's m keeps its first m nodes in sorted order.",
        ),
    ] = None,
    opset: Annotated[
        int,
        typer.Option(metavar="N", help="ONNX operator set. 18 runs in onnxruntime from 1.17."),
    ] = OPSET,
    small: Annotated[
        bool,
        typer.Option(
            "--small",
            help="Store the classifier's first matrix, nearly all of the file, in half precision.",
        ),
    ] = False,
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

    form = Form(layout, max_nodes, opset, small)
    outputs = check_target(model)
    existing = [each for each in outputs if each.exists()]
    if existing and not force:
        raise InputError(f"{existing[0]} is there already. Give another name, or use --force.")
    if dataset is not None and not verify:
        raise InputError("--dataset is what is compared on, and --no-verify says not to. Drop one.")

    from ihgnn_cli.deploy.export import check_exportable, export_onnx
    from ihgnn_cli.training.checkpoint import load_checkpoint
    from ihgnn_cli.training.folder import best_of

    checkpoint = best_of(checkpoint)
    loaded = load_checkpoint(checkpoint)
    check_exportable(loaded)
    cases = _cases(loaded, form, dataset, outputs, data_root, offline) if verify else []
    cost = _cost(loaded, form)
    done = export_onnx(loaded, model, form, cases)
    if as_json:
        console.show_json(
            {"checkpoint": str(checkpoint), "adjacency_bytes_per_graph": cost, **asdict(done)}
        )
        return
    _show(done)


def _cases(
    checkpoint: "Checkpoint",
    form: Form,
    given: str | None,
    outputs: list[Path],
    data_root: Path | None,
    offline: bool,
) -> "list[Case]":
    from ihgnn_cli.cli import console
    from ihgnn_cli.data.sources import locate, read, refuse_overwriting
    from ihgnn_cli.deploy.cases import cases_of
    from ihgnn_cli.errors import IhgnnError, retold

    progress = console.ProgressDisplay()
    name = given or checkpoint.card.dataset
    try:
        source = locate(name, data_root=data_root, offline=offline, progress=progress)
        graphs = read(source, progress)
    except IhgnnError as error:
        raise retold(
            error,
            f"There is no data to compare on: {error}\n"
            "Name it with --dataset, or export without comparing (--no-verify).",
        ) from error
    refuse_overwriting(outputs, [source])
    return cases_of(checkpoint, graphs, form.nodes)


def _cost(checkpoint: "Checkpoint", form: Form) -> int | None:
    """The bytes that padding costs for each graph, told where they are absurd."""
    from ihgnn_cli.cli import console

    if form.layout != Layout.PADDED:
        return None
    nodes = form.nodes or checkpoint.card.max_nodes
    cost = padded_bytes(nodes)
    if is_absurd(cost):
        console.warn(
            f"padded to {nodes:,} nodes, the adjacency matrix of each graph takes "
            f"{cost / 1e6:,.0f} MB while the model runs. --layout sparse takes only what the "
            "nodes and edges take."
        )
    return cost


def _show(done: "Export") -> None:
    from ihgnn_cli.cli import console

    form = done.form
    weights = ", first matrix in half precision" if form.small else ""
    console.show(
        f"{done.path}: {done.size / 1e6:.2f} MB, {form.layout}, opset {form.opset}{weights}",
        style="bold",
    )
    inputs = console.table(None, "", "Type", "Shape")
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
        "Largest differences from the checkpoint", "", "Graphs", "Logits", "Probabilities"
    )
    for each in parity.cases:
        certain = each.graphs > each.swapped
        shown = [f"{value:.1e}" for value in (each.logits, each.probabilities)]
        compared.add_row(each.case, f"{each.graphs:,}", *(shown if certain else ["-", "-"]))
    console.show(compared)
    console.show(
        f"Logits reach {parity.scale:.3g}. Errors: {parity.tolerance:.0e} of a graph's largest "
        f"logit (at least 1), {parity.tolerance:.0e} in a probability."
    )
    if parity.swapped:
        console.show(
            f"In {counted(parity.swapped, 'graph')} nodes are so close in the sort key that their "
            f"order is chance: not counted above; {parity.swapped_changed:,} of them change class."
        )
