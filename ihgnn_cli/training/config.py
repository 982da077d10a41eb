"""The configuration of a training: TOML in, checked values, TOML out.

A configuration is built in layers: the defaults (from the paper's text), a recipe, a file, the
command line. Each layer overrides the settings it names. The written file is complete, so it
repeats the training.
"""

import json
import math
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from enum import StrEnum
from importlib.resources import files
from pathlib import Path
from typing import Any

from ihgnn_cli.data.kinds import (
    ALL,
    HOLDOUT,
    Features,
    NodeInputs,
    check_edge_bins,
    file_readings,
    is_drawn,
    node_inputs,
    split_shares,
)
from ihgnn_cli.errors import InputError, SettingError
from ihgnn_cli.files import read_text, written_whole
from ihgnn_cli.models.registry import DEFAULT_MODEL, find_model, model_of_file, models_with
from ihgnn_cli.models.settings import MOST_MEMBERS, ModelSettings
from ihgnn_cli.models.spec import ModelSpec
from ihgnn_cli.settings import Settings, described, field_types
from ihgnn_cli.training.devices import AUTO
from ihgnn_cli.training.kinds import ClassWeights, Recipe
from ihgnn_cli.training.unfinished import unfinished_job
from ihgnn_cli.words import hint

MAX_SEED = 2**63 - 1
_MOST_BYTES = 1_000_000
LEAST_EPOCHS, MOST_EPOCHS = 20, 100
"""Bounds of the epochs of a training whose steps are given."""
SECTIONS = ("data", "model", "training")
"""Sections of a configuration file; setting names are unique across sections."""

LOSS_AND_DECAY: dict[str, type] = {
    "weight_decay": float,
    "label_smoothing": float,
    "class_weights": ClassWeights,
}
"""Training settings that `--set` accepts and a search may vary, like model settings."""


@dataclass(frozen=True)
class DataSettings(Settings):
    """The data to learn from."""

    dataset: str = "MUTAG"
    """A name or a path."""
    features: Features = Features.AUTO
    split: str = HOLDOUT
    """`holdout`, shares, `fold:N`, `all` or a file of splits: see `data.splits.load_split`."""
    split_from: str = ""
    """For the record: the file that the split of a run folder was taken from."""
    inputs: str = ""
    """Node inputs to compute from the graph, separated by commas: see `models.node_inputs`."""
    edge_labels: bool = False
    """Whether the model tells edges apart by label."""
    background_edge_label: str = ""
    """Edges with this label are left out; empty: none."""
    edge_bins: int = 0
    """Bins of the edge attribute that the model tells apart; 0: none."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_edge_bins(self.edge_bins)
        split_shares(self.split)  # raises if they are wrong
        names = node_inputs(self.inputs)
        if NodeInputs.HOMOPHILY in names and self.features == Features.ATTRIBUTES:
            raise SettingError("inputs", "names homophily, which needs labels, not attributes.")
        object.__setattr__(self, "inputs", ",".join(names))

    @property
    def final(self) -> bool:
        """Whether all graphs train, so that none are left for validation and test."""
        return self.split == ALL


@dataclass(frozen=True)
class TrainingSettings(Settings):
    """How to train.

    Raises:
        InputError: a value is out of its range.
    """

    lr: float = 0.001
    batch_size: int = 32
    epochs: int = 350
    patience: int = 0
    """Training stops after this many epochs without improvement; 0: never."""
    seed: int = 0
    device: str = AUTO
    weight_decay: float = 0.0
    """Adam's weight decay: this fraction of each parameter is added to its gradient."""
    label_smoothing: float = 0.0
    """The share of each graph's target that the training loss spreads over all classes."""
    class_weights: ClassWeights = ClassWeights.NONE
    """How much a graph counts in the training loss, by its class."""
    equal_batches: bool = False
    """Whether the batches of an epoch differ by at most one graph, with no small last one."""
    ensemble: int = 1
    """Models trained together, with the seeds from `seed` on; predictions are their mean."""
    snapshots: int = 0
    """Epochs whose weights are kept as members too; 0: one epoch per model, the best one."""
    steps: int = 0
    """Optimizer steps that determine the number of epochs (`epochs_for`); 0: `epochs` does."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (math.isfinite(self.lr) and self.lr > 0):
            raise SettingError("lr", f"must be a finite number above 0, not {self.lr:g}.")
        if not (math.isfinite(self.weight_decay) and self.weight_decay >= 0):
            problem = f"must be a finite number from 0, not {self.weight_decay:g}."
            raise SettingError("weight_decay", problem)
        if not 0 <= self.label_smoothing < 1:
            problem = f"must be at least 0 and below 1, not {self.label_smoothing:g}."
            raise SettingError("label_smoothing", problem)
        least_values = {"batch_size": 1, "epochs": 1, "patience": 0}
        least_values |= {"ensemble": 1, "snapshots": 0, "steps": 0}
        for name, least in least_values.items():
            if getattr(self, name) < least:
                raise SettingError(name, f"must be at least {least}, not {getattr(self, name)}.")
        if not 0 <= self.seed <= MAX_SEED:
            raise SettingError("seed", f"must be from 0 to 2^63 - 1, not {self.seed}.")
        if self.members > MOST_MEMBERS:
            problem = f"times snapshots must be at most {MOST_MEMBERS:,}, not {self.members:,}."
            raise SettingError("ensemble", problem)
        if self.patience and (self.ensemble > 1 or self.snapshots):
            raise SettingError("patience", "must be 0 for an ensemble or with snapshots.")

    @property
    def members(self) -> int:
        """The number of models that a prediction averages."""
        return self.ensemble * max(1, self.snapshots)

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seed of each model that is trained."""
        return tuple((self.seed + each) % (MAX_SEED + 1) for each in range(self.ensemble))

    def epochs_for(self, graphs: int) -> int:
        """The number of epochs for this many training graphs.

        With `steps`, the epochs that take about as many optimizer steps, from 20 to 100.
        """
        if not self.steps:
            return self.epochs
        per_epoch = math.ceil(graphs / self.batch_size)
        return min(MOST_EPOCHS, max(LEAST_EPOCHS, round(self.steps / per_epoch)))


@dataclass(frozen=True)
class RunConfig:
    """Everything that determines a training.

    Raises:
        InputError: there is no such model, or the settings belong to another model.
    """

    data: DataSettings = field(default_factory=DataSettings)
    model: ModelSettings = field(default_factory=lambda: find_model(DEFAULT_MODEL).settings())
    training: TrainingSettings = field(default_factory=TrainingSettings)
    model_name: str = DEFAULT_MODEL
    """The model that the settings in `model` belong to."""

    def __post_init__(self) -> None:
        for name, kind in (("data", DataSettings), ("training", TrainingSettings)):
            if not isinstance(getattr(self, name), kind):
                raise InputError(f"{name} must be {kind.__name__}, not {getattr(self, name)!r}.")
        object.__setattr__(self, "model_name", self.spec.name)  # may be written in any case
        expected = self.spec.settings
        if type(self.model) is not expected:
            raise InputError(
                f"The model {self.model_name} has settings of type {expected.__name__}, not "
                f"{type(self.model).__name__}. Give model and model_name that belong together."
            )
        told_apart = self.data.edge_labels or self.data.edge_bins
        if told_apart and not self.spec.edge_labels(self.model):
            raise SettingError(
                "edge_labels" if self.data.edge_labels else "edge_bins",
                f"has no effect: the model {self.model_name} with these settings does not read "
                "edge labels. Leave it out, or choose a model that does ('ihgnn models').",
            )
        for name in self.model.unused:
            value = getattr(self.model, name)
            if value != getattr(expected(), name):
                raise SettingError(
                    name,
                    f"{value} has no effect: the model {self.model_name} with these settings does "
                    "not read it. Leave it out.",
                )

    @property
    def spec(self) -> ModelSpec:
        """The model's entry in the registry."""
        return find_model(self.model_name)

    def with_epochs(self, graphs: int) -> "RunConfig":
        """The configuration for this many training graphs, with its number of epochs."""
        epochs = self.training.epochs_for(graphs)
        return replace(self, training=replace(self.training, epochs=epochs, steps=0))

    def of_model(self, name: str) -> "RunConfig":
        """The configuration with another model at its defaults.

        Raises:
            InputError: there is no such model.
        """
        return replace(self, model=find_model(name).settings(), model_name=name)

    def names(self) -> tuple[str, ...]:
        """The names of all settings."""
        return tuple(key.name for name in SECTIONS for key in fields(getattr(self, name)))

    def with_values(self, values: Mapping[str, object], origin: str = "") -> "RunConfig":
        """The configuration with these values, by key without section.

        `origin` is the source of the values, for error messages.

        Raises:
            InputError: a value has the wrong type or is out of range.
        """
        if "epochs" in values:
            values = {"steps": 0, **values}  # which would replace them
        changed: dict[str, Any] = {}
        for name in SECTIONS:
            current = getattr(self, name)
            names = {each.name for each in fields(current)}
            own = {key: value for key, value in values.items() if key in names}
            changed[name] = _with_values(current, own, origin)
        return replace(self, **changed)

    def as_plain(self) -> dict[str, dict[str, Any]]:
        """Sections of plain values, as a configuration file holds them."""
        plain = {name: _plain(asdict(getattr(self, name))) for name in SECTIONS}
        plain["model"] = {"name": self.model_name, **plain["model"]}
        return plain


def from_plain(sections: Mapping[str, object], origin: str) -> RunConfig:
    """A configuration from the sections of a file; missing settings keep their defaults.

    Raises:
        UnknownModelError: the file names a model that is not installed.
        InputError: the file names an unknown setting.
    """
    config = _of_named_model(sections, origin) or RunConfig()
    return config.with_values(_flat(sections, origin, config), origin)


def configure(
    recipe: Recipe | None = None,
    file: Path | None = None,
    overrides: Mapping[str, object] | None = None,
    *,
    model: str | None = None,
) -> RunConfig:
    """Apply defaults, then a recipe, then a file, then overrides (`None` means not given).

    Args:
        recipe: one of the model's recipes.
        file: a configuration file, which may name the model.
        overrides: values by key.
        model: the model's name; a file must not name another.

    Raises:
        InputError: the file cannot be read, or a setting is unknown or belongs to another model, or
            the file leaves nothing of the recipe.
    """
    config = RunConfig() if model is None else RunConfig().of_model(model)
    model = None if model is None else config.model_name
    values: dict[str, object] = {}
    if file is not None:
        sections = read_sections(file)
        named = _of_named_model(sections, str(file))
        if named is not None:
            if model not in (None, named.model_name):
                raise InputError(
                    f"{file} is for the model {named.model_name}, not {model}. Leave out --model, "
                    "or give another file."
                )
            config = named
        values = _found_beside(_flat(sections, str(file), config), file.parent)
    if recipe is not None:
        if recipe not in config.spec.recipes:
            raise InputError(
                f"The model {config.model_name} has no recipe {recipe}. Leave out --recipe or "
                "--model."
            )
        sections = {name: part for name, part in _recipe(recipe).items() if name != "grid"}
        preset = _flat(sections, recipe, config)
        if preset.keys() <= values.keys():
            raise InputError(
                f"{file} sets everything that the recipe {recipe} sets, so that nothing of the "
                "recipe is left. Leave out --recipe or --config."
            )
        config = config.with_values(preset, recipe)
    config = config.with_values(values, str(file))
    given = {key: value for key, value in (overrides or {}).items() if value is not None}
    for key in given:
        if key not in config.names():
            raise no_setting(config, key, [each.name for each in fields(config.model)])
    return config.with_values(given)


def recipe_grid(recipe: Recipe | None) -> dict[str, tuple[Any, ...]]:
    """A recipe's grid for cross-validation: the candidate values by setting."""
    grid = _recipe(recipe).get("grid", {}) if recipe else {}
    return {key: tuple(values) for key, values in grid.items()}


def parse_setting(config: RunConfig, text: str) -> tuple[str, object]:
    """Parse a text such as `eps=true` into the key and a value of the setting's type.

    Raises:
        InputError: the text does not have that form, or there is no such setting.
    """
    key, found, value = (part.strip() for part in text.partition("="))
    if not found:
        raise InputError(f"--set takes NAME=VALUE, not '{text}'.")
    own = {**setting_kinds(config), **LOSS_AND_DECAY}
    if key in {each.name for each in fields(TrainingSettings)} - LOSS_AND_DECAY.keys():
        raise InputError(f"{key} has its own option: --{key.replace('_', '-')}.")
    if key not in own:
        raise InputError(str(no_setting(config, key, list(own))))
    return key, read_value(key, value, own[key])


def read_value(key: str, text: str, kind: type) -> object:
    """Convert a text to a setting's type.

    Raises:
        InputError: the text is not a value of that type.
    """
    try:
        if kind is bool:
            return {"true": True, "false": False}[text.lower()]
        return kind(text)
    except (ValueError, KeyError):
        raise InputError(f"{key} must be {described(kind)}, not '{text}'.") from None


def setting_kinds(config: RunConfig) -> dict[str, type]:
    """The types of the model's own settings, by name."""
    return field_types(type(config.model))


def read_config(path: Path) -> RunConfig:
    """Read a configuration file.

    Raises:
        InputError: the file cannot be read or names an unknown setting.
    """
    return from_plain(read_sections(path), str(path))


def write_config(config: RunConfig, path: Path, comment: str = "") -> None:
    """Write a file that `configure` reads back, with a comment at its top.

    Raises:
        InputError: a name cannot be encoded as text.
        IhgnnError: the path is not writable.
    """
    lines = [f"# {line}" for line in comment.splitlines()]
    for name, section in config.as_plain().items():
        lines.append(f"[{name}]")
        lines += [f"{key} = {_toml(value)}" for key, value in section.items()]
        lines.append("")
    try:
        text = "\n".join(lines).encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"{config.data.dataset!r} cannot be written as text. Rename the file."
        ) from error
    with written_whole(path) as temporary:
        temporary.write_bytes(text)


def _recipe(recipe: Recipe) -> dict[str, Any]:
    text = (files("ihgnn_cli") / "recipes" / f"{recipe}.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def read_sections(path: Path) -> dict[str, object]:
    """The sections of a configuration file, not checked.

    Raises:
        InputError: it cannot be read, is too large or is not TOML.
    """
    try:
        return tomllib.loads(read_text(path, _MOST_BYTES))
    except OSError as error:
        reason = f"Cannot read {path}: {error.strerror or error}."
        raise InputError(f"{reason} {unfinished_job(path.parent)}".rstrip()) from error
    except (ValueError, RecursionError) as error:  # also numbers with thousands of digits
        raise InputError(f"{path} is not a TOML file: {error}.") from error


def _of_named_model(sections: Mapping[str, object], origin: str) -> RunConfig | None:
    """The defaults of the model that a file names; `None` if it names none."""
    section = sections.get("model")
    name = section.get("name") if isinstance(section, Mapping) else None
    if name is None:
        return None
    return RunConfig().of_model(model_of_file(name, origin).name)


def _found_beside(values: dict[str, object], folder: Path) -> dict[str, object]:
    """Resolve file names relative to the configuration file, not to the working directory."""
    from ihgnn_cli.data.sources import is_own_name

    for key, is_name in (("dataset", is_own_name), ("split", is_drawn)):
        value = values.get(key)
        if isinstance(value, str) and not is_name(value) and _is_file(folder, value):
            values[key] = str((folder / value).absolute())
    return values


def _is_file(folder: Path, value: str) -> bool:
    """Whether a name is a file next to the configuration (`splits.json`, `splits.json:3`)."""
    try:
        return any((folder / name).is_file() for name, _ in file_readings(value))
    except (OSError, ValueError):
        return False


def _flat(sections: Mapping[str, object], origin: str, config: RunConfig) -> dict[str, object]:
    """Keys without their sections, each checked to be in the right one."""
    known = {name: [key.name for key in fields(getattr(config, name))] for name in SECTIONS}
    known["model"].append("name")
    found: dict[str, object] = {}
    for name, section in sections.items():
        if name not in known:
            raise InputError(f"{origin}: no section [{name}]. {hint(name, list(known))}")
        if not isinstance(section, Mapping):
            raise InputError(f"{origin}: {name} must be a section, [{name}].")
        for key, value in section.items():
            if key not in known[name]:
                raise InputError(
                    f"{origin}: no setting {key} in [{name}]. {hint(key, known[name])}"
                )
            found[key] = value
    found.pop("name", None)
    return found


def no_setting(config: RunConfig, name: str, known: list[str], meant: str = "") -> InputError:
    """The error for a setting that the model does not have; names models that have it.

    Args:
        config: names the model.
        name: of the setting.
        known: the names that there are.
        meant: the name to look for in `known`, if it is not `name`.
    """
    others, model = models_with(name), config.model_name
    if not others:
        return InputError(f"The model {model} has no setting {name}. {hint(meant or name, known)}")
    own = ", ".join(each.name for each in fields(config.model))
    whose = f"is a setting of {' and '.join(others)}, not of {model}"
    return SettingError(name, f"{whose}, whose settings are {own}.")


def _with_values(section: Any, values: Mapping[str, object], origin: str) -> Any:
    try:
        return replace(section, **values)
    except InputError as error:
        if not origin:
            raise
        raise InputError(f"{origin}: {error}") from error


def _plain(section: Mapping[str, object]) -> dict[str, Any]:
    return {k: v.value if isinstance(v, StrEnum) else v for k, v in section.items()}


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")
    return repr(value)
