"""`ihgnn predict`: classify graphs with a trained model, as a stream."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO

from ihgnn_cli.cli import options
from ihgnn_cli.cli.help import argument, examples, option
from ihgnn_cli.errors import IhgnnError, InputError
from ihgnn_cli.files import reading
from ihgnn_cli.words import counted

if TYPE_CHECKING:
    from ihgnn_cli.data.access import Access
    from ihgnn_cli.data.sources import Source
    from ihgnn_cli.deploy.predictor import Predictor
    from ihgnn_cli.inference.prediction import Answer, Errors, GraphBatch
    from ihgnn_cli.inference.vocabulary import UnknownLabels
    from ihgnn_cli.models.card import ModelCard
    from ihgnn_cli.models.conformal import Conformal
    from ihgnn_cli.report.predictions import Write

STANDARD = "-"
_STANDARD_INPUT = "standard input"
_MOST_SHOWN = 20


EXAMPLES = examples(
    ("ihgnn predict model.onnx graphs.jsonl", "A table of classes and probabilities"),
    ("ihgnn predict runs/MUTAG-1 graphs.jsonl --csv classes.csv", "A CSV file"),
    (
        "cat graphs.jsonl | ihgnn predict model.onnx - --json",
        "A stream with one JSON object per line",
    ),
)


def predict(
    model: options.TrainedModel,
    graphs: Annotated[
        str,
        argument(
            "GRAPHS",
            "A .jsonl file, - (stdin), a .csv of SMILES, a TU folder or zip, or a name.",
            autocompletion=options.complete_dataset,
        ),
    ],
    strict: Annotated[
        bool, option("Data", "Stop at the first invalid graph instead of skipping it.", "--strict")
    ] = False,
    allow_unknown: options.AllowUnknown = False,
    data_root: options.DataRoot = None,
    offline: options.Offline = False,
    batch_size: Annotated[
        int | None, option("Compute", "Largest number of graphs per batch.", default="256", min=1)
    ] = None,
    device: options.Device = None,
    provider: options.Provider = None,
    conformal: options.ConformalShare = None,
    csv: Annotated[
        str | None,
        option(
            "Output",
            "Write CSV with one row per graph instead of the table; - is standard output.",
            metavar="FILE",
        ),
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Predict the classes of graphs.

    Graphs need no classes. JSON lines are processed as a stream of any length; --json prints one
    object per graph and line, with "error" for invalid graphs. The exit code is then 1.

    A file exported with --conformal lists the prediction set of each graph without the option here.
    """
    options.check_conformal(conformal)
    options.refuse_swapped(model, graphs, "ihgnn predict {0} {1}")
    options.refuse_missing(graphs, model)
    from ihgnn_cli.cli import console
    from ihgnn_cli.cli.starting import say_loading
    from ihgnn_cli.data.sources import locate, refuse_overwriting
    from ihgnn_cli.deploy.predictor import load
    from ihgnn_cli.inference.prediction import Prediction, predictions
    from ihgnn_cli.inference.vocabulary import UnknownLabels
    from ihgnn_cli.report.predictions import json_line
    from ihgnn_cli.training.devices import AUTO

    where = console.access(data_root, offline)
    source = None if graphs == STANDARD else locate(graphs, where)
    target = _checked_target(csv, as_json, model)
    if target is not None and source is not None:
        refuse_overwriting([target], [source])
    say_loading(model)
    predictor = load(model, device or AUTO, options.chosen_providers(device, provider))
    console.note(f"{model} on {predictor.runs_on}")
    sets = predictor.card.conformal
    if conformal is not None:
        sets = _calibrated(predictor, model, conformal, where)
    labels = UnknownLabels(predictor.card, allow_unknown)
    tally = _Tally(labels)
    errors: Errors = "raise" if strict else "return"
    with ExitStack() as stack:
        batches = stack.enter_context(_batches(source, labels, batch_size))
        also = ["uncertainty"] if predictor.classifier.members > 1 else []
        also += ["prediction_set"] if sets is not None else []
        writers = list(_writers(stack, predictor.card, csv, target, as_json, also))
        for answers in predictions(predictor.classifier, batches, errors, sets):
            tally.add(answers)
            if as_json:
                sys.stdout.writelines(f"{json_line(each)}\n" for each in answers)
            predicted = [each for each in answers if isinstance(each, Prediction)]
            for write in writers:
                write(predicted)
            sys.stdout.flush()
    if target is not None:
        console.note(f"Wrote {target}")
    tally.finish()


def _calibrated(predictor: "Predictor", model: Path, alpha: float, where: "Access") -> "Conformal":
    """The threshold of prediction sets, calibrated now."""
    from ihgnn_cli.api.evaluate import also_chosen, calibrate_model
    from ihgnn_cli.cli import console
    from ihgnn_cli.cli.conformal_display import described, warn_of_few
    from ihgnn_cli.training.folder import best_of

    thresholds = calibrate_model(model, predictor.classifier, alpha, where=where)
    warn_of_few(thresholds)
    console.note(described(thresholds, also_chosen(predictor.card, best_of(model))))
    return thresholds


def _checked_target(csv: str | None, as_json: bool, model: Path) -> Path | None:
    """The file to write, if any."""
    from ihgnn_cli.training.folder import refuse_own

    if csv == STANDARD and as_json:
        raise InputError(
            "--json and --csv - both write to standard output. Drop one, or give --csv a file."
        )
    if csv in (None, STANDARD):
        return None
    target = Path(str(csv))
    refuse_own([target], model)
    return target


@contextmanager
def _batches(
    source: "Source | None",
    labels: "UnknownLabels",
    batch_size: int | None,
) -> "Iterator[Iterator[GraphBatch]]":
    """The graphs in batches: from a stream of lines, or a data set read as a whole."""
    from ihgnn_cli.cli import console
    from ihgnn_cli.data import jsonl, smiles
    from ihgnn_cli.data.lines import lines_as_they_come
    from ihgnn_cli.data.sources import Origin, read
    from ihgnn_cli.inference.prediction import (
        BATCH_SIZE,
        batches_of,
        collected,
        of_lines,
        of_molecules,
    )
    from ihgnn_cli.progress import Advance, silent

    card = labels.card
    size = BATCH_SIZE if batch_size is None else batch_size
    progress = console.ProgressDisplay()
    made = source is not None and source.origin == Origin.SYNTHETIC
    is_stream = source is None or not (made or source.path.is_file() or source.path.is_dir())
    suffix = "" if source is None else source.path.suffix.lower()
    whole = made or (not is_stream and suffix not in (jsonl.SUFFIX, smiles.SUFFIX))
    if source is not None and whole:
        yield batches_of(card, read(source, progress, classes=False), size, labels)
        return
    name = _STANDARD_INPUT if source is None else source.path.name
    with ExitStack() as stack:
        advance: Advance = silent
        if not is_stream and not console.out.is_terminal:  # a table shows progress by itself
            total = source.path.stat().st_size if source is not None else None
            advance = stack.enter_context(progress.task(f"Reading {name}", total))
        if source is not None and suffix == smiles.SUFFIX:
            yield collected(of_molecules(source.path, advance), card, size, labels)
            return
        stream = stack.enter_context(_opened(source))
        lines = lines_as_they_come(stream, name, advance)
        yield collected(of_lines(lines, name), card, size, labels)


@contextmanager
def _opened(source: "Source | None") -> Iterator[BinaryIO]:
    """The file, pipe or standard input to read lines from."""
    from ihgnn_cli.cli import console

    if source is None:
        if sys.stdin is None:
            raise InputError("Standard input is closed. Give a file, or pipe JSON lines in.")
        if sys.stdin.isatty():
            console.note(
                "Type graphs, one JSON object per line, such as "
                '{"node_labels": [0, 1], "edges": [[0, 1]]}; Ctrl-D ends.'
            )
        yield sys.stdin.buffer
        return
    with reading(source.path):
        stream = source.path.open("rb", buffering=0)
    with stream:
        yield stream


def _writers(
    stack: ExitStack,
    card: "ModelCard",
    csv: str | None,
    target: Path | None,
    as_json: bool,
    also: Sequence[str],
) -> "Iterator[Write]":
    """Writers of the predictions besides lines of JSON: rows of CSV, or a table.

    `also` names the columns of CSV that only some models have.
    """
    from ihgnn_cli.cli.predict_table import PredictionTable
    from ihgnn_cli.report.predictions import csv_file, csv_rows

    if target is not None:
        yield stack.enter_context(csv_file(target, card.class_values, also))
    elif csv is not None:
        yield csv_rows(sys.stdout, card.class_values, line_end="\n", also=also)
    elif not as_json:
        yield PredictionTable(card.class_values).write


class _Tally:
    """Counts for the messages at the end."""

    def __init__(self, labels: "UnknownLabels") -> None:
        self.labels = labels
        self.answered = self.bad = self.larger = 0

    def add(self, answers: "Sequence[Answer]") -> None:
        """Count answers, and report the first failures."""
        from ihgnn_cli.cli import console
        from ihgnn_cli.inference.prediction import Failure

        for each in answers:
            if not isinstance(each, Failure):
                self.answered += 1
                self.larger += each.larger_than_m
                continue
            self.bad += 1
            if self.bad <= _MOST_SHOWN:
                console.error(console.plain(str(each)))

    def finish(self) -> None:
        """Print the counts on standard error.

        Raises:
            IhgnnError: some graphs were invalid.
        """
        from ihgnn_cli.cli import console

        total = self.answered + self.bad
        console.unknown_labels(self.labels)
        if self.larger:
            console.note(
                f"{counted(self.larger, 'graph')} of {total:,} with more nodes than any graph of "
                "the model's data (m): only the first m nodes in sorted order are used."
            )
        if not total:
            console.note("No graphs in the input.")
        if self.bad:
            reasons = "the reasons are above"
            if self.bad > _MOST_SHOWN:
                reasons = f"the first {_MOST_SHOWN} reasons are above"
            raise IhgnnError(
                f"{counted(self.bad, 'graph')} of {total:,} not classified; {reasons}."
            )
