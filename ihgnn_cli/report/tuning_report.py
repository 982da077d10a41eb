"""The figures of a search for settings, and the page that shows them all."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ihgnn_cli.report.layout import auc_text
from ihgnn_cli.report.tuning import write_page
from ihgnn_cli.report.tuning_figures import draw_trials
from ihgnn_cli.studies.tuning.rows import TrialRow
from ihgnn_cli.words import counted

PAGE = "report.html"


def write_report(rows: Sequence[TrialRow], result: Mapping[str, Any], folder: Path) -> None:
    """Write the figures and the page to the folder of a search.

    Args:
        rows: the trials.
        result: the content of `result.json`.
        folder: where to write.

    Raises:
        IhgnnError: they cannot be written.
    """
    figures = draw_trials(rows, folder)
    final, best = result["final"], result["best"]
    test = final["test"]
    params = ", ".join(f"{name} {_shown(value)}" for name, value in best["params"].items())
    runs = f"one run at epoch {final['best_epoch']}, chosen on validation"
    if final.get("snapshots"):
        runs = f"mean prediction of {len(final['seeds'])} seeds, no epoch chosen"
    facts = [
        ("Data set", result["dataset"]),
        ("Best trial", f"{best['trial']}: {params}"),
        ("Its validation accuracy", f"{best['validation_accuracy']:.1%}"),
        (
            "Test accuracy of these settings",
            f"{test['accuracy']:.1%} of {counted(test['graphs'], 'graph')}, {runs}",
        ),
        ("Their balanced accuracy and ROC-AUC", _scores(test)),
        ("Trials", ", ".join(f"{count:,} {name}" for name, count in result["trials"].items())),
        ("Chosen by", result["chosen_by"]),
        ("Search", f"{result['search']['sampler']}, pruner {result['search']['pruner']}"),
        ("Storage", result["storage"]),
        ("Data SHA-256", result["search"]["data_sha256"]),
        ("Command", result["provenance"]["command"]),
        ("Finished", result["finished"]),
    ]
    title = f"Search on {result['dataset']}"
    write_page(folder / PAGE, title, facts, rows, best=best["trial"], figures=figures)


def _scores(test: Mapping[str, Any]) -> str:
    return f"{test['balanced_accuracy']:.1%}; {auc_text(test['roc_auc'])}"


def _shown(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
