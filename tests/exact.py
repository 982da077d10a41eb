"""Batches in double precision, for comparisons that need not allow for rounding."""

from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from ihgnn_cli.data.batching.batches import Batch, GraphStore, StackRows

Step = Sequence[NDArray[np.int64]]
"""The graphs of each member."""


class ExactStore(GraphStore):
    """Batches in double precision, so that nothing hangs on rounding."""

    asked: list[Step]
    """Of which graphs, so far."""

    def batch(self, graphs: Step) -> Batch:
        self.asked = [*getattr(self, "asked", []), graphs]
        return in_double(super().batch(graphs))

    def rows_of(self, batch: Batch) -> StackRows:
        return in_double(super().rows_of(batch))


def in_double(part: Any) -> Any:
    values = ((each.name, getattr(part, each.name)) for each in fields(part))
    floats = {
        name: value.double()
        for name, value in values
        if isinstance(value, Tensor) and value.is_floating_point()
    }
    return replace(part, **floats)


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """Tensors this small gain nothing from threads, and wait for them where the cores are busy."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
