"""Stratified random parts: each class has its share of each part, to within 1."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ihgnn_cli.errors import InputError
from ihgnn_cli.words import counted


def random_bits(seed: int) -> np.random.PCG64:
    """Raw random bits, which NumPy guarantees to be the same everywhere."""
    if seed < 0:
        raise InputError(f"The seed {seed} is negative. Use a whole number from 0.")
    return np.random.PCG64(seed)


def by_class(graph_class: NDArray[np.integer], random: np.random.PCG64) -> NDArray[np.int64]:
    """The positions of all graphs, class by class, in random order within a class."""
    return np.lexsort((random.random_raw(len(graph_class)), graph_class)).astype(np.int64)


def stratified(
    graph_class: NDArray[np.integer], sizes: Sequence[int], random: np.random.PCG64
) -> list[NDArray[np.int64]]:
    """Divide all positions into stratified parts of these sizes."""
    members = np.unique(graph_class, return_counts=True)[1]
    counts = _rounded(np.outer(members, sizes), len(graph_class), random)
    part = np.repeat(np.tile(np.arange(len(sizes)), len(members)), counts.ravel())
    order = by_class(graph_class, random)
    return [order[part == number] for number in range(len(sizes))]


def grouped(
    graph_class: NDArray[np.integer],
    groups: NDArray[np.integer],
    parts: int,
    random: np.random.PCG64,
) -> list[NDArray[np.int64]]:
    """Divide all positions into parts without dividing a group, as stratified as that allows.

    Greedy: groups from the largest to the smallest, in random order among equals, each to the part
    that has the smallest shares of the group's classes so far (of equal ones, the smallest part).

    Raises:
        InputError: there are fewer groups than parts.
    """
    group, size = np.unique(groups, return_inverse=True, return_counts=True)[1:]
    if len(size) < parts:
        raise InputError(
            f"{counted(len(size), 'group')} of twins cannot be divided into {parts} parts. "
            "Use fewer."
        )
    position, members = np.unique(graph_class, return_inverse=True, return_counts=True)[1:]
    table = np.zeros((len(size), len(members)), dtype=np.int64)
    np.add.at(table, (group, position), 1)
    filled = np.zeros((parts, len(members)))
    part = np.empty(len(size), dtype=np.int64)
    for each in np.lexsort((random.random_raw(len(size)), -size)):
        # How much the group adds to the sum of squares of all shares of classes in parts.
        added = (table[each] * (2 * filled + table[each]) / members**2).sum(axis=1)
        # The first groups fill empty parts, and none is left empty.
        part[each] = np.lexsort((filled.sum(axis=1), added.round(12), filled.any(axis=1)))[0]
        filled[part[each]] += table[each]
    return [np.flatnonzero(part[group] == number) for number in range(parts)]


def _rounded(table: NDArray[np.int64], unit: int, random: np.random.PCG64) -> NDArray[np.int64]:
    """Round each entry of `table` / `unit` up or down, keeping the sums of rows and columns.

    The sums must be multiples of `unit`. Controlled rounding (Cox, JASA 82, 1987): move along a
    cycle of fractions until one becomes an integer; the direction is random, with odds that keep
    the expected value. With three or more parts, rounding part by part cannot do this.
    """
    while (fraction := table % unit).any():
        cycle = _cycle(fraction > 0)
        rising, falling = fraction[cycle > 0], fraction[cycle < 0]
        up = int(min((unit - rising).min(), falling.min()))
        down = int(min(rising.min(), (unit - falling).min()))
        table = table + cycle * (up if random.random_raw() % (up + down) < down else -down)
    return table // unit


def _cycle(fractions: NDArray[np.bool_]) -> NDArray[np.int64]:
    """A cycle of fractions as +1 and -1; each row and column sums to 0.

    Walks from column to column, each time along a different row, until a column repeats. A row or
    column with one fraction always has a second, because its sum is an integer.
    """
    column = int(np.flatnonzero(fractions.any(axis=0))[0])
    row = -1
    steps: list[tuple[int, int, int]] = []
    reached: dict[int, int] = {}
    while column not in reached:
        reached[column] = len(steps)
        row = next(int(each) for each in np.flatnonzero(fractions[:, column]) if each != row)
        onward = next(int(each) for each in np.flatnonzero(fractions[row]) if each != column)
        steps.append((row, column, onward))
        column = onward
    cycle = np.zeros(fractions.shape, dtype=np.int64)
    for row, start, end in steps[reached[column] :]:
        cycle[row, start] += 1
        cycle[row, end] -= 1
    return cycle
