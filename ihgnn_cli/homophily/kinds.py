"""The names of the homophily measures, apart from their arithmetic so that `--help` is instant."""

from enum import StrEnum


class Measure(StrEnum):
    """A homophily measure of a graph."""

    NODE = "node"
    EDGE = "edge"
    ADJUSTED = "adjusted"

    @property
    def threshold(self) -> float:
        """From here on a graph counts as mostly homophilic."""
        return 0.0 if self == Measure.ADJUSTED else 0.5

    @property
    def span(self) -> tuple[float, float]:
        """The values a histogram has to cover."""
        return (-1.0, 1.0) if self == Measure.ADJUSTED else (0.0, 1.0)

    @property
    def label(self) -> str:
        """The name to print."""
        names = {Measure.NODE: "Node homophily β", Measure.EDGE: "Edge homophily"}
        return names.get(self, "Adjusted homophily")
