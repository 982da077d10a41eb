"""What of the paper can be reproduced, by name; importing this is instant."""

from enum import StrEnum


class Subject(StrEnum):
    """A table or figure."""

    TABLE1 = "table1"
    TABLE2 = "table2"
    FIGURE1 = "figure1"
    SENSITIVITY = "sensitivity"
    SWEEP = "homophily-sweep"
