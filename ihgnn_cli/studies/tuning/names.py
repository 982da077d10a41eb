"""Names of samplers and pruners, which the command line reads without importing Optuna."""

from enum import StrEnum


class SamplerName(StrEnum):
    """Chooses the settings of each trial."""

    TPE = "tpe"
    GP = "gp"
    RANDOM = "random"
    GRID = "grid"


class PrunerName(StrEnum):
    """Stops unpromising trials early."""

    MEDIAN = "median"
    HYPERBAND = "hyperband"
    NONE = "none"
