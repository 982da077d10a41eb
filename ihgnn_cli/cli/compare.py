"""`ihgnn compare`: cross-validations of the same folds, with paired differences."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from ihgnn_cli.cli.help import argument, examples
from ihgnn_cli.cli.options import AsJson

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from ihgnn_cli.studies.compare_folders import Compared

_SETTINGS_WIDTH = 16

EXAMPLES = examples(
    ("ihgnn compare runs/paper runs/robust", "The second minus the first"),
    ("ihgnn compare runs/gin runs/*-ihgnn", "Several with the first, with Holm's correction"),
)


def compare(
    folders: Annotated[
        list[Path],
        argument("DIR...", "Folders of finished cross-validations; the first is the base."),
    ],
    as_json: AsJson = False,
) -> None:
    """Compare cross-validations of the same graphs and folds with the first one.

    Differences are paired over graphs, ± their standard error. A difference is called significant
    by the corrected resampled t-test over folds, after Holm's correction over all comparisons, if
    it is also larger than two standard errors.
    """
    from ihgnn_cli.cli import console
    from ihgnn_cli.studies.compare_folders import compare_folders

    found = compare_folders(folders)
    if as_json:
        told = [
            {**asdict(each), "significant": None if each.gap is None else each.gap.significant}
            for each in found
        ]
        console.show_json({"base": found[0].folder, "results": told})
        return
    console.show(_table(found))
    base = found[0].folder
    for each in found:
        if each.gap is not None:
            text = f"{each.folder}: {each.gap.verdict.lower()} {base}: {each.gap.told}."
            console.show(text, style="bold")
    for each in found:
        if each.partial:
            console.show(f"{each.folder}: {each.partial}")
    others = ", ".join(str(each.folder) for each in found if each.other_data)
    if others:
        console.show(
            f"Other data than in {base} (edges, labels or attributes): {others}. The comparison "
            "holds if the graphs are the same."
        )


def _table(found: "Sequence[Compared]") -> "Table":
    from ihgnn_cli.cli import console
    from ihgnn_cli.report.layout import auc_text, p_value, percent, spread
    from ihgnn_cli.studies.crossval.protocol import shown

    heads = ("Folder", "Model", "Accuracy", "Balanced", "ROC-AUC", "Difference", "p", "Settings")
    table = console.table(None, *heads)
    table.columns[0].justify = table.columns[-1].justify = "left"
    table.columns[-1].no_wrap, table.columns[-1].min_width = False, _SETTINGS_WIDTH
    for each in found:
        gap = each.gap
        error = "" if gap is None or gap.error is None else f" ± {percent(gap.error)}"
        settings = (f"{name} {shown(value)}" for name, value in each.settings.items())
        table.add_row(
            console.plain(str(each.folder)),
            f"{each.title}, {each.procedure}" if each.procedure else each.title,
            spread(each.accuracy, each.accuracy_std),
            "-" if each.balanced_accuracy is None else percent(each.balanced_accuracy),
            auc_text(each.roc_auc),
            "" if gap is None else f"{100 * gap.difference:+.1f}{error}",
            "" if gap is None else "-" if gap.p_holm is None else p_value(gap.p_holm),
            console.plain(", ".join(settings)),
        )
    return table
