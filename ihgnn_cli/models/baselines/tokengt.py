"""TokenGT: a plain transformer over nodes and edges, which have identifiers.

Jinwoo Kim, Tien Dat Nguyen, Seonwoo Min, Sungjun Cho, Moontae Lee, Honglak Lee, Seunghoon Hong
(2022), Pure Transformers are Powerful Graph Learners, NeurIPS.

    node v:        W x_v + U (P_v | P_v) + t_node
    edge {u, v}:   mean of U (P_u | P_v) and U (P_v | P_u), + t_edge       (section 2)

P_v are orthonormal node identifiers: row v of the `identifiers` eigenvectors of the normalized
Laplacian I - D^(-1/2) A D^(-1/2) with the least eigenvalues, zeros if the graph has fewer nodes.
t are learned type identifiers. The tokens and a learned [graph] token go through the layers of
`attention.EncoderLayer`; the graph's vector is the last vector of [graph] after a LayerNorm.

Weights are initialized as in the authors' code: all linear maps and learned tokens are drawn from
N(0, 0.02²), and biases are 0. (That code first draws the maps to tokens from N(0, 0.02² / L) and
then draws them again with the rest of the encoder.) The head has torch's initialization.

Signs of eigenvectors are arbitrary, so training flips each at random at every step. Bases of
eigenspaces of several dimensions are arbitrary too; the paper leaves them to the solver. Here signs
and bases are a function of the graph: the nodes are put into a canonical order (see `canonical` for
its limits), and an eigenspace's first vector is the one that points to the first node with a large
component in it. In evaluation, the prediction therefore does not depend on the node numbering; if
the order is not canonical, it is one of several equally good ones.

Differences from the paper: an undirected edge is one token, not one per direction
(`both_directions` uses two, which takes four times as long with many edges); eigenvectors are not
dropped at random; there is no second special token, no stochastic depth and no attention dropout
(which would need memory for all pairs of tokens); the head is the two-layer MLP that all baselines
have. Edge features are not used.
"""

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ihgnn_cli.models.baselines.attention import SMALL, EncoderLayer, start_normal
from ihgnn_cli.models.baselines.canonical import canonical_order
from ihgnn_cli.models.baselines.pieces import Classifier
from ihgnn_cli.models.entries.tokengt import TokenGTSettings
from ihgnn_cli.models.graphs import Derived, Graphs
from ihgnn_cli.models.settings import Inputs

Matrix = NDArray[np.float64]

# Pairs of tokens, with padding, that attend to each other at a time.
_PAIRS_AT_ONCE = 2**19
# Eigenvalues are between 0 and 2; those of one eigenspace differ only by rounding.
_SAME_EIGENVALUE = 1e-6
# The share of the largest projection that a node must have. It is not a ratio of small integers, as
# projections often are; otherwise rounding would decide.
_LARGE_SHARE = 0.3718


class TokenGT(nn.Module):
    """Nodes and edges as tokens, [graph] as the readout."""

    def __init__(self, settings: TokenGTSettings, inputs: Inputs) -> None:
        super().__init__()
        self.settings = settings
        width = settings.width
        self.encoder = nn.Linear(inputs.features, width)
        self.identify = nn.Linear(2 * settings.identifiers, width, bias=False)
        self.types = nn.Parameter(torch.empty(2, width))
        self.graph_token = nn.Parameter(torch.empty(width))
        for looked_up in (self.types, self.graph_token):
            nn.init.normal_(looked_up, std=SMALL)
        self.layers = nn.ModuleList(
            EncoderLayer(width, settings.heads, dropout=settings.dropout)
            for _ in range(settings.layers)
        )
        for mapped in (self.encoder, self.identify, self.layers):
            start_normal(mapped, SMALL)
        self.norm = nn.LayerNorm(width)
        self.classifier = Classifier(width, settings, inputs)

    def forward(self, graphs: Graphs) -> Tensor:
        """[B, classes] logits."""
        parts = [graphs.part(*part) for part in self._cuts(graphs)]
        logits: Tensor = self.classifier(torch.cat([self._vectors(part) for part in parts]))
        return logits

    def _cuts(self, graphs: Graphs) -> Iterator[tuple[int, int]]:
        """Runs of graphs, with a limit on the pairs of tokens when padded."""
        start, longest = 0, 0
        for at, tokens in enumerate(self._lengths(graphs)):
            longest_then = max(longest, tokens)
            if at > start and (at + 1 - start) * longest_then**2 > _PAIRS_AT_ONCE:
                yield start, at
                start, longest_then = at, tokens
            longest = longest_then
        yield start, len(graphs)

    def _lengths(self, graphs: Graphs) -> list[int]:
        """Number of tokens of each graph, including [graph]."""
        per_edge = 1 if self.settings.both_directions else 2
        pairs = zip(graphs.sizes, graphs.edge_counts, strict=True)
        return [1 + nodes + edges // per_edge for nodes, edges in pairs]

    def _vectors(self, graphs: Graphs) -> Tensor:
        """[B, width] the final vector of each [graph] token."""
        lengths = self._lengths(graphs)
        longest = max(lengths)
        device = graphs.x.device
        sizes = torch.tensor(graphs.sizes, device=device)
        nodes, edges, edge_graph, edge_rank = self._tokens(graphs)
        h = nodes.new_zeros(len(graphs), longest, nodes.shape[1])
        first = self.graph_token.expand(len(graphs), -1)
        every = torch.arange(len(graphs), device=device)
        owner = torch.cat([every, graphs.graph, edge_graph])
        place = torch.cat(
            [torch.zeros_like(every), 1 + graphs.rank, 1 + sizes[edge_graph] + edge_rank]
        )
        h = h.index_put((owner, place), torch.cat([first, nodes, edges]))
        there = torch.arange(longest, device=device) < torch.tensor(
            lengths, device=device
        ).unsqueeze(1)
        there = there[:, None, None]
        *layers, last = self.layers
        for layer in layers:
            h = layer(h, there)
        # Only [graph] is read.
        vectors: Tensor = self.norm(last(h, there, answers=1)[:, 0])
        return vectors

    def _tokens(self, graphs: Graphs) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Nodes [n, width], edges [e, width], and each edge's graph and index within it."""
        found = torch.cat([each for (each,) in identifiers(graphs, self.settings.identifiers)])
        if self.training:
            shape = (len(graphs), found.shape[1])
            signs = torch.randint(0, 2, shape, device=found.device) * 2.0 - 1
            found = found * signs[graphs.graph]
        left, right = self.identify.weight.chunk(2, dim=1)
        as_left, as_right = found @ left.t(), found @ right.t()
        nodes = self.encoder(graphs.x) + as_left + as_right + self.types[0]
        sender, receiver = graphs.edge_index
        if self.settings.both_directions:
            edges = as_left[sender] + as_right[receiver]
        else:
            once = sender < receiver
            sender, receiver = sender[once], receiver[once]
            both = (as_left + as_right) / 2
            edges = both[sender] + both[receiver]
        per_edge = 1 if self.settings.both_directions else 2
        starts = torch.tensor(graphs.edge_ptr[:-1], device=receiver.device) // per_edge
        owner = graphs.graph[receiver]
        rank = torch.arange(len(owner), device=owner.device) - starts[owner]
        return nodes, edges + self.types[1], owner, rank


def identifiers(graphs: Graphs, width: int) -> list[Derived]:
    """[n, width] for each graph: `laplacian_rows` with the nodes in canonical order."""
    name = f"laplacian-{width}"

    def compute(edges: Tensor, nodes: int, values: Tensor) -> Derived:
        sender, receiver = edges.numpy()
        order = canonical_order(values.cpu().numpy(), sender, receiver)
        adjacency = np.zeros((nodes, nodes))
        adjacency[sender, receiver] = 1
        rows = np.zeros((nodes, width))
        rows[order] = laplacian_rows(adjacency[order][:, order], width)
        return (torch.from_numpy(rows).float(),)

    # What nodes carry counts, too: a symmetry of the graph alone may move labels. This can be kept
    # like what is derived from edges only: labels are the same at every step, and of attributes
    # only the order of their values is used, which scaling does not change.
    for at, key in enumerate(graphs.keys):
        if (name, key) not in graphs.memo:
            one = graphs.part(at, at + 1)
            one.derived(name, lambda edges, nodes, x=one.x: compute(edges, nodes, x))  # type: ignore[misc]
    return [graphs.memo[name, key] for key in graphs.keys]


def laplacian_rows(adjacency: Matrix, width: int) -> Matrix:
    """[n, width] eigenvectors of the normalized Laplacian, the least eigenvalues first, then zeros.

    A node without edges has a 1 on the diagonal. Signs and bases are a function of the matrix: of
    an eigenspace, the first vector is the projection of the first node whose projection is not
    small beside the largest one; then again, of what is orthogonal to it.
    """
    inverse = 1 / np.sqrt(adjacency.sum(1).clip(min=1))
    values, vectors = np.linalg.eigh(
        np.eye(len(adjacency)) - inverse[:, None] * adjacency * inverse
    )
    ends = [*(np.flatnonzero(np.diff(values) > _SAME_EIGENVALUE) + 1), len(values)]
    rows = np.zeros((len(adjacency), width))
    start = 0
    for end in ends:
        space = vectors[:, start:end]
        for at in range(start, min(end, width)):
            parts = (space**2).sum(1)
            node = np.argmax(parts >= _LARGE_SHARE * parts.max())
            direction = space[node] / np.sqrt(parts[node])
            rows[:, at] = space @ direction
            space = space - np.outer(rows[:, at], direction)
        start = end
    return rows
