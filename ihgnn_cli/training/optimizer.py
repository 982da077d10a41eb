"""torch's fused Adam for a stack of models, which leaves out ranks that a batch does not reach.

The readout of IHGNN has a block of parameters for each rank up to m, the size of the largest graph.
A batch of smaller graphs neither reads nor changes the ranks beyond its own largest graph: their
gradient is 0, and Adam only lets their momentum run out. Ranks are grouped, and a group that no
graph of the batch reaches waits. Its steps are made up for in one, before the group is read again
or the epoch ends. After step t of a parameter p with moments m and v, d steps without a gradient
subtract

    lr · sum over j = 1..d of  a_j · m / (sqrt(v · beta2^j / (1 - beta2^(t+j))) + eps),
    a_j = beta1^j / (1 - beta1^(t+j))

which is A · m / (b · sqrt(v) + eps) with A = lr · sum a_j and b = sum a_j / sum q_j,
q_j = a_j · beta2^(-j/2) · sqrt(1 - beta2^(t+j)). This is exact where eps is far below or far above
the root, and correct to second order in between. torch's fused Adam computes it in one call with
other constants (`combined`). A test compares it with plain Adam.

Steps are counted on the host, so no number is read back from the device.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim.adam import adam

BETAS = (0.9, 0.999)
EPS = 1e-8
"""Both values are those of torch.optim.Adam."""
# In the first steps the second moments are still small and the combined step is not exact enough:
# skipping from the start cost 1e-4 in the parameters after 450 steps, from step 300 1e-6, as much
# as the rounding of plain Adam.
_PLAIN_STEPS = 300
# How many steps are combined at first, and at most. torch multiplies the first moment by beta1' as
# 1 - (1 - beta1'), so a small beta1' loses digits. After the first steps the momentum that is left
# is so small that this no longer matters, and each call may combine twice as many.
_FIRST_COMBINED, _MOST_COMBINED = 32, 256
# Ranks of the first group; each further group ends at 1.5 times the rank.
_FIRST_RANKS = 64


class StackedAdam:
    """Adam with a learning rate and a number of steps for each member.

    Parameters and gradients become views of one tensor [S, *] each, because launching an operation
    is costly. A gradient must be written into `parameter.grad`, which stays the same tensor.

    Args:
        parameters: each with a leading member axis.
        lrs: the learning rate of each member.
        weight_decay: Adam's weight decay; with it no group of ranks waits.
        ranked: a parameter [S, m · rows, *] whose rows are ordered by rank, and m.
    """

    def __init__(
        self,
        parameters: Sequence[nn.Parameter],
        lrs: Sequence[float],
        *,
        weight_decay: float = 0.0,
        ranked: tuple[nn.Parameter, int] | None = None,
    ) -> None:
        self._weight_decay = weight_decay
        ordered = [each for each in parameters if ranked is None or each is not ranked[0]]
        cuts, starts = [0], [0]
        if ranked is not None:
            starts += _group_starts(ranked[1] if not weight_decay else 0)
            begin = sum(map(_padded, ordered))
            row = ranked[0][0].numel() // ranked[1]
            cuts += [begin + rank * row for rank in starts[1:]]
            ordered.append(ranked[0])
        values, gradients = _flattened(ordered)
        self._moments = torch.zeros_like(values), torch.zeros_like(values)
        cuts.append(values.shape[1])
        # The fused form wants its counts on the device, and refuses the meta device.
        self._fused = not values.is_meta
        device = values.device if self._fused else "cpu"
        count = torch.zeros(len(lrs), len(starts), device=device)
        columns = values, gradients, *self._moments
        self._members = [_Member(lr, []) for lr in lrs]
        for number, member in enumerate(self._members):
            for at, (low, (a, b)) in enumerate(zip(starts, pairwise(cuts), strict=True)):
                own = [each[number, a:b] for each in columns]
                member.parts.append(_Part(low, own[0], own[1], own[2], own[3], count[number, at]))

    @torch.no_grad()
    def before(self, reach: Sequence[int]) -> None:
        """Prepare a step: make up for the skipped steps of what it reads.

        Args:
            reach: for each member, how many ranks its batch reads; 0: it has no batch.
        """
        for member, ranks in zip(self._members, reach, strict=True):
            plain = member.done < _PLAIN_STEPS
            member.active = [each for each in member.parts if ranks and (plain or each.low < ranks)]
            self._catch_up(member, member.active)

    @torch.no_grad()
    def step(self) -> None:
        """Update what the batch of each member reads."""
        by_lr: defaultdict[float, list[_Part]] = defaultdict(list)
        for member in self._members:
            by_lr[member.lr] += member.active
            member.done += bool(member.active)
            for part in member.active:
                part.done += 1
        for lr, parts in by_lr.items():
            self._adam(parts, [each.count for each in parts], lr, BETAS, self._weight_decay)

    @torch.no_grad()
    def end_epoch(self) -> None:
        """Make up for all skipped steps, so that state and evaluation see finished parameters."""
        for member in self._members:
            self._catch_up(member, member.parts)

    def state(self) -> dict[str, Any]:
        """Moments [S, *] and steps [S] at the end of an epoch, as plain tensors and numbers."""
        first, second = self._moments
        steps = [member.done for member in self._members]
        return {"first": first, "second": second, "steps": steps}

    def restore(self, state: dict[str, Any]) -> None:
        """Resume from a `state`."""
        for moment, name in zip(self._moments, ("first", "second"), strict=True):
            moment.copy_(state[name])
        for member, done in zip(self._members, state["steps"], strict=True):
            member.done = done
            for part in member.parts:
                part.set_steps(done)

    def _catch_up(self, member: "_Member", parts: "Iterable[_Part]") -> None:
        for part in parts:
            behind, count = part.done < member.done, _FIRST_COMBINED
            while part.done < member.done:
                # The gradient is 0, because the last step did not reach this part.
                count = min(count, member.done - part.done)
                step, lr, betas = combined(member.lr, part.done, count)
                self._adam([part], [torch.full_like(part.count, step)], lr, betas, 0.0)
                part.done, count = part.done + count, min(2 * count, _MOST_COMBINED)
            if behind:
                part.set_steps(member.done)

    def _adam(
        self,
        parts: "Sequence[_Part]",
        steps: list[Tensor],
        lr: float,
        betas: tuple[float, float],
        weight_decay: float,
    ) -> None:
        if not parts:
            return
        adam(
            params=[each.values for each in parts],
            grads=[each.gradients for each in parts],
            exp_avgs=[each.first for each in parts],
            exp_avg_sqs=[each.second for each in parts],
            max_exp_avg_sqs=[],
            state_steps=steps,
            fused=self._fused,
            amsgrad=False,
            beta1=betas[0],
            beta2=betas[1],
            lr=lr,
            weight_decay=weight_decay,
            eps=EPS,
            maximize=False,
        )


@dataclass(eq=False)
class _Part:
    """Parameters of one member that take their steps together."""

    low: int
    """The first rank; 0 as well for the parameters that every step reads."""
    values: Tensor
    gradients: Tensor
    first: Tensor
    second: Tensor
    count: Tensor
    """The number of steps on the device."""
    done: int = 0
    """The same number on the host."""

    def set_steps(self, done: int) -> None:
        """Set both counts."""
        self.done = done
        self.count.fill_(done)


@dataclass(eq=False)
class _Member:
    """The parts of a member, and those that take part in the present step."""

    lr: float
    parts: list[_Part]
    active: Sequence[_Part] = ()
    done: int = 0
    """Steps so far."""


def combined(lr: float, done: int, count: int) -> tuple[float, float, tuple[float, float]]:
    """Steps done, learning rate and betas with which one Adam step equals `count` without gradient.

    See the module's formula; `done` steps were made before.
    """
    beta1, beta2 = BETAS
    j = np.arange(1, count + 1)
    a = beta1**j / -np.expm1((done + j) * math.log(beta1))
    q = a * beta2 ** (-j / 2) * np.sqrt(-np.expm1((done + j) * math.log(beta2)))
    b = a.sum() / q.sum()
    betas = beta1**count, beta2**count
    # One step divides by sqrt(v · beta2' / (1 - beta2'^n)): choose n so that this is b · sqrt(v).
    step = math.log(max(1 - betas[1] / b**2, 1e-30)) / math.log(betas[1])
    whole = lr * a.sum() * -math.expm1(step * math.log(betas[0])) / betas[0]
    return step - 1, float(whole), betas


def _group_starts(ranks: int) -> list[int]:
    """The first rank of each group."""
    starts = [0]
    end = _FIRST_RANKS
    while end + end // 4 < ranks:
        starts.append(end)
        end += max(_FIRST_RANKS, end // 2)
    return starts


def _flattened(parameters: Sequence[nn.Parameter]) -> tuple[Tensor, Tensor]:
    """Make parameters and gradients views of one tensor [S, *] each, and return the two."""
    sizes = [_padded(each) for each in parameters]
    values = parameters[0].new_zeros(len(parameters[0]), sum(sizes))
    gradients = torch.zeros_like(values)
    of_each = torch.split(values, sizes, 1), torch.split(gradients, sizes, 1)
    for parameter, value, gradient in zip(parameters, *of_each, strict=True):
        size = parameter[0].numel()
        own = value[:, :size].view(parameter.shape)
        parameter.data = own.copy_(parameter.data)
        parameter.grad = gradient[:, :size].view(parameter.shape)
    return values, gradients


def _padded(parameter: Tensor) -> int:
    """Entries per member, as a multiple of 64 bytes, for vector instructions."""
    return math.ceil(parameter[0].numel() / 16) * 16
