"""`ihgnn export`: a checkpoint as an ONNX file, verified in onnxruntime."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ihgnn_cli.cli.options import AsJson, DataRoot, Offline, OtherData
from ihgnn_cli.deploy.form import OPSET, Layout, is_absurd, padded_bytes

if TYPE_CHECKING:
    from ihgnn_cli.deploy.export import Export
    from ihgnn_cli.deploy.verification import Parity


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
    from ihgnn_cli.api import export as exports
    from ihgnn_cli.cli import console
    from ihgnn_cli.training.folder import best_of

    done = exports.export(
        checkpoint,
        model,
        layout=layout,
        max_nodes=max_nodes,
        opset=opset,
        small=small,
        verify=verify,
        dataset=dataset,
        force=force,
        data_root=data_root,
        offline=offline,
    )
    cost = None if done.padded_nodes is None else padded_bytes(done.padded_nodes)
    if cost is not None and is_absurd(cost):
        console.warn(
            f"padded to {done.padded_nodes:,} nodes, the adjacency matrix of each graph takes "
            f"{cost / 1e6:,.0f} MB while the model runs. --layout sparse takes only what the "
            "nodes and edges take."
        )
    if as_json:
        told = {"checkpoint": best_of(checkpoint), "adjacency_bytes_per_graph": cost}
        console.show_json({**told, **asdict(done)})
        return
    _show(done)


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
