"""Node inputs that are computed from the graph: degree, homophily, triangles, random walks.

They are extra attribute columns of the encoded graph. Each is a number x of a node, from the graph
alone, standardised with two constants of the model's data set: (x - shift) / scale.

    log_degree   ln(1 + d(v)), d(v) the number of neighbours; shift: mean, scale: deviation
    degree       d(v); shift and scale: mean
    homophily    alpha_v, the share of neighbours with the same label (equation 1)
    triangles    ln(1 + number of triangles with v)
    return_2     probability that a random walk from v is back after 2 steps; likewise 3 and 4
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ihgnn_cli.data.dataset import GraphDataset, LabelSource
from ihgnn_cli.data.features import Features
from ihgnn_cli.data.kinds import NodeInputs, node_inputs
from ihgnn_cli.homophily.measures import node_homophily

Column = NDArray[np.float64]

COLUMNS: Mapping[NodeInputs, tuple[str, ...]] = {
    NodeInputs.DEGREE: ("log_degree", "degree"),
    NodeInputs.HOMOPHILY: ("homophily",),
    NodeInputs.TRIANGLES: ("triangles",),
    NodeInputs.RANDOM_WALK: ("return_2", "return_3", "return_4"),
}
"""The columns of each input."""


@dataclass(frozen=True)
class InputColumn:
    """A computed column of a model and its constants."""

    name: str
    shift: float
    scale: float


def column_from_plain(plain: Mapping[str, Any]) -> InputColumn:
    """A column from its plain values.

    Raises:
        KeyError, TypeError, ValueError: the values are not a column.
    """
    found = InputColumn(str(plain["name"]), float(plain["shift"]), float(plain["scale"]))
    if found.name not in _RAW or not np.isfinite(found.shift) or not 0 < found.scale < np.inf:
        raise ValueError(f"{dict(plain)} is not a computed input")
    return found


def degree_adds_nothing(text: str, labels: LabelSource, features: Features) -> bool:
    """Whether degrees are among the inputs, but a model reads them as node labels anyway."""
    read = labels == LabelSource.DEGREE and features != Features.ATTRIBUTES
    return read and NodeInputs.DEGREE in node_inputs(text)


def column_names(text: str, labels: LabelSource, features: Features) -> tuple[str, ...]:
    """The columns of a list of inputs; degrees are left out where a model reads them as labels."""
    left_out = NodeInputs.DEGREE if degree_adds_nothing(text, labels, features) else None
    return tuple(name for each in node_inputs(text) if each != left_out for name in COLUMNS[each])


def fit_columns(dataset: GraphDataset, text: str, features: Features) -> tuple[InputColumn, ...]:
    """The columns of a list of inputs, with the constants of a data set."""
    found = []
    for name in column_names(text, dataset.label_source, features):
        raw = _RAW[name](dataset)
        mean, deviation = float(raw.mean()), float(raw.std())
        # A constant column carries no information; its scale only has to be a number.
        scale = mean if name == "degree" else deviation
        found.append(InputColumn(name, mean, scale or 1.0))
    return tuple(found)


def with_columns(
    dataset: GraphDataset, features: Features, columns: Sequence[InputColumn]
) -> GraphDataset:
    """The data set with attributes as a model reads them: its own, if any, then computed ones.

    Args:
        dataset: the graphs.
        features: what the model reads of them.
        columns: the computed inputs; without any, nothing changes.
    """
    if not columns:
        return dataset
    computed = np.column_stack(
        [(_RAW[each.name](dataset) - each.shift) / each.scale for each in columns]
    ).astype(np.float32)
    own = dataset.node_attributes
    if features != Features.LABELS and own is not None:
        computed = np.concatenate([own, computed], axis=1)
    return replace(dataset, node_attributes=computed)


def model_features(features: Features, columns: Sequence[object]) -> Features:
    """The features of a model that also reads computed columns."""
    return Features.BOTH if columns and features == Features.LABELS else features


def _log_degree(dataset: GraphDataset) -> Column:
    return np.log1p(dataset.degree.astype(np.float64))


def _degree(dataset: GraphDataset) -> Column:
    return dataset.degree.astype(np.float64)


def _triangles(dataset: GraphDataset) -> Column:
    # Counts below 2^24 are exact in single precision.
    twice = [((a @ a) * a).sum(1, dtype=np.float64) for a in _matrices(dataset, np.float32)]
    return np.log1p(np.concatenate(twice) / 2)


def _returning(steps: int) -> Callable[[GraphDataset], Column]:
    def returning(dataset: GraphDataset) -> Column:
        found = []
        for a in _matrices(dataset, np.float64):
            # Symmetric and similar to the transition matrix, so powers have the same diagonal.
            root = 1 / np.sqrt(np.maximum(a.sum(1), 1))
            once = a * root * root[:, None]
            twice = once if steps == 2 else once @ once
            found.append((twice * (twice if steps == 4 else once)).sum(1))
        # Rounding differs between equivalent nodes, which would no longer share a row.
        return np.concatenate(found).round(9)

    return returning


def _matrices(dataset: GraphDataset, kind: type) -> Iterator[NDArray[Any]]:
    """The adjacency matrix of each graph, one at a time."""
    source, target = dataset.edge_index()
    for graph in range(len(dataset)):
        first, end = dataset.node_ptr[graph], dataset.node_ptr[graph + 1]
        edges = slice(dataset.edge_ptr[graph], dataset.edge_ptr[graph + 1])
        matrix = np.zeros((end - first, end - first), dtype=kind)
        matrix[source[edges] - first, target[edges] - first] = 1
        yield matrix


_RAW: Mapping[str, Callable[[GraphDataset], Column]] = {
    "log_degree": _log_degree,
    "degree": _degree,
    "homophily": node_homophily,
    "triangles": _triangles,
    "return_2": _returning(2),
    "return_3": _returning(3),
    "return_4": _returning(4),
}
