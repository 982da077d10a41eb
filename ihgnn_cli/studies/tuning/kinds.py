"""Words of the command line that need no Optuna."""

from enum import StrEnum


class SamplerName(StrEnum):
    """Who chooses the settings of a trial."""

    TPE = "tpe"
    GP = "gp"
    RANDOM = "random"
    GRID = "grid"


class PrunerName(StrEnum):
    """Who gives trials up."""

    MEDIAN = "median"
    HYPERBAND = "hyperband"
    NONE = "none"
