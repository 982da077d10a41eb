"""Raw inputs of an exported model as a data set, so that requests can share a batch.

The inputs are checked first (`raw.checked`): a wrong index would make the network fail or answer
for another graph. What the exported graph ignores, such as self-loops, is left out here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ihgnn_cli.data.dataset import GraphDataset, offsets
from ihgnn_cli.data.recode import UNKNOWN
from ihgnn_cli.deploy.inputs import PADDING
from ihgnn_cli.deploy.onnx_model import OUTPUTS, OnnxClassifier
from ihgnn_cli.deploy.raw import checked
from ihgnn_cli.deploy.serving.requests import RefusedError
from ihgnn_cli.errors import InputError
from ihgnn_cli.models.card import ModelCard
from ihgnn_cli.models.spec import Layout

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Encoded:
    """The graphs of a request; nodes are numbered across them."""

    sizes: NDArray[np.int64]
    """[G] nodes of each graph."""
    labels: NDArray[np.int64]
    """[N]"""
    edges: NDArray[np.int64]
    """[2, E]"""
    attributes: NDArray[np.float32] | None
    """[N, a]"""
    edge_labels: NDArray[np.int64]
    """[E] zeros if the model reads none."""

    @property
    def size(self) -> int:
        """Nodes and edges."""
        return len(self.labels) + self.edges.size // 2


def encoded(inputs: Mapping[str, Array], classifier: OnnxClassifier) -> Encoded:
    """The graphs in the inputs of a model.

    Raises:
        RefusedError: the inputs do not describe graphs.
    """
    try:
        labels = len(classifier.card.edge_label_values)
        arrays = checked(classifier.inputs_of_file, inputs, labels)
    except InputError as error:
        raise RefusedError(400, str(error)) from None
    sparse = classifier.layout == Layout.SPARSE
    if len(arrays["ptr"]) < 2 if sparse else not len(arrays["node_labels"]):
        raise RefusedError(400, "There are no graphs.")
    found = _from_sparse(arrays) if sparse else _from_padded(arrays)
    if (found.sizes == 0).any():
        raise RefusedError(400, "A graph has no nodes.")
    return found


def infer(classifier: OnnxClassifier, requests: Sequence[Encoded]) -> list[dict[str, Array]]:
    """The outputs for each request, by name."""
    dataset = _dataset(classifier.card, requests)
    answers = classifier.answers(dataset, np.arange(len(dataset)))
    outputs = {name: getattr(answers, name) for name in OUTPUTS}
    found = {name: values for name, values in outputs.items() if values is not None}
    stops = np.cumsum([len(each.sizes) for each in requests])
    return [
        {name: values[stop - len(each.sizes) : stop] for name, values in found.items()}
        for each, stop in zip(requests, stops.tolist(), strict=True)
    ]


def _from_sparse(inputs: Mapping[str, Array]) -> Encoded:
    edges = inputs["edge_index"]
    labels = inputs.get("edge_labels", np.zeros_like(edges[0]))
    proper = edges[0] != edges[1]
    sizes, attributes = np.diff(inputs["ptr"]), inputs.get("attributes")
    return Encoded(sizes, inputs["node_labels"], edges[:, proper], attributes, labels[proper])


def _from_padded(inputs: Mapping[str, Array]) -> Encoded:
    labels, kind = inputs["node_labels"], inputs["adjacency"].astype(np.int64)
    kind = np.maximum(kind, kind.transpose(0, 2, 1))
    present = labels != PADDING
    both = present[:, :, None] & present[:, None, :] & ~np.eye(labels.shape[1], dtype=bool)
    graph, source, target = np.nonzero((kind > 0) & both)
    number = np.cumsum(present).reshape(present.shape) - 1
    edges = np.stack([number[graph, source], number[graph, target]])
    attributes = inputs.get("attributes")
    rows = None if attributes is None else attributes[present]
    of_edges = kind[graph, source, target] - 1
    return Encoded(present.sum(axis=1), labels[present], edges, rows, of_edges)


def _dataset(card: ModelCard, requests: Sequence[Encoded]) -> GraphDataset:
    """The graphs of all requests, as `encode_graphs` gives them."""
    nodes = np.array([len(each.labels) for each in requests])
    starts = offsets(nodes)
    source, target = np.concatenate(
        [each.edges + start for each, start in zip(requests, starts.tolist(), strict=False)], axis=1
    )
    node_ptr = offsets(np.concatenate([each.sizes for each in requests]))
    labels = np.concatenate([each.labels for each in requests])
    known = (labels >= 0) & (labels < len(card.label_values))
    rows = [each.attributes for each in requests if each.attributes is not None]
    order, used = np.lexsort((target, source)), bool(card.edge_label_values)
    edge_labels = np.concatenate([each.edge_labels for each in requests])[order]
    return GraphDataset(
        name="tensors",
        node_ptr=node_ptr,
        neighbor_ptr=offsets(np.bincount(source, minlength=int(starts[-1]))),
        neighbors=target[order].astype(np.int32),
        node_label=np.where(known, labels, UNKNOWN).astype(np.int32),
        label_values=card.label_values,
        label_source=card.label_source,
        graph_class=np.full(len(node_ptr) - 1, UNKNOWN, dtype=np.int32),
        class_values=card.class_values,
        node_attributes=np.concatenate(rows) if rows else None,
        edge_label=edge_labels.astype(np.int32) if used else None,
        edge_label_values=card.edge_label_values,
        uses_edge_labels=used,
    )
