"""The member axis: the same tensor of several models as one."""

from collections.abc import Sequence

import torch
from torch import Tensor


def stack_members(parts: Sequence[Tensor]) -> Tensor:
    """[S, ...] as torch.stack, which on the meta device would import the compiler (2 s)."""
    if parts[0].is_meta:
        return parts[0].new_empty((len(parts), *parts[0].shape))
    return torch.stack(list(parts))
