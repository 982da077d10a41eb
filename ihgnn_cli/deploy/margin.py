"""The output `order_margin`: how certain the order of a graph's nodes is.

Rounding decides the order of two nodes whose sort keys are nearly equal, and another order changes
the logits, unless the two nodes are equal anyway. So the margin of a graph is the smallest gap
between the keys of two different nodes that follow each other in sorted order, relative to the
longer of their embeddings. Different nodes are those with embeddings of different length: to
compare only the lengths is fast, and different embeddings hardly ever have the same.
"""

import torch
from torch import Tensor

from ihgnn_cli.deploy.metadata import CLOSE, LARGEST


def gaps(key: Tensor, length: Tensor, pair: Tensor) -> Tensor:
    """The relative gap between each node and the one before it, along the last axis.

    `LARGEST` where the two are equal, or do not belong together.

    Args:
        key: the sorted keys.
        length: lengths of the embeddings in the same order.
        pair: whether a node and the one before belong together. The first is before itself.
    """
    other = before(length)
    longer = torch.maximum(length, other)
    differ = (length - other).abs() > CLOSE * longer
    return torch.where(differ & pair, (key - before(key)) / longer, LARGEST)


def norms(rows: Tensor) -> Tensor:
    """The length of each row.

    Not with axis -1: for an empty batch, onnxruntime then returns a wrong shape.
    """
    found: Tensor = rows.norm(dim=rows.dim() - 1)
    return found


def before(values: Tensor) -> Tensor:
    """The value before each one along the last axis; the first is before itself."""
    return torch.cat([values[..., :1], values[..., :-1]], -1)
