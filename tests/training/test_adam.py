"""Adam for a stack, against torch.optim.Adam in double precision."""

import numpy as np
import pytest
import torch
from torch import nn

from ihgnn_cli.data import load_dataset
from ihgnn_cli.data.batching.store import GraphStore
from ihgnn_cli.data.features import Features
from ihgnn_cli.models.card import inputs_of
from ihgnn_cli.training import adam
from ihgnn_cli.training.adam import StackedAdam, expected_share
from ihgnn_cli.training.cohort import new_cohort
from ihgnn_cli.training.config import configure
from ihgnn_cli.training.stack import Member

ROWS, WIDTH = 12, 4


def gradients(steps: int, members: int, *, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """[steps, S, rows, width] gradients, 0 beyond the rows that are reached; and these rows."""
    drawn = np.random.default_rng(seed)
    # Mostly short reaches, sometimes all rows, sometimes none.
    reach = np.minimum(drawn.geometric(0.3, size=(steps, members)), ROWS)
    reach[drawn.random((steps, members)) < 0.02] = ROWS
    reach[drawn.random((steps, members)) < 0.02] = 0
    scale = 10.0 ** drawn.uniform(-7, 0, size=(1, members, ROWS, WIDTH))
    found = drawn.normal(size=(steps, members, ROWS, WIDTH)) * scale
    found[np.arange(ROWS)[None, None, :] >= reach[..., None]] = 0
    return found, reach


def start(members: int) -> torch.Tensor:
    return torch.rand(members, ROWS, WIDTH, generator=torch.Generator().manual_seed(0)) - 0.5


def by_torch(found: np.ndarray, lrs: list[float], dtype: torch.dtype) -> torch.Tensor:
    """The parameters that torch's Adam ends with."""
    ends = []
    for member, lr in enumerate(lrs):
        parameter = nn.Parameter(start(len(lrs))[member].to(dtype))
        optimizer = torch.optim.Adam([parameter], lr=lr)
        for step in found[:, member]:
            parameter.grad = torch.from_numpy(step).to(dtype)
            optimizer.step()
        ends.append(parameter.detach())
    return torch.stack(ends).double()


def by_us(
    found: np.ndarray, reach: np.ndarray, lrs: list[float], per_epoch: int, share: float = 0.1
) -> tuple[torch.Tensor, StackedAdam]:
    """The parameters that the stacked Adam ends with; a small parameter stands on either side."""
    before, after = (nn.Parameter(torch.ones(len(lrs), 1, 3)) for _ in range(2))
    ranked = nn.Parameter(start(len(lrs)))
    optimizer = StackedAdam(
        [before, ranked, after],
        lrs,
        [per_epoch] * len(lrs),
        ranked=ranked,
        share=share,
    )
    for number, (step, reached) in enumerate(zip(found, reach, strict=True)):
        optimizer.before(number % per_epoch, reached)
        ranked.grad.copy_(torch.from_numpy(step))
        optimizer.step(number % per_epoch)
        if number % per_epoch == per_epoch - 1:
            optimizer.end_epoch()
    return ranked.detach().double(), optimizer


LRS = [0.01, 0.01, 0.001]


@pytest.mark.parametrize("per_epoch", [1, 9, 45])
def test_skipping_is_as_exact_as_single_precision(per_epoch: int) -> None:
    found, reach = gradients(450, 3)
    exact = by_torch(found, LRS, torch.float64)
    rounding = float((by_torch(found, LRS, torch.float32) - exact).abs().max())
    ours, _ = by_us(found, reach, LRS, per_epoch)
    assert float((ours - exact).abs().max()) < max(3e-6, 2 * rounding)


def test_rows_beyond_the_reach_wait_and_are_caught_up_when_they_are_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(adam, "_PLAIN_STEPS", 0)
    ranked = nn.Parameter(start(1))
    optimizer = StackedAdam([ranked], [0.01], [10], ranked=ranked, share=0.1)

    def step(number: int, reach: int) -> None:
        optimizer.before(number, np.array([reach]))
        ranked.grad.zero_()
        ranked.grad[:, :reach] = 1.0
        optimizer.step(number)

    step(0, ROWS)
    waiting = ranked.detach().clone()
    step(1, 2)
    step(2, 4)
    assert torch.equal(ranked[:, 4:], waiting[:, 4:])
    assert not torch.equal(ranked[:, :4], waiting[:, :4])
    optimizer.before(3, np.array([6]))
    assert (ranked[:, 4:6] < waiting[:, 4:6]).all()  # momentum of the first step
    assert torch.equal(ranked[:, 6:], waiting[:, 6:])
    optimizer.end_epoch()
    assert (ranked[:, 6:] < waiting[:, 6:]).all()


def test_one_skipped_step_is_a_step_of_adam() -> None:
    for done in (1, 10, 1000, 100_000):
        step, lr, betas = adam._combined(0.01, done, 1)
        assert betas == adam.BETAS
        assert lr == pytest.approx(0.01, rel=1e-6)
        # Beyond some thousand steps the correction of the second moment is 1 to all digits.
        assert step == pytest.approx(done, rel=1e-4) or min(step, done) > 10_000


def test_more_skipped_steps_than_one_call_combines() -> None:
    found, reach = gradients(1_500, 1)
    found[310:] = 0
    reach[310:] = 0
    ours, _ = by_us(found, reach, [0.01], 1_500)
    exact = by_torch(found, [0.01], torch.float64)
    assert float((ours - exact).abs().max()) < 3e-6


@pytest.mark.parametrize(("share", "steps"), [(0.9, 450), (0.1, 300)])
def test_large_shares_and_first_steps_are_bit_for_bit_plain_adam(share: float, steps: int) -> None:
    found, reach = gradients(steps, 2)
    lrs = [0.01, 0.001]
    ours, _ = by_us(found, reach, lrs, 45, share)
    plain, _ = by_us(found, np.full_like(reach, ROWS), lrs, 45, share)
    assert torch.equal(ours, plain)


def test_the_state_is_complete_after_an_epoch() -> None:
    found, reach = gradients(450, 2)
    lrs = [0.01, 0.001]
    _, ours = by_us(found, reach, lrs, 45)
    _, plain = by_us(found, np.full_like(reach, ROWS), lrs, 45)
    state, expected = ours.state(), plain.state()
    assert state["steps"] == expected["steps"] == [450, 450]
    for moment in ("first", "second"):
        torch.testing.assert_close(state[moment], expected[moment], rtol=1e-4, atol=1e-12)


def test_the_expected_share_of_rows() -> None:
    sizes = np.array([2, 10, 4, 4])
    assert expected_share(sizes, 1, 10) == pytest.approx(0.5)  # the mean size
    # The largest of two drawn with replacement: 2 in 1 of 16 cases, 4 in 8, 10 in 7.
    assert expected_share(sizes, 2, 20) == pytest.approx((2 + 8 * 4 + 7 * 10) / 16 / 20)
    assert expected_share(sizes, 100, 5) > 0.68  # no more graphs than there are; at most m each


def trained_on_mutag(plain_steps: int, monkeypatch: pytest.MonkeyPatch) -> dict[str, torch.Tensor]:
    """The weights after 12 epochs of 30 steps, most of which do not reach the largest graph."""
    monkeypatch.setattr(adam, "_PLAIN_STEPS", plain_steps)
    dataset = load_dataset("MUTAG")
    shape = {"layers": 1, "width": 4, "hidden": 8, "batch_size": 2}
    store = GraphStore(dataset, Features.LABELS, dataset.max_nodes, 1, torch.device("cpu"))
    members = [
        Member(seed=1, lr=0.01, train=np.arange(60), validation=np.arange(100, 110)),
        Member(seed=2, lr=0.001, train=np.arange(60, 120), validation=np.arange(120, 130)),
    ]
    inputs = inputs_of(dataset, Features.LABELS)
    cohort = new_cohort(configure(overrides=shape), inputs, store, members)
    for _ in range(12):
        cohort.advance()
    return {name: each.clone() for name, each in cohort.stack.model.state_dict().items()}


def test_training_ends_with_the_same_weights_as_with_plain_adam(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plain = trained_on_mutag(10**9, monkeypatch)
    ours = trained_on_mutag(300, monkeypatch)
    assert not torch.equal(ours["readout.weight"], plain["readout.weight"])  # it did skip
    for name, each in plain.items():
        torch.testing.assert_close(ours[name], each, rtol=1e-3, atol=1e-4)
