"""The paper's published accuracies: all methods of Table 1 and the four ablations of Table 2.

`paper.csv` holds the two tables as printed (arXiv 2203.07678): mean ± standard deviation over ten
folds in percent, `OOM` where the authors' machine ran out of memory, and † where the paper quotes
a number from Errica et al. (ICLR 2020).
"""

import csv
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from ihgnn_cli.errors import InputError
from ihgnn_cli.models.registry import find_model
from ihgnn_cli.models.settings import Variant
from ihgnn_cli.settings import field_types
from ihgnn_cli.training.config import RunConfig, configure

REFERENCE = "ihgnn"
"""The key of the paper's own model."""
_ABLATION = f"{REFERENCE}:"  # before the name of a variant
_NO_MEMORY, _TAKEN_OVER = "OOM", "†"


@dataclass(frozen=True)
class PaperAccuracy:
    """Mean and standard deviation over ten folds, from 0 to 1 like all accuracies."""

    variant: Variant
    mean: float
    std: float


@dataclass(frozen=True)
class PaperCell:
    """The published accuracy of a method on a data set, from 0 to 1."""

    mean: float | None
    """`None`, like the standard deviation, if the method ran out of memory."""
    std: float | None
    taken_over: bool = False
    """Whether the number comes from Errica et al., not from the paper's own runs."""

    @property
    def out_of_memory(self) -> bool:
        """Whether the paper has no number because the method ran out of memory."""
        return self.mean is None


@dataclass(frozen=True)
class _Method:
    title: str
    cells: dict[str, PaperCell]
    """By the name of the data set."""


@cache
def _methods() -> dict[str, _Method]:
    with (files("ihgnn_cli.studies") / "paper.csv").open(encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    return {
        row.pop("key"): _Method(row.pop("title"), {name: _cell(row[name]) for name in row})
        for row in rows
    }


def _cell(text: str) -> PaperCell:
    if text == _NO_MEMORY:
        return PaperCell(None, None)
    mean, std = (round(float(each) / 100, 3) for each in text.rstrip(_TAKEN_OVER).split("±"))
    return PaperCell(mean, std, text.endswith(_TAKEN_OVER))


def table1_models() -> tuple[str, ...]:
    """The keys of Table 1's methods, in its order: IHGNN is the last."""
    return tuple(key for key in _methods() if not key.startswith(_ABLATION))


def table2_models() -> tuple[str, ...]:
    """The keys of Table 2's rows, in its order: the ablations, then IHGNN."""
    ablations = [key for key in _methods() if key.startswith(_ABLATION)]
    return (*ablations, REFERENCE)


def paper_datasets() -> tuple[str, ...]:
    """The data sets of both tables, in their order."""
    return tuple(_methods()[REFERENCE].cells)


def model_title(key: str) -> str:
    """A method's name in the paper, or its own title if the paper does not include it."""
    found = _methods().get(key)
    if found is not None:
        return found.title
    try:
        return find_model(key).title
    except InputError:  # no longer installed
        return key


def variant_key(variant: Variant) -> str:
    """The key of IHGNN or one of its ablations."""
    return REFERENCE if variant == Variant.FULL else f"{_ABLATION}{variant}"


def printed(dataset_name: str, key: str) -> PaperCell | None:
    """The published accuracy of a method on a data set, if the paper includes both.

    A cell without numbers means that the paper reports out of memory.
    """
    found = _methods().get(key)
    return None if found is None else found.cells.get(dataset_name)


def paper_accuracy(dataset_name: str, variant: Variant) -> PaperAccuracy | None:
    """The published accuracy of an IHGNN variant on a data set, if the paper includes it."""
    found = printed(dataset_name, variant_key(variant))
    if found is None or found.mean is None or found.std is None:
        return None
    return PaperAccuracy(variant, found.mean, found.std)


def model_config(key: str) -> RunConfig:
    """The default configuration of a model or of one of IHGNN's ablations.

    Raises:
        InputError: there is no such model.
    """
    name, colon, variant = key.partition(":")
    if not colon:
        return configure(model=name)
    if variant not in set(field_types(find_model(name).settings).get("variant", ())):
        known = ", ".join(f"{REFERENCE}:{each}" for each in Variant if each != Variant.FULL)
        raise InputError(f"No model '{key}'. Ablations are {known}.")
    return configure(overrides={"variant": variant}, model=name)


def check_models(keys: Iterable[str]) -> tuple[str, ...]:
    """The keys without duplicates.

    Raises:
        InputError: a key is unknown.
    """
    found = tuple(dict.fromkeys(keys))
    for key in found:
        model_config(key)
    return found
