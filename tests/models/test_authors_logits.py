"""Weights of the authors' model give the authors' logits.

The numbers below were computed in double precision with the modules of the authors' published code
(https://github.com/yeweiysh/IHGNN; torch.sparse in place of their sparse-matrix library) on graphs
of MUTAG, with weights from the formulas of `matrix` and `vector`. That code concatenates the layers
(the ablation no-adaptive); for the full model the concatenation was replaced by the sum weighted
with theta, as in the code that goes with the paper.
"""

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from ihgnn_cli.data.access import Access
from ihgnn_cli.data.batching.batches import GraphStore
from ihgnn_cli.data.features import Features
from ihgnn_cli.data.sources import locate, read
from ihgnn_cli.models.settings import IHGNNSettings, Inputs, SortKey, SortOrder, Variant
from ihgnn_cli.models.stacked import StackedIHGNN
from ihgnn_cli.training.stack import predict

K, WIDTH, HIDDEN, M, LABELS = 2, 8, 16, 28, 7
GRAPHS = [0, 1, 2, 3, 50, 100, 150, 187]
LOGITS = {
    Variant.FULL: [
        [-3.472268924, -3.370168115],
        [-0.891914056, -0.441047284],
        [-0.7882216, -2.644029229],
        [-2.193710128, 0.227394261],
        [-2.747772591, -4.779953145],
        [-3.636262086, -4.491615978],
        [-0.965321151, -0.80744013],
        [-2.448022372, -4.703415676],
    ],
    Variant.NO_ADAPTIVE: [
        [-0.94077313, 17.980511003],
        [-1.618517292, 10.207983091],
        [-1.245069136, 10.209832292],
        [-1.609438977, 21.723417829],
        [-2.151355329, 19.036163049],
        [-1.260008134, 21.171373805],
        [-0.356464445, 8.07608348],
        [-0.735088811, 15.831145827],
    ],
}


def matrix(number: int, rows: int, columns: int) -> Tensor:
    row = torch.arange(1, rows + 1, dtype=torch.float64).unsqueeze(1)
    column = torch.arange(1, columns + 1, dtype=torch.float64)
    return 2 * torch.sin(number + 1.7 * row * column) / math.sqrt(rows)


def vector(number: int, size: int, around: float = 0.0) -> Tensor:
    return around + 0.5 * torch.sin(number + torch.arange(size, dtype=torch.float64))


def authors_weights(variant: Variant) -> dict[str, Tensor]:
    """Theirs, by the names of ours, without the member axis."""
    weights = {}
    for k, name in enumerate(["input", *(f"convs.{k}.mlp" for k in range(K))]):
        first = 10 * k
        weights[f"{name}.first.weight"] = matrix(first + 1, 3 * WIDTH if k else LABELS, WIDTH)
        weights[f"{name}.norm.weight"] = vector(first + 3, WIDTH, 1)
        weights[f"{name}.norm.bias"] = vector(first + 4, WIDTH)
        # Their first linear map has a bias, which the running mean takes up.
        weights[f"{name}.norm.running_mean"] = vector(first + 5, WIDTH) - vector(first + 2, WIDTH)
        weights[f"{name}.norm.running_var"] = vector(first + 6, WIDTH, 1)
        weights[f"{name}.second.weight"] = matrix(first + 7, WIDTH, WIDTH)
        weights[f"{name}.second.bias"] = vector(first + 8, WIDTH)
    columns = WIDTH
    if variant == Variant.FULL:
        weights["theta"] = vector(91, K + 1)
    else:
        columns *= K + 1
    weights["classifier.first.weight"] = matrix(92, M * columns, HIDDEN)
    weights["classifier.first.bias"] = vector(93, HIDDEN)
    weights["classifier.second.weight"] = matrix(94, HIDDEN, 2)
    weights["classifier.second.bias"] = vector(95, 2)
    return weights


@pytest.mark.parametrize("variant", LOGITS)
def test_the_logits_are_those_of_the_authors_code(variant: Variant) -> None:
    data = read(locate("MUTAG", Access(offline=True)))
    settings = IHGNNSettings(
        layers=K,
        width=WIDTH,
        hidden=HIDDEN,
        variant=variant,
        sort_key=SortKey.LAST_LAYER,
        sort_order=SortOrder.DESCENDING,
        readout_relu=True,
    )
    model = StackedIHGNN(settings, Inputs(LABELS, 0, 2, M), [torch.Generator()])
    theirs = authors_weights(variant)
    model.load_state_dict(
        {name: theirs[name].view(value.shape) for name, value in model.state_dict().items()}
    )
    store = GraphStore(data, Features.LABELS, M, K, torch.device("cpu"))
    found = predict(model, store, np.array(GRAPHS))
    np.testing.assert_allclose(found[0], LOGITS[variant], rtol=1e-5, atol=1e-5)
