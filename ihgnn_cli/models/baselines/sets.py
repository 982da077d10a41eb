"""Sets of two or three nodes of a graph, and sums over each set's neighbours.

Two sets are neighbours if they differ in one node and the two nodes that differ are adjacent: the
local neighbourhood of Morris et al. 2019, which their code calls `malkin` (`kgnn` has the details).
Sets that share all nodes but one form a group (a pair is in 2 groups, a triple in 3), and
neighbours always share a group. If nearly all nodes in a group are adjacent, it is cheaper to sum
the whole group once and subtract the sets that are not neighbours. With F the sets' rows, the sum
over neighbours is

    S F = Mᵀ M F - own F + R F

M sums the dense groups, `own` counts the dense groups of a set, and R has 1 for neighbours in other
groups and -1 for sets of a dense group that are not neighbours. In a complete graph R is empty:
with 21 nodes, the 54 neighbours of a triple cost 7 rows. S is its own transpose.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ihgnn_cli.models.graphs import Derived, Graphs

Ints = NDArray[np.int64]
_Map = Callable[[Tensor], Tensor]


@dataclass(frozen=True, eq=False)
class Lists:
    """A sparse matrix, by rows: which columns each row sums."""

    index: Tensor
    """[entries] columns, row by row."""
    ptr: Tensor
    """[rows + 1] where each row begins."""
    weight: Tensor | None = None
    """[entries]; `None` if all are 1."""

    def sums(self, values: Tensor) -> Tensor:
        """[rows, width] from values [columns, width]."""
        if not len(self.index):
            return values.new_zeros(len(self.ptr) - 1, values.shape[1])
        found: Tensor = torch.embedding_bag(
            values,
            self.index,
            self.ptr,
            mode=0,  # the sum
            per_sample_weights=self.weight,
            include_last_offset=True,
        )[0]
        return found


@dataclass(frozen=True, eq=False)
class Sets:
    """The sets of k nodes of a batch of graphs, graph by graph."""

    members: Lists
    """Set × 2n: for each member u, 2u + 1 if it is adjacent to all others of the set, else 2u: to
    all but one."""
    of_member: Lists
    """The transpose."""
    groups: Lists
    """M, dense group × set."""
    of_set: Lists
    """The transpose."""
    rest: Lists
    """R."""
    own: Tensor
    """[sets, 1] number of dense groups of each set."""
    degree: Tensor
    """[sets, 1] number of neighbours of each set, at least 1."""
    of_graph: Lists
    """Graph × set."""
    graph: Tensor
    """[sets] the graph of each set."""
    per_graph: Tensor
    """[B, 1] number of sets of each graph, at least 1."""

    def gathered(self, table: Tensor) -> Tensor:
        """[sets, width] the sum of each set's members' rows in a table [2n, width]."""
        return _mapped(table, self.members.sums, self.of_member.sums)

    def neighbor_mean(self, values: Tensor) -> Tensor:
        """[sets, width] the mean over the neighbours of each set; 0 if there are none."""
        return _mapped(values, self._neighbor_sums, self._neighbor_sums) / self.degree

    def graph_mean(self, values: Tensor) -> Tensor:
        """[B, width] the mean over the sets of each graph; 0 if there are none."""
        sums = _mapped(values, self.of_graph.sums, lambda grad: grad[self.graph])
        return sums / self.per_graph

    def _neighbor_sums(self, values: Tensor) -> Tensor:
        if not len(self.groups.index):
            return self.rest.sums(values)
        found = self.of_set.sums(self.groups.sums(values)).addcmul_(self.own, values, value=-1)
        return found.add_(self.rest.sums(values)) if len(self.rest.index) else found


def sets_of(graphs: Graphs, k: int) -> Sets:
    """All pairs of nodes (k = 2) or all connected triples (k = 3)."""
    found = graphs.derived(f"sets-{k}", lambda edges, nodes: graph_sets(edges, nodes, k))
    members, by_member, grouped, of_set, rest, sign, lengths = map(list, zip(*found, strict=True))
    device = graphs.x.device
    sets = [len(each) for each in members]
    # The row lengths of a graph's lists, concatenated: see `graph_sets`.
    cuts = [
        each.split([2 * n, len(each) - 2 * n - 3 * s, s, s, s])
        for each, n, s in zip(lengths, graphs.sizes, sets, strict=True)
    ]
    of_member_len, groups_len, of_set_len, rest_len, degree = zip(*cuts, strict=True)
    first_set = _starts(sets)
    first_group = _starts([len(each) for each in groups_len])
    counts = torch.tensor(sets, dtype=torch.int32, device=device)
    total, dense = sum(sets), any(len(each) for each in groups_len)
    return Sets(
        members=Lists(
            _shifted([each.flatten() for each in members], [2 * n for n in graphs.node_ptr]),
            torch.arange(0, k * total + 1, k, dtype=torch.int32, device=device),
        ),
        of_member=_lists(by_member, first_set, of_member_len),
        groups=_lists(grouped, first_set, groups_len),
        of_set=_lists(of_set, first_group, of_set_len),
        rest=_lists(rest, first_set, rest_len, torch.cat(sign).float() if dense else None),
        own=torch.cat(of_set_len).unsqueeze(1).float(),
        degree=torch.cat(degree).unsqueeze(1).clamp(min=1).float(),
        of_graph=Lists(torch.arange(total, dtype=torch.int32, device=device), _ptr(counts)),
        graph=torch.repeat_interleave(
            torch.arange(len(graphs), device=device), counts, output_size=total
        ),
        per_graph=counts.unsqueeze(1).clamp(min=1).float(),
    )


def graph_sets(edges: Tensor, nodes: int, k: int) -> Derived:
    """The lists of one graph.

    Returns:
        members [sets, k], the entries of `of_member`, `groups`, `of_set` and `rest`, the signs of
        `rest`, and the lengths of the rows of these four and, after them, the neighbours of each
        set.
    """
    sender, receiver = edges.numpy()
    adjacent = np.zeros((nodes, nodes), dtype=bool)
    adjacent[sender, receiver] = True
    degree = np.bincount(receiver, minlength=nodes)
    start = np.cumsum(degree) - degree
    sets = np.stack(np.triu_indices(nodes, 1), axis=1) if k == 2 else _triples(adjacent, edges)
    inner = adjacent[sets[:, :, None], sets[:, None, :]].sum(2) - (k - 2)
    rows = 2 * sets + inner
    by_member = np.argsort(rows, axis=None, kind="stable") // k

    # An entry for each set and member: the member that the others of its group have another for.
    member = sets.T.ravel()
    set_ = np.tile(np.arange(len(sets)), k)
    others = np.concatenate([np.delete(sets, at, axis=1) for at in range(k)])
    key = others[:, 0] if k == 2 else others[:, 0] * nodes + others[:, 1]
    _, group, size = np.unique(key, return_inverse=True, return_counts=True)
    order = np.argsort(group * nodes + member)
    member, set_, group = member[order], set_[order], group[order]

    # Neighbours: the same group, with a neighbour of the member in its place.
    one = np.repeat(np.arange(len(member)), degree[member])
    wanted = group[one] * nodes + sender[_ranges(start[member], degree[member])]
    place = np.searchsorted(group * nodes + member, wanted)
    place[place == len(member)] = 0
    hit = (group * nodes + member)[place] == wanted if len(member) else wanted == 0
    one, other = one[hit], place[hit]
    neighbors = np.bincount(set_[one], minlength=len(sets))

    # Entries of R that a group costs if it is not dense, against those if it is, and those of M.
    direct = np.bincount(group[one], minlength=len(size))
    dense = 2 * direct > size**2 + size
    in_dense = np.flatnonzero(dense[group])
    sizes = size[group[in_dense]]
    left = np.repeat(in_dense, sizes)
    right = _ranges((np.cumsum(size) - size)[group[in_dense]], sizes)
    none = (left != right) & ~adjacent[member[left], member[right]]
    sparse = ~dense[group[one]]
    row = set_[np.concatenate([one[sparse], left[none]])]
    column = set_[np.concatenate([other[sparse], right[none]])]
    sign = np.repeat([1, -1], [sparse.sum(), none.sum()])
    by_row = np.argsort(row, kind="stable")

    number = np.cumsum(dense) - 1
    by_set = in_dense[np.argsort(set_[in_dense], kind="stable")]
    lengths = (
        np.bincount(rows.ravel(), minlength=2 * nodes),
        size[dense],
        np.bincount(set_[in_dense], minlength=len(sets)),
        np.bincount(row, minlength=len(sets)),
        neighbors,
    )
    made = (
        rows,
        by_member,
        set_[in_dense],
        number[group[by_set]],
        column[by_row],
        sign[by_row],
        np.concatenate(lengths),
    )
    return tuple(torch.from_numpy(each.astype(np.int32)) for each in made)


def _triples(adjacent: NDArray[np.bool_], edges: Tensor) -> Ints:
    """[triples, 3] the connected triples, each in ascending order."""
    sender, center = edges.numpy()
    degree = np.bincount(center, minlength=len(adjacent))
    start = np.cumsum(degree) - degree
    one = np.repeat(np.arange(len(center)), degree[center])
    other = sender[_ranges(start[center], degree[center])]
    a, b, c = sender[one], center[one], other
    # Each path once; a triangle is three paths, of which that counts whose centre comes first.
    kept = (a < c) & (~adjacent[a, c] | (b < a))
    return np.sort(np.stack([a[kept], b[kept], c[kept]], axis=1), axis=1)


def _ranges(starts: Ints, lengths: Ints) -> Ints:
    """start, start + 1, ... for each start, `length` numbers each."""
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    found: Ints = np.arange(total) + np.repeat(starts - ends + lengths, lengths)
    return found


def _starts(counts: Sequence[int]) -> list[int]:
    return [0, *np.cumsum(counts).tolist()]


def _shifted(parts: Sequence[Tensor], by: Sequence[int]) -> Tensor:
    return torch.cat([part + first for part, first in zip(parts, by, strict=False)])


def _ptr(lengths: Tensor) -> Tensor:
    ptr = lengths.new_zeros(len(lengths) + 1)
    torch.cumsum(lengths, 0, out=ptr[1:])
    return ptr


def _lists(
    parts: Sequence[Tensor],
    by: Sequence[int],
    lengths: Sequence[Tensor],
    weight: Tensor | None = None,
) -> Lists:
    return Lists(_shifted(parts, by), _ptr(torch.cat(list(lengths))), weight)


class _LinearMap(torch.autograd.Function):
    """A linear map with a known transpose, so its gradient needs no stored or sorted data."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, there: _Map, back: _Map) -> Tensor:
        ctx.back = back
        return there(values)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        return ctx.back(grads[0].contiguous()), None, None


def _mapped(values: Tensor, there: _Map, back: _Map) -> Tensor:
    found: Tensor = _LinearMap.apply(values, there, back)  # type: ignore[no-untyped-call]
    return found
