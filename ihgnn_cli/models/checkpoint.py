"""The checkpoint file. It holds plain tensors and values, so loading it runs no code.

Format version 1 is one dictionary, written with `torch.save`:

    mark, version   file type and format version
    config          sections of the training's configuration file; `model` names the model
    card            what the model reads and predicts: see `models.card`
    weights         by name, each with the member axis first
    members         the number of models
    epoch           metrics of the (first) model; None before the first epoch
    progress        what training needs to resume; empty in a finished model

This module reads what is needed to use a model. `training.checkpoint` reads what only training
needs: the other sections of the configuration, `epoch` and `progress`.
"""

import io
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ihgnn_cli.errors import InputError
from ihgnn_cli.files import written_whole
from ihgnn_cli.models.archive import check_archive, not_loading
from ihgnn_cli.models.autograd import AutogradStack
from ihgnn_cli.models.card import ModelCard, card_from_plain
from ihgnn_cli.models.factory import StackedModel, build_stack, shapes
from ihgnn_cli.models.registry import IHGNN, UnknownModelError, model_of_file
from ihgnn_cli.models.settings import MOST_MEMBERS, ModelSettings
from ihgnn_cli.models.spec import ModelSpec

MARK = "ihgnn checkpoint"
VERSION = 1
# Limits for untrusted files: far above any real use, and small enough to check quickly.
_MOST_LAYERS = 1_000


@dataclass(frozen=True, eq=False)
class SavedModel:
    """A trained stack of models."""

    spec: ModelSpec
    settings: ModelSettings
    card: ModelCard
    weights: dict[str, Tensor]
    """By name, each with the member axis first."""
    members: int

    def model(self, device: torch.device) -> StackedModel:
        """The stack in evaluation mode."""
        generators = [torch.Generator() for _ in range(self.members)]
        built = build_stack(self.spec, self.settings, self.card.inputs, generators)
        built.load_state_dict(self.weights)
        built.eval()
        return built.to(device)

    def modules(self) -> Iterator[nn.Module]:
        """Each member as a module of its own, in evaluation mode, of a model that has `make`."""
        stack = self.model(torch.device("cpu"))
        if not isinstance(stack, AutogradStack):
            raise TypeError(f"the model {self.spec.name} has no modules of its members")
        for member in range(self.members):
            yield stack.member(member)

    def check(self) -> None:
        """Check that the weights fit a model with these settings.

        Raises:
            TypeError, ValueError, AttributeError, RuntimeError: they do not.
        """
        for weight in self.weights.values():
            # A view can claim any size.
            if weight.untyped_storage().nbytes() < weight.numel() * weight.element_size():
                raise ValueError("a weight is larger than its memory")
        # Build the model only if there are weights to fill it.
        if not self._shapes_fit():
            raise ValueError("weights, configuration and card do not belong together")
        self.model(torch.device("cpu"))

    def _shapes_fit(self) -> bool:
        if not 1 <= self.members <= MOST_MEMBERS or self.settings.layers > _MOST_LAYERS:
            return False
        try:
            expected, _ = shapes(self.spec, self.settings, self.card.inputs)
        except RuntimeError:  # sizes that overflow
            return False
        found = {name: tuple(each.shape) for name, each in self.weights.items()}
        return found == {name: (self.members, *shape) for name, shape in expected.items()}


def load_model(path: Path) -> SavedModel:
    """The models of a checkpoint.

    Raises:
        InputError: the file does not exist, is not a checkpoint, is damaged, malicious or of
            another version, or needs a model that is not installed.
    """
    content = read_content(path)
    with damage_reported(path):
        section = dict(content["config"]["model"])
        spec = model_of_file(section.pop("name", IHGNN), str(path))
        return saved_model(content, spec, spec.settings(**section))


def saved_model(content: Mapping[str, Any], spec: ModelSpec, settings: ModelSettings) -> SavedModel:
    """The models in a checkpoint's content, checked.

    Raises:
        KeyError, TypeError, ValueError, AttributeError, RuntimeError, InputError: the content is
            damaged.
    """
    card = card_from_plain(content["card"])
    found = SavedModel(spec, settings, card, content["weights"], content["members"])
    found.check()
    return found


def write_content(content: dict[str, Any], path: Path) -> None:
    """Write a checkpoint atomically.

    Raises:
        IhgnnError: the file cannot be written, or the disk is full.
    """
    # Serialize to memory first: torch's own error on a full disk does not name the cause.
    written = io.BytesIO()
    torch.save(_on_cpu({"mark": MARK, "version": VERSION, **content}), written)
    with written_whole(path) as temporary:
        temporary.write_bytes(written.getbuffer())


def _on_cpu(value: Any) -> Any:
    """The value with all tensors on the CPU, so the file loads on any machine."""
    if isinstance(value, Tensor):
        return value.cpu()
    if isinstance(value, dict):
        return {key: _on_cpu(each) for key, each in value.items()}
    return [_on_cpu(each) for each in value] if isinstance(value, list) else value


def read_content(path: Path) -> dict[str, Any]:
    """The content of a checkpoint; no code in the file is run.

    Raises:
        InputError: the file does not exist, is not a checkpoint, is damaged or of another version.
    """
    content = _loaded(path)
    if not isinstance(content, dict) or content.get("mark") != MARK:
        raise InputError(f"{path} is not an ihgnn checkpoint. Give a ckpt.pt that 'train' wrote.")
    if content.get("version") != VERSION:
        raise other_version(path)
    return content


def other_version(path: Path) -> InputError:
    """The error for a file whose format is not this version's."""
    return InputError(f"{path} was made by another version of ihgnn. Train again.")


@contextmanager
def damage_reported(path: Path) -> Iterator[None]:
    """Turn errors caused by damaged content into an `InputError` that says so."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, RuntimeError) as error:
        raise _damaged(path, f"{type(error).__name__}: {error}") from error
    except UnknownModelError:  # nothing is damaged
        raise
    except InputError as error:
        raise _damaged(path, str(error)) from error


def _loaded(path: Path) -> Any:
    check_archive(path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about files that are refused anyway
            return torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # a damaged file can raise anything
        raise not_loading(path) from error


def _damaged(path: Path, reason: str) -> InputError:
    return InputError(f"{path} is damaged ({reason}). Train again, or give another checkpoint.")
