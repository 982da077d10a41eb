"""PCNet against its equation in dense matrices."""

import math

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
from ihgnn_cli.models.baselines.pcnet import charlier, series_of
from ihgnn_cli.models.entries.pcnet import PCNetSettings


def _answer(model, filtered):
    """Logits of the kite, given the matrix that filters the MLP's output."""
    h = torch.eye(3)[list(KITE[0])] @ model.first.weight.T + model.first.bias
    h = h.clamp(min=0) @ model.second.weight.T + model.second.bias
    top = model.readout.classifier
    pooled = (filtered @ h).sum(0)
    hidden = (top.first.weight @ pooled + top.first.bias).clamp(min=0)
    return top.second.weight @ hidden + top.second.bias


@torch.no_grad()
def test_logits_are_those_of_the_series():
    dataset = dataset_of([KITE, KITE])
    model = model_of(
        "pcnet", dataset, layers=2, terms=3, width=4, hidden=5, t=0.7, beta=1.3, power=0.4
    )
    model.theta.copy_(torch.tensor([0.5, -1.0, 2.0]))
    w = walk_matrix(KITE, 0.4) - 1.3 * torch.eye(4)
    # C_2(k, t) = (k - 1 - t)(k - t) - t by the recurrence.
    one = torch.eye(4) + 0.3 * w + ((-0.7) * 0.3 - 0.7) / 2 * w @ w
    two = torch.eye(4) + 1.3 * w + (0.3 * 1.3 - 0.7) / 2 * w @ w
    expected = _answer(model, 0.5 * torch.eye(4) - one + 2 * two)
    torch.testing.assert_close(logits_of(model, dataset)[0], expected, rtol=1e-5, atol=1e-5)


@torch.no_grad()
def test_many_terms_are_the_closed_form_of_the_two_fold_filter():
    dataset = dataset_of([KITE, KITE])
    model = model_of("pcnet", dataset, layers=3, terms=20, width=4, hidden=5, t=0.8)
    model.theta.copy_(torch.tensor([0.5, 0.3, -0.2, 0.7]))
    laplacian = torch.eye(4) - walk_matrix(KITE)
    flow, low = torch.matrix_exp(0.8 * laplacian), torch.eye(4) - laplacian
    filters = 0.5 * torch.eye(4) + flow @ (0.3 * low - 0.2 * low @ low + 0.7 * low @ low @ low)
    torch.testing.assert_close(
        logits_of(model, dataset)[0], _answer(model, filters), rtol=1e-4, atol=1e-5
    )


def test_without_flow_the_series_is_the_binomial_one():
    series = series_of(PCNetSettings(layers=3, terms=5, t=0))
    assert series.tolist() == [[math.comb(k, n) for n in range(5)] for k in (1, 2, 3)]


def test_polynomials_have_the_generating_function():
    w, t = 0.4, 1.7
    for k in (1, 4):
        series = sum(c * w**n / math.factorial(n) for n, c in enumerate(charlier(k, t, 30)))
        assert series == pytest.approx(math.exp(-t * w) * (1 + w) ** k)


@pytest.mark.parametrize(
    "settings", [{"terms": 0}, {"t": -0.1}, {"beta": -1.0}, {"power": -0.5}, {"walk_dropout": 1.0}]
)
def test_settings_out_of_range_are_refused(settings):
    with pytest.raises(InputError, match=next(iter(settings))):
        PCNetSettings(**settings)


@pytest.mark.parametrize("wrong", [{"terms": 0}, {"terms": 101}, {"t": math.inf}, {"t": -1.0}])
def test_series_that_no_float_can_hold_are_refused(wrong):
    with pytest.raises(InputError, match=next(iter(wrong))):
        PCNetSettings(**wrong)


def test_the_longest_series_is_finite():
    assert series_of(PCNetSettings(terms=100)).isfinite().all()
