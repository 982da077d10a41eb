"""The fallback when memory is full: train a stack in halves."""

import math
from collections.abc import Callable, Sequence
from typing import TypeVar

import torch

from ihgnn_cli.training.devices import is_full_memory

_Item = TypeVar("_Item")


def train_in_halves(
    items: Sequence[_Item],
    train: Callable[[Sequence[_Item]], None],
    halved: Callable[[Sequence[_Item]], None] = lambda _items: None,
) -> list[_Item]:
    """Train items together; if memory is full, train each half on its own.

    Args:
        items: what makes up the stack.
        train: trains some of them together; may be called again with items that it has finished.
        halved: called with the items that did not fit in memory together.

    Returns:
        The items that do not fit in memory even alone.
    """
    try:
        train(items)
    except (torch.OutOfMemoryError, MemoryError, RuntimeError) as error:
        if not is_full_memory(error):
            raise
    else:
        return []
    # After the except block: the exception refers to what filled the memory.
    torch.cuda.empty_cache()
    halved(items)
    if len(items) == 1:
        return list(items)
    middle = math.ceil(len(items) / 2)
    halves = items[:middle], items[middle:]
    return [each for half in halves for each in train_in_halves(half, train, halved)]
