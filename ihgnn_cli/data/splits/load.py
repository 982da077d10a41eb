"""Load the split that a text names: `holdout`, `0.7/0.1/0.2`, `fold:3`, `all`, or a file."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np

from ihgnn_cli.data.dataset import GraphDataset
from ihgnn_cli.data.kinds import ALL, FOLD, HOLDOUT, file_readings, split_shares
from ihgnn_cli.data.splits.folds import PROTOCOL_FOLDS, draw_folds, read_fold_file
from ihgnn_cli.data.splits.split import Split, holdout
from ihgnn_cli.data.twins import twin_groups
from ihgnn_cli.errors import InputError
from ihgnn_cli.paths import expanded
from ihgnn_cli.words import counted

_Item = TypeVar("_Item")


def load_split(text: str, dataset: GraphDataset, seed: int) -> Split:
    """Load the split that a text names.

    `0.7/0.1/0.2` are the shares of train, validation and test, drawn like `holdout`, which is
    `0.8/0.1/0.1`. Folds and splits are counted from 0; `fold:3` is one of `draw_folds`, and
    `fold:3:twins` one of those that keep graphs with the same 1-WL colouring together. Use `FILE`
    for a file with one split, `FILE:3` for a fold with one split, and `FILE:3:0` otherwise. A file
    whose own name ends in `:3` is found, too, and `./holdout` is a file. With `all`, every graph
    trains, and validation and test are empty.

    Raises:
        InputError: the text has another form, or there is no such fold or split.
    """
    if text == ALL:
        none = np.empty(0, dtype=np.int64)
        return Split(np.arange(len(dataset)), none, none, may_be_empty=True)
    shares = split_shares(text)
    if text == HOLDOUT or shares is not None:
        _, validation, test = shares or (0.8, 0.1, 0.1)
        return holdout(dataset.graph_class, seed, validation_share=validation, test_share=test)
    if match := FOLD.fullmatch(text):
        groups = twin_groups(dataset) if match[2] else None
        if groups is not None and (there := len(np.unique(groups))) < PROTOCOL_FOLDS:
            raise InputError(
                f"{text} is one of {PROTOCOL_FOLDS} folds that keep twins together, and the data "
                f"has {counted(there, 'group')} of twins. Use fold:N or another split."
            )
        drawn = draw_folds(dataset.graph_class, seed, groups=groups)
        return _numbered(drawn, int(match[1]), "fold", "The protocol").splits[0]
    for name, numbers in file_readings(text):
        path = expanded(Path(name))
        if os.path.exists(path):  # noqa: PTH110  # names too long for a path raise in Path.exists
            return _from_file(path, numbers, dataset)
    raise InputError(
        f"No split '{text}', and no file of that name. Give {HOLDOUT}, shares such as 0.8/0.1/0.1, "
        f"fold:N or fold:N:twins (N from 0 to {PROTOCOL_FOLDS - 1}), or a fold file as FILE, "
        "FILE:N or FILE:N:I."
    )


def _from_file(path: Path, numbers: tuple[int, ...], dataset: GraphDataset) -> Split:
    folds = read_fold_file(path, len(dataset), whole=False)
    if not numbers and len(folds) > 1:
        raise InputError(
            f"{path} holds {len(folds)} folds. Append :0 to :{len(folds) - 1} to choose one."
        )
    number, inner = [*numbers, 0, 0][:2]
    splits = _numbered(folds, number, "fold", str(path)).splits
    if len(numbers) < 2 and len(splits) > 1:
        raise InputError(
            f"Fold {number} of {path} holds {len(splits)} splits into train and validation. "
            f"Give {path}:{number}:I with I from 0 to {len(splits) - 1} to choose one."
        )
    return _numbered(splits, inner, "split", f"Fold {number} of {path}")


def _numbered(items: Sequence[_Item], number: int, noun: str, owner: str) -> _Item:
    if number >= len(items):
        there = f"{noun}s are 0 to {len(items) - 1}" if len(items) > 1 else f"only {noun} is 0"
        raise InputError(f"{owner} has no {noun} {number}. Its {there}.")
    return items[number]
