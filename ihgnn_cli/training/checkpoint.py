"""Training checkpoints: the models, their configuration and the state to resume from.

`models.checkpoint` defines the file format and the saved models. This module adds the training
configuration, which the models package does not know.
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
    other_version,
    read_content,
    saved_model,
    write_content,
)
from ihgnn_cli.models.factory import StackedModel, build_stack
from ihgnn_cli.models.settings import Inputs
from ihgnn_cli.training.config import RunConfig, from_plain
from ihgnn_cli.training.epoch import Epoch
from ihgnn_cli.training.seeds import generator


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A trained stack and everything needed to use it."""

    config: RunConfig
    card: ModelCard
    weights: dict[str, Tensor]
    """By name, each with the member axis first."""
    members: int
    epoch: Epoch | None
    """Metrics of the (first) model at this point; `None` before the first epoch."""
    progress: dict[str, Any] = field(default_factory=dict)
    """The state that training resumes from; empty in a finished model."""

    @property
    def saved(self) -> SavedModel:
        """The models without their training."""
        config = self.config
        return SavedModel(config.spec, config.model, self.card, self.weights, self.members)

    def model(self, device: torch.device) -> StackedModel:
        """The models, ready to predict."""
        return self.saved.model(device)


def build(config: RunConfig, inputs: Inputs, seeds: Sequence[int]) -> StackedModel:
    """A stack of untrained models, one member per seed."""
    generators = [generator(seed, "parameters") for seed in seeds]
    return build_stack(config.spec, config.model, inputs, generators)


def save_checkpoint(checkpoint: Checkpoint, path: Path) -> None:
    """Write the file atomically.

    Raises:
        IhgnnError: the path is not writable, or the disk is full.
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
        InputError: the file does not exist, is not a checkpoint, is damaged, unsafe or of another
            version, or needs a model that is not installed.
    """
    content = read_content(path)
    with damage_reported(path):
        config = from_plain(content["config"], str(path))
        saved = saved_model(content, config.spec, config.model)
        validated = len(saved.card.split.validation) > 0
        epoch = None if content["epoch"] is None else _epoch(content["epoch"], validated)
        progress = content["progress"]
        if not isinstance(progress, dict):
            raise TypeError("progress is not a dictionary")
    for name, section in config.as_plain().items():
        if content["config"].get(name, {}).keys() != section.keys():
            raise other_version(path)
    return Checkpoint(config, saved.card, saved.weights, saved.members, epoch, progress)


def _epoch(plain: Mapping[str, Any], validated: bool) -> Epoch:
    epoch = Epoch(**plain)
    for name, value in asdict(epoch).items():
        finite = validated or not name.startswith("validation")
        kind = int if name == "epoch" else float
        if type(value) is not kind or (finite and not math.isfinite(value)):
            raise TypeError(f"{name} is {value!r}")
    return epoch
