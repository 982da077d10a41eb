"""Convert graphs from and to torch-geometric."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from ihgnn_cli.data.build import Coded, ListedGraphs, build
from ihgnn_cli.data.dataset import GraphDataset, LabelSource, Value, vocabulary
from ihgnn_cli.data.features import Features, node_features, one_hot
from ihgnn_cli.errors import InputError
from ihgnn_cli.settings import checked


class PygGraphs(list[Data]):
    """A list of graphs with their vocabularies, so that `from_pyg` can restore the data set."""

    def __init__(self, graphs: Iterable[Data], dataset: GraphDataset, features: Features | None):
        super().__init__(graphs)
        self.name = dataset.name
        self.class_values = dataset.class_values
        self.label_values = dataset.label_values
        self.label_source = dataset.label_source
        self.edge_label_values = dataset.edge_label_values
        self.num_node_attributes = (
            0 if features in (None, Features.LABELS) else _width(dataset.node_attributes)
        )
        self.num_edge_attributes = _width(dataset.edge_attributes)


def from_pyg(
    graphs: Iterable[Data],
    *,
    name: str | None = None,
    classes: Sequence[Value] | None = None,
) -> GraphDataset:
    """Make a `GraphDataset` from a torch-geometric data set or list of `Data`.

    Each graph needs `edge_index` and `y` (one class). `x` becomes node labels if every row is
    one-hot or a single integer, otherwise attributes, and `edge_attr` likewise of edges. If the
    data set says how many leading columns are attributes (`num_node_attributes`, as `TUDataset`
    does), the rest are labels. Without labels, degrees are used. (A single column of ones is one
    label.) `classes`, one per graph, replace `y`.

    Raises:
        InputError: there are no graphs, or a graph is incomplete; says which.
    """
    if isinstance(graphs, Data):
        raise InputError("from_pyg takes a list of graphs or a data set. Give [graph].")
    items = list(graphs)
    name = name or getattr(graphs, "name", None) or type(graphs).__name__
    if not items:
        raise InputError(f"{name} holds no graphs. Give at least one.")
    sizes = [_num_nodes(name, index, item) for index, item in enumerate(items)]
    edges = [_edge_index(name, index, item, sizes[index]) for index, item in enumerate(items)]
    starts = np.cumsum([0, *sizes[:-1]])
    pairs = np.concatenate(
        [each + start for each, start in zip(edges, starts, strict=True)], axis=1
    )
    node_attributes, node_labels = _interpreted(
        _stacked(name, items, "x", sizes),
        _attribute_columns(graphs, "node", items[0].get("x")),
        getattr(graphs, "label_values", None),
        joint=_are_labels(graphs, "node"),
    )
    edge_attributes, edge_labels = _interpreted(
        _stacked(name, items, "edge_attr", [each.shape[1] for each in edges]),
        _attribute_columns(graphs, "edge", items[0].get("edge_attr")),
        getattr(graphs, "edge_label_values", None),
        joint=_are_labels(graphs, "edge"),
    )
    dataset = build(
        ListedGraphs(
            name=name,
            sizes=np.array(sizes),
            source=pairs[0].astype(np.int32),
            target=pairs[1].astype(np.int32),
            classes=_named(_classes(name, items), getattr(graphs, "class_values", None))
            if classes is None
            else vocabulary(np.array(classes)),
            node_labels=node_labels,
            node_attributes=node_attributes,
            edge_labels=edge_labels,
            edge_attributes=edge_attributes,
            keep_edge_values=isinstance(graphs, PygGraphs),
        )
    )
    return _with_known_degrees(dataset, graphs) if isinstance(graphs, PygGraphs) else dataset


def _with_known_degrees(dataset: GraphDataset, graphs: PygGraphs) -> GraphDataset:
    """Restore degree labels as positions among the degrees of the original data set."""
    both = {dataset.label_source, graphs.label_source} == {LabelSource.DEGREE}
    if not both or not set(dataset.label_values) <= set(graphs.label_values):
        return dataset
    label = np.searchsorted(np.array(graphs.label_values), dataset.degree).astype(np.int32)
    return replace(dataset, node_label=label, label_values=graphs.label_values)


def to_pyg(dataset: GraphDataset, features: Features | None = None) -> PygGraphs:
    """Convert the graphs to torch-geometric `Data`; edges are sorted by source, then target.

    `x` holds the chosen `features` (see `node_features`); by default, those the data set has, and
    no `x` if labels are only degrees. `edge_attr` holds edge attributes followed by one-hot edge
    labels. `from_pyg` restores the data set.
    """
    features = (
        _own_features(dataset) if features is None else checked("features", features, Features)
    )
    x = None if features is None else torch.tensor(node_features(dataset, features))
    edge_index = torch.tensor(dataset.edge_index())
    edge_attr = _edge_attr(dataset)
    classes = torch.tensor(dataset.graph_class, dtype=torch.long)
    nodes, edges = dataset.node_ptr.tolist(), dataset.edge_ptr.tolist()
    graphs = (
        Data(
            x=None if x is None else x[nodes[graph] : nodes[graph + 1]],
            edge_index=edge_index[:, edges[graph] : edges[graph + 1]] - nodes[graph],
            edge_attr=None if edge_attr is None else edge_attr[edges[graph] : edges[graph + 1]],
            y=classes[graph : graph + 1],
            num_nodes=nodes[graph + 1] - nodes[graph],
        )
        for graph in range(len(dataset))
    )
    return PygGraphs(graphs, dataset, features)


def _own_features(dataset: GraphDataset) -> Features | None:
    has_labels = dataset.label_source == LabelSource.LABELS
    if dataset.node_attributes is None:
        return Features.LABELS if has_labels else None
    return Features.BOTH if has_labels else Features.ATTRIBUTES


def _edge_attr(dataset: GraphDataset) -> Tensor | None:
    blocks = []
    if dataset.edge_attributes is not None:
        blocks.append(dataset.edge_attributes)
    if dataset.edge_label is not None:
        blocks.append(one_hot(dataset.edge_label, len(dataset.edge_label_values)))
    return torch.tensor(np.concatenate(blocks, axis=1)) if blocks else None


def _width(table: NDArray[np.float32] | None) -> int:
    return 0 if table is None else table.shape[1]


def _num_nodes(name: str, index: int, item: Data) -> int:
    count = item.num_nodes
    if not count:
        raise InputError(f"{name}: graph {index} has no nodes. Remove it.")
    return int(count)


def _edge_index(name: str, index: int, item: Data, num_nodes: int) -> NDArray[np.int64]:
    if item.edge_index is None:
        raise InputError(f"{name}: graph {index} has no edge_index. Give it one of shape [2, E].")
    edges: NDArray[np.int64] = item.edge_index.detach().cpu().numpy().astype(np.int64)
    if edges.ndim != 2 or edges.shape[0] != 2:
        raise InputError(f"{name}: edge_index of graph {index} is not [2, E]. Transpose it?")
    if edges.size and (edges.min() < 0 or edges.max() >= num_nodes):
        raise InputError(
            f"{name}: edge_index of graph {index} names a node that does not exist "
            f"({num_nodes} nodes). Set num_nodes, or correct the edges."
        )
    return edges


def _classes(name: str, items: list[Data]) -> NDArray[np.int64]:
    found = []
    for index, item in enumerate(items):
        y = item.y
        value = y.reshape(-1).tolist() if isinstance(y, Tensor) else [y]
        if len(value) != 1 or not _is_whole(value[0]):
            raise InputError(
                f"{name}: y of graph {index} is {value}, not one class. ihgnn classifies graphs; "
                "give each graph a single integer y."
            )
        found.append(int(value[0]))
    return np.array(found)


def _is_whole(value: object) -> bool:
    return isinstance(value, int) or (isinstance(value, float) and value.is_integer())


def _stacked(
    name: str, items: list[Data], key: str, expected: list[int]
) -> NDArray[np.generic] | None:
    """[rows, columns] of a feature over all graphs, or `None` if no graph has it."""
    rows = [item.get(key) for item in items]
    if all(row is None for row in rows):
        return None
    blocks = []
    for index, (row, count) in enumerate(zip(rows, expected, strict=True)):
        if row is None or len(row) != count:
            raise InputError(
                f"{name}: {key} of graph {index} does not have {count} rows. "
                "Give it to every graph, or to none."
            )
        blocks.append(row.detach().cpu().reshape(count, -1) if count else None)
    full = [block for block in blocks if block is not None]
    if not full:
        return None
    if len({block.shape[1] for block in full}) > 1:
        raise InputError(f"{name}: {key} differs in width between graphs. Make them equal.")
    stacked = torch.cat(full)
    return np.asarray((stacked.float() if stacked.dtype is torch.bfloat16 else stacked).numpy())


def _attribute_columns(graphs: object, of: str, table: Tensor | None) -> int:
    """Number of leading columns that are attributes; `TUDataset` omits them by default."""
    attributes = int(getattr(graphs, f"num_{of}_attributes", 0))
    labels = getattr(graphs, f"num_{of}_labels", None)
    if labels is None or table is None:
        return attributes
    width = table.shape[1] if table.dim() > 1 else 1
    return attributes if width == attributes + labels else 0


def _are_labels(graphs: object, of: str) -> bool:
    """Whether the data set declares the columns after the attributes as labels."""
    return bool(getattr(graphs, f"num_{of}_labels", 0))


def _interpreted(
    table: NDArray[np.generic] | None,
    attribute_columns: int,
    values: Sequence[Value] | None,
    *,
    joint: bool,
) -> tuple[NDArray[np.float32] | None, Coded | None]:
    """Attributes and labels in a feature matrix; `joint` combines several labels per row."""
    if table is None or not table.shape[1]:
        return None, None
    if attribute_columns >= table.shape[1]:
        return _finite(table), None
    attributes, rest = None, table
    if attribute_columns:
        attributes, rest = _finite(table[:, :attribute_columns]), table[:, attribute_columns:]
    coded = _as_labels(rest, values)
    if coded is None and joint and _is_binary(rest):
        coded = _joint_labels(rest)
    if coded is not None:
        return attributes, coded
    return _finite(table), None


def _as_labels(table: NDArray[np.generic], values: Sequence[Value] | None) -> Coded | None:
    if table.shape[1] == 1 and np.issubdtype(table.dtype, np.integer):
        return _named(table[:, 0].astype(np.int64), values)
    if _is_one_hot(table):
        # Columns that never occur stay, so that a model reads the same x.
        return _named(np.asarray(table.argmax(axis=1)), values or range(table.shape[1]))
    return None


def _is_binary(table: NDArray[np.generic]) -> bool:
    return bool(((table == 1) | (table == 0)).all())


def _is_one_hot(table: NDArray[np.generic]) -> bool:
    return _is_binary(table) and bool(((table == 1).sum(axis=1) == 1).all())


def _joint_labels(table: NDArray[np.generic]) -> Coded:
    """Join several one-hot blocks (Cuneiform) into one label: the columns of the ones, as `0,3`."""
    distinct, position = np.unique(table, axis=0, return_inverse=True)
    texts = [",".join(map(str, np.flatnonzero(row).tolist())) for row in distinct]
    rank, values = vocabulary(np.array(texts))
    return rank[position.reshape(-1)], values


def _finite(table: NDArray[np.generic]) -> NDArray[np.float32]:
    with np.errstate(over="ignore"):
        result = table.astype(np.float32)
    if not np.isfinite(result).all():
        raise InputError("The features hold NaN or infinity. Replace them with finite numbers.")
    return result


def _named(positions: NDArray[np.integer], values: Sequence[Value] | None) -> Coded:
    """Positions with their values; without values, the distinct numbers are the vocabulary."""
    if values is None:
        return vocabulary(positions)
    if positions.min() < 0 or positions.max() >= len(values):
        raise InputError(f"Position {positions.max()} has no value among {len(values)}. Give all.")
    return positions.astype(np.int32), tuple(values)
