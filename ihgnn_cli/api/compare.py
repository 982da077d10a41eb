"""Compares finished cross-validations."""

from pathlib import Path

from ihgnn_cli.api.messages import in_python
from ihgnn_cli.studies.compare_folders import Compared, compare_folders


@in_python
def compare(*folders: Path | str) -> tuple[Compared, ...]:
    """Compare cross-validations of the same graphs and folds with the first one.

    Differences are paired over graphs, and tested by the corrected resampled t-test over folds with
    Holm's correction (docs/crossval.md): `gap` of each result but the first one has `difference`,
    `error`, `p_holm`, `significant` and a `verdict` in words.

    Args:
        folders: those of two or more finished cross-validations.

    Raises:
        InputError: a folder has no finished cross-validation, or graphs or folds differ.
    """
    return compare_folders([Path(each) for each in folders])
