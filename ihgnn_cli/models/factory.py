"""Builds a stack of models from a registry entry and its settings."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol, cast

import torch
from torch import Tensor, nn

from ihgnn_cli.data.batching import Batch
from ihgnn_cli.models.autograd import AutogradStack, LossGradient
from ihgnn_cli.models.settings import Inputs, ModelSettings
from ihgnn_cli.models.spec import ModelSpec


class StackedModel(Protocol):
    """What a model needs to be trained here, besides being a torch.nn.Module.

    Every parameter and every buffer has a leading member axis.
    """

    def __call__(self, batch: Batch, /) -> Tensor:
        """[S, B, classes] logits."""

    @property
    def dropped_units(self) -> int:
        """Units a graph that dropout is drawn for here; 0 where the model draws itself."""

    def train_step(
        self, batch: Batch, factor: Tensor, seeds: Sequence[int], gradient: LossGradient, /
    ) -> Tensor:
        """The logits in training; leaves the gradients of the parameters.

        Dropout multiplies by `factor` [S, B, dropped units]; what else is random follows from the
        members' `seeds` of this step. `gradient` turns logits into the gradient of the loss to
        them: the loss belongs to training. A model that takes its graphs in parts asks for the
        gradient part by part.
        """

    def train(self) -> object:
        """This and the rest as in torch.nn.Module."""

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
    """A stack of untrained models, one member per generator of initial parameters."""
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

    The model is built without memory for its weights.
    """
    with torch.device("meta"):
        built = build_stack(spec, settings, inputs, [torch.Generator("cpu")])
    found = {name: tuple(each.shape[1:]) for name, each in built.state_dict().items()}
    return found, sum(each.numel() for each in built.parameters())
