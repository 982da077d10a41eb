"""`ihgnn evaluate`: accuracy of a trained model, overall and by graph homophily."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from ihgnn_cli.cli import options
from ihgnn_cli.cli.help import argument, examples, option
from ihgnn_cli.errors import InputError
from ihgnn_cli.inference.kinds import Part
from ihgnn_cli.words import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ihgnn_cli.data.dataset import GraphDataset
    from ihgnn_cli.inference.evaluation import Evaluation
    from ihgnn_cli.inference.explanation import GraphExplanation
    from ihgnn_cli.inference.prediction import Classifier
    from ihgnn_cli.models.card import ModelCard

_BAR_WIDTH = 30
_SHOWN_POSITIONS = 10


EXAMPLES = examples(
    ("ihgnn evaluate runs/MUTAG-1", "Test graphs of the model's own data set"),
    (
        "ihgnn evaluate runs/MUTAG-1 --predictions test.csv --plot homophily.svg",
        "Also write the predictions and draw accuracy by homophily",
    ),
    ("ihgnn evaluate model.onnx -d new.jsonl", "An exported model on other graphs"),
    ("ihgnn evaluate runs/MUTAG-1 --graph 12", "Explain one prediction"),
)


def evaluate(
    model: options.TrainedModel,
    data: Annotated[
        str | None,
        argument(
            "DATASET",
            "The same as --dataset.",
            default="the model's own",
            autocompletion=options.complete_dataset,
        ),
    ] = None,
    dataset: options.OtherData = None,
    split: Annotated[
        Part | None,
        option(
            "Data",
            "train, validation, test or all graphs of the model's own data set.",
            metavar="PART",
            default="test, or all of other data",
        ),
    ] = None,
    allow_unknown: options.AllowUnknown = False,
    data_root: options.DataRoot = None,
    offline: options.Offline = False,
    device: options.Device = None,
    conformal: options.ConformalShare = None,
    explain: Annotated[
        bool, option("Output", "Show the learned weight of each layer (theta).", "--explain")
    ] = False,
    graph: Annotated[
        int | None,
        option(
            "Output",
            "Show which nodes influence the prediction for graph N (counted from 0) most. "
            "Implies --explain.",
            metavar="N",
        ),
    ] = None,
    plot: Annotated[
        Path | None, options.figure("accuracy by graph homophily and against confidence")
    ] = None,
    predictions: Annotated[
        Path | None,
        option(
            "Output",
            "Write a CSV file with class, probabilities and homophily, one row per graph.",
            metavar="FILE",
        ),
    ] = None,
    as_json: options.AsJson = False,
    kind: Annotated[
        str | None,
        option(
            "Advanced",
            "Fail if the checkpoint is not of this model.",
            "--model",
            metavar="NAME",
            autocompletion=options.complete_model,
        ),
    ] = None,
) -> None:
    """Evaluate a model on its test graphs, or on other graphs."""
    options.check_conformal(conformal)
    dataset = options.one_dataset(data, dataset)
    if dataset is not None:
        options.refuse_swapped(model, dataset, "ihgnn evaluate {0} --dataset {1}")
    options.refuse_missing(dataset, model)
    from ihgnn_cli.api.evaluate import also_chosen, calibrate_model, data_for
    from ihgnn_cli.cli import console
    from ihgnn_cli.cli.starting import say_loading
    from ihgnn_cli.data.sources import locate
    from ihgnn_cli.deploy.onnx_model import SUFFIX
    from ihgnn_cli.deploy.predictor import load
    from ihgnn_cli.inference import evaluation
    from ihgnn_cli.models.registry import find_model
    from ihgnn_cli.training import folder as folders
    from ihgnn_cli.training.devices import AUTO

    model = folders.best_of(model)
    outputs = _checked_outputs(plot, predictions, model)
    explain = explain or graph is not None
    if explain and model.suffix.lower() == SUFFIX:
        raise InputError("An exported model cannot be explained. Give its checkpoint.")
    where = console.access(data_root, offline)
    if dataset is not None:
        locate(dataset, where)
    say_loading(model)
    classifier = load(model, device or AUTO).classifier
    if kind is not None and find_model(kind).name != _model_name(classifier):
        raise InputError(
            f"{model} is a checkpoint of {_model_name(classifier)}, not {kind}. Leave out --model, "
            "or give another checkpoint."
        )
    source, graphs = data_for(model, classifier.card, dataset, where, outputs=outputs)
    thresholds = None
    if conformal is not None:
        thresholds = calibrate_model(model, classifier, conformal, graphs, where)
    found = evaluation.evaluate(
        classifier, graphs, split, allow_unknown=allow_unknown, conformal=thresholds
    )
    explained = None if graph is None else _explain(classifier, graphs, found, graph)
    _write(found, graphs.name, plot, predictions)
    _warn(found, graphs, classifier.card, model.parent)
    theta = _theta(classifier) if explain else None
    if as_json:
        entry = _entry(model, classifier, graphs, found)
        if explain:
            entry["theta"] = theta
            entry["explained"] = None if explained is None else asdict(explained)
        console.show_json(entry)
        return
    heading = f"{model} on {graphs.name} ({source}): {_part_words(found.part)}"
    _show(heading, classifier, found, also_chosen(classifier.card, model))
    if explain:
        _show_explanation(theta, explained)
    for path in outputs:
        console.note(f"Wrote {path}")
    exportable = model.suffix.lower() != SUFFIX and find_model(_model_name(classifier)).exportable
    console.next_steps(
        *([("export", model)] if exportable else []),
        ("predict", model, dataset or source.reference),
    )


def _show(heading: str, classifier: "Classifier", found: "Evaluation", also: str) -> None:
    from ihgnn_cli.cli import console

    console.show(f"{heading}, on {classifier.runs_on}", style="bold")
    if classifier.card.snapshot is not None:
        saved = classifier.card.snapshot.described(classifier.members)
        console.show(f"Model: {_model_title(classifier)}{saved}")
    _show_metrics(found, classifier)
    _show_homophily(found)
    if found.coverage is not None:
        from ihgnn_cli.cli.conformal_display import show_coverage

        show_coverage(found.coverage, also)


def _write(found: "Evaluation", name: str, plot: Path | None, predictions: Path | None) -> None:
    """Write the files that were asked for."""
    from ihgnn_cli.report.evaluation import draw_evaluation, write_predictions

    if predictions is not None:
        write_predictions(
            predictions,
            found.dataset,
            found.graphs,
            found.probabilities,
            found.beta,
            uncertainty=found.uncertainty,
        )
    if plot is not None:
        title = f"{name}, {_part_words(found.part)}"
        if found.trained_on:
            title += f" ({found.trained_on:,} of {len(found.graphs):,} used in training)"
        draw_evaluation(found.bins, found.reliability, title, found.metrics.accuracy, plot)


def _checked_outputs(plot: Path | None, predictions: Path | None, model: Path) -> list[Path]:
    """The files to write, none of them a file of the model or of its run."""
    from ihgnn_cli.report.figures import check_figure_path
    from ihgnn_cli.training import folder as folders

    if plot is not None:
        check_figure_path(plot)
        if predictions is not None and plot.absolute() == predictions.absolute():
            raise InputError(f"--plot and --predictions both name {plot}. Give different files.")
    outputs = [each for each in (plot, predictions) if each is not None]
    folders.refuse_own(outputs, model)
    return outputs


def _part_words(part: Part) -> str:
    return "all graphs" if part == Part.ALL else f"{part} graphs"


def _warn(found: "Evaluation", graphs: "GraphDataset", card: "ModelCard", folder: Path) -> None:
    """Warn of anything that makes the numbers less than an estimate for new graphs."""
    from ihgnn_cli.cli import console
    from ihgnn_cli.cli.conformal_display import warn_of_few
    from ihgnn_cli.training.folder import is_unfinished

    if is_unfinished(folder):
        console.warn(
            "the training is not finished, and this is its best model so far. Finish it with: "
            f"ihgnn train --resume {console.quoted(folder)}"
        )
    snapshot = card.snapshot
    last = snapshot is not None and not (snapshot.chosen or snapshot.snapshots)
    if snapshot is not None and last and len(card.split.validation):
        console.warn(
            f"this is the model of the last epoch ({snapshot.epoch}), not the one chosen on "
            "validation, which is ckpt.pt in the same folder."
        )
    seen = []
    if found.trained_on:
        part = " or to choose its epoch" if found.selected_on is None else ""
        seen.append(f"{found.trained_on:,} of these graphs were used to train the model{part}")
    if found.selected_on:
        seen.append(f"{found.selected_on:,} were used to choose its epoch")
    if seen:
        console.warn(
            f"{' and '.join(seen)}: this is not an estimate for new graphs "
            f"({len(found.graphs):,} graphs evaluated)."
        )
    console.unknown_labels(found.labels)
    if found.coverage is not None:
        warn_of_few(found.coverage.threshold)
    if found.truncated:
        console.note(
            f"{counted(found.truncated, 'graph')} of {graphs.name} with more nodes than any graph "
            "of the model's data (m): only the first m nodes in sorted order are used."
        )


def _show_metrics(found: "Evaluation", classifier: "Classifier") -> None:
    from ihgnn_cli.cli import console
    from ihgnn_cli.report.layout import auc_text

    metrics = found.metrics
    overall = console.table(None, "", "", "")
    spread = f"95 % interval {metrics.accuracy_low:.1%} to {metrics.accuracy_high:.1%}"
    for name, value, remark in (
        ("Graphs", f"{metrics.graphs:,}", ""),
        ("Accuracy", f"{metrics.accuracy:.1%}", spread),
        ("Majority class", f"{metrics.majority_share:.1%}", "accuracy of always predicting it"),
        ("Balanced accuracy", f"{metrics.balanced_accuracy:.1%}", "mean recall of the classes"),
        ("Macro F1", f"{metrics.macro_f1:.3f}", ""),
        ("ROC-AUC", auc_text(metrics.roc_auc), ""),
        ("Log-loss", f"{metrics.log_loss:.3f}", ""),
        ("Calibration error", f"{metrics.calibration_error:.3f}", "expected, 15 bins"),
        *_uncertainty_row(found),
    ):
        overall.add_row(name, value, remark)
    overall.columns[1].justify = "right"
    overall.show_header = False
    console.show(overall)
    names = [console.plain(str(value)) for value in classifier.card.class_values]
    console.show("Confusion: rows true, columns predicted", style="bold")
    confusion = console.table(None, "", *names)
    for name, row in zip(names, metrics.confusion, strict=True):
        confusion.add_row(name, *(f"{count:,}" for count in row))
    console.show(confusion)


def _uncertainty_row(found: "Evaluation") -> list[tuple[str, str, str]]:
    """The spread between members, if there are several."""
    if found.uncertainty is None:
        return []
    spread = f"mean deviation of the predicted probability over {found.members} members"
    return [("Uncertainty", f"{found.uncertainty.mean():.3f}", spread)]


def _show_homophily(found: "Evaluation") -> None:
    from ihgnn_cli.cli import console

    shown = console.table(
        "Accuracy by graph homophily β",
        *("", "Graphs", "Accuracy", "95 % interval", "Majority", console.BARS),
    )
    for each in found.bins:
        if each.graphs:
            shown.add_row(f"{each.low:.1f} to {each.high:.1f}", *_bin_cells(each))
    sides = found.sides
    for name, side in (("below 0.5", sides.heterophilic), ("from 0.5", sides.homophilic)):
        shown.add_row(name, *_bin_cells(side))
    console.show(shown)


def _bin_cells(each: Any) -> list[str]:
    from ihgnn_cli.cli import console

    if not each.graphs:
        return ["0", "-", "-", "-", ""]
    return [
        f"{each.graphs:,}",
        f"{each.accuracy:.1%}",
        f"{each.accuracy_low:.1%} - {each.accuracy_high:.1%}",
        f"{each.majority_share:.1%}",
        console.bar(each.accuracy * _BAR_WIDTH / 2),
    ]


def _model_name(classifier: "Classifier") -> str:
    """The model's name in the registry."""
    from ihgnn_cli.deploy.onnx_model import OnnxClassifier
    from ihgnn_cli.models.registry import DEFAULT_MODEL

    if isinstance(classifier, OnnxClassifier):
        return classifier.model_name
    checkpoint = getattr(classifier, "checkpoint", None)
    return DEFAULT_MODEL if checkpoint is None else str(checkpoint.config.model_name)


def _model_title(classifier: "Classifier") -> str:
    """The title of a model other than the default."""
    from ihgnn_cli.models.registry import DEFAULT_MODEL, find_model, model_names

    name = _model_name(classifier)
    if name == DEFAULT_MODEL:
        return ""
    # An exported file runs without the package that provides its model.
    return f"{find_model(name).title if name in model_names() else name}; "


def _theta(classifier: "Classifier") -> "list[float] | None":
    from ihgnn_cli.inference.explanation import layer_weights
    from ihgnn_cli.training.classifier import TorchClassifier

    return layer_weights(classifier) if isinstance(classifier, TorchClassifier) else None


def _show_explanation(
    theta: "Sequence[float] | None", explained: "GraphExplanation | None"
) -> None:
    _show_theta(theta)
    if explained is not None:
        _show_explained(explained)


def _show_theta(theta: "Sequence[float] | None") -> None:
    from ihgnn_cli.cli import console

    if theta is None:
        console.show("This model has no learned layer weights.\n")
        return
    shown = console.table("Learned weight of each layer (theta)", "", "Weight", console.BARS)
    scale = _BAR_WIDTH / max(*(abs(each) for each in theta), 1e-12)
    for layer, value in enumerate(theta):
        shown.add_row(f"H({layer})", f"{value:+.4f}", console.bar(abs(value) * scale))
    console.show(shown)


def _explain(
    classifier: "Classifier", graphs: "GraphDataset", found: "Evaluation", graph: int
) -> "GraphExplanation | None":
    from ihgnn_cli.inference.explanation import explain_graph
    from ihgnn_cli.training.classifier import TorchClassifier

    if not isinstance(classifier, TorchClassifier):
        return None
    return explain_graph(classifier, graphs, found.dataset, graph)


def _show_explained(explained: "GraphExplanation") -> None:
    from ihgnn_cli.cli import console

    part = "" if explained.part is None else f" ({explained.part})"
    console.show(
        f"Graph {explained.graph}{part}: predicted {console.plain(str(explained.predicted))} "
        f"({explained.probability:.1%}), true class {console.plain(str(explained.truth))}",
        style="bold",
    )
    shown = console.table(
        "Change of the prediction's log-odds due to each node",
        *("Sorted position", "Node", "Label", "Degree", "Change", console.BARS),
    )
    first = explained.positions[:_SHOWN_POSITIONS]
    scale = _BAR_WIDTH / max(*(abs(each.change) for each in first), 1e-12)
    for each in first:
        shown.add_row(
            "-" if each.position is None else f"{each.position:,}",
            f"{each.node:,}",
            console.plain(str(each.label)),
            f"{each.degree:,}",
            f"{each.change:+.3f}",
            console.bar(abs(each.change) * scale),
        )
    console.show(shown)
    more = len(explained.positions) - len(first)
    if more > 0:
        console.show(f"{more:,} more nodes; --json lists all")


def _entry(
    model: Path, classifier: "Classifier", graphs: "GraphDataset", found: "Evaluation"
) -> dict[str, object]:
    from ihgnn_cli.api.evaluate import also_chosen

    snapshot = classifier.card.snapshot
    return {
        "model": model,
        "runs_on": classifier.runs_on,
        "dataset": graphs.name,
        "fingerprint": graphs.fingerprint,
        "part": found.part,
        "model_name": _model_name(classifier),
        "snapshot": None if snapshot is None else asdict(snapshot),
        "classes": classifier.card.class_values,
        **asdict(found.metrics),
        "reliability": [asdict(each) for each in found.reliability],
        "members": found.members,
        "mean_uncertainty": None if found.uncertainty is None else found.uncertainty.mean(),
        "conformal": None
        if found.coverage is None
        else {**asdict(found.coverage), "also_chosen": also_chosen(classifier.card, model)},
        "by_homophily": [asdict(each) for each in found.bins],
        "heterophilic": asdict(found.sides.heterophilic),
        "homophilic": asdict(found.sides.homophilic),
        "graphs_trained_on": found.trained_on,
        "graphs_that_chose_the_epoch": found.selected_on,
        "unknown_label_nodes": found.unknown_nodes,
        "truncated_graphs": found.truncated,
    }
