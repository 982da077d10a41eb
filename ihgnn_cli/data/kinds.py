"""Names of features and splits; imports without NumPy, to refuse wrong options at once."""

from enum import StrEnum

HOLDOUT = "holdout"
"""The split into 80, 10 and 10 %."""


class Features(StrEnum):
    """The columns of a node's feature vector."""

    LABELS = "labels"
    ATTRIBUTES = "attributes"
    BOTH = "both"
