"""What `ihgnn crossval` shows: progress, and at the end the tables."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from ihgnn_cli.cli import console
from ihgnn_cli.display import Update
from ihgnn_cli.models.registry import DEFAULT_MODEL
from ihgnn_cli.models.settings import Variant
from ihgnn_cli.report.layout import auc_text, p_value, percent, spread
from ihgnn_cli.studies.crossval.protocol import COMMON, Setting
from ihgnn_cli.studies.crossval.protocol import shown as value_shown
from ihgnn_cli.studies.crossval.result import CrossvalResult, ReferenceResult, RuleResult
from ihgnn_cli.studies.paper import PaperAccuracy, model_title
from ihgnn_cli.studies.signal.references import MAJORITY_KEY, below_majority_share
from ihgnn_cli.training.final import LEAST_FINAL_EPOCHS
from ihgnn_cli.training.folder import BEST_CONFIG as BEST
from ihgnn_cli.words import counted, duration

if TYPE_CHECKING:
    from ihgnn_cli.studies.crossval.run import Progress, Watch
    from ihgnn_cli.studies.crossval.study import Study


def announce(study: "Study") -> None:
    """Say what is trained, on standard error."""
    from ihgnn_cli.training.snapshots import fewer_snapshots

    job, where = study.job, study.where
    protocol, folds = job.protocol, job.folds
    title = "" if protocol.config.spec.stacked else f"{protocol.config.spec.title} on "
    inner = len(folds[0].splits)
    what = (
        f"{counted(len(protocol.grid), 'configuration')} × {len(folds)} folds"
        f"{'' if inner == 1 else f' × {inner} inner folds'}, "
        f"then {counted(protocol.runs, 'run')} per fold"
    )
    if not protocol.selects:
        what = f"{len(folds)} folds × {counted(protocol.runs, 'seed')}, without a selection"
    if len(study.folders) > 1:
        what = f"{len(study.folders)} partitions: {what}"
    most = sum(folder.most_open() for folder in study.folders)
    console.note(
        f"{title}{job.dataset.name}: {what}, "
        f"{counted(protocol.config.training.epochs, 'epoch')} "
        f"{'at most' if protocol.race else 'each'}; "
        f"{counted(min(most, where.count), 'worker')} on {where.device.type}, stacks of up to "
        f"{study.folders[0].sizes.most}; in {study.path}"
    )
    note = getattr(where, "note", "")
    for text in (protocol.race_in_words, job.partial, fewer_snapshots(protocol.config.training)):
        if text is not None:
            console.note(text)
    if note:
        console.note(note)


@contextmanager
def progress(*, quiet: bool) -> "Iterator[Watch]":
    """A live bar in a terminal, otherwise a line per tenth of the work, on standard error.

    If the block is interrupted, it says what is kept.
    """
    last: Progress | None = None

    def kept() -> str:
        if last is None:
            return "Finished stacks are kept: the same command continues with the rest."
        counts = f"{last.models:,} of {counted(last.of_models, 'training')}"
        return f"{counts} finished and kept: the same command continues with the rest."

    with console.keeping(kept), ExitStack() as stack:
        update: Update | None = None

        def show(now: "Progress") -> None:
            nonlocal update, last
            if now.killed:
                console.warn("A worker was killed from outside. Its work is done again.")
            if update is None:  # the first progress: there is something to show
                update = stack.enter_context(console.work("model-epochs", quiet=quiet))
            update(now.epochs, now.of_epochs, _models(now))
            last = now

        yield show


def _models(now: "Progress") -> str:
    text = f"{now.models:,} of {now.of_models:,} models finished"
    if now.seconds_left is None or now.models == now.of_models:
        return text
    return f"{text}, about {duration(now.seconds_left)} left"


def _statement(result: CrossvalResult) -> str:
    """How the accuracy was averaged, and what was chosen by what."""
    runs = len(result.runs)
    text = "mean ± standard deviation over folds"
    if len(result.repeats) > 1:
        text += f" of {len(result.repeats)} partitions"
    each = ", ".join(f"{100 * mean:.1f}" for mean in result.runs)
    chosen = f"Configuration and epoch chosen by {result.chosen_by}; never on test."
    if result.snapshots:
        text += (
            f", each of the mean prediction of {counted(runs, 'seed')} at "
            f"{counted(result.snapshots, 'epoch')}"
        )
        text += f"; single seeds {each}" * (runs > 1)
        chosen = "Nothing was chosen: neither a configuration nor an epoch."
    elif runs > 1:
        text += f", each the mean of {runs} runs at their best validation epoch"
        text += f"; over runs ± {100 * result.runs_std:.1f} ({each})"
    else:
        text += ", each from one run at its best validation epoch"
    if result.group_twins:
        chosen += " Twins (graphs with the same 1-WL colouring) were kept together."
    return f"{text}. {chosen}"


def show(result: CrossvalResult, folder: Path, *, rules: bool, trained: int | None) -> None:
    """The result as tables and sentences.

    Args:
        result: the result.
        folder: its folder.
        rules: whether to show the other selection rules.
        trained: model-epochs trained by this command; `None` if nothing was left to do.
    """
    if len(result.repeats) > 1:
        _show_repeats(result)
    else:
        _show_folds(result)
    console.show(f"Test accuracy {spread(result.test_mean, result.test_std)} %", style="bold")
    console.show(_statement(result))
    if result.test_error is not None:
        console.show(
            f"Standard error of the mean: {100 * result.test_error:.1f} points (Nadeau and "
            "Bengio's correction: folds share training graphs)"
        )
    for text in (result.race, result.partial):
        if text:
            console.show(text, style="bold")
    if result.references:
        _show_references(result)
    else:
        console.show_scores(asdict(result))
        console.show(f"Majority class: {100 * result.majority_share:.1f} %")
    paper = result.paper
    if paper is not None:
        console.show(
            f"The paper{_ablation(paper)}: {spread(paper.mean, paper.std)} %, where the "
            "authors' script chooses the configuration by test accuracy"
        )
    if rules:
        _show_rules(result.rules or (), paper)
    console.show(f"\n{_timing(result, trained)}")
    console.show(f"Results     {folder}")
    best = result.best
    raised = f", raised to {LEAST_FINAL_EPOCHS}, the fewest for a final training"
    which = (
        f"{_chosen(best.folds, len(result.folds))}, with the median of its best epochs "
        f"({best.epochs}{raised * (best.epochs < LEAST_FINAL_EPOCHS)})"
    )
    if result.snapshots:
        which = f"the configuration, with {counted(best.epochs, 'epoch')}"
    console.show(f"Best        {folder / BEST}\n            {which}. To train it on all graphs:")
    console.next_steps(("train", "--final", "--config", folder / BEST))


def _chosen(chose: int, folds: int) -> str:
    """How the best configuration was found."""
    if chose == 1 < folds:
        return (
            "no configuration was chosen by more than one fold; of those chosen, the one with the "
            "best average on validation"
        )
    return f"the configuration that most folds chose ({chose} of {folds})"


def _show_repeats(result: CrossvalResult) -> None:
    """One row per partition; `result.json` has the folds."""
    each = len(result.folds) // len(result.repeats)
    shown = console.table(
        f"{_of_model(result)}{result.dataset}: accuracy in %, {len(result.repeats)} partitions of "
        f"{each} folds",
        *("Seed", "Test", "Lowest fold", "Highest fold"),
    )
    for number, repeat in enumerate(result.repeats):
        means = [fold.test_mean for fold in result.folds[number * each : (number + 1) * each]]
        shown.add_row(
            str(repeat.seed),
            spread(repeat.test_mean, repeat.test_std),
            f"{100 * min(means):.1f}",
            f"{100 * max(means):.1f}",
        )
    console.show(shown)


def _show_folds(result: CrossvalResult) -> None:
    validation = [] if result.snapshots else ["Validation"]
    others = [key for key in result.folds[0].configuration if key not in COMMON]
    shown = console.table(
        f"{_of_model(result)}{result.dataset}: accuracy per fold in %",
        *("Fold", "lr", "Batch", "K", *others, *validation, "Test", "Runs"),
    )
    for fold in result.folds:
        chosen = fold.configuration
        shown.add_row(
            str(fold.fold),
            *(value_shown(chosen[key]) for key in (*COMMON, *others)),
            *(f"{100 * (fold.validation_accuracy or 0):.1f}" for _ in validation),
            f"{100 * fold.test_mean:.1f}",
            "  ".join(f"{100 * run.test_accuracy:5.1f}" for run in fold.runs),
        )
    console.show(shown)


def _show_references(result: CrossvalResult) -> None:
    references = result.references
    if references is None:
        return
    shown = console.table(
        "\nReferences: classifiers without a network, on the same folds",
        *("", "Accuracy", "Balanced", "ROC-AUC", "Difference", "p"),
    )
    shown.add_row(
        model_title(result.model),
        spread(result.test_mean, result.test_std),
        percent(result.balanced_accuracy),
        auc_text(result.roc_auc),
        *("", ""),
    )
    shown.add_section()
    for each in references.methods:
        shown.add_row(
            each.title,
            spread(each.accuracy, each.accuracy_std),
            percent(each.balanced_accuracy),
            auc_text(each.roc_auc),
            *_difference(each),
        )
    console.show(shown)
    majority = next(each for each in references.methods if each.key == MAJORITY_KEY)
    low = below_majority_share(majority.accuracy, result.majority_share)
    for note in (low, references.note):
        if note is not None:
            console.show(note)
    console.show(references.sentence, style="bold")


def _difference(reference: ReferenceResult) -> tuple[str, str]:
    """The model minus a reference, and the corrected p-value."""
    if reference.error is None:
        return "", ""
    p = reference.p_holm
    text = f"{100 * reference.difference:+.1f} ± {100 * reference.error:.1f}"
    return text, "-" if p is None else p_value(p)


def _of_model(result: CrossvalResult) -> str:
    """What was trained, unless it is the default model."""
    return "" if result.model == DEFAULT_MODEL else f"{model_title(result.model)} on "


def _show_rules(found: Sequence[RuleResult], paper: PaperAccuracy | None) -> None:
    shown = console.table(
        "\nThe same trainings under other selection rules", "", "Chooses on test", "Test"
    )
    notes = []
    for rule in found:
        title = rule.title
        if rule.configuration is not None:
            epoch = f", epoch {rule.epoch}" if rule.epoch else ""
            title += f" ({_configuration(rule.configuration)}{epoch})"
        looks = "no" if rule.honest else "YES"
        if rule.note:
            looks += "*"
            notes.append(f"* {rule.note}")
        shown.add_row(title, looks, spread(rule.mean, rule.std))
    if paper is not None:
        number = spread(paper.mean, paper.std)
        shown.add_row(f"The paper's table{_ablation(paper)}", "in their script", number)
    console.show(shown)
    for note in notes:
        console.show(note)


def _configuration(settings: Mapping[str, Setting]) -> str:
    lr, batch_size, layers = (value_shown(settings[name]) for name in COMMON)
    others = {key: value for key, value in settings.items() if key not in COMMON}
    more = "".join(f", {key} {value_shown(value)}" for key, value in others.items())
    return f"lr {lr}, batch {batch_size}, K {layers}{more}"


def _ablation(paper: PaperAccuracy) -> str:
    """The ablation that the paper's number is for, unless it is the full model."""
    return "" if paper.variant == Variant.FULL else f" ({paper.variant})"


def _timing(result: CrossvalResult, trained: int | None) -> str:
    models = counted(result.models, "model")
    text = f"Trained     {models}, {result.model_epochs:,} model-epochs, stacks of {result.stack}"
    if not trained:
        whose = "all by earlier commands" if trained is None else "all by other commands"
        return f"{text}: {whose} ({duration(result.worker_seconds)} of worker time)"
    if trained != result.model_epochs:
        text += f" ({duration(result.worker_seconds)} of worker time); {trained:,} of them now"
    rate = result.model_epochs_per_second or 0.0
    return (
        f"{text}, in {duration(result.seconds)}: {rate:,.0f} per second with "
        f"{counted(result.workers, 'worker')}"
    )
