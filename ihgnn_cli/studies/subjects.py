"""Names of the paper's tables and figures that can be reproduced; fast to import."""

from enum import StrEnum


class Subject(StrEnum):
    """A table or figure."""

    TABLE1 = "table1"
    TABLE2 = "table2"
    FIGURE1 = "figure1"
    SENSITIVITY = "sensitivity"
    SWEEP = "homophily-sweep"
