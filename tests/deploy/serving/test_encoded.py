"""Raw inputs of requests become the graphs that they describe."""

from types import SimpleNamespace

import numpy as np
import pytest
from tiny_models import ALL, dataset, untrained

from ihgnn_cli.deploy.inputs import inputs_for
from ihgnn_cli.deploy.serving import encoded
from ihgnn_cli.models.spec import Layout

PADDED = {
    "node_labels": ("tensor(int64)", ["batch", "nodes"]),
    "adjacency": ("tensor(uint8)", ["batch", "nodes", "nodes"]),
}
SPARSE = {
    "node_labels": ("tensor(int64)", ["nodes"]),
    "edge_index": ("tensor(int64)", [2, "edges"]),
    "ptr": ("tensor(int64)", ["batch_plus_1"]),
}
LABELS = {"edge_labels": ("tensor(int64)", ["edges"])}


@pytest.mark.parametrize("layout", Layout)
@pytest.mark.parametrize("edge_labels", [False, True])
def test_tensors_of_several_requests_are_the_graphs_they_encode(
    layout: Layout, edge_labels: bool
) -> None:
    data = dataset(*ALL, edge_labels=edge_labels)
    card = untrained(data).card
    inputs = PADDED if layout == Layout.PADDED else SPARSE | (LABELS if edge_labels else {})
    about = SimpleNamespace(card=card, layout=layout, inputs_of_file=inputs)
    halves = np.array_split(np.arange(len(data)), 2)
    requests = [encoded.encoded(inputs_for(layout, card, data, graphs), about) for graphs in halves]
    found = encoded._dataset(card, requests)
    for name in ("node_ptr", "neighbor_ptr", "neighbors"):
        np.testing.assert_array_equal(getattr(found, name), getattr(data, name), err_msg=name)
    assert found.uses_edge_labels is edge_labels
    if edge_labels:
        np.testing.assert_array_equal(found.edge_type, data.edge_type)
