"""Adam for a stack, against torch.optim.Adam in double precision."""

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import nn

from ihgnn_cli.training import optimizer as module
from ihgnn_cli.training.optimizer import StackedAdam, combined

M, ROWS, WIDTH = 24, 2, 4
LRS = [0.01, 0.01, 0.001]


@pytest.fixture(autouse=True)
def small_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups of the ranks 0-1, 2-3, 4-5, 6-8, 9-12, 13-18 and 19-23."""
    monkeypatch.setattr(module, "_FIRST_RANKS", 2)


def drawn_gradients(steps: int, members: int) -> tuple[np.ndarray, NDArray[np.int64]]:
    """[steps, S, m · rows, width] gradients, 0 beyond the ranks that are reached; and these."""
    drawn = np.random.default_rng(0)
    # Mostly short reaches, sometimes all ranks, sometimes none.
    reach = np.minimum(drawn.geometric(0.2, size=(steps, members)), M)
    reach[drawn.random((steps, members)) < 0.02] = M
    reach[drawn.random((steps, members)) < 0.02] = 0
    scale = 10.0 ** drawn.uniform(-7, 0, size=(1, members, M * ROWS, WIDTH))
    found = drawn.normal(size=(steps, members, M * ROWS, WIDTH)) * scale
    found[np.arange(M * ROWS)[None, None, :] // ROWS >= reach[..., None]] = 0
    return found, reach


def start(members: int) -> torch.Tensor:
    return torch.rand(members, M * ROWS, WIDTH, generator=torch.Generator().manual_seed(0)) - 0.5


def by_torch(
    found: np.ndarray, reach: NDArray[np.int64], lrs: list[float], dtype: torch.dtype
) -> torch.Tensor:
    """The parameters that torch's Adam ends with; without a batch there is no step."""
    ends = []
    for member, lr in enumerate(lrs):
        parameter = nn.Parameter(start(len(lrs))[member].to(dtype))
        optimizer = torch.optim.Adam([parameter], lr=lr)
        for step in found[reach[:, member] > 0, member]:
            parameter.grad = torch.from_numpy(step).to(dtype)
            optimizer.step()
        ends.append(parameter.detach())
    return torch.stack(ends).double()


def by_us(
    found: np.ndarray, reach: NDArray[np.int64], lrs: list[float], per_epoch: int
) -> tuple[nn.Parameter, StackedAdam]:
    """The parameter that the stacked Adam ends with, beside small parameters."""
    small = [nn.Parameter(torch.ones(len(lrs), 1, 3)) for _ in range(2)]
    ranked = nn.Parameter(start(len(lrs)))
    optimizer = StackedAdam([small[0], ranked, small[1]], lrs, ranked=(ranked, M))
    for number, (step, reached) in enumerate(zip(found, reach, strict=True), 1):
        optimizer.before(reached.tolist())
        ranked.grad.copy_(torch.from_numpy(step))
        optimizer.step()
        if number % per_epoch == 0:
            optimizer.end_epoch()
    return ranked, optimizer


@pytest.mark.parametrize("per_epoch", [1, 9, 45])
def test_skipping_is_as_exact_as_single_precision(per_epoch: int) -> None:
    found, reach = drawn_gradients(450, 3)
    exact = by_torch(found, reach, LRS, torch.float64)
    rounding = float((by_torch(found, reach, LRS, torch.float32) - exact).abs().max())
    ours, _ = by_us(found, reach, LRS, per_epoch)
    assert float((ours.detach().double() - exact).abs().max()) < max(3e-6, 2 * rounding)


def test_more_skipped_steps_than_one_call_combines() -> None:
    found, reach = drawn_gradients(1_500, 1)
    found[310:], reach[310:] = 0, 1
    ours, _ = by_us(found, reach, [0.01], 1_500)
    exact = by_torch(found, reach, [0.01], torch.float64)
    assert float((ours.detach().double() - exact).abs().max()) < 3e-6


def test_the_first_steps_are_bit_for_bit_plain_adam() -> None:
    found, reach = drawn_gradients(300, 2)
    ours, _ = by_us(found, np.maximum(reach, 1), [0.01, 0.001], 45)
    plain, _ = by_us(found, np.full_like(reach, M), [0.01, 0.001], 45)
    assert torch.equal(ours, plain)


def test_ranks_out_of_reach_wait_and_catch_up_before_they_are_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_PLAIN_STEPS", 0)
    ranked = nn.Parameter(torch.ones(1, M, 1))
    optimizer = StackedAdam([nn.Parameter(torch.ones(1, 1)), ranked], [0.01], ranked=(ranked, M))

    def step(reach: int) -> None:
        optimizer.before([reach])
        ranked.grad.zero_()
        ranked.grad[:, :reach] = 1
        optimizer.step()

    step(M)
    waiting = ranked.detach().clone()
    step(2)
    step(3)  # reaches the second group
    assert torch.equal(ranked[:, 4:], waiting[:, 4:])
    assert (ranked[:, :4] < waiting[:, :4]).all()
    optimizer.before([6])
    assert (ranked[:, 4:6] < waiting[:, 4:6]).all()  # the momentum of the first step
    assert torch.equal(ranked[:, 6:], waiting[:, 6:])
    optimizer.end_epoch()
    assert (ranked[:, 6:] < waiting[:, 6:]).all()


def test_weight_decay_lets_no_rank_wait() -> None:
    ranked = nn.Parameter(torch.ones(1, M, 1))
    alone = nn.Parameter(torch.ones(M, 1))
    others = [nn.Parameter(torch.ones(1, 1)), ranked]
    optimizer = StackedAdam(others, [0.01], weight_decay=0.1, ranked=(ranked, M))
    plain = torch.optim.Adam([alone], lr=0.01, weight_decay=0.1)
    for _ in range(320):
        optimizer.before([1])
        ranked.grad[:, 0] = 1
        optimizer.step()
        alone.grad = ranked.grad[0].clone()
        plain.step()
    torch.testing.assert_close(ranked[0], alone)


def test_a_member_without_a_batch_takes_no_step() -> None:
    """The last steps of an epoch, for the member with fewer graphs."""
    parameter = nn.Parameter(torch.ones(2, 3))
    optimizer = StackedAdam([parameter], [0.1, 0.1])
    for reach in ([5, 5], [5, 0]):
        optimizer.before(reach)
        parameter.grad.fill_(1)
        optimizer.step()
    torch.testing.assert_close(parameter, torch.tensor([[0.8] * 3, [0.9] * 3]))
    assert optimizer.state()["steps"] == [2, 1]


def test_one_skipped_step_is_a_step_of_adam() -> None:
    for done in (1, 10, 1000, 100_000):
        step, lr, betas = combined(0.01, done, 1)
        assert betas == module.BETAS
        assert lr == pytest.approx(0.01, rel=1e-6)
        # Beyond some thousand steps the correction of the second moment is 1 to all digits.
        assert step == pytest.approx(done, rel=1e-4) or min(step, done) > 10_000


def test_training_goes_on_from_the_state_at_the_end_of_an_epoch() -> None:
    found, reach = drawn_gradients(450, 2)
    ours, optimizer = by_us(found, reach, [0.01, 0.001], 45)
    plain = by_us(found, np.where(reach > 0, M, 0), [0.01, 0.001], 45)[1].state()
    state = optimizer.state()
    assert state["steps"] == plain["steps"] == (reach > 0).sum(0).tolist()
    for moment in ("first", "second"):
        torch.testing.assert_close(state[moment], plain[moment], rtol=1e-4, atol=1e-12)
    again = nn.Parameter(ours.detach().clone())
    small = [nn.Parameter(torch.ones(2, 1, 3)) for _ in range(2)]
    other = StackedAdam([small[0], again, small[1]], [0.01, 0.001], ranked=(again, M))
    other.restore(state)
    for each, parameter in ((optimizer, ours), (other, again)):
        each.before([3, M])
        parameter.grad.fill_(0.1)
        each.step()
        each.end_epoch()
    assert torch.equal(ours, again)
    assert all(torch.equal(other.state()[name], state[name]) for name in ("first", "second"))
