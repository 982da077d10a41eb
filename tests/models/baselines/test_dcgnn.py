"""DCGNN against its equation in dense matrices."""

import pytest
import torch
from graph_makers import (
    KITE,
    dataset_of,
    logits_of,
    model_of,
)

from ihgnn_cli.errors import InputError
from ihgnn_cli.models.entries.dcgnn import DCGNNSettings


@torch.no_grad()
def test_logits_are_those_of_the_equation():
    dataset = dataset_of([KITE, KITE])
    model = model_of("dcgnn", dataset, layers=3, width=4, hidden=5)
    model.gamma.copy_(torch.tensor([0.5, -1.0, 2.0, 0.25]))
    # A triangle 0, 1, 2 with 3 at node 2: degrees 2, 2, 3, 1. At distance two there are 0 - 3 and
    # 1 - 3 (so that 3 has two of them), at distance three nobody.
    one, two = torch.zeros(4, 4), torch.zeros(4, 4)
    for a, b, product in [(0, 1, 4), (0, 2, 6), (1, 2, 6), (2, 3, 3)]:
        one[a, b] = one[b, a] = product**-0.5
    for a, b in [(0, 3), (1, 3)]:
        two[a, b] = two[b, a] = 2**-0.5
    h = torch.eye(3)[list(KITE[0])] @ model.embed.weight.T + model.embed.bias
    h = h.clamp(min=0)
    z = torch.zeros(4, 4)
    for gamma, matrix, order in zip(
        (0.5, -1, 2, 0.25), (torch.eye(4), one, two, torch.zeros(4, 4)), model.orders, strict=True
    ):
        z += gamma * (matrix @ h @ order.weight.T + order.bias).clamp(min=0)
    top = model.readout.classifier
    hidden = (top.first.weight @ z.sum(0) + top.first.bias).clamp(min=0)
    expected = top.second.weight @ hidden + top.second.bias
    torch.testing.assert_close(logits_of(model, dataset)[0], expected, rtol=1e-5, atol=1e-5)


def test_settings_out_of_range_are_refused():
    with pytest.raises(InputError, match="layers"):
        DCGNNSettings(layers=0)
