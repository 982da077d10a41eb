"""The names of the homophily measures, in a module that imports fast for `--help`."""

from enum import StrEnum


class Measure(StrEnum):
    """A homophily measure of a graph."""

    NODE = "node"
    EDGE = "edge"
    ADJUSTED = "adjusted"

    @property
    def threshold(self) -> float:
        """Graphs at or above this value count as homophilic."""
        return 0.0 if self == Measure.ADJUSTED else 0.5

    @property
    def span(self) -> tuple[float, float]:
        """The range of a histogram."""
        return (-1.0, 1.0) if self == Measure.ADJUSTED else (0.0, 1.0)

    @property
    def label(self) -> str:
        """The name to display."""
        names = {Measure.NODE: "Node homophily β", Measure.EDGE: "Edge homophily"}
        return names.get(self, "Adjusted homophily")
