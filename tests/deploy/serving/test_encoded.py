"""Raw inputs of requests become the graphs that they describe."""

import numpy as np
import pytest
from ihgnn_cli.deploy.form import Form, Layout
from tiny_models import ALL, dataset, untrained

from ihgnn_cli.deploy.inputs import inputs_for
from ihgnn_cli.deploy.metadata import Limits, described, metadata
from ihgnn_cli.deploy.serving import encoded

LIMITS = Limits(node_limit=6, numbers=(48, 1, 0), embedding=8)
SETTINGS = {"variant": "full", "width": 8, "layers": 1, "hidden": 4}


@pytest.mark.parametrize("layout", Layout)
@pytest.mark.parametrize("edge_labels", [False, True])
def test_tensors_of_several_requests_are_the_graphs_they_encode(
    layout: Layout, edge_labels: bool
) -> None:
    data = dataset(*ALL, edge_labels=edge_labels)
    card = untrained(data).card
    about = described(metadata(card, SETTINGS, 1, Form(layout), LIMITS))
    halves = np.array_split(np.arange(len(data)), 2)
    requests = [encoded.encoded(inputs_for(layout, card, data, graphs), about) for graphs in halves]
    found = encoded._dataset(card, requests)
    for name in ("node_ptr", "neighbor_ptr", "neighbors"):
        np.testing.assert_array_equal(getattr(found, name), getattr(data, name), err_msg=name)
    assert found.uses_edge_labels is edge_labels
    if edge_labels:
        np.testing.assert_array_equal(found.edge_type, data.edge_type)
