"""Exported models: export, verification, and prediction with `load(path).predict(graphs)`."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ihgnn_cli.deploy.runtime import Predictor, load
    from ihgnn_cli.inference.prediction import Failure, Prediction

__all__ = ["Failure", "Prediction", "Predictor", "load"]

_HOMES = {
    "Failure": "ihgnn_cli.inference.prediction",
    "Prediction": "ihgnn_cli.inference.prediction",
    "Predictor": "ihgnn_cli.deploy.runtime",
    "load": "ihgnn_cli.deploy.runtime",
}


def __getattr__(name: str) -> Any:
    """Import the runtime on first use: other parts of this package need less."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
