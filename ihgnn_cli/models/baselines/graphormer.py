"""Graphormer: a transformer over nodes that knows degrees and distances.

Chengxuan Ying, Tianle Cai, Shengjie Luo, Shuxin Zheng, Guolin Ke, Di He, Yanming Shen, Tie-Yan Liu
(2021), Do Transformers Really Perform Badly for Graph Representation?, NeurIPS.

    h_v^(0) = W x_v + z[deg(v)]                                  centrality encoding (eq. 5)
    A_uv = (h_u W_Q)(h_v W_K)^T / sqrt(d) + b[dist(u, v)]        spatial encoding (eq. 6)

in each head and layer, with learned z (degrees above `max_degree` share the last entry) and b (one
number per head and distance, the same in all layers; distances above `max_distance` share one,
pairs without a path have their own). A virtual node [VNode] is added to each graph; its distance to
all nodes, including itself, has a separate value. Layers are `attention.EncoderLayer` (eq. 8 and
9), with dropout on the attention and in the MLP, as in the authors' runs. The graph's vector is
[VNode]'s last vector after a LayerNorm.

Weights are initialized as in the authors' code: linear maps of the L layers are drawn from
N(0, 0.02² / L), embeddings from N(0, 0.02²), and biases are 0. W is an embedding of node labels
there, so it is initialized as one.

Differences from the paper: no edge encoding (eq. 7), since only node labels are used here; the head
is the two-layer MLP that all baselines have, with torch's initialization; the sizes are smaller,
for data sets of a few hundred graphs. In-degree and out-degree are the same, as in the paper for
undirected graphs.
"""

import torch
from scipy.sparse import csr_array
from scipy.sparse.csgraph import shortest_path
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from ihgnn_cli.models.baselines.attention import SMALL, EncoderLayer, start_normal
from ihgnn_cli.models.baselines.pieces import Classifier
from ihgnn_cli.models.entries.graphormer import GraphormerSettings
from ihgnn_cli.models.graphs import Derived, Graphs
from ihgnn_cli.models.settings import Inputs


class Graphormer(nn.Module):
    """Centrality and spatial encoding, [VNode] as the readout."""

    def __init__(self, settings: GraphormerSettings, inputs: Inputs) -> None:
        super().__init__()
        self.max_degree = settings.max_degree
        self.max_distance = settings.max_distance
        self.virtual = settings.max_distance + 2
        self.encoder = nn.Linear(inputs.features, settings.width)
        self.centrality = nn.Embedding(settings.max_degree + 1, settings.width)
        # Distances, then "no path", then "to or from [VNode]".
        self.spatial = nn.Embedding(settings.max_distance + 3, settings.heads)
        self.virtual_node = nn.Parameter(torch.empty(settings.width))
        for table in (self.centrality.weight, self.spatial.weight, self.virtual_node):
            nn.init.normal_(table, std=SMALL)
        self.layers = nn.ModuleList(
            EncoderLayer(
                settings.width,
                settings.heads,
                dropout=settings.dropout,
                attention_dropout=settings.dropout,
            )
            for _ in range(settings.layers)
        )
        start_normal(self.encoder, SMALL)
        start_normal(self.layers, SMALL / settings.layers**0.5)
        self.norm = nn.LayerNorm(settings.width)
        self.classifier = Classifier(settings.width, settings, inputs)

    def forward(self, graphs: Graphs) -> Tensor:
        """[B, classes] logits."""
        degree = graphs.degree.long().clamp(max=self.max_degree)
        nodes = graphs.padded(self.encoder(graphs.x) + self.centrality(degree))
        h = torch.cat([self.virtual_node.expand(nodes.shape[0], 1, -1), nodes], dim=1)
        bias = self._bias(graphs)
        *layers, last = self.layers
        for layer in layers:
            h = layer(h, bias)
        # Only [VNode] is read.
        h = last(h, bias, answers=1)
        logits: Tensor = self.classifier(self.norm(h[:, 0]))
        return logits

    def _bias(self, graphs: Graphs) -> Tensor:
        """[B, heads, 1 + largest, 1 + largest] attention bias, -inf for padding."""
        index = F.pad(padded_distances(graphs, self.max_distance), (1, 0, 1, 0), value=self.virtual)
        bias: Tensor = self.spatial(index.int()).permute(0, 3, 1, 2)
        padding = torch.zeros_like(graphs.mask, dtype=bias.dtype).masked_fill(
            ~graphs.mask, -torch.inf
        )
        return bias + F.pad(padding, (1, 0))[:, None, None]


def padded_distances(graphs: Graphs, most: int) -> Tensor:
    """[B, largest, largest] as `distances`, with arbitrary values for padding."""
    shape, device = (len(graphs), graphs.largest, graphs.largest), graphs.x.device
    index = torch.zeros(shape, dtype=torch.uint8, device=device)
    for at, (found,) in enumerate(distances(graphs, most)):
        index[at, : len(found), : len(found)] = found
    return index


def distances(graphs: Graphs, most: int) -> list[Derived]:
    """[n, n] bytes per graph: shortest-path lengths up to `most`, and `most` + 1 for no path."""

    def compute(edges: Tensor, nodes: int) -> Derived:
        sender, receiver = edges.numpy()
        matrix = csr_array(([True] * len(sender), (sender, receiver)), shape=(nodes, nodes))
        found = torch.from_numpy(shortest_path(matrix, unweighted=True))
        return (torch.where(found.isinf(), most + 1, found.clamp(max=most)).to(torch.uint8),)

    return graphs.derived(f"distance-{most}", compute)
