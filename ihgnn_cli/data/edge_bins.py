"""Bins of an edge attribute as edge labels: a learned step function of a distance, for example.

The boundaries are constants of the data set, like its vocabulary: quantiles over all edges, without
classes. A trained model keeps them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

_SHOWN = 10


@dataclass(frozen=True)
class EdgeBins:
    """How an edge label is computed from the edge's attribute."""

    boundaries: tuple[float, ...]
    """Ascending. The bin of an edge is the number of boundaries below its attribute, so that a
    value equal to a boundary is in the lower bin."""
    labels: bool = False
    """Whether the edge label is part of it: label 1 and bin 0 are the label `1,0`."""

    @property
    def count(self) -> int:
        """Number of bins."""
        return len(self.boundaries) + 1

    def of(self, attributes: ArrayLike) -> NDArray[np.int64]:
        """The bin of each attribute, which counts as a 32-bit float, as data sets store it."""
        values = np.asarray(attributes, dtype=np.float32).astype(np.float64)
        return np.searchsorted(np.array(self.boundaries), values)

    def joined(self, labels: Sequence[int | str], attributes: ArrayLike) -> list[int | str]:
        """The label of each edge, from its own label (if it is part of it) and its attribute."""
        bins: list[int | str] = self.of(attributes).tolist()
        if not self.labels:
            return bins
        return [f"{label},{bin_}" for label, bin_ in zip(labels, bins, strict=True)]

    def split(self, value: int | str) -> tuple[str, float]:
        """An edge label and an attribute for which `joined` returns this value."""
        label, _, bin_ = str(value).rpartition(",")
        ends = (*self.boundaries, float(np.nextafter(np.float32(self.boundaries[-1]), np.inf)))
        return label, ends[int(bin_)]

    def own_labels(self, values: Sequence[int | str]) -> tuple[str, ...]:
        """The edge labels that are part of these values, in their order."""
        found = dict.fromkeys(self.split(each)[0] for each in values)
        return tuple(found) if self.labels else ()

    def sentence(self, requested: int | None = None) -> str:
        """The bins in words, and whether there are fewer than requested."""
        shown = [f"{each:.4g}" for each in self.boundaries]
        if len(shown) > _SHOWN:
            shown = [*shown[:3], "...", shown[-1]]
        merged = ""
        if requested and requested > self.count:
            merged = f" ({requested} requested; equal quantiles were merged)"
        return f"Divided the edge attribute into {self.count} bins{merged} at {', '.join(shown)}."

    def as_plain(self) -> dict[str, Any]:
        """As plain values, for JSON and torch.save."""
        return {"boundaries": list(self.boundaries), "labels": self.labels}


def bins_from_plain(plain: Mapping[str, Any]) -> EdgeBins:
    """The bins from their plain values.

    Raises:
        KeyError, TypeError, ValueError: these are not valid bins.
    """
    boundaries = tuple(map(float, plain["boundaries"]))
    if not boundaries or any(not one < other for one, other in pairwise(boundaries)):
        raise ValueError("the boundaries of edge bins must ascend")
    return EdgeBins(boundaries, bool(plain["labels"]))


def quantile_boundaries(values: NDArray[np.float32], count: int) -> tuple[float, ...]:
    """The values that divide all values into about equal parts; equal ones are merged.

    No bin is empty, so that there are fewer bins than requested if few values differ; without two
    different values there is no boundary.
    """
    distinct = np.unique(values)
    if len(distinct) < 2:
        return ()
    inner = np.linspace(0, 1, count + 1)[1:-1]
    ends = np.quantile(values, inner, method="inverted_cdf")
    return tuple(np.unique(np.minimum(ends, distinct[-2])).tolist())
