"""k-GNN: Morris et al. 2019, Weisfeiler and Leman go neural: higher-order graph neural networks.

The hierarchical 1-2-3-GNN (or 1-2-GNN) of that paper (AAAI), in its local variant. First a GNN on
nodes,

    h'(u) = ELU(W₁ h(u) + W₂ · mean of h(v) over neighbours v + b)

then one on all sets of two nodes and one on all connected sets of three, by the same equation. The
neighbours of a set are the sets with one node replaced by a node adjacent to it (`sets`). A set s
of k nodes starts from the last h of its nodes and its isomorphism type,

    f(s) = mean over u in s of (h(u) ‖ (1 + d) x(u) ‖ one-hot of d),  d: neighbours of u within s

and the concatenated means over all nodes, all pairs and all triples are fed to an MLP of three
layers with dropout after the first.

"Local" has two meanings in the authors' code (chrsmrrs/k-gnn). Its `malkin` neighbours are those
described above: the new node is adjacent to the node that it replaces. Its `local` neighbours also
share all nodes but one, but the new node may be adjacent to any node of the set. Here neighbours
are `malkin` for pairs and triples, as in the authors' script for PROTEINS. Their script for MUTAG
uses `malkin` pairs, `local` connected triples, and a sum over nodes instead of a mean.

As in that code, and unlike the paper's equation: means over neighbours instead of sums (a triple of
a complete graph of 21 nodes has 54 neighbours), connected triples only, and triples that start from
nodes, not from pairs. Unlike that code: all connected triples are used, not only those a < b < c
with edges a-b and b-c, which depend on the order of nodes; and the isomorphism type does not have
one column per type (the number of labels to the power of three). Instead, the last two parts of
f(s) determine it: the sum of (1 + d) x(u) and the degrees show which labels the set has and which
of them is in the middle of a path.
"""

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn
from torch_geometric.nn import GraphConv

from ihgnn_cli.models.baselines.sets import Sets, sets_of
from ihgnn_cli.models.entries.kgnn import KGNNSettings
from ihgnn_cli.models.graphs import Graphs
from ihgnn_cli.models.settings import Inputs


class KGNN(nn.Module):
    """A GNN on nodes, GNNs on sets on top of it, and an MLP on the means of all of them."""

    def __init__(self, settings: KGNNSettings, inputs: Inputs) -> None:
        super().__init__()
        width, hidden = settings.width, settings.hidden
        before = [inputs.features] + [width] * (settings.layers - 1)
        self.convs = nn.ModuleList(GraphConv(each, width, aggr="mean") for each in before)
        self.levels = nn.ModuleList(
            SetGNN(k, settings, inputs) for k in range(2, settings.order + 1)
        )
        half = max(1, hidden // 2)
        self.mlp = nn.Sequential(
            nn.Linear(settings.order * width, hidden),
            nn.ELU(),
            nn.Dropout(settings.dropout),
            nn.Linear(hidden, half),
            nn.ELU(),
            nn.Linear(half, inputs.classes),
        )

    def forward(self, graphs: Graphs) -> Tensor:
        """[B, classes] logits."""
        h = graphs.x
        for conv in self.convs:
            h = F.elu(conv(h, graphs.edge_index))
        read = [graphs.mean_nodes(h)]
        read += [level(h, graphs) for level in self.levels]
        logits: Tensor = self.mlp(torch.cat(read, dim=1))
        return logits


class SetGNN(nn.Module):
    """Layers on sets of k nodes.

    A set's first features are means over its nodes, and the first layer's maps are linear, so they
    are applied to the few nodes instead of the many sets.
    """

    def __init__(self, k: int, settings: KGNNSettings, inputs: Inputs) -> None:
        super().__init__()
        self.k = k
        width = settings.width
        # Each has two outputs: for the set itself and for its neighbours.
        self.state = nn.Linear(width, 2 * width, bias=False)
        self.label = nn.Linear(inputs.features, 2 * width, bias=False)
        self.degree = nn.Linear(2, 2 * width, bias=False)
        self.own = nn.ModuleList(nn.Linear(width, width) for _ in range(settings.set_layers - 1))
        self.other = nn.ModuleList(
            nn.Linear(width, width, bias=False) for _ in range(settings.set_layers - 1)
        )

    def forward(self, h: Tensor, graphs: Graphs) -> Tensor:
        """[B, width] the mean of the last layer over each graph's sets."""
        sets = sets_of(graphs, self.k)
        own, other = self._start(h, graphs.x, sets)
        f = F.elu_(own + sets.neighbor_mean(other))
        for of_own, of_other in zip(self.own, self.other, strict=True):
            f = F.elu_(of_own(f) + of_other(sets.neighbor_mean(f)))
        return sets.graph_mean(f)

    def _start(self, h: Tensor, x: Tensor, sets: Sets) -> tuple[Tensor, Tensor]:
        """Two of [sets, width]: the first layer's maps for a set itself and for its neighbours."""
        state, label, degree = self.state(h), self.label(x), self.degree.weight.t()
        # A connected triple has nodes of degree 1 and 2, a pair has nodes of degree 0 and 1.
        least = self.k - 2
        table = torch.stack(
            [state + (1 + least + more) * label + degree[more] for more in (0, 1)], dim=1
        )
        table = table.flatten(0, 1) / self.k
        own, other = table.chunk(2, dim=1)
        return sets.gathered(own.contiguous()), sets.gathered(other.contiguous())
