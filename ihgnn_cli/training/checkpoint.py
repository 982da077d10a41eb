"""Checkpoints: plain tensors and plain values in one file that no code hides in.

A checkpoint holds a stack of models (one today), the configuration and the card that they were
trained with, and how good they were. `last.pt` holds what training needs to go on as well.
"""

import io
import math
import warnings
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, cast

import torch
from torch import Tensor

from ihgnn_cli.errors import InputError
from ihgnn_cli.files import written_whole
from ihgnn_cli.models.autograd import AutogradStack
from ihgnn_cli.models.card import ModelCard, card_from_plain
from ihgnn_cli.models.ihgnn import IHGNN
from ihgnn_cli.models.settings import IHGNNSettings, Inputs, Variant
from ihgnn_cli.training.config import RunConfig, UnknownModelError, from_plain
from ihgnn_cli.training.seeds import generator
from ihgnn_cli.training.stack import Epoch, StackedModel

_MARK = "ihgnn checkpoint"
VERSION = 1
# Of files that are not trusted: beyond any use, and soon counted.
_MOST_MEMBERS, _MOST_LAYERS = 10_000, 1_000


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
    """What training needs to go on; empty in a checkpoint that is only used."""

    def model(self, device: torch.device) -> StackedModel:
        """The models, ready to answer."""
        built = build(self.config, self.card.inputs, [0] * self.members)
        built.load_state_dict(self.weights)
        built.eval()
        return built.to(device)

    def ihgnn(self, device: torch.device) -> IHGNN:
        """The same where they are IHGNN.

        Raises:
            TypeError: they are another model.
        """
        built = self.model(device)
        if not isinstance(built, IHGNN):
            raise TypeError(f"a model of {self.config.model_name}")
        return built


def build(config: RunConfig, inputs: Inputs, seeds: Sequence[int]) -> StackedModel:
    """A stack of models at its start, one member a seed."""
    generators = [generator(seed, "parameters") for seed in seeds]
    spec, settings = config.spec, config.model
    if spec.stacked is not None:
        return cast("StackedModel", spec.stacked(settings, inputs, generators))
    make = spec.make
    if make is None:
        raise TypeError(f"the model {spec.name} has neither make nor stacked")
    return AutogradStack(lambda: make(settings, inputs), generators, by_size=spec.by_size)


def save_checkpoint(checkpoint: Checkpoint, path: Path) -> None:
    """Write the file whole or not at all.

    Raises:
        IhgnnError: the place cannot be written, or the disk is full.
    """
    content = {
        "mark": _MARK,
        "version": VERSION,
        "config": checkpoint.config.as_plain(),
        "card": checkpoint.card.as_plain(),
        "weights": checkpoint.weights,
        "members": checkpoint.members,
        "epoch": None if checkpoint.epoch is None else asdict(checkpoint.epoch),
        "progress": checkpoint.progress,
    }
    # In memory first: of a full disk torch would say nothing that can be understood.
    written = io.BytesIO()
    torch.save(_on_cpu(content), written)
    with written_whole(path) as temporary:
        temporary.write_bytes(written.getbuffer())


def _on_cpu(value: Any) -> Any:
    """The value with all tensors on the CPU, so that the file loads on any machine."""
    if isinstance(value, Tensor):
        return value.cpu()
    if isinstance(value, dict):
        return {key: _on_cpu(each) for key, each in value.items()}
    return [_on_cpu(each) for each in value] if isinstance(value, list) else value


def load_checkpoint(path: Path) -> Checkpoint:
    """Read a checkpoint; nothing that the file holds is ever run.

    Raises:
        InputError: there is no such file, or it is no checkpoint of ours, damaged, hostile, or
            of a later version.
    """
    content = _content(path)
    if not isinstance(content, dict) or content.get("mark") != _MARK:
        raise InputError(f"{path} is no checkpoint of ihgnn. Give a ckpt.pt that 'train' wrote.")
    version = content.get("version")
    if not isinstance(version, int) or version > VERSION:
        raise InputError(
            f"{path} is a checkpoint of format {version!r}, and this ihgnn reads up to "
            f"{VERSION}. Install a newer ihgnn."
        )
    try:
        return _checkpoint(content, str(path))
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, RuntimeError) as error:
        raise _damaged(path, f"{type(error).__name__}: {error}") from error
    except UnknownModelError:  # nothing is damaged
        raise
    except InputError as error:
        raise _damaged(path, str(error)) from error


def _content(path: Path) -> Any:
    try:
        if path.is_dir():
            raise InputError(f"{path} is a folder. Give a ckpt.pt that 'train' wrote.")
        if path.exists() and not path.is_file():  # a device may never end
            raise InputError(f"{path} is no file. Give a ckpt.pt that 'train' wrote.")
        with path.open("rb") as stream:
            whole = zipfile.is_zipfile(stream) and _sums_are_right(stream)
    except FileNotFoundError as error:
        raise InputError(f"{path} does not exist. Give a ckpt.pt that 'train' wrote.") from error
    except OSError as error:
        raise InputError(f"Cannot read {path}: {error.strerror or error}.") from error
    if not whole:
        raise _not_loading(path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of files that are refused anyway
            return torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # whatever a file of any content can cause
        raise _not_loading(path) from error


def _sums_are_right(stream: BinaryIO) -> bool:
    """Whether every part of the zip file has its checksum, which torch does not look at."""
    try:
        archive = zipfile.ZipFile(stream)
        # torch compresses nothing; others could pack gigabytes into a small file.
        plain = all(each.compress_type == zipfile.ZIP_STORED for each in archive.infolist())
        return plain and archive.testzip() is None
    except Exception:  # noqa: BLE001  a damaged zip raises as it likes
        return False


def _not_loading(path: Path) -> InputError:
    return InputError(
        f"{path} is no checkpoint of ihgnn, or it is damaged: it does not load as plain tensors, "
        "and nothing in it was run. Give a ckpt.pt that 'train' wrote."
    )


def _checkpoint(content: Mapping[str, Any], origin: str) -> Checkpoint:
    config = from_plain(content["config"], origin)
    card = card_from_plain(content["card"])
    weights, members, progress = content["weights"], content["members"], content["progress"]
    for weight in weights.values():
        # A view can pretend any size.
        if weight.untyped_storage().nbytes() < weight.numel() * weight.element_size():
            raise ValueError("a weight is larger than its memory")
    # A model of these settings is only built if the weights are there to fill it.
    if not _belong_together(config, card.inputs, members, weights):
        told = "weights, configuration and card do not belong together"
        if not isinstance(config.model, IHGNNSettings):
            told += f", or an earlier version of ihgnn built {config.model_name} differently"
        raise ValueError(told)
    if not isinstance(progress, dict):
        raise TypeError("progress is no dictionary")
    epoch = None if content["epoch"] is None else _epoch(content["epoch"])
    made = Checkpoint(config, card, weights, members, epoch, progress)
    made.model(torch.device("cpu"))  # all shapes fit
    return made


def _epoch(plain: Mapping[str, Any]) -> Epoch:
    epoch = Epoch(**plain)
    for name, value in asdict(epoch).items():
        if type(value) is not (int if name == "epoch" else float) or not math.isfinite(value):
            raise TypeError(f"{name} is {value!r}")
    return epoch


def _belong_together(
    config: RunConfig, inputs: Inputs, members: int, weights: Mapping[str, Tensor]
) -> bool:
    """Whether weights are those of a model of these settings, found out without building it."""
    settings = config.model
    if isinstance(settings, IHGNNSettings):
        return _main_shapes(weights) == _expected_shapes(settings, inputs, members)
    if not 1 <= members <= _MOST_MEMBERS or settings.layers > _MOST_LAYERS:
        return False
    with torch.device("meta"):  # shapes without memory
        built = build(config, inputs, [0])
    expected = {name: (members, *each.shape[1:]) for name, each in built.state_dict().items()}
    return {name: tuple(each.shape) for name, each in weights.items()} == expected


def _main_shapes(weights: Mapping[str, Tensor]) -> tuple[object, ...]:
    """The layers, and the shapes that all sizes of a model can be read from."""
    layers = sum(name.startswith("layers.") and name.count(".") == 2 for name in weights)
    names = ("input.weight", "readout.weight", "weight")
    return layers, *(tuple(weights[name].shape) for name in names)


def _expected_shapes(settings: IHGNNSettings, inputs: Inputs, members: int) -> tuple[object, ...]:
    adaptive = settings.variant != Variant.NO_ADAPTIVE
    width = settings.width * (1 if adaptive else settings.layers + 1)
    nodes = 1 if settings.variant == Variant.NO_CONCAT else inputs.max_nodes
    return (
        settings.layers,
        (members, inputs.attributes + inputs.labels, settings.width),
        (members, nodes * width, settings.hidden),
        (members, settings.hidden, inputs.classes),
    )


def _damaged(path: Path, reason: str) -> InputError:
    return InputError(f"{path} is damaged ({reason}). Train again, or give another checkpoint.")
