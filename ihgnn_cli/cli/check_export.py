"""`ihgnn check-export`: an exported file in the runtimes of this machine."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from ihgnn_cli.cli.help import argument, examples, option
from ihgnn_cli.cli.options import EXPORTED, AsJson, refuse_missing
from ihgnn_cli.errors import IhgnnError
from ihgnn_cli.words import counted

if TYPE_CHECKING:
    from ihgnn_cli.deploy.checking import Checked, RuntimeResult

EXAMPLES = examples(
    ("ihgnn check-export model.onnx", "Check it in every runtime that is installed"),
    ("ihgnn check-export model.onnx --provider CUDAExecutionProvider", "In one of them"),
)


def check_export(
    model: Annotated[Path, argument("MODEL", "An exported .onnx file, with its .golden.json.")],
    provider: Annotated[
        list[str] | None,
        option(
            "Compute",
            "An onnxruntime provider, or openvino:DEVICE; repeatable.",
            metavar="NAME",
            default="every one that is installed",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check that an exported model gives the right answers in the runtimes of this machine.

    'ihgnn export' writes MODEL.golden.json: graphs, the inputs that encode them, and the outputs of
    the checkpoint. The exit code is 1 if an answer is wrong or a given provider does not run.
    """
    refuse_missing(None, model, EXPORTED)
    from ihgnn_cli.cli import console
    from ihgnn_cli.deploy import checking

    checked = checking.check_export(model, provider or ())
    if as_json:
        _show_json(checked)
    else:
        _show(checked)
    for each in checked.runtimes:
        _report(each, asked=bool(provider))
    failed = [each for each in checked.runtimes if not each.passed and (provider or not each.error)]
    if failed:
        names = ", ".join(each.runtime for each in failed)
        raise IhgnnError(f"{counted(len(failed), 'runtime')} failed the check: {names}.")
    passed = sum(each.passed for each in checked.runtimes)
    console.note(f"{counted(passed, 'runtime')} passed all {len(checked.golden.cases)} cases.")


def _show(checked: "Checked") -> None:
    from ihgnn_cli.cli import console

    golden = checked.golden
    console.show(
        f"{checked.model}: {golden.layout}, tolerance {golden.tolerance:.0e} of a graph's largest "
        "value (at least 1)",
        style="bold",
    )
    table = console.table(None, "", "Case", "Graphs", "Difference", "Class", "Result")
    for runtime in checked.runtimes:
        for each in runtime.cases:
            apart = "-" if each.difference is None else f"{each.difference:.1e}"
            told = "same" if each.same_class else "-" if each.difference is None else "differs"
            result = "pass" if each.passed else "FAIL"
            table.add_row(runtime.runtime, each.case, f"{each.graphs:,}", apart, told, result)
    if table.row_count:
        console.show(table)
    for left_out in golden.left_out:
        console.note(f"Not in the golden vectors: {left_out['name']} ({left_out['reason']}).")


def _show_json(checked: "Checked") -> None:
    from ihgnn_cli.cli import console

    console.show_json(
        {
            "model": checked.model,
            "model_sha256": checked.golden.model_sha256,
            "tolerance": checked.golden.tolerance,
            "left_out": checked.golden.left_out,
            "runtimes": [
                {**asdict(each), "used": each.used, "passed": each.passed}
                for each in checked.runtimes
            ],
        }
    )


def _report(runtime: "RuntimeResult", *, asked: bool) -> None:
    """Say where the model really ran, and what went wrong."""
    from ihgnn_cli.cli import console

    name = runtime.runtime
    if runtime.error:
        text = f"{name} did not run. {console.plain(runtime.error)}"
        if asked:
            console.warn(text)
        else:
            console.note(text)
        return
    elsewhere = {where: count for where, count in runtime.operators.items() if where != name}
    ran = ", ".join(f"{count:,} on {where}" for where, count in elsewhere.items())
    if not runtime.used:
        console.warn(f"{name} ran nothing: all operators ran elsewhere ({ran}).")
    else:
        own = f"{name} ({runtime.version}) ran {runtime.operators[name]:,} operators"
        console.note(f"{own}; {ran}." if ran else f"{own}.")
    for each in runtime.cases:
        if each.error:
            console.error(f"{name}, {each.case}: {console.plain(each.error)}")
