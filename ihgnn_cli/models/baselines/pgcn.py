"""PGCN: one convolution with a polynomial of the adjacency matrix.

Pasa, Navarin and Sperduti 2022, Polynomial-based graph convolutional neural networks for graph
classification, Machine Learning 111.

    R   = [X, T X, ..., T^k X]
    H_i = [X, T X, ..., T^i X] W_i + b_i   for i = 0 .. k
    H   = BN([H_0, ..., H_k])

T is the adjacency A or the symmetric normalized Laplacian I - D^(-1/2) A D^(-1/2). H is the PGC
layer: a product of R with a matrix whose blocks below the diagonal are 0, so each power has its own
weights and each distance its own representation. There is no activation: only the readout is
nonlinear. It concatenates the mean, sum and maximum of H over a graph's nodes.

The single layer, the powers of the adjacency, and mean, sum and maximum are the paper's. These come
from the authors' code (lpasa/PGCN):
- the Laplacian, in the second of its two models, for social networks: powers of the adjacency grow
  with the degrees, those of the Laplacian are at most 2^k times as large as X;
- the projection: X is BN(W_1 x_v + W_2 sum of x_u over neighbours + b) of a node's features x,
  which adds one hop to the text's model; `project` turns it off;
- batch normalization of H and of the readout;
- the two classifiers, based on the width of H: a funnel with two hidden layers (2 m (k + 1) and
  m (k + 1) units, m = `width`), or a restricted one with one (m (k + 1) / 2 units, and dropout
  before it).
There k counts the powers from X on: their k = 3 .. 6 with the adjacency are `layers` = 2 .. 5 here,
and their k = 3, 5, 7, 9 with the Laplacian are 2, 4, 6, 8.

The code multiplies by dense powers of A; here T is applied to T^(i-1) X over the edges, which gives
the same result.
"""

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from ihgnn_cli.models.baselines.hops import neighbours
from ihgnn_cli.models.baselines.pieces import Norm
from ihgnn_cli.models.entries.pgcn import READ, Operator, PGCNSettings, Readout
from ihgnn_cli.models.graphs import Graphs
from ihgnn_cli.models.settings import Inputs


class PGCN(nn.Module):
    """Concatenated powers of T, a triangular weight matrix, and three readouts."""

    def __init__(self, settings: PGCNSettings, inputs: Inputs) -> None:
        super().__init__()
        self.operator, self.dropout = settings.operator, settings.dropout
        width, powers = settings.width, settings.layers + 1
        self.before = width if settings.project else inputs.features
        self.project = nn.Linear(2 * inputs.features, width) if settings.project else None
        self.project_norm = Norm(width) if settings.project else None
        self.blocks = nn.ModuleList(
            nn.Linear(self.before * (power + 1), width) for power in range(powers)
        )
        self.norm = Norm(width * powers)
        read = READ * width * powers
        self.read_norm = Norm(read)
        self.drop_read = settings.readout == Readout.RESTRICTED
        hidden = [2 * width * powers, width * powers]
        if self.drop_read:
            hidden = [max(1, width // 2) * powers]
        befores = [read, *hidden]
        self.hidden = nn.ModuleList(
            nn.Linear(before, after) for before, after in zip(befores, hidden, strict=False)
        )
        self.last = nn.Linear(befores[-1], inputs.classes)

    def forward(self, graphs: Graphs) -> Tensor:
        """[B, classes] logits."""
        h = self.norm(self.polynomial(graphs))
        sums, most = graphs.sum_nodes(h), graphs.max_nodes(h)
        h = self.read_norm(torch.cat([sums / graphs.node_counts, sums, most], dim=1))
        if self.drop_read:
            h = F.dropout(h, self.dropout, self.training)
        for layer in self.hidden:
            h = F.dropout(layer(h).relu(), self.dropout, self.training)
        logits: Tensor = self.last(h)
        return logits

    def polynomial(self, graphs: Graphs) -> Tensor:
        """[n, width * powers] H before its normalization."""
        neighbors, h = neighbours(graphs), graphs.x
        if self.project is not None and self.project_norm is not None:
            h = self.project_norm(self.project(torch.cat([h, neighbors.sum(h)], dim=1)))
        scale = graphs.degree.clamp(min=1).rsqrt().unsqueeze(1)
        powers = [h]
        for _ in self.blocks[1:]:
            if self.operator == Operator.LAPLACIAN:
                h = h - scale * neighbors.sum(scale * h)
            else:
                h = neighbors.sum(h)
            powers.append(h)
        all_ = torch.cat(powers, dim=1)
        found = [
            block(all_[:, : self.before * (power + 1)]) for power, block in enumerate(self.blocks)
        ]
        return torch.cat(found, dim=1)
