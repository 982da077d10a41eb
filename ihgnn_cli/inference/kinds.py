"""Choices of the command line, importable without NumPy."""

from enum import StrEnum


class Part(StrEnum):
    """The graphs of a model's own data set that are evaluated."""

    ALL = "all"
    TRAIN = "train"
    VALIDATION = "validation"
    TEST = "test"
