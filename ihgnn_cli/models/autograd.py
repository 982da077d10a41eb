"""Turns ordinary torch modules into a stack, trained one member at a time with autograd.

A new model only has to be a torch module that takes `Graphs`. This module adapts it to the
training loop: parameters and buffers get a leading member axis, and each member's slice replaces
the module's own parameters while that member runs.
"""

import copy
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.func import functional_call

from ihgnn_cli.data.batching.batches import Batch
from ihgnn_cli.errors import InputError
from ihgnn_cli.models.graphs import Graphs, member_graphs
from ihgnn_cli.models.members import stack_members

if TYPE_CHECKING:
    from ihgnn_cli.models.factory import Loss

Generators = Sequence[torch.Generator]
"""One per member."""


# Pairs of nodes, with padding, that a padding method holds at a time. A step of MUTAG (32 graphs of
# up to 28 nodes) is one part; steps of larger graphs are split.
PAIRS_AT_ONCE = 2**15
# Nodes and edges that other methods evaluate at a time; some derive far more data from them.
EVALUATED_AT_ONCE = 2**15


class AutogradStack(nn.Module):
    """A stack of S modules of the same kind.

    Args:
        make: makes one untrained module with torch's global random generator.
        generators: one per member; their seeds are used for the global generator.
        by_size: split a step into parts of graphs of similar size and sum their gradients.

    Raises:
        InputError: two modules share a parameter.
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
        if len(list(self.inner.parameters())) != parameters:  # the two copies would diverge
            raise InputError(
                f"{type(self.inner).__name__} has one parameter in two modules. Put it in a module "
                "of its own and call that module twice."
            )

    dropped_units = 0
    """Modules draw their own dropout."""
    ranked = None
    """Every step may change every parameter."""
    graph_embedding = None
    """Modules give logits only."""

    @torch.no_grad()
    def recompute_statistics(self, batches: Iterable[Batch]) -> None:
        """Replace the running statistics of batch normalization by their means over these batches.

        Nothing is dropped meanwhile, as in predictions.
        """
        norms = [each for each in self.inner.modules() if isinstance(each, nn.BatchNorm1d)]
        if not norms:
            return
        momenta = [norm.momentum for norm in norms]
        steps = {
            name: each.clone()
            for name, each in self.inner.named_buffers()
            if name.endswith("num_batches_tracked")
        }
        self.eval()
        for module in (*norms, self):  # of this module the flag alone: a step is not split
            module.training = True
        for number, batch in enumerate(batches, 1):
            for norm in norms:
                norm.momentum = 1 / number
            for member in range(batch.members):
                for _ in self._turn(batch, member, self._own(member)):
                    pass
        for norm, momentum in zip(norms, momenta, strict=True):
            norm.momentum = momentum
        for name, each in steps.items():
            self.inner.get_buffer(name).copy_(each)
        self.eval()

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
        self, batch: Batch, factor: Tensor, seeds: Sequence[int], loss: "Loss"
    ) -> Tensor:
        """[S, B, classes] the logits of a batch in training; sets the gradients.

        Each member's gradients are those of the loss and of its penalties. `factor` is not used: a
        module draws its own dropout, from its member's seed of the step.
        """
        del factor
        for parameter in self.parameters():
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            parameter.grad.zero_()
        shares, found = loss.shares(batch), []
        for member, seed in enumerate(seeds):
            of_member = []
            own, of_loss = self._own(member), loss.keep(slice(member, member + 1))
            with seeded(seed, batch.truth.device), torch.enable_grad():
                for part, share, output in self._turn(batch, member, own):
                    logits, penalty = _logits(output)
                    losses = of_loss.losses(logits.unsqueeze(0), batch.truth[member, None, part])
                    total = (losses * shares[member, part]).sum() + penalty * share
                    self._add_gradients(total, member, own)
                    of_member.append((part, logits.detach()))
            found.append(of_member)
        return _together(found, batch)

    @property
    def sorts(self) -> bool:
        """Whether the module has `sort_keys(graphs)`: each node's row and the key it is sorted by.

        An exported file may differ where the keys of two nodes are nearly equal.
        """
        return hasattr(self.inner, "sort_keys")

    def sort_keys(self, batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
        """Rows [n, width] and keys [n] of all members' nodes, and the graph of each."""
        found = []
        for member in range(batch.members):
            graphs = member_graphs(batch, member)
            rows, keys = self.member(member).sort_keys(graphs)  # type: ignore[operator]
            found.append((rows, keys, graphs.graph + member * batch.origin.shape[1]))
        rows, keys, graph = (torch.cat(each) for each in zip(*found, strict=True))
        return rows, keys, graph

    def member(self, member: int) -> nn.Module:
        """A copy of one member as a module without the member axis."""
        alone = copy.deepcopy(self.inner)
        for of_stack, module in zip(self.inner.modules(), alone.modules(), strict=True):
            for name, each in of_stack.named_parameters(recurse=False):
                parameter = nn.Parameter(each.detach()[member].clone(), each.requires_grad)
                module.register_parameter(name, parameter)
            for name, buffer in of_stack.named_buffers(recurse=False):
                module.register_buffer(name, buffer[member].clone())
        return alone

    def _own(self, member: int) -> dict[str, Tensor]:
        """A member's parameters and buffers by name, sharing memory with the stack."""
        own = {
            name: each.detach()[member].requires_grad_(each.requires_grad)
            for name, each in self.inner.named_parameters()
        }
        return own | {name: each[member] for name, each in self.inner.named_buffers()}

    def _add_gradients(self, loss: Tensor, member: int, own: dict[str, Tensor]) -> None:
        """Backpropagate, and add the result to the member's slice of the gradients.

        Differentiating the stack's parameters would give each member a gradient of full size.
        """
        wanted = {name: each for name, each in self.inner.named_parameters() if each.requires_grad}
        gradients = torch.autograd.grad(loss, [own[name] for name in wanted], allow_unused=True)
        for parameter, gradient in zip(wanted.values(), gradients, strict=True):
            if gradient is not None and parameter.grad is not None:
                parameter.grad[member] += gradient

    def _turn(
        self, batch: Batch, member: int, own: dict[str, Tensor]
    ) -> Iterator[tuple[slice, float, "Tensor | tuple[Tensor, Tensor]"]]:
        """The output of a member's module, part by part, with each part's share of the graphs."""
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
    """Seed torch's global generator inside the block and restore its state afterwards."""
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        yield


def _give_member_axis(modules: Sequence[nn.Module]) -> None:
    """Stack all modules' parameters and buffers in the first module."""
    first = modules[0]
    for name, parameter in list(first.named_parameters(recurse=False)):
        stacked = stack_members([getattr(each, name).data for each in modules])
        first.register_parameter(name, nn.Parameter(stacked, parameter.requires_grad))
    for name, _ in list(first.named_buffers(recurse=False)):
        first.register_buffer(name, stack_members([getattr(each, name) for each in modules]))


def _logits(output: "Tensor | tuple[Tensor, Tensor]") -> tuple[Tensor, Tensor | float]:
    return output if isinstance(output, tuple) else (output, 0.0)


def _together(found: Sequence[Sequence[tuple[slice, Tensor]]], batch: Batch) -> Tensor:
    """[S, B, classes] logits from each member's parts, 0 for padding."""
    sample = next(logits for of_member in found for _, logits in of_member)
    out = sample.new_zeros(*batch.truth.shape, sample.shape[-1])
    for member, of_member in enumerate(found):
        for part, logits in of_member:
            out[member, part] = logits
    return out
