"""`ihgnn export`: write a checkpoint as an ONNX file and verify it in onnxruntime."""

from dataclasses import asdict
from inspect import unwrap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from ihgnn_cli.cli import options
from ihgnn_cli.cli.help import argument, examples, option
from ihgnn_cli.models.spec import Layout
from ihgnn_cli.words import counted

if TYPE_CHECKING:
    from ihgnn_cli.deploy.export import Export
    from ihgnn_cli.deploy.verification import Parity


_FLOAT = 4
# A batch of a hundred graphs with such matrices would take a gigabyte.
_LARGE = 10_000_000

EXAMPLES = examples(
    ("ihgnn export runs/MUTAG-1", "Write runs/MUTAG-1/model.onnx and verify it"),
    ("ihgnn export runs/MUTAG-1 sets.onnx --conformal 0.1", "With an output of prediction sets"),
    ("ihgnn export runs/DD-1 dd.onnx --layout sparse", "Node and edge lists, for large graphs"),
    ("ihgnn export runs/MUTAG-1 fixed.onnx --max-nodes 28", "Graphs padded to a fixed size"),
)


def export(
    checkpoint: Annotated[
        Path, argument("CHECKPOINT", "Folder of a run or a search, or its checkpoint (ckpt.pt).")
    ],
    model: Annotated[
        Path | None,
        argument("MODEL", "ONNX file to write.", default="model.onnx beside the checkpoint"),
    ] = None,
    dataset: options.OtherData = None,
    verify: Annotated[
        bool,
        option(
            "Data",
            "Compare the file with the checkpoint on graphs of the data set, and write "
            "golden graphs.",
            "--verify/--no-verify",
            default="verify",
        ),
    ] = True,
    data_root: options.DataRoot = None,
    offline: options.Offline = False,
    layout: Annotated[
        Layout,
        option(
            "Output",
            "Inputs of the model. padded: matrices of one size; sparse: lists of nodes and "
            "edges, faster for large graphs.",
            metavar="NAME",
            default="padded",
        ),
    ] = Layout.PADDED,
    conformal: options.ConformalShare = None,
    force: Annotated[bool, option("Output", "Overwrite existing files.", "--force", "-f")] = False,
    as_json: options.AsJson = False,
    max_nodes: Annotated[
        int | None,
        option(
            "Advanced",
            "Fixed padded size, for engines that need fixed shapes.",
            metavar="N",
            default="any size",
        ),
    ] = None,
) -> None:
    """Export a checkpoint to ONNX and verify that both give the same results.

    A .json file beside the ONNX file describes its inputs, and a .golden.json file has small graphs
    with the right outputs, for 'ihgnn check-export' and for your own tests.

    'ihgnn models' lists the layouts of each model. The readout of IHGNN uses at most m nodes, the
    size of the largest graph of the model's data: of a larger graph, the first m in sorted order.
    """
    options.check_conformal(conformal)
    options.refuse_missing(dataset, checkpoint, options.TRAINED)
    from ihgnn_cli.api import export as exports
    from ihgnn_cli.cli import console
    from ihgnn_cli.cli.conformal_display import warn_of_few
    from ihgnn_cli.cli.starting import say_loading
    from ihgnn_cli.data.sources import locate
    from ihgnn_cli.training.folder import best_of

    if dataset is not None and verify:
        locate(dataset, console.access(data_root, offline))
    say_loading(checkpoint)
    done = unwrap(exports.export)(  # whose messages would name arguments
        checkpoint,
        model,
        layout=layout,
        max_nodes=max_nodes,
        conformal=conformal,
        verify=verify,
        dataset=dataset,
        force=force,
        data_root=data_root,
        offline=offline,
        progress=True,
    )
    cost = None if done.padded_nodes is None else _FLOAT * done.padded_nodes**2
    if cost is not None and cost > _LARGE:
        console.warn(
            f"padded to {done.padded_nodes:,} nodes, the adjacency matrix of each graph takes "
            f"{cost / 1e6:,.0f} MB while the model runs. --layout sparse needs only memory for "
            "nodes and edges."
        )
    if done.conformal is not None:
        warn_of_few(done.conformal)
    if as_json:
        told = {"checkpoint": best_of(checkpoint), "adjacency_bytes_per_graph": cost}
        console.show_json({**told, **asdict(done)})
        return
    _show(done)
    own = dataset or done.dataset
    if own:
        console.next_steps(
            ("predict", done.path, own),
            ("check-export", done.path),
        )


def _show(done: "Export") -> None:
    from ihgnn_cli.cli import console

    members = f", {done.members} members" if done.members > 1 else ""
    size = f"{done.size / 1e6:.2f} MB"
    console.show(f"{done.path}: {size}, {done.layout}{members}", style="bold")
    inputs = console.table(None, "", "Type", "Shape")
    for name, what in done.inputs.items():
        shape = ", ".join(str(each) for each in what["shape"])
        inputs.add_row(name, what["type"], f"[{shape}]")
    console.show(inputs)
    if done.conformal is not None:
        from ihgnn_cli.cli.conformal_display import described

        console.show(f"Output prediction_set. {described(done.conformal, done.also_chosen)}")
    if done.parity is None:
        console.note("Not compared with the checkpoint; no golden graphs.")
    else:
        _show_parity(done.parity)
    written = [done.path, done.metadata_path, done.golden_path]
    console.note(f"Wrote {', '.join(str(each) for each in written if each is not None)}")


def _show_parity(parity: "Parity") -> None:
    from ihgnn_cli.cli import console

    compared = console.table(
        "Largest differences from the checkpoint", "", "Graphs", "Logits", "Probabilities"
    )
    for each in parity.cases:
        certain = each.graphs > each.near_ties
        shown = [f"{value:.1e}" for value in (each.logits, each.probabilities)]
        compared.add_row(each.case, f"{each.graphs:,}", *(shown if certain else ["-", "-"]))
    console.show(compared)
    console.show(
        f"Largest logit: {parity.scale:.3g}. Tolerance: {parity.tolerance:.0e} of a graph's "
        f"largest logit (at least 1), {parity.tolerance:.0e} of a probability."
    )
    if parity.near_ties:
        console.show(
            f"Not counted above: {counted(parity.near_ties, 'graph')} with nodes so close in the "
            "sort key that rounding decides their order (near ties)."
        )
