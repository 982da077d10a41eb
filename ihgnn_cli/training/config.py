"""The configuration of a training: TOML in, checked values, TOML out.

A configuration is built in layers: the defaults (the paper's text), a file, a recipe, the command
line; each sets what it names. What is written is complete, and repeats the training.
"""

import difflib
import json
import math
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from enum import StrEnum
from importlib.resources import files
from pathlib import Path
from typing import Any, get_type_hints

from ihgnn_cli.data.features import Features
from ihgnn_cli.data.sources import is_own_name
from ihgnn_cli.data.split_choice import HOLDOUT, file_readings, is_drawn
from ihgnn_cli.errors import InputError
from ihgnn_cli.files import written_whole
from ihgnn_cli.models.settings import IHGNNSettings
from ihgnn_cli.training.devices import AUTO
from ihgnn_cli.training.kinds import Recipe

MODEL_NAME = "ihgnn"
MAX_SEED = 2**63 - 1
_LARGEST = 10**300  # that is safely a float, and short enough to be shown


@dataclass(frozen=True)
class DataSettings:
    """What is learned from."""

    dataset: str = "MUTAG"
    """A name or a path."""
    features: Features = Features.LABELS
    split: str = HOLDOUT
    """`holdout`, `fold:N`, or a file of splits: see `data.split_choice.choose`."""
    split_from: str = ""
    """For the record: the file that the split of a run folder was taken from."""


@dataclass(frozen=True)
class TrainingSettings:
    """How it is learned.

    Raises:
        InputError: a value is out of its range.
    """

    lr: float = 0.001
    batch_size: int = 32
    epochs: int = 350
    patience: int = 0
    """Epochs without a better one after which training stops; 0: never."""
    seed: int = 0
    device: str = AUTO

    def __post_init__(self) -> None:
        if not (math.isfinite(self.lr) and self.lr > 0):
            raise InputError(f"lr must be a finite number above 0, not {self.lr:g}.")
        for name, least in (("batch_size", 1), ("epochs", 1), ("patience", 0)):
            if getattr(self, name) < least:
                raise InputError(f"{name} must be at least {least}, not {getattr(self, name)}.")
        if not 0 <= self.seed <= MAX_SEED:
            raise InputError(f"seed must be from 0 to 2^63 - 1, not {self.seed}.")


@dataclass(frozen=True)
class RunConfig:
    """All that decides what a training becomes."""

    data: DataSettings = field(default_factory=DataSettings)
    model: IHGNNSettings = field(default_factory=IHGNNSettings)
    training: TrainingSettings = field(default_factory=TrainingSettings)

    def with_values(self, values: Mapping[str, object], origin: str = "") -> "RunConfig":
        """The configuration with these values, by key without section; `origin` for messages.

        Raises:
            InputError: a value is of the wrong type or out of range.
        """
        changed = {}
        for section in fields(self):
            current = getattr(self, section.name)
            names = {each.name for each in fields(current)}
            own = {key: value for key, value in values.items() if key in names}
            changed[section.name] = _with_values(current, own, origin)
        return RunConfig(**changed)

    def as_plain(self) -> dict[str, dict[str, Any]]:
        """Sections of plain values, as a configuration file holds them."""
        plain = {name: _plain(section) for name, section in asdict(self).items()}
        plain["model"] = {"name": MODEL_NAME, **plain["model"]}
        return plain


def from_plain(sections: Mapping[str, object], origin: str) -> RunConfig:
    """A configuration from the sections of a file; what is not named keeps its default."""
    return RunConfig().with_values(_flat(sections, origin), origin)


def configure(
    recipe: Recipe | None = None,
    file: Path | None = None,
    overrides: Mapping[str, object] | None = None,
) -> RunConfig:
    """Defaults, then a file, then a recipe, then overrides (`None` stands for not given).

    Raises:
        InputError: the file cannot be read or holds what is no setting.
    """
    config = RunConfig()
    if file is not None:
        config = config.with_values(_found_beside(_from_file(file), file.parent), str(file))
    if recipe is not None:
        text = (files("ihgnn_cli") / "recipes" / f"{recipe}.toml").read_text(encoding="utf-8")
        config = config.with_values(_flat(tomllib.loads(text), recipe), recipe)
    given = {key: value for key, value in (overrides or {}).items() if value is not None}
    return config.with_values(given)


def read_config(path: Path) -> RunConfig:
    """The configuration in a file, as it stands there.

    Raises:
        InputError: the file cannot be read or holds what is no setting.
    """
    return RunConfig().with_values(_from_file(path), str(path))


def write_config(config: RunConfig, path: Path) -> None:
    """Write a file that `configure` reads back.

    Raises:
        InputError: a name in it is no text.
        IhgnnError: the place cannot be written.
    """
    lines = []
    for name, section in config.as_plain().items():
        lines.append(f"[{name}]")
        lines += [f"{key} = {_toml(value)}" for key, value in section.items()]
        lines.append("")
    try:
        text = "\n".join(lines).encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"{config.data.dataset!r} cannot be written down as text. Rename the file."
        ) from error
    with written_whole(path) as temporary:
        temporary.write_bytes(text)


def _from_file(path: Path) -> dict[str, object]:
    try:
        sections = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise InputError(f"Cannot read {path}: {error.strerror or error}.") from error
    except (ValueError, RecursionError) as error:  # also of numbers with thousands of digits
        raise InputError(f"{path} is no TOML file: {error}.") from error
    return _flat(sections, str(path))


def _found_beside(values: dict[str, object], folder: Path) -> dict[str, object]:
    """Files that a configuration names lie beside it, wherever the command is started."""
    for key, is_name in (("dataset", is_own_name), ("split", is_drawn)):
        value = values.get(key)
        if isinstance(value, str) and not is_name(value) and _is_file(folder, value):
            values[key] = str((folder / value).absolute())
    return values


def _is_file(folder: Path, value: str) -> bool:
    """Whether a name in a configuration is a file beside it (`splits.json`, `splits.json:3`)."""
    try:
        return any((folder / name).is_file() for name, _ in file_readings(value))
    except (OSError, ValueError):
        return False


def _flat(sections: Mapping[str, object], origin: str) -> dict[str, object]:
    """Keys without their sections, each checked to stand in the right one."""
    config = RunConfig()
    known = {
        each.name: [key.name for key in fields(getattr(config, each.name))]
        for each in fields(config)
    }
    known["model"].append("name")
    found: dict[str, object] = {}
    for name, section in sections.items():
        if name not in known:
            raise InputError(f"{origin}: no section [{name}]. {_hint(name, list(known))}")
        if not isinstance(section, Mapping):
            raise InputError(f"{origin}: {name} must be a section, [{name}].")
        for key, value in section.items():
            if key not in known[name]:
                raise InputError(
                    f"{origin}: no setting {key} in [{name}]. {_hint(key, known[name])}"
                )
            found[key] = value
    model = found.pop("name", MODEL_NAME)
    if model != MODEL_NAME:
        raise InputError(f"{origin}: no model {model!r}. There is {MODEL_NAME}.")
    return found


def _hint(name: str, known: list[str]) -> str:
    close = difflib.get_close_matches(name, known, 1)
    return f"Did you mean {close[0]}?" if close else f"There are {', '.join(known)}."


def _with_values(section: Any, values: Mapping[str, object], origin: str) -> Any:
    hints = get_type_hints(type(section))
    checked = {key: _checked(key, value, hints[key], origin) for key, value in values.items()}
    try:
        return replace(section, **checked)
    except InputError as error:
        raise InputError(f"{_told(origin)}{error}") from error


def _checked(key: str, value: object, kind: type, origin: str) -> object:
    """The value as its setting's type."""
    if issubclass(kind, StrEnum):
        try:
            return kind(value)  # type: ignore[arg-type]
        except ValueError:
            raise InputError(
                f"{_told(origin)}{key} is one of {', '.join(kind)}, not {value!r}."
            ) from None
    if isinstance(value, int) and abs(value) > _LARGEST:
        raise InputError(f"{_told(origin)}{key} is too large a number.")
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if type(value) is not kind:
        names = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}
        raise InputError(f"{_told(origin)}{key} must be {names[kind]}, not {value!r}.")
    return value


def _told(origin: str) -> str:
    return f"{origin}: " if origin else ""


def _plain(section: Mapping[str, object]) -> dict[str, Any]:
    return {k: v.value if isinstance(v, StrEnum) else v for k, v in section.items()}


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")
    return repr(value)
