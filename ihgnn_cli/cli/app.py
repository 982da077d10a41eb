"""The `ihgnn` command: its subcommands, and how failures are reported."""

import logging
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from ihgnn_cli import __version__, signals
from ihgnn_cli.cli import (
    check_export,
    compare,
    crossval,
    datasets,
    env,
    evaluate,
    export,
    homophily,
    models,
    predict,
    reproduce,
    runs,
    serve,
    signal,
    train,
    tune,
)
from ihgnn_cli.cli.help import Command, Group, examples
from ihgnn_cli.errors import IhgnnError

DEBUG_VARIABLE = "IHGNN_DEBUG"
INTERRUPTED = 130
_SIGNALS = 128  # exit codes of signals are above
_PROBLEMS = {
    "int_parsing": "'{given}' is not a whole number.",
    "float_parsing": "'{given}' is not a number.",
    "greater_than_equal": "it must be at least {ge:g}, not {given}.",
    "less_than_equal": "it must be at most {le:g}, not {given}.",
}

app = typer.Typer(
    name="ihgnn",
    help="Graph classification on graphs that mix homophily and heterophily.",
    epilog=examples(
        ("ihgnn homophily MUTAG PROTEINS", "Measure the homophily of two data sets"),
        ("ihgnn train MUTAG -o runs/mutag", "Train IHGNN"),
        ("ihgnn evaluate runs/mutag", "Evaluate it on its test graphs"),
        ("ihgnn export runs/mutag", "Export it to runs/mutag/model.onnx"),
        ("ihgnn predict runs/mutag/model.onnx graphs.jsonl", "Classify new graphs"),
    ),
    cls=Group,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _add(panel: str, name: str, command: Callable[..., None], epilog: str) -> None:
    app.command(name, cls=Command, rich_help_panel=panel, epilog=epilog)(command)


_add("Data", "homophily", homophily.homophily, homophily.EXAMPLES)
app.add_typer(datasets.app, name="datasets", rich_help_panel="Data")
_add("Data", "signal", signal.signal, signal.EXAMPLES)
_add("Models", "train", train.train, train.EXAMPLES)
_add("Models", "evaluate", evaluate.evaluate, evaluate.EXAMPLES)
_add("Models", "tune", tune.tune, tune.EXAMPLES)
_add("Models", "crossval", crossval.crossval, crossval.EXAMPLES)
_add("Models", "compare", compare.compare, compare.EXAMPLES)
_add("Models", "reproduce", reproduce.reproduce, reproduce.EXAMPLES)
_add("Models", "runs", runs.runs, runs.EXAMPLES)
_add("Models", "models", models.models, models.EXAMPLES)
_add("Deployment", "export", export.export, export.EXAMPLES)
_add("Deployment", "check-export", check_export.check_export, check_export.EXAMPLES)
_add("Deployment", "predict", predict.predict, predict.EXAMPLES)
_add("Deployment", "serve", serve.serve, serve.EXAMPLES)
_add("Other", "env", env.env, env.EXAMPLES)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"ihgnn {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """Graph classification on graphs that mix homophily and heterophily."""


def main() -> NoReturn:
    """Run the command line, and turn every failure into one or two lines and an exit code."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # closed by the parent process
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115
        else:
            # A terminal that cannot show a character shows a question mark, and the run goes on.
            stream.reconfigure(errors="replace")
    signals.install()  # a polite kill cleans up as Ctrl-C does
    logger = logging.getLogger("ihgnn_cli")
    logger.setLevel(logging.INFO)
    logger.addHandler(_NoteHandler(logging.INFO))  # --quiet raises its level
    try:
        code = _run()
    except KeyboardInterrupt:  # a second one, while the first was handled
        code = INTERRUPTED
    finally:
        signals.uninstall()
    sys.exit(code)


def _invoke() -> int:
    code = app(prog_name="ihgnn", standalone_mode=False)
    if code == INTERRUPTED:  # what typer makes of Ctrl-C
        raise KeyboardInterrupt
    sys.stdout.flush()
    return code if isinstance(code, int) else 0


def _run() -> int:
    try:
        return _invoke()
    except IhgnnError as error:
        return _failed(str(error), error.exit_code)
    except typer.TyperException as error:
        return _usage(error)
    except (KeyboardInterrupt, typer.Abort, SystemExit) as stop:
        return _exit_code(getattr(stop, "code", INTERRUPTED))
    except OSError as error:
        # What is still to be written has nowhere to go: the disk is full, or the reader (head,
        # less) has left, which is not reported.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        gone = isinstance(error, BrokenPipeError)
        return 1 if gone else _failed(f"The system said: {error}.", 1)
    except Exception as error:
        if os.environ.get(DEBUG_VARIABLE):
            raise
        return _failed(_unforeseen(error), 1)


def _exit_code(given: str | int | None) -> int:
    """The exit code of a `SystemExit`, with a message where there is something to say."""
    if isinstance(given, str):
        return _failed(given, 1)
    code = given or 0
    # SIGTERM and SIGHUP have exit codes; typer makes 1 of a reader (head) that has left.
    return _failed("Interrupted.", code) if code > _SIGNALS else code


class _NoteHandler(logging.Handler):
    """The library's messages reach the user as notes."""

    def emit(self, record: logging.LogRecord) -> None:
        from ihgnn_cli.cli import console

        console.note(f"Note: {record.getMessage()}")


def _unforeseen(error: Exception) -> str:
    if isinstance(error, MemoryError):
        return "Not enough memory. Use a machine with more memory, or less data."
    return (
        f"{type(error).__name__}: {error}\nThis is a bug in ihgnn. Please report it with the "
        f"output of 'ihgnn env'; {DEBUG_VARIABLE}=1 shows the traceback."
    )


def _failed(message: str, code: int) -> int:
    from ihgnn_cli.cli import console
    from ihgnn_cli.masking import masked_text

    console.error(masked_text(message))  # an address may be given to any option
    return code


def _usage(error: typer.TyperException) -> int:
    """Report a mistake in the command line itself, and where help is."""
    context = getattr(error, "ctx", None)
    message = _with_value(error).replace("Value error, ", "")
    if context is None:
        return _failed(message, error.exit_code)
    if not message:  # no arguments at all: the help has been shown
        return error.exit_code
    return _failed(f"{message}\nTry '{context.command_path} --help'.", error.exit_code)


def _with_value(error: typer.TyperException) -> str:
    """The message; of a number that is not one, or out of range, with the text that was given."""
    message = error.format_message()
    # Typer reads options with pydantic.
    problems: list[dict[str, Any]] = getattr(error.__cause__, "errors", list)()
    if not problems or problems[0]["type"] not in _PROBLEMS:
        return message
    problem = problems[0]
    where = message.removesuffix(problem["msg"])
    bounds = problem.get("ctx", {})
    return where + _PROBLEMS[problem["type"]].format(given=problem["input"], **bounds)
