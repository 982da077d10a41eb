"""The training loss: torch's cross-entropy with class weights and label smoothing, per member."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from sklearn.utils.class_weight import compute_class_weight
from torch import Tensor

from ihgnn_cli.data import load_dataset
from ihgnn_cli.errors import InputError
from ihgnn_cli.models.card import inputs_of
from ihgnn_cli.training.cohort import new_cohort
from ihgnn_cli.training.config import configure
from ihgnn_cli.training.loading import store_for
from ihgnn_cli.training.loss import CrossEntropy, balanced
from ihgnn_cli.training.stack import Member

CPU = torch.device("cpu")
LOGITS = torch.tensor(
    [
        [[1.0, 2, 0], [0, 0, 3], [2, -1, 1], [5, 5, 5]],
        [[0.5, 0, 1], [1, 4, 2], [0, 1, 0], [3, 1, 2]],
    ]
)
TRUTH = torch.tensor([[1, 0, 2, 0], [2, 1, 1, 0]])
WEIGHTS = torch.tensor([[1.0, 2, 0.5], [3, 1, 1]])
REAL = torch.tensor([[1.0, 1, 1, 0], [1, 1, 1, 1]])  # the first member has three graphs


def batch(real: Tensor = REAL) -> Any:
    share = real / real.sum(1, keepdim=True).clamp(min=1)
    return SimpleNamespace(truth=TRUTH, graph_share=share)


def test_a_smoothed_and_weighted_loss_is_the_one_computed_by_hand() -> None:
    """One graph of class 0; p = 1/4, 3/4; s = 0.2; w = 2, 1."""
    logits = torch.tensor([[[0.0, np.log(3)]]])
    loss = CrossEntropy(0.2, torch.tensor([[2.0, 1.0]]))
    truth = torch.tensor([[0]])
    # 0.8 · 2 + 0.1 · 2 of the first class, 0.1 · 1 of the second
    expected = 1.8 * np.log(4) + 0.1 * np.log(4 / 3)
    assert loss.losses(logits, truth).item() == pytest.approx(expected)
    one: Any = SimpleNamespace(truth=truth, graph_share=torch.ones(1, 1))
    assert loss.shares(one).tolist() == [[0.5]]  # 1 / w_y


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_loss_and_gradient_are_torch_s(smoothing: float, weights: Tensor | None) -> None:
    """Divided, as there, by the sum of the weights of the batch's graphs."""
    loss = CrossEntropy(smoothing, weights)
    together = LOGITS.clone().requires_grad_()
    losses = loss.losses(together, TRUTH) * loss.shares(batch())
    losses.sum().backward()
    for member, graphs in ((0, 3), (1, 4)):
        logits = LOGITS[member, :graphs].clone().requires_grad_()
        weight = None if weights is None else weights[member]
        truth = TRUTH[member, :graphs]
        expected = F.cross_entropy(logits, truth, weight, label_smoothing=smoothing)
        expected.backward()
        torch.testing.assert_close(losses[member].sum(), expected)
        torch.testing.assert_close(together.grad[member, :graphs], logits.grad)
    assert not together.grad[0, 3].any()  # padding


def test_a_member_without_graphs_in_a_batch_has_no_share() -> None:
    found = CrossEntropy(0.1, WEIGHTS).shares(batch(REAL * torch.tensor([[0.0], [1]])))
    assert not found[0].any()
    assert found[1].isfinite().all()


def test_members_that_go_on_keep_their_weights() -> None:
    kept = CrossEntropy(0.1, WEIGHTS).keep(torch.tensor([1]))
    assert kept.label_smoothing == 0.1
    assert kept.class_weights.tolist() == [[3, 1, 1]]  # type: ignore[union-attr]
    assert CrossEntropy(0.1).keep(torch.tensor([1])).class_weights is None


def test_balanced_weights_are_scikit_learn_s_of_each_member() -> None:
    classes = np.array([0, 0, 0, 1, 2, 2])
    members = [np.arange(6), np.array([0, 3, 4, 5])]
    found = balanced(classes, members, 3)
    for own, graphs in zip(found, members, strict=True):
        expected = compute_class_weight("balanced", classes=np.arange(3), y=classes[graphs])
        np.testing.assert_allclose(own, expected, rtol=1e-6)


def test_a_class_without_training_graphs_has_no_weight() -> None:
    found = balanced(np.array([0, 0, 0, 2]), [np.arange(4)], 4)
    np.testing.assert_allclose(found, [[4 / (2 * 3), 0, 2, 0]], rtol=1e-6)


@pytest.mark.parametrize("model", ["ihgnn", "gin", "diffpool"])
def test_the_history_shows_the_optimised_loss_in_training_and_plain_cross_entropy_else(
    model: str,
) -> None:
    """All weights 0: every class has probability 1/2, so that the losses are known."""
    data = load_dataset("MUTAG")
    settings = {"label_smoothing": 0.5, "class_weights": "balanced", "lr": 1e-30}
    config = configure(model=model, overrides=settings)
    graphs = np.arange(len(data))
    inputs = inputs_of(data, config.data.features)
    store = store_for(config, data, inputs.max_nodes, CPU)
    cohort = new_cohort(config, inputs, store, [Member(0, 1e-30, graphs[:150], graphs[150:])])
    for parameter in cohort.stack.model.parameters():
        parameter.data.zero_()
    (epoch,) = cohort.stack.train_epoch()
    assert epoch.validation_loss == pytest.approx(np.log(2), rel=1e-5)
    # Smoothed with these weights: 0.5 · w_y + 0.25 · (w_0 + w_1), over the mean of w_y.
    own = balanced(store.graph_class, [graphs[:150]], 2)[0]
    mean = own[data.graph_class[:150]].mean()
    expected = np.log(2) * (0.5 * mean + 0.25 * own.sum()) / mean

    assert epoch.train_loss == pytest.approx(expected, rel=1e-4)


def test_both_settings_change_what_is_learned() -> None:
    data = load_dataset("MUTAG")
    graphs = np.arange(len(data))
    learned = []
    for settings in ({}, {"label_smoothing": 0.3}, {"class_weights": "balanced"}):
        config = configure(overrides={"width": 4, "hidden": 4, **settings})
        inputs = inputs_of(data, config.data.features)
        store = store_for(config, data, inputs.max_nodes, CPU)
        cohort = new_cohort(config, inputs, store, [Member(0, 0.01, graphs[:64], graphs[64:96])])
        cohort.stack.train_epoch()
        learned.append(cohort.stack.model.state_dict()["classifier.second.weight"])
    assert not torch.equal(learned[0], learned[1])
    assert not torch.equal(learned[0], learned[2])


@pytest.mark.parametrize("value", [-0.1, 1.0, float("nan")])
def test_label_smoothing_is_at_least_0_and_below_1(value: float) -> None:
    with pytest.raises(InputError, match="label_smoothing must be at least 0 and below 1"):
        configure(overrides={"label_smoothing": value})
