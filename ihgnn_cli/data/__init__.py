"""Graph data sets: sources, readers, columns, splits and batches.

Names are imported when they are first used: options can be checked without NumPy.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ihgnn_cli.data.dataset import GraphDataset
    from ihgnn_cli.data.features import Features, node_features
    from ihgnn_cli.data.sources import load_dataset

__all__ = ["Features", "GraphDataset", "load_dataset", "node_features"]

_MODULES = {
    "Features": "features",
    "GraphDataset": "dataset",
    "load_dataset": "sources",
    "node_features": "features",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
