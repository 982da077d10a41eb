"""Models without a member axis as a stack that has one: one after the other, by autograd.

What a model of one's own needs is a torch module that takes `Graphs`. Here it becomes what the
training loop takes: parameters and buffers get a leading member axis, and a member's part of them
stands in for the module's own while the member's turn lasts.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

import torch
from torch import Tensor, nn
from torch.func import functional_call

from ihgnn_cli.data.batching import Batch
from ihgnn_cli.errors import InputError
from ihgnn_cli.models.graphs import Graphs, member_graphs
from ihgnn_cli.models.stacked.mlp import Generators


class LossGradient(Protocol):
    """How training tells a model the gradient of its loss to the logits."""

    def __call__(self, logits: Tensor, at: tuple[int, slice] = ..., /) -> Tensor:
        """The gradient, shaped like the logits.

        Logits are [S, B, classes] of the whole batch, or [n, classes] of the graphs `at` a member
        and a part of its graphs.
        """


# Pairs of nodes, padding among them, that a method that pads holds at a time. A step of MUTAG (32
# graphs of up to 28 nodes) is one part; larger graphs come in several.
PAIRS_AT_ONCE = 2**15
# Nodes and edges that other methods evaluate at a time: some derive many times as much from them.
EVALUATED_AT_ONCE = 2**15


class AutogradStack(nn.Module):
    """A stack of S modules of the same kind.

    Args:
        make: gives one module at its start, by torch's own randomness.
        generators: one a member, whose seeds that randomness is given.
        by_size: whether a step's graphs are taken in parts of similar size; their gradients are
            added up.

    Raises:
        InputError: a parameter is in two modules at once.
    """

    def __init__(
        self, make: Callable[[], nn.Module], generators: Generators, *, by_size: bool = False
    ) -> None:
        super().__init__()
        made = []
        for generator in generators:
            with seeded(generator.initial_seed(), torch.device("cpu")):
                made.append(make())
        self.inner = made[0]
        self._by_size = by_size
        parameters = len(list(self.inner.parameters()))
        for modules in zip(*(each.modules() for each in made), strict=True):
            _give_member_axis(modules)
        if len(list(self.inner.parameters())) != parameters:  # each place would learn its own
            raise InputError(
                f"{type(self.inner).__name__} has one parameter in two modules. Put it in a module "
                "of its own, and call that twice."
            )

    dropped_units = 0
    """Modules draw their dropout themselves."""

    @torch.no_grad()
    def forward(self, batch: Batch) -> Tensor:
        """[S, B, classes] logits."""
        found = [
            [
                (part, _logits(output)[0])
                for part, _, output in self._turn(batch, member, self._own(member))
            ]
            for member in range(batch.members)
        ]
        return _together(found, batch)

    def train_step(
        self, batch: Batch, factor: Tensor, seeds: Sequence[int], gradient: LossGradient
    ) -> Tensor:
        """[S, B, classes] the logits of a batch in training; leaves the gradients.

        Each member's gradients are those of the loss that `gradient` belongs to and of its
        penalties. `factor` is not used: a module draws its dropout itself, from its member's seed
        of the step.
        """
        del factor
        for parameter in self.parameters():
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            parameter.grad.zero_()
        found = []
        for member, seed in enumerate(seeds):
            of_member = []
            own = self._own(member)
            with seeded(seed, batch.size.device), torch.enable_grad():
                for part, share, output in self._turn(batch, member, own):
                    logits, penalty = _logits(output)
                    to_logits = gradient(logits.detach(), (member, part))
                    sources = {logits: to_logits}
                    if isinstance(penalty, Tensor) and penalty.requires_grad:
                        sources[penalty] = penalty.new_tensor(share)
                    self._add_gradients(sources, member, own)
                    of_member.append((part, logits.detach()))
            found.append(of_member)
        return _together(found, batch)

    def _own(self, member: int) -> dict[str, Tensor]:
        """A member's parameters and buffers by name, sharing memory with those of the stack."""
        own = {
            name: each.detach()[member].requires_grad_(each.requires_grad)
            for name, each in self.inner.named_parameters()
        }
        return own | {name: each[member] for name, each in self.inner.named_buffers()}

    def _add_gradients(
        self, sources: dict[Tensor, Tensor], member: int, own: dict[str, Tensor]
    ) -> None:
        """Add gradients to the member's rows of those of the stack, from those to the `sources`.

        Through the stack's parameters, each member would have a gradient of all of them.
        """
        wanted = {name: each for name, each in self.inner.named_parameters() if each.requires_grad}
        gradients = torch.autograd.grad(
            list(sources),
            [own[name] for name in wanted],
            list(sources.values()),
            allow_unused=True,
        )
        for parameter, gradient in zip(wanted.values(), gradients, strict=True):
            if gradient is not None and parameter.grad is not None:
                parameter.grad[member] += gradient

    def _turn(
        self, batch: Batch, member: int, own: dict[str, Tensor]
    ) -> Iterator[tuple[slice, float, "Tensor | tuple[Tensor, Tensor]"]]:
        """What a member's module says of its graphs, part by part, with each part's share."""
        graphs = member_graphs(batch, member)
        if not len(graphs):
            return
        if self._by_size:
            parts = graphs.parts(PAIRS_AT_ONCE)
        elif self.training:
            parts = iter([(slice(0, len(graphs)), graphs)])
        else:  # graphs do not influence each other
            parts = graphs.runs(EVALUATED_AT_ONCE)
        for part, taken in parts:
            yield part, len(taken) / len(graphs), self._call(own, taken)

    def _call(self, own: dict[str, Tensor], graphs: Graphs) -> "Tensor | tuple[Tensor, Tensor]":
        answer: Tensor | tuple[Tensor, Tensor] = functional_call(self.inner, own, (graphs,))
        return answer


@contextmanager
def seeded(seed: int, device: torch.device) -> Iterator[None]:
    """Torch's own randomness from a seed in the block, and as it was after it."""
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        yield


def _give_member_axis(modules: Sequence[nn.Module]) -> None:
    """Make parameters and buffers of the first the stacks of all of them."""
    first = modules[0]
    for name, parameter in list(first.named_parameters(recurse=False)):
        stacked = torch.stack([getattr(each, name).data for each in modules])
        first.register_parameter(name, nn.Parameter(stacked, parameter.requires_grad))
    for name, _ in list(first.named_buffers(recurse=False)):
        first.register_buffer(name, torch.stack([getattr(each, name) for each in modules]))


def _logits(output: "Tensor | tuple[Tensor, Tensor]") -> tuple[Tensor, Tensor | float]:
    return output if isinstance(output, tuple) else (output, 0.0)


def _together(found: Sequence[Sequence[tuple[slice, Tensor]]], batch: Batch) -> Tensor:
    """[S, B, classes] logits of each member's parts, 0 for padding."""
    sample = next(logits for of_member in found for _, logits in of_member)
    out = sample.new_zeros(*batch.truth.shape, sample.shape[-1])
    for member, of_member in enumerate(found):
        for part, logits in of_member:
            out[member, part] = logits
    return out
