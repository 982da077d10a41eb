"""`ihgnn demo`: the whole path on bundled data, each step with the command that does it."""

import io
import json
import shlex
import sys
from contextlib import nullcontext, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from ihgnn_cli.cli.help import examples, option
from ihgnn_cli.cli.options import AsJson, named_folder
from ihgnn_cli.errors import InputError

EXAMPLES = examples(
    ("ihgnn demo", "In the folder ihgnn-demo"),
    ("ihgnn demo -o /tmp/demo", "In another folder"),
)
_FOLDER = Path("ihgnn-demo")
_EPOCHS = 100
_RUN = "run"
# Two molecules with the labels of MUTAG: 0 is carbon, 1 nitrogen, 2 oxygen.
_RING = [[0, 1], [1, 2], [2, 3], [3, 4], [4, 5], [5, 0]]
_GRAPHS = (
    {"id": "benzene", "node_labels": [0] * 6, "edges": _RING},
    {
        "id": "nitrobenzene",
        "node_labels": [0] * 6 + [1, 2, 2],
        "edges": [*_RING, [5, 6], [6, 7], [6, 8]],
    },
)


@dataclass(frozen=True)
class _Step:
    """One command of the demo."""

    what: str
    arguments: tuple[str, ...]
    product: Path | None
    """The file that exists once the step is done; `None` if it only shows something."""


def demo(
    epochs: Annotated[
        int | None,
        option("Training", "Number of epochs.", "--epochs", "-e", default=str(_EPOCHS), min=1),
    ] = None,
    out: Annotated[
        Path,
        option(
            "Output",
            "Folder for the files; an interrupted demo continues there.",
            "--out",
            "-o",
            metavar="DIR",
            parser=named_folder,
        ),
    ] = _FOLDER,
    as_json: AsJson = False,
) -> None:
    """Train, evaluate, export and predict on the bundled MUTAG, in less than two minutes.

    Each step shows its command, which can be copied and changed.
    """
    from ihgnn_cli.cli import console
    from ihgnn_cli.files import written_whole

    graphs = out / "new.jsonl"
    _refuse_other(out, graphs)
    with written_whole(graphs) as temporary:
        temporary.write_text("".join(f"{json.dumps(each)}\n" for each in _GRAPHS))
    if epochs is not None and (out / _RUN).exists():
        console.note(f"--epochs is ignored: {out / _RUN} exists. Remove {out} to start again.")
    done = []
    try:
        for number, step in enumerate(steps := _steps(out, graphs, epochs or _EPOCHS), 1):
            arguments = [*step.arguments, *(["--json"] if as_json else [])]
            line = shlex.join(["ihgnn", *arguments])
            skipped = step.product is not None and step.product.exists()
            if not as_json:
                console.show(f"\n{number} of {len(steps)}: {step.what}", style="bold")
                console.show(f"$ {line}", style="cyan")
                console.out.file.flush()
            if skipped:
                console.note(f"Done before: {step.product}")
            printed = [] if skipped else _run(arguments, captured=as_json)
            done.append({"what": step.what, "command": line, "skipped": skipped, "json": printed})
    except (KeyboardInterrupt, SystemExit):
        console.note(f"Continue with: ihgnn demo --out {console.quoted(out)}")
        raise
    if as_json:
        console.show_json({"folder": out, "steps": done})
        return
    console.show(f"\nThe files are in {out}. Remove it to start again.", style="bold")
    console.show("Next, your own graphs: ihgnn docs quickstart")


def _steps(out: Path, graphs: Path, epochs: int) -> list[_Step]:
    run, figure, model = out / _RUN, out / "accuracy-by-homophily.png", out / "model.onnx"
    train: tuple[str, ...] = (
        "train",
        "--dataset",
        "MUTAG",
        "--epochs",
        str(epochs),
        "--out",
        str(run),
    )
    if run.exists():
        train = ("train", "--resume", str(run))
    half = model.with_suffix(".json").exists() and not model.exists()  # an export was killed
    return [
        _Step("Train IHGNN and choose the epoch on validation graphs", train, run / "result.json"),
        _Step(
            "Evaluate on test graphs, and draw accuracy by graph homophily",
            ("evaluate", str(run), "--plot", str(figure)),
            figure,
        ),
        _Step(
            "Export to ONNX, and compare the file with the checkpoint",
            ("export", str(run), str(model), *(["--force"] if half else [])),
            model,
        ),
        _Step(
            "Classify two new graphs with onnxruntime",
            ("predict", str(model), str(graphs)),
            None,
        ),
    ]


def _refuse_other(out: Path, graphs: Path) -> None:
    """Refuse a folder that holds anything but a demo."""
    if out.exists() and not out.is_dir():
        raise InputError(f"{out} is not a folder. Choose another --out.")
    if out.is_dir() and any(out.iterdir()) and not graphs.exists():
        raise InputError(f"{out} is not empty and holds no demo. Choose another --out.")


def _run(arguments: list[str], *, captured: bool) -> list[Any]:
    """Run a command in this process; returns the JSON that it prints, if it is captured."""
    from typer.main import get_command

    from ihgnn_cli.cli.app import app

    before = sys.argv[1:]
    sys.argv[1:] = arguments  # recorded in the run's folder
    printed = io.StringIO()
    try:
        with redirect_stdout(printed) if captured else nullcontext():
            code = get_command(app).main(arguments, prog_name="ihgnn", standalone_mode=False)
    finally:
        sys.argv[1:] = before
    if isinstance(code, int) and code:
        raise typer.Exit(code)
    text = printed.getvalue()
    if arguments[0] == "predict":
        return [json.loads(line) for line in text.splitlines()]
    return [json.loads(text)] if text else []
