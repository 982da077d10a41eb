"""`ihgnn check-export`: an exported file on the golden graphs beside it."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from ihgnn_cli.cli.help import argument, examples, option
from ihgnn_cli.cli.options import EXPORTED, AsJson, refuse_missing
from ihgnn_cli.errors import IhgnnError
from ihgnn_cli.words import counted

if TYPE_CHECKING:
    from ihgnn_cli.deploy.golden import GoldenCheck

EXAMPLES = examples(
    ("ihgnn check-export model.onnx", "On the GPU if onnxruntime can use it, else on the CPU"),
    ("ihgnn check-export model.onnx --provider CUDAExecutionProvider", "On this provider"),
)


def check_export(
    model: Annotated[Path, argument("MODEL", "An exported .onnx file, with its .golden.json.")],
    provider: Annotated[
        list[str] | None,
        option(
            "Compute",
            "An onnxruntime provider; repeatable.",
            metavar="NAME",
            default="the one that onnxruntime chooses",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check that an exported model gives the right answers on this machine.

    'ihgnn export' writes MODEL.golden.json: small graphs, the inputs that encode them, and the
    right outputs. The exit code is 1 if an answer is wrong or a given provider does not run.
    """
    refuse_missing(None, model, EXPORTED)
    from ihgnn_cli.cli import console
    from ihgnn_cli.deploy.golden import check_golden

    checks = [check_golden(model, each) for each in dict.fromkeys(provider or [""])]
    if as_json:
        found = [{**asdict(each), "passed": each.passed} for each in checks]
        console.show_json({"model": model, "checks": found})
    else:
        _show(checks)
    for each in checks:
        if each.provider not in ("", each.runs_on):
            console.warn(f"{each.provider} DID NOT RUN: the model ran on {each.runs_on} instead.")
    failed = [each.provider or each.runs_on for each in checks if not each.passed]
    if failed:
        raise IhgnnError(f"{counted(len(failed), 'check')} failed: {', '.join(failed)}.")


def _show(checks: "list[GoldenCheck]") -> None:
    from ihgnn_cli.cli import console

    title = f"{counted(checks[0].graphs, 'golden graph')}, tolerance {checks[0].tolerance:.0e}"
    table = console.table(title, "", "Difference", "Classes", "ms per graph", "Result")
    for each in checks:
        table.add_row(
            each.runs_on,
            f"{each.difference:.1e}",
            "same" if each.same_classes else "differ",
            f"{each.milliseconds_per_graph:.3f}",
            "pass" if each.passed else "FAIL",
        )
    console.show(table)
