"""Write a data set as JSON lines (see `jsongraph`), so that `read_jsonl` gives the same graphs."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from ihgnn_cli.data.dataset import GraphDataset, LabelSource, Value
from ihgnn_cli.files import written_whole


def write_jsonl(dataset: GraphDataset, path: Path | str) -> None:
    """Write the file, whole or not at all."""
    with (
        written_whole(Path(path)) as temporary,
        temporary.open("w", encoding="utf-8", newline="\n") as stream,
    ):
        for entry in _entries(dataset):
            stream.write(json.dumps(entry, ensure_ascii=False) + "\n")


def _entries(dataset: GraphDataset) -> Iterator[dict[str, object]]:
    source, target = dataset.edge_index()
    # An edge is written once, unless its label or attributes depend on the direction.
    mirror = np.lexsort((source, target))
    differs = np.zeros(len(source), dtype=bool)
    for column in (dataset.edge_label, dataset.edge_attributes):
        if column is not None:
            unequal = column != column[mirror]
            differs |= unequal.any(axis=tuple(range(1, unequal.ndim)))
    for graph in range(len(dataset)):
        nodes = slice(*dataset.node_ptr[graph : graph + 2].tolist())
        span = slice(*dataset.edge_ptr[graph : graph + 2].tolist())
        once = np.flatnonzero((source[span] < target[span]) | differs[span]) + span.start
        pairs = np.stack([source[once], target[once]], axis=1) - nodes.start
        entry: dict[str, object] = {}
        if dataset.label_source == LabelSource.LABELS:
            entry["node_labels"] = _decoded(dataset.node_label[nodes], dataset.label_values)
        else:
            entry["num_nodes"] = nodes.stop - nodes.start
        entry["edges"] = pairs.tolist()
        entry["class"] = dataset.class_values[dataset.graph_class[graph]]
        if dataset.node_attributes is not None:
            entry["node_attributes"] = dataset.node_attributes[nodes].tolist()
        if dataset.edge_label is not None:
            entry["edge_labels"] = _decoded(dataset.edge_label[once], dataset.edge_label_values)
        if dataset.edge_attributes is not None:
            entry["edge_attributes"] = dataset.edge_attributes[once].tolist()
        yield entry


def _decoded(positions: Iterable[int], values: tuple[Value, ...]) -> list[Value]:
    return [values[position] for position in positions]
