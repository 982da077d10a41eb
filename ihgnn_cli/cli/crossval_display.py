"""What `ihgnn crossval` shows: progress, and at the end the tables."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ihgnn_cli.cli import console
from ihgnn_cli.cli.conformal_display import show_study
from ihgnn_cli.display import Update
from ihgnn_cli.models.registry import DEFAULT_MODEL
from ihgnn_cli.models.settings import Variant
from ihgnn_cli.report.layout import auc_text, p_value, percent, spread
from ihgnn_cli.studies.grid import COMMON
from ihgnn_cli.studies.grid import shown as value_shown
from ihgnn_cli.studies.paper import model_title
from ihgnn_cli.studies.signal.references import below_majority_share
from ihgnn_cli.training.final import LEAST_FINAL_EPOCHS
from ihgnn_cli.training.folder import BEST_CONFIG as BEST
from ihgnn_cli.words import counted, duration

if TYPE_CHECKING:
    from ihgnn_cli.jobs.queue import Step
    from ihgnn_cli.studies.crossval import Progress


@contextmanager
def progress(quiet: bool) -> "Iterator[Callable[[Progress, Step], None]]":
    """A live bar in a terminal, otherwise a line per tenth of the work, on standard error."""

    def warn_of_dead(step: "Step") -> None:
        if step.dead:
            console.warn("A worker was killed from outside. Its work is done again.")

    with ExitStack() as stack:
        update: Update | None = None

        def show(progress: "Progress", step: "Step") -> None:
            nonlocal update
            warn_of_dead(step)
            if update is None:  # the first progress: there is something to show
                update = stack.enter_context(console.work("model-epochs", quiet=quiet))
            line = f"{progress.models:,} of {progress.of_models:,} models finished"
            update(progress.epochs, progress.of_epochs, line)

        yield show


def _statement(result: dict[str, Any]) -> str:
    """How the accuracy was averaged, and what was chosen by what."""
    runs, snapshots = len(result["runs"]), result.get("snapshots")  # missing in older results
    text = "mean ± standard deviation over folds"
    if len(result.get("repeats", ())) > 1:
        text += f" of {len(result['repeats'])} partitions"
    if snapshots:
        each = ", ".join(f"{100 * mean:.1f}" for mean in result["runs"])
        text += (
            f", each of the mean prediction of {counted(runs, 'seed')} at "
            f"{counted(snapshots, 'epoch')}"
        )
        text += f"; single seeds {each}" * (runs > 1)
    elif runs > 1:
        text += f", each the mean of {runs} runs at their best validation epoch"
        each = ", ".join(f"{100 * mean:.1f}" for mean in result["runs"])
        text += f"; over runs ± {100 * result['runs_std']:.1f} ({each})"
    else:
        text += ", each from one run at its best validation epoch"
    chosen = f"Configuration and epoch chosen by {result['chosen_by']}; never on test."
    if snapshots:
        chosen = "Nothing was chosen: neither a configuration nor an epoch."
    if result.get("group_twins"):  # missing in older results
        chosen += " Twins (graphs with the same 1-WL colouring) were kept together."
    return f"{text}. {chosen}"


def show(result: dict[str, Any], folder: Path, *, rules: bool, trained: int | None) -> None:
    """The result as tables and sentences.

    Args:
        result: what `result.json` holds.
        folder: the folder of the results.
        rules: whether to show the other selection rules.
        trained: model-epochs trained by this command; `None` if nothing was left to do.
    """
    snapshots = result.get("snapshots")  # missing in older results
    if len(result.get("repeats", ())) > 1:
        _show_repeats(result)
    else:
        _show_folds(result)
    console.show(f"Test accuracy {spread(result['test_mean'], result['test_std'])} %", style="bold")
    console.show(_statement(result))
    if result.get("test_error") is not None:
        console.show(
            f"Standard error of the mean: {100 * result['test_error']:.1f} points (Nadeau and "
            "Bengio's correction: folds share training graphs)"
        )
    for name in ("race", "partial"):  # missing in older results
        if result.get(name):
            console.show(result[name], style="bold")
    if result.get("references"):
        _show_references(result)
    else:
        console.show_scores(result)
        console.show(f"Majority class: {100 * result['majority_share']:.1f} %")
    if result.get("conformal"):
        show_study(result["conformal"])
    if result["paper"] is not None:
        paper = result["paper"]
        console.show(
            f"The paper{_ablation(paper)}: {spread(paper['mean'], paper['std'])} %, where the "
            "authors' script chooses the configuration by test accuracy"
        )
    if rules:
        _show_rules(result["rules"], result["paper"])
    console.show(f"\n{_timing(result, trained)}")
    console.show(f"Results     {folder}")
    if "best" in result:  # missing in older results
        best = result["best"]
        raised = f", raised to {LEAST_FINAL_EPOCHS}, the fewest for a final training"
        which = (
            f"{_chosen(best['folds'], len(result['folds']))}, with the median of its best epochs "
            f"({best['epochs']}{raised * (best['epochs'] < LEAST_FINAL_EPOCHS)})"
        )
        if snapshots:
            which = f"the configuration, with {counted(best['epochs'], 'epoch')}"
        console.show(
            f"Best        {folder / BEST}\n            {which}. To train it on all graphs:"
        )
        console.next_steps(("train", "--final", "--config", folder / BEST))


def _chosen(chose: int, folds: int) -> str:
    """How the best configuration was found."""
    if chose == 1 < folds:
        return (
            "no configuration was chosen by more than one fold; of those chosen, the one with the "
            "best average on validation"
        )
    return f"the configuration that most folds chose ({chose} of {folds})"


def _show_repeats(result: dict[str, Any]) -> None:
    """One row per partition; `result.json` has the folds."""
    repeats = result["repeats"]
    each = len(result["folds"]) // len(repeats)
    shown = console.table(
        f"{_of_model(result)}{result['dataset']}: accuracy in %, {len(repeats)} partitions of "
        f"{each} folds",
        *("Seed", "Test", "Lowest fold", "Highest fold"),
    )
    for number, repeat in enumerate(repeats):
        means = [fold["test_mean"] for fold in result["folds"][number * each : (number + 1) * each]]
        shown.add_row(
            str(repeat["seed"]),
            spread(repeat["test_mean"], repeat["test_std"]),
            f"{100 * min(means):.1f}",
            f"{100 * max(means):.1f}",
        )
    console.show(shown)


def _show_folds(result: dict[str, Any]) -> None:
    validation = [] if result.get("snapshots") else ["Validation"]
    others = [key for key in result["folds"][0]["configuration"] if key not in COMMON]
    shown = console.table(
        f"{_of_model(result)}{result['dataset']}: accuracy per fold in %",
        *("Fold", "lr", "Batch", "K", *others, *validation, "Test", "Runs"),
    )
    for fold in result["folds"]:
        chosen = fold["configuration"]
        shown.add_row(
            str(fold["fold"]),
            f"{chosen['lr']:g}",
            str(chosen["batch_size"]),
            str(chosen["layers"]),
            *(value_shown(chosen[key]) for key in others),
            *(f"{100 * fold['validation_accuracy']:.1f}" for _ in validation),
            f"{100 * fold['test_mean']:.1f}",
            "  ".join(f"{100 * run['test_accuracy']:5.1f}" for run in fold["runs"]),
        )
    console.show(shown)


def _show_references(result: dict[str, Any]) -> None:
    shown = console.table(
        "\nReferences: classifiers without a network, on the same folds",
        *("", "Accuracy", "Balanced", "ROC-AUC", "Difference", "p"),
    )
    own = {
        "title": model_title(result.get("model", DEFAULT_MODEL)),
        "accuracy": result["test_mean"],
        "accuracy_std": result["test_std"],
        "balanced_accuracy": result.get("balanced_accuracy"),
        "roc_auc": result.get("roc_auc"),
    }
    for each in (own, *result["references"]["methods"]):
        balanced, auc = each["balanced_accuracy"], each["roc_auc"]
        shown.add_row(
            each["title"],
            spread(each["accuracy"], each["accuracy_std"]),
            "-" if balanced is None else percent(balanced),
            auc_text(auc),
            *_difference(each),
        )
        if each is own:
            shown.add_section()
    console.show(shown)
    majority = result["references"]["methods"][0]
    low = below_majority_share(majority["accuracy"], result["majority_share"])
    for note in (low, result["references"].get("note")):
        if note is not None:
            console.show(note)
    console.show(result["references"]["sentence"], style="bold")


def _difference(reference: dict[str, Any]) -> tuple[str, str]:
    """The model minus a reference, and the corrected p-value; older results do not have them."""
    if reference.get("error") is None:
        return "", ""
    p = reference["p_holm"]
    text = f"{100 * reference['difference']:+.1f} ± {100 * reference['error']:.1f}"
    return text, "-" if p is None else p_value(p)


def _of_model(result: dict[str, Any]) -> str:
    """What was trained, unless it is the default model; older results do not say."""
    name = result.get("model", DEFAULT_MODEL)
    return "" if name == DEFAULT_MODEL else f"{model_title(name)} on "


def _show_rules(found: list[dict[str, Any]], paper: dict[str, Any] | None) -> None:
    shown = console.table(
        "\nThe same trainings under other selection rules", "", "Chooses on test", "Test"
    )
    notes = []
    for rule in found:
        chosen, title = rule["configuration"], rule["title"]
        if chosen is not None:
            title += f" (lr {chosen['lr']:g}, batch {chosen['batch_size']}, K {chosen['layers']}"
            more = {key: value for key, value in chosen.items() if key not in COMMON}
            title += "".join(f", {key} {value_shown(value)}" for key, value in more.items())
            title += f", epoch {rule['epoch']})" if rule["epoch"] else ")"
        looks = "no" if rule["honest"] else "YES"
        if rule.get("note"):
            looks += "*"
            notes.append(f"* {rule['note']}")
        shown.add_row(title, looks, spread(rule["mean"], rule["std"]))
    if paper is not None:
        number = spread(paper["mean"], paper["std"])
        shown.add_row(f"The paper's table{_ablation(paper)}", "in their script", number)
    console.show(shown)
    for note in notes:
        console.show(note)


def _ablation(paper: dict[str, Any]) -> str:
    """The ablation that the paper's number is for, unless it is the full model."""
    return "" if paper["variant"] == Variant.FULL else f" ({paper['variant']})"


def _timing(result: dict[str, Any], trained: int | None) -> str:
    models = counted(result["models"], "model")
    text = f"Trained     {models}, {result['model_epochs']:,} model-epochs"
    if "stack" in result:  # old results do not have it
        text += f", stacks of {result['stack']}"
    if not trained:
        whose = "all by earlier commands" if trained is None else "all by other commands"
        return f"{text}: {whose} ({duration(result['worker_seconds'])} of worker time)"
    if trained != result["model_epochs"]:
        text += f" ({duration(result['worker_seconds'])} of worker time); {trained:,} of them now"
    rate = result["model_epochs_per_second"] or 0.0
    return (
        f"{text}, in {duration(result['seconds'])}: {rate:,.0f} per second with "
        f"{counted(result['workers'], 'worker')}"
    )
