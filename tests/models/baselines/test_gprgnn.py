"""GPR-GNN against its equation in dense matrices."""

import pytest
import torch
from graph_makers import (
    KITE,
    dataset_of,
    logits_of,
    model_of,
)
from heterophilic import walk_matrix

from ihgnn_cli.errors import InputError
from ihgnn_cli.models.baselines.gprgnn import start_of_gamma
from ihgnn_cli.models.entries.gprgnn import GammaInit, GPRGNNSettings


def test_logits_are_those_of_the_equation():
    dataset = dataset_of([KITE, KITE])
    model = model_of("gprgnn", dataset, layers=3, width=4, hidden=5)
    with torch.no_grad():
        model.gamma.copy_(torch.tensor([0.5, -1.0, 2.0, 0.25]))
        x = torch.eye(3)[list(KITE[0])]
        h = (x @ model.first.weight.T + model.first.bias).clamp(min=0)
        h = h @ model.second.weight.T + model.second.bias
        p = walk_matrix(KITE)
        z = 0.5 * h - p @ h + 2 * p @ p @ h + 0.25 * p @ p @ p @ h
        top = model.readout.classifier
        hidden = (top.first.weight @ z.sum(0) + top.first.bias).clamp(min=0)
        expected = top.second.weight @ hidden + top.second.bias
    torch.testing.assert_close(logits_of(model, dataset)[0], expected, rtol=1e-5, atol=1e-5)


def test_the_weights_start_as_personalized_pagerank():
    gamma = start_of_gamma(GPRGNNSettings(layers=2, alpha=0.2))
    torch.testing.assert_close(gamma, torch.tensor([0.2, 0.16, 0.64]))
    last_step = start_of_gamma(GPRGNNSettings(layers=2, alpha=0))
    assert last_step.tolist() == [0, 0, 1]
    no_step = start_of_gamma(GPRGNNSettings(layers=2, alpha=1))
    assert no_step.tolist() == [1, 0, 0]


def test_other_starts_have_absolute_values_that_sum_to_one():
    signed = start_of_gamma(GPRGNNSettings(layers=2, alpha=-0.5, init=GammaInit.NPPR))
    torch.testing.assert_close(signed, torch.tensor([4.0, -2.0, 1.0]) / 7)
    drawn = start_of_gamma(GPRGNNSettings(layers=9, init=GammaInit.RANDOM))
    assert drawn.abs().sum() == pytest.approx(1)
    assert (drawn < 0).any()


@pytest.mark.parametrize(
    "settings", [{"alpha": 1.5}, {"alpha": -0.5}, {"walk_dropout": -0.1}, {"layers": -1}]
)
def test_settings_out_of_range_are_refused(settings):
    with pytest.raises(InputError, match=next(iter(settings))):
        GPRGNNSettings(**settings)
