"""The checkpoint of a training: the models with their configuration and the state to resume from.

The file and the models in it are `models.checkpoint`. What is here needs the configuration of a
training, which models do not know.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ihgnn_cli.models.card import ModelCard
from ihgnn_cli.models.checkpoint import (
    SavedModel,
    damage_reported,
    read_content,
    saved_model,
    write_content,
)
from ihgnn_cli.models.factory import StackedModel, build_stack
from ihgnn_cli.models.settings import Inputs
from ihgnn_cli.training.config import RunConfig, from_plain
from ihgnn_cli.training.seeds import generator
from ihgnn_cli.training.stack import Epoch


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A trained stack and all that is needed to use it."""

    config: RunConfig
    card: ModelCard
    weights: dict[str, Tensor]
    """By name, each with the member axis first."""
    members: int
    epoch: Epoch | None
    """How good the (first) model was at this point; `None` before the first epoch."""
    progress: dict[str, Any] = field(default_factory=dict)
    """What training needs to continue; empty in a finished model."""

    @property
    def saved(self) -> SavedModel:
        """The models without their training."""
        config = self.config
        return SavedModel(config.spec, config.model, self.card, self.weights, self.members)

    def model(self, device: torch.device) -> StackedModel:
        """The models, ready to answer."""
        return self.saved.model(device)


def build(config: RunConfig, inputs: Inputs, seeds: Sequence[int]) -> StackedModel:
    """A stack of untrained models, one member per seed."""
    generators = [generator(seed, "parameters") for seed in seeds]
    return build_stack(config.spec, config.model, inputs, generators)


def save_checkpoint(checkpoint: Checkpoint, path: Path) -> None:
    """Write the file whole or not at all.

    Raises:
        IhgnnError: the place cannot be written, or the disk is full.
    """
    content = {
        "config": checkpoint.config.as_plain(),
        "card": checkpoint.card.as_plain(),
        "weights": checkpoint.weights,
        "members": checkpoint.members,
        "epoch": None if checkpoint.epoch is None else asdict(checkpoint.epoch),
        "progress": checkpoint.progress,
    }
    write_content(content, path)


def load_checkpoint(path: Path) -> Checkpoint:
    """Read a checkpoint; no code in the file is run.

    Raises:
        InputError: there is no such file, or it is not a checkpoint, damaged, hostile, of a later
            format, or of a model that is not installed.
    """
    content = read_content(path)
    with damage_reported(path):
        config = from_plain(content["config"], str(path))
        saved = saved_model(content, config.spec, config.model)
        epoch = None if content["epoch"] is None else _epoch(content["epoch"])
        progress = content["progress"]
        if not isinstance(progress, dict):
            raise TypeError("progress is no dictionary")
        return Checkpoint(config, saved.card, saved.weights, saved.members, epoch, progress)


def _epoch(plain: Mapping[str, Any]) -> Epoch:
    epoch = Epoch(**plain)
    for name, value in asdict(epoch).items():
        if type(value) is not (int if name == "epoch" else float) or not math.isfinite(value):
            raise TypeError(f"{name} is {value!r}")
    return epoch
