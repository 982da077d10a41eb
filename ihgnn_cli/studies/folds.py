"""The outer folds of a cross-validation; imports without torch."""

from pathlib import Path

from ihgnn_cli.data.dataset import GraphDataset
from ihgnn_cli.data.splits import PROTOCOL_FOLDS, Fold, draw_folds, read_fold_file
from ihgnn_cli.data.twins import twin_groups
from ihgnn_cli.errors import InputError, SettingError
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
    repeats: int = 1,
) -> tuple[Fold, ...]:
    """Folds from a file, or drawn from the seed; by default ten with one hold-out each.

    If a file has more folds than requested, the first ones are used. With `group_twins`, graphs
    with the same 1-WL colouring are in the same part. With `repeats`, that many partitions follow
    each other, drawn from the seed, the seed + 1, and so on.

    Raises:
        InputError: there are too few graphs, or the file does not match the data, or has fewer
            folds or another number of inner folds than requested.
    """
    if repeats < 1:
        raise SettingError("repeats", f"must be at least 1, not {repeats}.")
    if file is None:
        count = PROTOCOL_FOLDS if folds is None else folds
        groups = twin_groups(dataset) if group_twins else None
        return tuple(
            fold
            for repeat in range(repeats)
            for fold in draw_folds(
                *(dataset.graph_class, repeat_seed(seed, repeat), count),
                *(1 if inner is None else inner, groups),
            )
        )
    if repeats > 1:
        raise InputError("--repeats draws partitions, and --split-file reads one. Give one.")
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


def repeat_seed(seed: int, repeat: int) -> int:
    """The seed of a repeat's partition and trainings: `--seed` with it gives the same alone."""
    return (seed + repeat) % 2**63


def of_repeat(name: str, repeat: int) -> str:
    """The name of a file that every repeat has; the first has the plain name."""
    stem, dot, suffix = name.rpartition(".")
    return f"{stem}-repeat{repeat}{dot}{suffix}" if repeat else name
