"""Batches in double precision, for comparisons that need not allow for rounding."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from ihgnn_cli.data.batching.store import Batch, GraphStore

Step = Sequence[NDArray[np.int64]]
"""The graphs of each member."""


class ExactStore(GraphStore):
    """Batches in double precision, so that nothing hangs on rounding."""

    asked: list[Step]
    """Of which graphs, so far."""

    def batches(self, steps: Iterable[Step]) -> Iterator[Batch]:
        listed = list(steps)
        self.asked = [*getattr(self, "asked", []), *listed]
        return map(in_double, super().batches(listed))


def in_double(part: Any) -> Any:
    changes: dict[str, Any] = {}
    for each in fields(part):
        value = getattr(part, each.name)
        if isinstance(value, Tensor) and value.is_floating_point():
            changes[each.name] = value.double()
        elif is_dataclass(value):
            changes[each.name] = in_double(value)
    return replace(part, **changes)


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """Tensors this small gain nothing from threads, and wait for them where the cores are busy."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
