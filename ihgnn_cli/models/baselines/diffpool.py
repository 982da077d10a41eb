"""DiffPool: pooling by learned soft clusters.

Ying, You, Morris, Ren, Hamilton and Leskovec 2018, Hierarchical graph representation learning with
differentiable pooling, NeurIPS.

    Z  = GNN_embed(A, X),  S = softmax(GNN_pool(A, X)), one row per node, one column per cluster
    X' = S^T Z,  A' = S^T A S                                     (equations 3 and 4)

and again with X' and A', which is dense. Each pooling adds two penalties to the loss: the link
penalty ||A - S S^T||_F, and the entropy penalty, the mean entropy of the rows of S.

A GNN has several layers of GraphSAGE with means (section 4), h_v' = W_1 h_v + W_2 mean of h_u + b,
each followed by l2 normalization of rows. All but the last are then followed by ReLU and batch
normalization, as in the authors' code. The outputs of all layers are concatenated. On a pooled
graph the mean is weighted by A': A' h / max(1, A' 1), as in torch-geometric's DenseSAGEConv. The
readout is from the authors' code (RexYing/diffpool): the maximum of each column of Z, before each
pooling and after the last.

The first pooling never builds an n by n matrix. Blocks of one product S^T [Z, A S, S], with A S
computed over edges, are sufficient, since

    ||A - S S^T||_F^2 = sum of A_uv^2 - 2 trace(S^T A S) + ||S^T S||_F^2.

Differences from the paper:
- The number of clusters is a share of the largest graph's nodes (25 % with two poolings, 10 % with
  one, as in section 4; one by default, as in the code) but at most `most_clusters`, so that nothing
  is quadratic in the largest graph. The default of 50 is their code's value for DD: a tenth of 500
  nodes, with larger graphs left out.
- The norm of the link penalty is divided by the graph's number of nodes. This makes it the root
  mean square of an entry and keeps it from dominating the loss. Both penalties are means over
  graphs.
- S is a linear map of all layers of GNN_pool, as in the code. Batch normalization is over nodes,
  per column, with running statistics (their code makes a new one in each step, per node).
"""

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from ihgnn_cli.models.baselines.hops import neighbours
from ihgnn_cli.models.baselines.pieces import Classifier, Norm
from ihgnn_cli.models.entries.diffpool import DiffPoolSettings
from ihgnn_cli.models.graphs import Graphs
from ihgnn_cli.models.settings import Inputs


class _Graph:
    """The step's original graphs: rows are nodes, and A is given by their edges."""

    def __init__(self, graphs: Graphs) -> None:
        self._graphs, self._neighbors = graphs, neighbours(graphs)
        self._share = 1 / graphs.degree.clamp(min=1).unsqueeze(1)
        self.sizes = graphs.node_counts.squeeze(1)
        self.squares = graphs.sum_nodes(graphs.degree.unsqueeze(1)).squeeze(1)
        """The sum of A_uv^2 for each graph."""

    def sum(self, h: Tensor) -> Tensor:
        """[rows, width] A·h."""
        return self._neighbors.sum(h)

    def mean(self, h: Tensor) -> Tensor:
        """[rows, width] the mean over each row's neighbours."""
        return self.sum(h) * self._share

    def largest(self, h: Tensor) -> Tensor:
        """[B, width] the maximum of each column."""
        return self._graphs.max_nodes(h)

    def dense(self, h: Tensor) -> Tensor:
        """[B, most rows of a graph, width]."""
        return self._graphs.padded(h)


class _Pooled:
    """The graphs after a pooling: rows are clusters, A is dense [B, C, C]."""

    def __init__(self, adjacency: Tensor) -> None:
        self._adjacency = adjacency
        self._means = adjacency / adjacency.sum(2, keepdim=True).clamp(min=1)
        self.sizes = adjacency.shape[1]
        self.squares = adjacency.square().sum((1, 2))

    def sum(self, h: Tensor) -> Tensor:
        return (self._adjacency @ self.dense(h)).flatten(0, 1)

    def mean(self, h: Tensor) -> Tensor:
        return (self._means @ self.dense(h)).flatten(0, 1)

    def largest(self, h: Tensor) -> Tensor:
        return self.dense(h).amax(1)

    def dense(self, h: Tensor) -> Tensor:
        return h.view(*self._adjacency.shape[:2], -1)


class Sage(nn.Module):
    """GraphSAGE layers, the last without ReLU and `Norm`; the outputs of all are concatenated."""

    def __init__(self, before: int, settings: DiffPoolSettings) -> None:
        super().__init__()
        width = settings.width
        befores = [before] + [width] * (settings.layers - 1)
        self.layers = nn.ModuleList(nn.Linear(2 * each, width) for each in befores)
        self.norms = nn.ModuleList(Norm(width) for _ in befores[1:])
        """One for each layer but the last."""

    def forward(self, h: Tensor, level: _Graph | _Pooled) -> Tensor:
        """[rows, layers * width]."""
        found = []
        for at, layer in enumerate(self.layers):
            h = F.normalize(layer(torch.cat([h, level.mean(h)], dim=1)), dim=1)
            if at < len(self.norms):
                h = self.norms[at](h.relu())
            found.append(h)
        return torch.cat(found, dim=1)


class Pool(nn.Module):
    """X', A' and the penalties, from soft clusters computed by a separate GNN."""

    def __init__(self, before: int, clusters: int, settings: DiffPoolSettings) -> None:
        super().__init__()
        self.sage = Sage(before, settings)
        self.last = nn.Linear(settings.layers * settings.width, clusters)
        self.link_weight, self.entropy_weight = settings.link_weight, settings.entropy_weight

    def forward(
        self, h: Tensor, z: Tensor, level: _Graph | _Pooled
    ) -> tuple[Tensor, Tensor, Tensor]:
        """X' [B * C, width], A' [B, C, C] and the penalty, from rows h and their embeddings z."""
        logs = self.last(self.sage(h, level)).log_softmax(dim=1)
        s = logs.exp()
        right = level.dense(torch.cat([z, level.sum(s), s], dim=1))
        products = level.dense(s).transpose(1, 2) @ right
        x, adjacency, gram = torch.split(products, [z.shape[1], s.shape[1], s.shape[1]], dim=2)
        trace = adjacency.diagonal(dim1=1, dim2=2).sum(1)
        # Far from 0 if A has no diagonal, since S S^T has one; a pooled A may come close.
        squares = (level.squares - 2 * trace + gram.square().sum((1, 2))).clamp(min=1e-6)
        links = squares.sqrt() / level.sizes
        entropies = level.dense((-s * logs).sum(1, keepdim=True)).sum((1, 2)) / level.sizes
        penalty = self.link_weight * links.mean() + self.entropy_weight * entropies.mean()
        return x.flatten(0, 1), adjacency, penalty


class DiffPool(nn.Module):
    """Embed, pool, embed and so on; the classifier sees the column maxima of all levels."""

    def __init__(self, settings: DiffPoolSettings, inputs: Inputs) -> None:
        super().__init__()
        width = settings.layers * settings.width
        befores = [inputs.features] + [width] * settings.pools
        clusters = settings.clusters(inputs.max_nodes)
        self.embeds = nn.ModuleList(Sage(each, settings) for each in befores)
        self.pools = nn.ModuleList(
            Pool(before, each, settings) for before, each in zip(befores, clusters, strict=False)
        )
        self.classifier = Classifier(width * len(befores), settings, inputs)

    def forward(self, graphs: Graphs) -> tuple[Tensor, Tensor]:
        """[B, classes] logits, and the sum of the penalties."""
        level: _Graph | _Pooled = _Graph(graphs)
        h, penalty = graphs.x, graphs.x.new_zeros(())
        z = self.embeds[0](h, level)
        read = [level.largest(z)]
        for pool, embed in zip(self.pools, self.embeds[1:], strict=True):
            h, adjacency, more = pool(h, z, level)
            level, penalty = _Pooled(adjacency), penalty + more
            z = embed(h, level)
            read.append(level.largest(z))
        return self.classifier(torch.cat(read, dim=1)), penalty
