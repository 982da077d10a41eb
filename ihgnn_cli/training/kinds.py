"""Choices of the command line, importable without torch."""

from enum import StrEnum


class Recipe(StrEnum):
    """Settings that belong together and have a name: the TOML files in `recipes`."""

    PAPER = "paper"
    AUTHORS = "authors"
