"""Modules as a stack: each member is what it would be alone, and graphs may come in parts."""

import io
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from graph_makers import CPU, HEXAGON, KITE, LABELS, PATH, STAR, TRIANGLE, dataset_of
from torch import Tensor, nn

from ihgnn_cli.data.batching.batches import Batch, GraphStore
from ihgnn_cli.data.features import Features
from ihgnn_cli.models import autograd
from ihgnn_cli.models.autograd import AutogradStack, seeded
from ihgnn_cli.models.card import inputs_of
from ihgnn_cli.models.graphs import Graphs, member_graphs
from ihgnn_cli.training.cohort import Cohort, new_cohort
from ihgnn_cli.training.config import configure
from ihgnn_cli.training.loss import CrossEntropy
from ihgnn_cli.training.stack import Member, Stack

DATASET = dataset_of([TRIANGLE, PATH, STAR, KITE, HEXAGON, TRIANGLE, PATH, KITE])
NO_FACTOR = torch.empty(0)


class Tiny(nn.Module):
    """Sums of neighbours through a linear map, and what a test asks for besides."""

    def __init__(self, *, norm: bool = False, dropout: float = 0, penalty: float = 0) -> None:
        super().__init__()
        self.first = nn.Linear(LABELS, 4)
        self.norm = nn.BatchNorm1d(4) if norm else nn.Identity()
        self.last = nn.Linear(4, 2)
        self.dropout, self.penalty = dropout, penalty

    def forward(self, graphs: Graphs) -> Tensor | tuple[Tensor, Tensor]:
        h = graphs.x + graphs.sum_to_nodes(graphs.x[graphs.edge_index[0]])
        h = self.norm(self.first(h)).tanh()
        logits = self.last(F.dropout(graphs.sum_nodes(h), self.dropout, self.training))
        if not self.penalty:
            return logits
        return logits, self.penalty * self.last.weight.square().sum()


def stacked(seeds: Sequence[int], *, by_size: bool = False, **options: Any) -> AutogradStack:
    generators = [torch.Generator().manual_seed(seed) for seed in seeds]
    return AutogradStack(lambda: Tiny(**options), generators, by_size=by_size).train()


def alone(seed: int, **options: Any) -> Tiny:
    with seeded(seed, CPU):
        return Tiny(**options).train()


def batch(*graphs: Sequence[int]) -> Batch:
    store = GraphStore(DATASET, Features.LABELS, DATASET.max_nodes, None, CPU)
    return store.batch([np.array(each, dtype=np.int64) for each in graphs])


def plain_step(module: nn.Module, taken: Batch, member: int, seed: int) -> Tensor:
    """The logits of one module by torch's own autograd; leaves its gradients."""
    with seeded(seed, CPU):
        found = module(member_graphs(taken, member))
    logits, penalty = found if isinstance(found, tuple) else (found, 0)
    loss = F.cross_entropy(logits, taken.truth[member, : len(logits)]) + penalty
    torch.autograd.backward(loss)
    kept: Tensor = logits.detach()
    return kept


def assert_same_gradients(stack: AutogradStack, member: int, module: nn.Module) -> None:
    for (name, ours), theirs in zip(
        stack.inner.named_parameters(), module.parameters(), strict=True
    ):
        assert ours.grad is not None
        torch.testing.assert_close(ours.grad[member], theirs.grad, msg=name)


# One after the other


@pytest.mark.parametrize("options", [{}, {"norm": True}, {"dropout": 0.5}, {"penalty": 0.3}])
def test_gradients_and_logits_are_those_of_each_module_alone(options: dict[str, Any]) -> None:
    stack, taken = stacked([1, 2], **options), batch([0, 1, 2], [3, 4])
    logits = stack.train_step(taken, NO_FACTOR, [10, 20], CrossEntropy())
    assert logits.shape == (2, 3, 2)
    assert not logits.requires_grad
    assert logits[1, 2].tolist() == [0, 0]  # padding
    for member, (seed, drawn) in enumerate([(1, 10), (2, 20)]):
        module = alone(seed, **options)
        expected = plain_step(module, taken, member, drawn)
        torch.testing.assert_close(logits[member, : len(expected)], expected)
        assert_same_gradients(stack, member, module)


def test_a_step_leaves_nothing_of_the_gradients_before() -> None:
    stack = stacked([1])
    for graphs in ([0, 1, 2], [3, 4]):
        stack.train_step(batch(graphs), NO_FACTOR, [0], CrossEntropy())
    fresh = stacked([1])
    fresh.train_step(batch([3, 4]), NO_FACTOR, [0], CrossEntropy())
    for ours, theirs in zip(stack.parameters(), fresh.parameters(), strict=True):
        assert torch.equal(ours.grad, theirs.grad)


def test_members_begin_by_their_own_seeds_and_torch_s_randomness_stays() -> None:
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    stack = stacked([5, 6, 5])
    stack.train_step(batch([0], [1], [2]), NO_FACTOR, [1, 2, 3], CrossEntropy())
    assert torch.equal(torch.rand(3), expected)
    weight = stack.inner.first.weight
    assert weight.shape == (3, 4, LABELS)
    assert torch.equal(weight[0], weight[2])
    assert not torch.equal(weight[0], weight[1])
    assert torch.equal(weight[1], alone(6).first.weight)


def test_the_seed_of_a_step_decides_dropout() -> None:
    stack, taken = stacked([1], dropout=0.5), batch([0, 1, 2, 3])
    one, again, other = (
        stack.train_step(taken, NO_FACTOR, [seed], CrossEntropy()) for seed in (1, 1, 2)
    )
    assert torch.equal(one, again)
    assert not torch.equal(one, other)


def test_a_member_without_graphs_is_skipped_and_gets_no_gradient() -> None:
    stack, taken = stacked([1, 2], norm=True), batch([], [0, 1])
    before = {name: each.clone() for name, each in stack.state_dict().items()}
    logits = stack.train_step(taken, NO_FACTOR, [10, 20], CrossEntropy())
    assert logits[0].tolist() == [[0, 0], [0, 0]]
    assert all(each.grad[0].abs().sum() == 0 for each in stack.parameters())
    module = alone(2, norm=True)
    plain_step(module, taken, 1, 20)
    assert_same_gradients(stack, 1, module)
    for name, each in stack.state_dict().items():
        assert torch.equal(each[0], before[name][0]), name


# Buffers


def test_buffers_have_a_member_axis_and_change_in_training_only() -> None:
    stack, taken = stacked([1, 2], norm=True), batch([0, 1, 2], [3, 4])
    buffers = dict(stack.inner.named_buffers())
    assert buffers["norm.running_mean"].shape == (2, 4)
    assert buffers["norm.num_batches_tracked"].tolist() == [0, 0]
    stack.train_step(taken, NO_FACTOR, [0, 0], CrossEntropy())
    trained = {name: each.clone() for name, each in stack.state_dict().items()}
    for member, seed in enumerate((1, 2)):
        module = alone(seed, norm=True)
        plain_step(module, taken, member, 0)
        for name, each in module.named_buffers():
            torch.testing.assert_close(trained[f"inner.{name}"][member], each, msg=name)
    assert not torch.equal(*trained["inner.norm.running_mean"])
    stack.eval()
    stack(taken)
    for name, each in stack.state_dict().items():
        assert torch.equal(each, trained[name]), name


# Parts


@pytest.fixture
def few_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of at most two graphs of five nodes."""
    monkeypatch.setattr(autograd, "PAIRS_AT_ONCE", 50)


@pytest.mark.usefixtures("few_pairs")
@pytest.mark.parametrize("options", [{}, {"penalty": 0.3}])
def test_the_gradients_of_parts_add_up_to_those_of_the_whole(options: dict[str, Any]) -> None:
    taken = batch(range(8), [0, 1, 6])
    assert len(list(member_graphs(taken, 0).parts(50))) > 2
    cut, whole = stacked([1, 2], by_size=True, **options), stacked([1, 2], **options)
    logits = [each.train_step(taken, NO_FACTOR, [0, 0], CrossEntropy()) for each in (cut, whole)]
    torch.testing.assert_close(*logits)
    for ours, theirs in zip(cut.parameters(), whole.parameters(), strict=True):
        torch.testing.assert_close(ours.grad, theirs.grad)


def test_evaluation_in_runs_says_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    stack, taken = stacked([1, 2], norm=True), batch(range(8), [2, 3])
    stack.train_step(taken, NO_FACTOR, [0, 0], CrossEntropy())
    stack.eval()
    whole = stack(taken)
    monkeypatch.setattr(autograd, "EVALUATED_AT_ONCE", 12)
    sizes: list[int] = []
    call = stack._call
    monkeypatch.setattr(
        stack, "_call", lambda own, taken: sizes.append(len(taken)) or call(own, taken)
    )
    torch.testing.assert_close(stack(taken), whole)
    assert sum(sizes) == 10
    assert len(sizes) > 4


# In the training loop


def members(*seeds: int) -> list[Member]:
    return [
        Member(seed, lr=0.01, train=np.arange(seed % 2, 6), validation=np.array([6, 7]))
        for seed in seeds
    ]


def cohort(*seeds: int, **settings: Any) -> Cohort:
    """GIN with everything that is random or kept: dropout and running statistics."""
    small = {"layers": 2, "width": 4, "dropout": 0.5, "batch_size": 3, "epochs": 4}
    config = configure(overrides={**small, **settings}, model="gin")
    store = GraphStore(DATASET, Features.LABELS, DATASET.max_nodes, None, CPU)
    return new_cohort(config, inputs_of(DATASET, Features.LABELS), store, members(*seeds))


def advanced(made: Cohort, epochs: int) -> Cohort:
    for _ in range(epochs):
        made.advance()
    return made


def reloaded(state: object) -> Any:
    """As a file keeps it."""
    written = io.BytesIO()
    torch.save(state, written)
    written.seek(0)
    return torch.load(written, weights_only=True)


def test_training_that_was_interrupted_goes_on_bit_for_bit() -> None:
    whole = advanced(cohort(1, 2, 3), 4)
    halfway = reloaded(advanced(cohort(1, 2, 3), 2).state())
    resumed = cohort(1, 2, 3)
    resumed.restore(halfway)
    advanced(resumed, 2)
    assert [each.history for each in resumed.courses] == [each.history for each in whole.courses]
    state = whole.stack.model.state_dict()
    assert any("running" in name for name in state)
    for name, each in resumed.stack.model.state_dict().items():
        assert torch.equal(each, state[name]), name


def test_a_member_is_what_it_is_alone_also_when_others_leave() -> None:
    together = advanced(cohort(1, 2, 3), 2).stack
    together.keep([0, 2])
    together.train_epoch()
    assert [each.seed for each in together.members] == [1, 3]
    for position, seed in enumerate((1, 3)):
        single = advanced(cohort(seed), 3).stack
        for name, each in single.model.state_dict().items():
            torch.testing.assert_close(
                together.model.state_dict()[name][position], each[0], msg=name
            )


def one_step(weight_decay: float, optimizer: Callable[..., torch.optim.Optimizer]) -> None:
    """One epoch of one step on all graphs by the stack, and by an optimizer of torch."""
    stack = stacked([1])
    store = GraphStore(DATASET, Features.LABELS, DATASET.max_nodes, None, CPU)
    member = Member(0, lr=0.1, train=np.arange(8), validation=np.arange(8))
    made = Stack(stack, store, [member], batch_size=8, dropout=0, weight_decay=weight_decay)
    made.train_epoch()
    module = alone(1)
    moved = optimizer(module.parameters(), lr=0.1, weight_decay=weight_decay)
    plain_step(module, batch(range(8)), 0, 0)
    moved.step()
    for (name, theirs), ours in zip(module.named_parameters(), stack.parameters(), strict=True):
        torch.testing.assert_close(ours[0], theirs, msg=name)


@pytest.mark.parametrize("weight_decay", [0.0, 0.5])
def test_a_step_is_adam_s_with_its_weight_decay(weight_decay: float) -> None:
    one_step(weight_decay, torch.optim.Adam)


def test_weight_decay_of_a_configuration_reaches_the_step() -> None:
    with_decay = advanced(cohort(1, weight_decay=0.5), 1).stack.model.state_dict()
    without = advanced(cohort(1), 1).stack.model.state_dict()
    assert not torch.equal(with_decay["inner.scores.0.weight"], without["inner.scores.0.weight"])


def test_recomputed_statistics_are_means_over_the_batches_of_each_member() -> None:
    stack = stacked([0, 1], norm=True, dropout=0.5)
    batches = [batch([0, 1, 2], [3, 4]), batch([5, 6], [])]
    members = [[[0, 1, 2], [5, 6]], [[3, 4]]]
    stack.train_step(batches[0], NO_FACTOR, [0, 1], CrossEntropy())
    weights = {name: each.clone() for name, each in stack.named_parameters()}
    stack.recompute_statistics(batches)
    for member, own in enumerate(members):
        rows = []
        for graphs in own:
            each = member_graphs(batch(graphs), 0)
            h = each.x + each.sum_to_nodes(each.x[each.edge_index[0]])
            first = stack.member(member).first
            rows.append((h @ first.weight.T + first.bias).detach())
        norm = stack.member(member).norm
        torch.testing.assert_close(
            norm.running_mean, torch.stack([r.mean(0) for r in rows]).mean(0)
        )
        torch.testing.assert_close(norm.running_var, torch.stack([r.var(0) for r in rows]).mean(0))
        assert (norm.num_batches_tracked, norm.momentum) == (1, 0.1)
    assert all(torch.equal(each, weights[name]) for name, each in stack.named_parameters())
    assert not any(each.training for each in stack.modules())
