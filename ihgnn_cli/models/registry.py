"""The registry of models by name: those of this package and those of other installed packages.

Another package registers a model with an entry point in the group `ihgnn.models`. The entry point
has the model's name and refers to a `ModelSpec`.
"""

from collections.abc import Iterator
from dataclasses import fields, replace
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points

from ihgnn_cli.errors import InputError
from ihgnn_cli.models.spec import ModelSpec
from ihgnn_cli.words import hint

GROUP = "ihgnn.models"
IHGNN = "ihgnn"
DEFAULT_MODEL = IHGNN
"""The model that is trained by default."""
_ENTRY = "MODEL"

# In the order of the paper's Table 1. A module is imported when its model is requested.
_OWN = {
    "ppgn": "ihgnn_cli.models.entries.ppgn",
    "kgnn": "ihgnn_cli.models.entries.kgnn",
    "gnnml": "ihgnn_cli.models.entries.gnnml",
    "graphormer": "ihgnn_cli.models.entries.graphormer",
    "tokengt": "ihgnn_cli.models.entries.tokengt",
    "diffpool": "ihgnn_cli.models.entries.diffpool",
    "dgcnn": "ihgnn_cli.models.entries.dgcnn",
    "gin": "ihgnn_cli.models.entries.gin",
    "h2gcn": "ihgnn_cli.models.entries.h2gcn",
    "gprgnn": "ihgnn_cli.models.entries.gprgnn",
    "acm": "ihgnn_cli.models.entries.acm",
    "pgcn": "ihgnn_cli.models.entries.pgcn",
    "dcgnn": "ihgnn_cli.models.entries.dcgnn",
    "pcnet": "ihgnn_cli.models.entries.pcnet",
    IHGNN: "ihgnn_cli.models.entries.ihgnn",
}


class UnknownModelError(InputError):
    """A file needs a model that is not installed."""


def model_names() -> tuple[str, ...]:
    """The names of all models, other packages' models last; imports no model."""
    return (*_OWN, *(name for name in sorted(_others()) if name not in _OWN))


def find_model(name: str) -> ModelSpec:
    """The registry entry of a model, whose name may be written in any case.

    Raises:
        InputError: no model has that name, or its package does not load.
    """
    if name not in _OWN and name not in _others():
        name = next((each for each in model_names() if each.lower() == name.lower()), name)
    if name in _OWN:
        spec: ModelSpec = getattr(import_module(_OWN[name]), _ENTRY)
        return spec
    found = _others().get(name)
    if found is None:
        raise InputError(f"No model '{name}'. {hint(name.lower(), model_names())}")
    return _loaded(name, found)


def model_of_file(name: object, origin: str) -> ModelSpec:
    """The registry entry of the model that the file `origin` names.

    Raises:
        UnknownModelError: there is no such model.
    """
    try:
        return find_model(str(name))
    except InputError as error:
        raise UnknownModelError(
            f"{origin}: {error} If another package provides it, install that package."
        ) from error


def models_with(setting: str) -> list[str]:
    """The names of the models that have a setting of this name."""
    specs = [spec for _, spec in all_models() if isinstance(spec, ModelSpec)]
    return [spec.name for spec in specs if setting in {each.name for each in fields(spec.settings)}]


def all_models() -> Iterator[tuple[str, ModelSpec | InputError]]:
    """Every model, or the error that kept it from loading."""
    for name in model_names():
        try:
            yield name, find_model(name)
        except InputError as error:
            yield name, error


@cache
def _others() -> dict[str, EntryPoint]:
    return {each.name: each for each in entry_points(group=GROUP)}


@cache
def _loaded(name: str, found: EntryPoint) -> ModelSpec:
    package = found.dist.name if found.dist else found.value
    try:
        spec = found.load()
    except Exception as error:  # another package's module can raise anything
        raise InputError(
            f"The model '{name}' of the package {package} does not load "
            f"({type(error).__name__}: {error}). Fix or uninstall that package."
        ) from error
    if not isinstance(spec, ModelSpec) or spec.name != name:
        what = f"a ModelSpec named {name}"
        raise InputError(
            f"{found.value} of the package {package} is not {what}, although its entry point in "
            f"{GROUP} says so. Fix or uninstall that package."
        )
    return replace(spec, package=package)
