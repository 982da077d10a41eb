"""Command-line choices that can be imported without torch."""

from enum import StrEnum


class Recipe(StrEnum):
    """A named set of settings: one of the TOML files in `recipes`."""

    PAPER = "paper"
    AUTHORS = "authors"
    ROBUST = "robust"


class ClassWeights(StrEnum):
    """How much a graph counts in the training loss, by its class."""

    NONE = "none"
    """All graphs count the same."""
    BALANCED = "balanced"
    """All classes count the same: n / (classes · count) on the training graphs."""
