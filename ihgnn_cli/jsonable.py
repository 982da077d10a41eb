"""Convert values to JSON types."""

import math
from enum import Enum
from pathlib import Path


def jsonable(value: object) -> object:
    """Convert enums, paths and tuples; NaN and infinity become null."""
    if isinstance(value, dict):
        return {str(key): jsonable(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [jsonable(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Enum):
        return value.value
    return str(value) if isinstance(value, Path) else value
