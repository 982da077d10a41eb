"""`ihgnn compare`: cross-validations of the same folds, with paired differences."""

from pathlib import Path
from typing import Annotated

import typer

from ihgnn_cli.cli.help import examples
from ihgnn_cli.cli.options import AsJson

EXAMPLES = examples(
    ("ihgnn compare runs/paper runs/robust", "Is the second better than the first?"),
    ("ihgnn compare runs/gin runs/*-ihgnn", "Several with the first, with Holm's correction"),
)


def compare(
    folders: Annotated[
        list[Path],
        typer.Argument(
            metavar="DIR...", help="Folders of finished cross-validations; the first is the base."
        ),
    ],
    as_json: AsJson = False,
) -> None:
    """Compare cross-validations of the same graphs and folds with the first one.

    Differences are paired over graphs, ± their standard error. A difference is called significant
    by the corrected resampled t-test over folds, after Holm's correction over all comparisons, if
    it is also larger than two standard errors.
    """
    from dataclasses import asdict

    from ihgnn_cli.cli import console
    from ihgnn_cli.report.layout import p_value
    from ihgnn_cli.studies.side_by_side import compare_folders

    found = compare_folders(folders)
    if as_json:
        told = [
            {**asdict(each), "significant": None if each.gap is None else each.gap.significant}
            for each in found
        ]
        console.show_json({"base": folders[0], "results": told})
        return
    heads = ("Folder", "Model", "Accuracy", "Balanced", "ROC-AUC", "Difference", "p")
    table = console.table(None, *heads)
    table.columns[0].justify = "left"
    for each in found:
        gap = each.gap
        error = "" if gap is None or gap.error is None else f" ± {100 * gap.error:.1f}"
        table.add_row(
            console.plain(str(each.folder)),
            each.title,
            f"{100 * each.accuracy:.1f} ± {100 * each.accuracy_std:.1f}",
            "-" if each.balanced_accuracy is None else f"{100 * each.balanced_accuracy:.1f}",
            "-" if each.roc_auc is None else f"{each.roc_auc:.3f}",
            "" if gap is None else f"{100 * gap.difference:+.1f}{error}",
            "" if gap is None else "-" if gap.p_holm is None else p_value(gap.p_holm),
        )
    console.show(table)
    for each in found[1:]:
        if each.gap is not None:
            console.show(
                f"{each.folder}: {each.gap.verdict.lower()} {found[0].folder}: {each.gap.told}.",
                style="bold",
            )
    others = ", ".join(str(each.folder) for each in found if each.other_data)
    if others:
        console.show(f"Read other edges, labels or attributes of these graphs: {others}.")
