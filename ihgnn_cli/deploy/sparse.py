"""IHGNN on nodes and edges, for inference only: the layout without padding.

Messages are summed in blocks of neighbours, and the readout in blocks of ranks. Only the nodes or
graphs that reach a block take part in it, so time and memory grow with nodes and edges, not with m.
Every operation exports to ONNX with dynamic numbers of graphs, nodes and edges.

A simpler scatter gives wrong results: onnxruntime's ScatterND (1.31, CPU) adds to the same row from
several threads at once and loses some of it. So `index_add`, which becomes ScatterND, is only used
for distinct rows. `scatter_add` becomes ScatterElements, which is single-threaded and many times
slower.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from ihgnn_cli.data.dataset import LabelSource
from ihgnn_cli.deploy.folded import (
    FoldedNodes,
    Linear,
    Outputs,
    Vocabulary,
    ascending_order,
    combined,
    folding_weights,
    select,
)
from ihgnn_cli.deploy.inputs import FIRST_BLOCK
from ihgnn_cli.deploy.margin import before, gaps, norms
from ihgnn_cli.deploy.metadata import LARGEST
from ihgnn_cli.models.card import ModelCard
from ihgnn_cli.models.settings import Variant, as_ihgnn
from ihgnn_cli.training.checkpoint import Checkpoint

FIRST_NEIGHBORS = 4
"""Size of the first block of neighbours."""


class SparseIHGNN(nn.Module):
    """All members of a checkpoint as one model."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        super().__init__()
        card = checkpoint.card
        self.vocabulary = Vocabulary(card)
        self.neighbor_ends = list(neighbor_ends(card))
        self.edge_types = card.inputs.edge_labels
        self.members = _Members(checkpoint)
        self.float().eval()

    def forward(
        self,
        node_labels: Tensor,
        edge_index: Tensor,
        ptr: Tensor,
        attributes: Tensor | None = None,
        edge_labels: Tensor | None = None,
    ) -> Outputs:
        """Outputs by name: see `combined`.

        Several members are combined as in the padded layout.

        Args:
            node_labels: [N] int64, position in the vocabulary; any other value is an unknown label
                (the zero vector). For models without given labels only N matters.
            edge_index: [2, E] int64, each edge in each direction; nodes are numbered across the
                batch. Self-loops and repeated edges are ignored.
            ptr: [B + 1] int64, graph g has the nodes ptr[g] to ptr[g + 1] - 1.
            attributes: [N, a] float32, for models that read attributes.
            edge_labels: [E] int64, position in the vocabulary, for models that read edge labels.
                Edges with any other value are ignored.
        """
        none = torch.zeros_like(node_labels)
        graphs = GraphRows(ptr, none)
        edges = Edges(edge_index, none, self.neighbor_ends, edge_labels, self.edge_types)
        row = self.vocabulary.rows(node_labels, lambda: edges.degree)
        h, key = self.members.nodes(row, attributes, edges.spread)
        return combined(self.members.classify(h, key, graphs), self.members.count)


class Edges:
    """The edges of a batch, shared by layers and members.

    Args:
        edge_index: [2, E] in any order.
        none: [N] zeros.
        ends: where the blocks of neighbours end; neighbours beyond the last block are added one
            by one.
        labels: [E] the edge labels, if they are read.
        types: the number of edge labels.
    """

    def __init__(
        self,
        edge_index: Tensor,
        none: Tensor,
        ends: Sequence[int],
        labels: Tensor | None = None,
        types: int = 0,
    ) -> None:
        source, target = edge_index[0], edge_index[1]
        ignored = source == target
        if labels is not None:
            ignored = ignored | (labels < 0) | (labels >= types)
        # Sums of floats depend on their order. Self-loops come first, and equal edges together.
        key = torch.where(ignored, -1, source * none.shape[0] + target)
        keys, order = key.sort()
        earlier = torch.cat([keys.new_full((1,), -1), keys])[:-1]
        first_time = (keys != earlier).nonzero().squeeze(1)
        order = order.index_select(0, first_time)
        self.edge_index = edge_index.index_select(1, order)
        """[2, E'] without self-loops and repeated edges."""
        node, neighbor = self.edge_index[0], self.edge_index[1]
        self.degree = none.scatter_add(0, node, torch.ones_like(node))
        last = self.degree.cumsum(0)
        first = last - self.degree
        # Row 0 is the zero row, for places without a neighbour.
        if labels is not None:  # a node has a message for each label
            neighbor = neighbor * types + labels.index_select(0, order)
        row = _after_zero(neighbor + 1)
        rank = torch.arange(1, ends[-1] + 1, device=node.device).unsqueeze(1)
        # Ordered by rank, so that a product with a row of ones sums them.
        chosen = row.index_select(0, _places(first, last, rank[: ends[0]]))
        self._blocks: list[tuple[int, Tensor | None, Tensor]] = [(ends[0], None, chosen)]
        for start, end in pairwise(ends):
            reaching = (self.degree > start).nonzero().squeeze(1)
            begin, stop = first.index_select(0, reaching), last.index_select(0, reaching)
            chosen = row.index_select(0, _places(begin, stop, rank[start:end]))
            self._blocks.append((end - start, reaching, chosen))
        number = torch.arange(node.shape[0], device=node.device) - first.index_select(0, node)
        beyond = (number >= ends[-1]).nonzero().squeeze(1)
        self._node = node.index_select(0, beyond)
        self._neighbor = neighbor.index_select(0, beyond)

    def spread(self, rows: Tensor, messages: Tensor) -> Tensor:
        """Add the messages of its neighbours to each row, of each member if there are several."""
        *members, _, width = rows.shape
        messages = messages.view(*members, -1, width)
        padded = nn.functional.pad(messages, (0, 0, 1, 0))
        for size, reaching, chosen in self._blocks:
            received = padded.index_select(-2, chosen).view(*members, size, -1)
            # A product with ones is many times faster in onnxruntime than a sum.
            part = (received.new_ones(1, size) @ received).view(*members, -1, width)
            rows = rows + part if reaching is None else _added(rows, reaching, part)
        rest = messages.index_select(-2, self._neighbor)
        return rows.scatter_add(-2, self._node.unsqueeze(1).expand_as(rest), rest)


class GraphRows:
    """The graphs of a batch, shared by the members.

    Args:
        ptr: [B + 1] where graphs begin and end.
        none: [N] zeros.
    """

    def __init__(self, ptr: Tensor, none: Tensor) -> None:
        self.first, self.last = ptr[:-1], ptr[1:]
        self.count = self.first.shape[0]
        # A graph begins where the one before ends; empty graphs begin at the same node.
        begun = torch.cat([none, none.new_zeros(1)])
        begun = begun.scatter_add(0, self.last, torch.ones_like(self.last))
        self.of_node = begun.cumsum(0)
        """[N + 1] the graph of each node, followed by the number of graphs."""

    def order(self, key: Tensor) -> Tensor:
        """[..., N] the nodes sorted by graph, then by key."""
        by_key, nodes = ascending_order(key)[1], key.shape[-1]
        # Unique, so that the runtime's order of ties does not matter.
        rank = torch.arange(nodes, device=key.device)
        graph = self.of_node.index_select(0, by_key.flatten()).view(by_key.shape)
        return select(by_key, (graph * nodes + rank).sort().indices)

    def margin(self, key: Tensor, length: Tensor, order: Tensor) -> Tensor:
        """[B] the smallest order margin, from each node's key and length, and the sorted nodes."""
        graph = self.of_node[:-1]
        found = gaps(select(key, order), select(length, order), graph == before(graph))
        found = found.amin(0) if found.dim() > 1 else found
        return found.new_full((self.count,), LARGEST).scatter_reduce(0, graph, found, "amin")


class _Members(nn.Module):
    """The models of the stack; tensors [..., ·] have a member axis if there are several."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        super().__init__()
        settings, card = as_ihgnn(checkpoint.config.model), checkpoint.card
        weights = folding_weights(checkpoint)
        self.count = checkpoint.members
        self.nodes = FoldedNodes(weights, settings, card)
        self.summed = settings.variant == Variant.NO_CONCAT
        self.relu = settings.readout_relu
        readout = weights["classifier.first.weight"]
        self.ends = [1] if self.summed else list(block_ends(card.max_nodes))
        columns = readout.shape[-2] // self.ends[-1]
        parts = readout.tensor_split([end * columns for end in self.ends[:-1]], -2)
        bias = weights["classifier.first.bias"]
        self.readout = nn.ModuleList(
            Linear(part, None if number else bias) for number, part in enumerate(parts)
        )
        self.classifier = Linear(
            weights["classifier.second.weight"], weights["classifier.second.bias"]
        )

    def classify(self, h: Tensor, key: Tensor, graphs: GraphRows) -> Outputs:
        """Logits and hidden layer [..., B, ·], and the smallest order margin [B]."""
        if self.summed:
            hidden, margin = self._summed(h, graphs), h.new_full((graphs.count,), LARGEST)
        else:
            order = graphs.order(key)
            hidden = self._sorted(h, order, graphs)
            margin = graphs.margin(key, norms(h), order)
        hidden = hidden.relu()
        logits = self.classifier(hidden)
        return {"logits": logits, "graph_embedding": hidden, "order_margin": margin}

    def _summed(self, h: Tensor, graphs: GraphRows) -> Tensor:
        *members, _, width = h.shape
        read = h.new_zeros(*members, graphs.count, width)
        graph = graphs.of_node[:-1].unsqueeze(1).expand_as(h)
        read = read.scatter_add(-2, graph, h)
        found: Tensor = self.readout[0](read.relu() if self.relu else read)
        return found

    def _sorted(self, h: Tensor, order: Tensor, graphs: GraphRows) -> Tensor:
        """[..., B, hidden] from the first m nodes in sorted order, padded with zero rows."""
        # Row 0 is the zero row, for places without a node.
        rows = nn.functional.pad(h.relu() if self.relu else h, (0, 0, 1, 0))
        order = _after_zero(order + 1)
        hidden = self._block(0, rows, order, graphs.first, graphs.last)
        for number, start in enumerate(self.ends[:-1], start=1):
            reaching = (graphs.last - graphs.first > start).nonzero().squeeze(1)
            first = graphs.first.index_select(0, reaching)
            last = graphs.last.index_select(0, reaching)
            part = self._block(number, rows, order, first, last)
            hidden = _added(hidden, reaching, part)
        return hidden

    def _block(
        self, number: int, rows: Tensor, order: Tensor, first: Tensor, last: Tensor
    ) -> Tensor:
        """[..., graphs, hidden] contribution of a block of ranks, for the graphs that reach it."""
        start, end = [0, *self.ends][number : number + 2]
        rank = torch.arange(start + 1, end + 1, device=first.device)
        place = _places(first.unsqueeze(1), last.unsqueeze(1), rank)
        taken = select(rows, order.index_select(-1, place))
        *members, _, width = rows.shape
        part: Tensor = self.readout[number](
            taken.view(*members, first.shape[0], (end - start) * width)
        )
        return part


def _added(rows: Tensor, index: Tensor, parts: Tensor) -> Tensor:
    """The rows, with the parts added at these different positions."""
    if rows.dim() == 2:
        return rows.index_add(0, index, parts)
    members, size = rows.shape[:2]
    first = torch.arange(members, device=index.device).unsqueeze(1) * size
    flat = rows.flatten(0, 1).index_add(0, (first + index).flatten(), parts.flatten(0, 1))
    return flat.view(rows.shape)


def _places(first: Tensor, last: Tensor, rank: Tensor) -> Tensor:
    """Positions of these ranks in ranges, all counted from 1; 0 beyond the end of a range.

    Ranges and ranks are on different axes. A range starts after `first` and ends with `last`.
    """
    place = first + rank
    return torch.where(place <= last, place, 0).flatten()


def _after_zero(values: Tensor) -> Tensor:
    """A zero, then these. Not a Pad, for which onnxruntime has no CUDA kernel with integers."""
    return torch.cat([values.new_zeros(*values.shape[:-1], 1), values], -1)


def block_ends(max_nodes: int) -> Iterator[int]:
    """Ends of the blocks of ranks: each twice the one before, the last one m."""
    end = FIRST_BLOCK
    while end + end // 2 < max_nodes:
        yield end
        end *= 2
    yield max_nodes


def neighbor_ends(card: ModelCard) -> Iterator[int]:
    """Ends of the blocks of neighbours.

    Labelled nodes are mostly atoms, with few neighbours. For models of degrees, the largest degree
    is known.
    """
    end = FIRST_NEIGHBORS
    yield end
    if card.label_source == LabelSource.DEGREE:
        most = max((int(value) for value in card.label_values), default=0)
        while end < most:
            end *= 4
            yield end
