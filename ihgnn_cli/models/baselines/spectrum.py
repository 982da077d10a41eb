"""Band-pass filters of a graph's Laplacian without its eigenvectors, which ONNX cannot compute.

With L = I - D^(-1/2) A D^(-1/2), whose eigenvalues are between 0 and 2, and T_k the Chebyshev
polynomials,

    exp(-b (L - f)²) = sum over k of c_k(f) T_k(L - I)

The coefficients are those of the interpolation at Chebyshev nodes, so they need no integral. They
decay faster than geometrically, and the sum is cut off where they vanish in single precision. The
frequencies f are spread evenly from the least eigenvalue to the largest. The least is 0 if the
graph has an edge and 1 if it has none. The largest is the trace of P L divided by that of P, with P
a power of L so high that only the largest eigenvalue is left in it.
"""

import math
from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from ihgnn_cli.errors import InputError
from ihgnn_cli.models.traced import PaddedGraphs

# A power of 2^24: two eigenvalues that it does not separate differ by less than 1e-6.
_SQUARINGS = 24
_VANISHED = 1e-7
_MOST_TERMS = 256


def band_filters(graphs: PaddedGraphs, bands: int, sharpness: float) -> Iterator[Tensor]:
    """[B, n, n] for each band: exp(-sharpness (L - f)²)."""
    scale = graphs.degree.clamp(min=1).rsqrt().view(graphs.mask.shape)
    negative = -(scale.unsqueeze(2) * graphs.adjacency * scale.unsqueeze(1))  # L - I
    own = graphs.identity * graphs.mask.unsqueeze(2)
    least = (graphs.degree.view(graphs.mask.shape).sum(1) == 0).float()
    spread = _largest(negative + own) - least
    terms = _terms(sharpness)
    angles = torch.arange(terms) * (math.pi / terms) + math.pi / (2 * terms)
    values = 1 + angles.cos()
    # [nodes, terms]: from the function's values to its coefficients.
    transform = (angles.unsqueeze(1) * torch.arange(terms)).cos() * (2 / terms)
    transform[:, 0] /= 2
    shares = torch.linspace(0, 1, bands) if bands > 1 else torch.zeros(1)
    centers = least.unsqueeze(1) + spread.unsqueeze(1) * shares
    coefficients = (-sharpness * (values - centers.unsqueeze(2)).square()).exp() @ transform
    before, now = own, negative
    found = coefficients[:, :, 0, None, None] * own.unsqueeze(1)
    for term in range(1, terms):
        found = found + coefficients[:, :, term, None, None] * now.unsqueeze(1)
        before, now = now, 2 * (negative @ now) - before
    yield from found.unbind(1)


def _largest(laplacian: Tensor) -> Tensor:
    """[B] the largest eigenvalue."""
    power = laplacian
    for _ in range(_SQUARINGS):
        power = power / _trace(power).clamp(min=1e-6)
        power = power @ power
    # The trace of a product of symmetric matrices.
    return (power * laplacian).sum((1, 2)) / _trace(power).flatten().clamp(min=1e-30)


def _trace(matrix: Tensor) -> Tensor:
    """[B, 1, 1]."""
    return matrix.diagonal(dim1=1, dim2=2).sum(1).view(-1, 1, 1)


def _terms(sharpness: float) -> int:
    """The number of terms after which the coefficients of all frequencies vanish.

    Raises:
        InputError: there are too many.
    """
    angles = (np.arange(_MOST_TERMS) + 0.5) * np.pi / _MOST_TERMS
    centers = np.linspace(0, 2, 65)[:, None]
    values = np.exp(-sharpness * (1 + np.cos(angles) - centers) ** 2)
    transform = np.cos(angles[:, None] * np.arange(_MOST_TERMS)) * 2 / _MOST_TERMS
    largest = np.abs(values @ transform).max(0)
    needed = int(np.flatnonzero(largest > _VANISHED).max(initial=0)) + 2
    if needed > _MOST_TERMS // 2:
        raise InputError(
            f"sharpness={sharpness:g} is too large to export: its filters need polynomials of "
            f"degree {needed} and more."
        )
    return needed
