"""Adam for a stack of models, which leaves out parameters that a step cannot change much.

The readout of IHGNN has a row of parameters for each rank up to m, the size of the largest graph.
A batch of smaller graphs neither reads nor changes the rows beyond its own largest graph; their
gradient is 0, and Adam only lets their momentum run out. Those steps are made up for in one step,
before the rows are read again or the epoch ends:

After step t of a parameter p with moments m and v, d steps without a gradient subtract

    lr · sum over j = 1..d of  a_j · m / (sqrt(v · beta2^j / (1 - beta2^(t+j))) + eps),
    a_j = beta1^j / (1 - beta1^(t+j))

which is A · m / (b · sqrt(v) + eps) with A = lr · sum a_j and b = sum a_j / sum q_j,
q_j = a_j · beta2^(-j/2) · sqrt(1 - beta2^(t+j)). This is exact where eps is far below or far above
the root, and correct to second order in between. torch's fused Adam computes it in one call with
other constants (`_combined`). A test compares it with plain Adam.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.optim.adam import adam

from ihgnn_cli.data.dataset import offsets

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
# Leave rows out if batches reach less than this share of them; otherwise one call for all members
# is faster.
_WORTH_IT = 0.8


class StackedAdam:
    """Fused Adam with a learning rate and a number of steps for each member.

    Parameters and gradients become views of one tensor [S, *] each, because launching an operation
    is costly. One call updates the neighbouring members that have the same learning rate and number
    of steps.

    Args:
        parameters: each with a leading member axis.
        lrs: the learning rate of each member.
        steps: of each member per epoch.
        weight_decay: Adam's weight decay.
        ranked: the parameter [S, rows, *] of which a batch may read only the first rows.
        share: the expected share of its rows that a batch reads.
    """

    def __init__(
        self,
        parameters: Sequence[nn.Parameter],
        lrs: Sequence[float],
        steps: Sequence[int],
        *,
        weight_decay: float = 0.0,
        ranked: nn.Parameter | None = None,
        share: float = 1.0,
    ) -> None:
        self._weight_decay = weight_decay
        values, gradients, ranges = _flattened(parameters)
        self._first = torch.zeros_like(values)
        self._second = torch.zeros_like(values)
        self._tensors = values, gradients, self._first, self._second
        self._runs: list[_Run] = []
        start = 0
        for (lr, count), run in groupby(zip(lrs, steps, strict=True)):
            part = slice(start, start + len(list(run)))
            start = part.stop
            self._runs.append(_Run(part, lr, count))
        self._ranked = slice(0, 0)
        self._row = 1
        if ranked is not None and share < _WORTH_IT and not weight_decay:
            place = next(at for at, each in enumerate(parameters) if each is ranked)
            self._ranked, self._row = ranges[place], ranked[0, 0].numel()

    @torch.no_grad()
    def before(self, number: int, reach: NDArray[np.int64] | None) -> None:
        """Make up for skipped steps of the rows that a batch reads.

        Args:
            number: of the step in the epoch, counted from 0.
            reach: [S] how many leading rows of the ranked parameter the step reads; `None`: all.
        """
        for run in self._active(number):
            run.reached = None
            if not self._skips(run):
                continue
            members = range(run.part.start, run.part.stop)
            run.reached = [
                self._length if reach is None else self._row * int(reach[each]) for each in members
            ]
            if not run.behind:
                run.behind = [_Behind(run.done, self._length) for _ in run.reached]
            self._catch_up(run, run.reached)

    @torch.no_grad()
    def step(self, number: int) -> None:
        """Update the members that have a batch in this step of the epoch (counted from 0)."""
        for run in self._active(number):
            parts: list[tuple[Tensor, ...]]
            if run.reached is None:
                parts = [self._of(run.part)]
            else:
                begin, end = self._ranked.start, self._ranked.stop
                parts = [
                    self._of(member, piece)
                    for member, reached in enumerate(run.reached, run.part.start)
                    for piece in (slice(0, begin + reached), slice(end, None))
                ]
            self._adam(parts, run.done, run.lr, BETAS, self._weight_decay)
            run.done += 1

    @torch.no_grad()
    def end_epoch(self) -> None:
        """Make up for all skipped steps, so that state and evaluation see finished parameters."""
        for run in self._runs:
            self._catch_up(run, [self._length] * len(run.behind))
            run.behind = []

    def state(self) -> dict[str, Any]:
        """Moments [S, *] and steps [S], as plain tensors and numbers."""
        steps = [run.done for run in self._runs for _ in range(run.part.start, run.part.stop)]
        return {"first": self._first, "second": self._second, "steps": steps}

    def restore(self, state: dict[str, Any]) -> None:
        """Resume from a `state`."""
        self._first.copy_(state["first"])
        self._second.copy_(state["second"])
        for run in self._runs:
            run.done = state["steps"][run.part.start]

    @property
    def _length(self) -> int:
        """Entries of the ranked parameter per member."""
        return self._ranked.stop - self._ranked.start

    def _active(self, number: int) -> "Iterable[_Run]":
        return (run for run in self._runs if number < run.steps)

    def _skips(self, run: "_Run") -> bool:
        return self._length > 0 and run.done >= _PLAIN_STEPS

    def _of(self, *index: Any) -> tuple[Tensor, ...]:
        """Values, gradients and both moments at an index."""
        return tuple(each[index] for each in self._tensors)

    def _catch_up(self, run: "_Run", ends: Sequence[int]) -> None:
        """Make up for the skipped steps of each member's entries up to an end.

        Their gradient is 0, because the last step did not reach them.
        """
        begin = self._ranked.start
        by_steps = defaultdict(list)
        for member, (behind, end) in enumerate(zip(run.behind, ends, strict=True), run.part.start):
            for steps, piece in behind.take(end, run.done):
                entries = slice(begin + piece.start, begin + piece.stop)
                by_steps[steps].append(self._of(member, entries))
        for steps, parts in by_steps.items():
            done, count = steps, _FIRST_COMBINED
            while done < run.done:
                count = min(count, run.done - done)
                self._adam(parts, *_combined(run.lr, done, count), 0.0)
                done, count = done + count, min(2 * count, _MOST_COMBINED)

    def _adam(
        self,
        parts: Sequence[tuple[Tensor, ...]],
        done: float,
        lr: float,
        betas: tuple[float, float],
        weight_decay: float,
    ) -> None:
        values, gradients, first, second = zip(*parts, strict=True)
        steps = torch.full((len(parts),), float(done), device=self._first.device)
        adam(
            params=list(values),
            grads=list(gradients),
            exp_avgs=list(first),
            exp_avg_sqs=list(second),
            max_exp_avg_sqs=[],
            state_steps=list(steps.unbind()),
            fused=True,
            amsgrad=False,
            beta1=betas[0],
            beta2=betas[1],
            lr=lr,
            weight_decay=weight_decay,
            eps=EPS,
            maximize=False,
        )


@dataclass(eq=False)
class _Run:
    """Neighbouring members that Adam updates together."""

    part: slice
    lr: float
    steps: int
    """Per epoch."""
    done: int = 0
    """Steps so far."""
    reached: list[int] | None = None
    """Entries of the ranked parameter that each member's batch reads; `None`: all."""
    behind: "list[_Behind]" = field(default_factory=list)
    """One per member; empty if no steps were skipped."""


class _Behind:
    """How many steps each entry of a member's ranked parameter has taken.

    Every step takes the first entries up to some end. So the entries fall into few ranges, and
    those further back are further behind.
    """

    def __init__(self, done: int, length: int) -> None:
        self._ranges = [(length, done)]  # the end of each range, and its steps

    def take(self, end: int, done: int) -> list[tuple[int, slice]]:
        """The ranges below `end` that have taken fewer than `done` steps, each with its steps.

        From now on all entries below `end` count as having taken the next step.
        """
        found, kept, low = [], [], 0
        for high, steps in self._ranges:
            if low < end and steps < done:
                found.append((steps, slice(low, min(high, end))))
            if high > end:
                kept.append((high, steps))
            low = high
        self._ranges = [(end, done + 1), *kept]
        return found


def _combined(lr: float, done: int, count: int) -> tuple[float, float, tuple[float, float]]:
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


def expected_share(sizes: NDArray[np.int64], batch_size: int, rows: int) -> float:
    """The expected size of the largest of `batch_size` random graphs, as a share of `rows`."""
    if not len(sizes):
        return 0.0
    ordered = np.sort(np.minimum(sizes, rows))
    below = (np.arange(len(ordered) + 1) / len(ordered)) ** min(batch_size, len(ordered))
    return float(ordered @ np.diff(below)) / rows


def _flattened(parameters: Sequence[nn.Parameter]) -> tuple[Tensor, Tensor, list[slice]]:
    """Make parameters and gradients views of one tensor [S, *] each.

    Returns the two tensors, and the entries of each parameter.
    """
    members = parameters[0].shape[0]
    # Each starts at a multiple of 64 bytes, for vector instructions.
    sizes = np.array([math.ceil(each[0].numel() / 16) * 16 for each in parameters])
    ptr = offsets(sizes)
    values = parameters[0].new_zeros(members, int(ptr[-1]))
    gradients = torch.zeros_like(values)
    ranges = []
    for parameter, begin in zip(parameters, ptr.tolist(), strict=False):
        part = slice(begin, begin + parameter[0].numel())
        value = values[:, part].view(parameter.shape)
        value.copy_(parameter.data)
        parameter.data = value
        parameter.grad = gradients[:, part].view(parameter.shape)
        ranges.append(part)
    return values, gradients, ranges
