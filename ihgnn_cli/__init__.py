"""Graph classification on graphs that mix homophily and heterophily (IHGNN)."""

import logging

__version__ = "0.1.0"

# Libraries do not log unless the application configures it.
logging.getLogger(__name__).addHandler(logging.NullHandler())


def __getattr__(name: str) -> object:
    """Public names, imported when they are first used: torch takes seconds."""
    if name == "IHGNN":
        from ihgnn_cli.models.ihgnn import IHGNN  # noqa: PLC0415

        return IHGNN
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
