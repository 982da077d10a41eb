"""Sums over lists of rows, and a constant sparse matrix with a gradient."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor


def sums(h: Tensor, index: Tensor, ptr: Tensor, weight: Tensor | None = None) -> Tensor:
    """[len(ptr) - 1, width] the sums of the rows index[ptr[i]:ptr[i + 1]] of h, without gradient.

    `weight` is the factor of each entry of `index`; `None`: all 1.
    """
    # torch.nn.functional.embedding_bag without its checks (mode 0 is the sum); on a CPU many times
    # faster than index_add.
    found: Tensor = torch.embedding_bag(h, index, ptr, False, 0, False, weight, True)[0]
    return found


@dataclass(frozen=True, eq=False)
class SparseMatrix:
    """A matrix M [rows, columns], row by row, together with its transpose."""

    index: Tensor
    """[entries] the columns."""
    ptr: Tensor
    """[rows + 1] row r has the entries ptr[r]:ptr[r + 1]."""
    back_index: Tensor
    """[entries] the rows, column by column."""
    back_ptr: Tensor
    """[columns + 1]"""
    weight: Tensor | None = None
    """[entries]; `None` if all are 1."""
    back_weight: Tensor | None = None

    def __matmul__(self, h: Tensor) -> Tensor:
        """M·h [rows, width] from h [columns, width]."""
        found: Tensor = _Product.apply(h, self)  # type: ignore[no-untyped-call]
        return found


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, h: Tensor, matrix: SparseMatrix) -> Tensor:
        ctx.matrix = matrix
        return sums(h.contiguous(), matrix.index, matrix.ptr, matrix.weight)

    @staticmethod
    def backward(ctx: Any, *gradient: Tensor) -> tuple[Tensor, None]:
        m = ctx.matrix
        return sums(gradient[0].contiguous(), m.back_index, m.back_ptr, m.back_weight), None
