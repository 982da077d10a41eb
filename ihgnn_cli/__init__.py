"""Graph classification on graphs that mix homophily and heterophily (IHGNN).

The names in `__all__` are the Python API (docs/python.md). Each is imported when it is first used,
so that importing the package is instant.
"""

import logging
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ihgnn_cli.api.compare import compare
    from ihgnn_cli.api.crossval import CrossValidation, crossval
    from ihgnn_cli.api.evaluate import evaluate
    from ihgnn_cli.api.export import export
    from ihgnn_cli.api.settings import load_dataset
    from ihgnn_cli.api.signal import signal
    from ihgnn_cli.api.train import Run, train
    from ihgnn_cli.api.tune import Tuning, tune
    from ihgnn_cli.deploy.predictor import load
    from ihgnn_cli.errors import IhgnnError
    from ihgnn_cli.estimator import IHGNNClassifier
    from ihgnn_cli.inference.vocabulary import UnknownLabelsWarning
    from ihgnn_cli.models.ihgnn import IHGNN

__version__ = "0.1.0"
__all__ = [
    "IHGNN",
    "CrossValidation",
    "IHGNNClassifier",
    "IhgnnError",
    "Run",
    "Tuning",
    "UnknownLabelsWarning",
    "compare",
    "crossval",
    "evaluate",
    "export",
    "load",
    "load_dataset",
    "signal",
    "train",
    "tune",
]

_MODULES = {
    "CrossValidation": "api.crossval",
    "IHGNN": "models.ihgnn",
    "IHGNNClassifier": "estimator",
    "IhgnnError": "errors",
    "Run": "api.train",
    "Tuning": "api.tune",
    "UnknownLabelsWarning": "inference.vocabulary",
    "compare": "api.compare",
    "crossval": "api.crossval",
    "evaluate": "api.evaluate",
    "export": "api.export",
    "load": "deploy.predictor",
    "load_dataset": "api.settings",
    "signal": "api.signal",
    "train": "api.train",
    "tune": "api.tune",
}

# Libraries do not log unless the application configures it.
logging.getLogger(__name__).addHandler(logging.NullHandler())


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    """The public names, whether they were imported or not."""
    return sorted([*__all__, "__version__"])
