"""Builds a stack of models from a registry entry and its settings."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Protocol, cast

import torch
from torch import Tensor, nn

from ihgnn_cli.data.batching.batches import Batch
from ihgnn_cli.models.autograd import AutogradStack
from ihgnn_cli.models.settings import Inputs, ModelSettings
from ihgnn_cli.models.spec import ModelSpec


class Loss(Protocol):
    """The training loss of a stack, in the form that models need."""

    def losses(self, logits: Tensor, truth: Tensor, /) -> Tensor:
        """[S, B] the loss of each graph, for logits [S, B, classes]."""

    def shares(self, batch: Batch, /) -> Tensor:
        """[S, B] the factor of each graph's loss in the loss of its member."""

    def keep(self, members: slice, /) -> "Loss":
        """The loss of these members only."""


class StackedModel(Protocol):
    """The interface that the training loop needs, besides torch.nn.Module.

    Every parameter and buffer has a leading member axis.
    """

    def __call__(self, batch: Batch, /) -> Tensor:
        """[S, B, classes] logits."""

    @property
    def dropped_units(self) -> int:
        """Units per graph that the trainer draws dropout for; 0 if the model draws its own."""

    @property
    def ranked(self) -> tuple[nn.Parameter, int] | None:
        """A parameter [S, m · rows, *] whose rows are ordered by rank, and m, if there is one.

        The gradient of ranks beyond the largest graph of a batch must be 0.
        """

    @property
    def sorts(self) -> bool:
        """Whether the readout depends on a sorted order of the nodes."""

    def sort_keys(self, batch: Batch, /) -> tuple[Tensor, Tensor, Tensor]:
        """For each node its row [n, width] and key [n], and its graph [n] in `batch.origin`."""

    @property
    def graph_embedding(self) -> Callable[[Batch], Tensor] | None:
        """[S, B, hidden] what the last linear map reads; `None` if the model does not tell."""

    def train_step(
        self, batch: Batch, factor: Tensor, seeds: Sequence[int], loss: Loss, /
    ) -> Tensor:
        """The logits in training; sets the gradients of the parameters to those of the loss.

        Dropout multiplies by `factor` [S, B, dropped units]. All other randomness comes from the
        members' `seeds` for this step.
        """

    def recompute_statistics(self, batches: Iterable[Batch], /) -> None:
        """Replace running statistics by those of these batches; a model may keep its own."""

    def train(self) -> object:
        """As in torch.nn.Module, like the methods below."""

    def modules(self) -> Iterator[nn.Module]: ...  # noqa: D102
    def to(self, device: torch.device, /) -> "StackedModel": ...  # noqa: D102
    def eval(self) -> object: ...  # noqa: D102
    def parameters(self) -> Iterator[nn.Parameter]: ...  # noqa: D102
    def state_dict(self) -> dict[str, Tensor]: ...  # noqa: D102
    def load_state_dict(self, state_dict: Mapping[str, Tensor], /) -> object: ...  # noqa: D102


def build_stack(
    spec: ModelSpec,
    settings: ModelSettings,
    inputs: Inputs,
    generators: Sequence[torch.Generator],
) -> StackedModel:
    """A stack of untrained models, one member per generator."""
    if spec.stacked is not None:
        return cast("StackedModel", spec.stacked(settings, inputs, generators))
    make = spec.make
    if make is None:
        raise TypeError(f"the model {spec.name} has neither make nor stacked")
    return AutogradStack(lambda: make(settings, inputs), generators, by_size=spec.by_size)


def shapes(
    spec: ModelSpec, settings: ModelSettings, inputs: Inputs
) -> tuple[dict[str, tuple[int, ...]], int]:
    """The shapes of one member's weights by name, and its number of parameters.

    Allocates no memory for the weights.
    """
    with torch.device("meta"):
        built = build_stack(spec, settings, inputs, [torch.Generator("cpu")])
    found = {name: tuple(each.shape[1:]) for name, each in built.state_dict().items()}
    return found, sum(each.numel() for each in built.parameters())
