"""The outer folds of a cross-validation; imports without torch."""

from pathlib import Path

from ihgnn_cli.data.dataset import GraphDataset
from ihgnn_cli.data.splits import PROTOCOL_FOLDS, Fold, draw_folds, read_fold_file
from ihgnn_cli.data.twins import twin_groups
from ihgnn_cli.errors import InputError
from ihgnn_cli.paths import expanded
from ihgnn_cli.words import counted


def make_folds(
    dataset: GraphDataset,
    seed: int,
    *,
    file: Path | None = None,
    folds: int | None = None,
    inner: int | None = None,
    group_twins: bool = False,
) -> tuple[Fold, ...]:
    """Folds from a file, or drawn from the seed; by default ten with one hold-out each.

    If a file has more folds than requested, the first ones are used. With `group_twins`, graphs
    with the same 1-WL colouring are in the same part.

    Raises:
        InputError: there are too few graphs, or the file does not match the data, or has fewer
            folds or another number of inner folds than requested.
    """
    if file is None:
        count = PROTOCOL_FOLDS if folds is None else folds
        groups = twin_groups(dataset) if group_twins else None
        drawn = draw_folds(dataset.graph_class, seed, count, 1 if inner is None else inner, groups)
        return tuple(drawn)
    if group_twins:
        raise InputError("--group-twins draws folds, and --split-file reads them. Give one.")
    found = read_fold_file(expanded(file), len(dataset), whole=folds is None)
    if len(found) < 2:
        raise InputError(f"{file} holds one fold. Cross-validation needs at least 2.")
    counts = {len(fold.splits) for fold in found}
    if len(counts) > 1:
        raise InputError(f"{file} has folds with different numbers of inner splits.")
    there = counts.pop()
    if inner not in (None, there):
        raise InputError(
            f"{file} has {counted(there, 'inner fold')}, and --inner-folds asks for {inner}."
        )
    if folds is not None and not 2 <= folds <= len(found):
        raise InputError(
            f"{file} has {len(found)} folds, and --folds asks for {folds}. Use 2 to {len(found)}."
        )
    return tuple(found[:folds])
