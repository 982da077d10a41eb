"""Batches of graphs for stacks of models.

Names are imported on first use: `wl_rows` is for code that runs without torch, too.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ihgnn_cli.data.batching.batch import Batch, Positions, ReadoutLayout
    from ihgnn_cli.data.batching.blocks import Block
    from ihgnn_cli.data.batching.store import GraphStore

__all__ = ["Batch", "Block", "GraphStore", "Positions", "ReadoutLayout"]

_MODULES = {
    "Batch": "batch",
    "Block": "blocks",
    "GraphStore": "store",
    "Positions": "batch",
    "ReadoutLayout": "batch",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
