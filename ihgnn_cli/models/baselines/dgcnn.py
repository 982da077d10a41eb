"""DGCNN, the deep graph convolutional neural network with SortPooling.

Zhang, Cui, Neumann and Chen 2018, An end-to-end deep learning architecture for graph
classification, AAAI.

    Z^0     = X
    Z^(t+1) = tanh(D^-1 (A + I) Z^t W^t),  D the degrees of A + I  (equation 1)
    Z^1:h   = [Z^1, ..., Z^h], the last with one channel

SortPooling sorts a graph's nodes by the last channel in descending order, breaks ties by the
channel before it and so on, and takes the first k; smaller graphs are padded with zeros.
The rest follows their experiments: a 1-D convolution over one node at a time (16 channels, so a
linear map per node), max-pooling of 2 nodes, a 1-D convolution over 5 (32 channels), a dense layer
and the logits, with ReLUs between.

Differences from the paper:
- k is a setting. The paper chooses it so that 60 % of the data set's graphs have more than k nodes
  (their code says fewer, and 90 % for social networks); a model here knows only the largest graph.
  The default of 30 is that of their code's module (muhanzhang/pytorch_DGCNN). k is at most the size
  of the largest graph, and at least 10 as in that code: the convolution over 5 pairs needs that
  many.
- Channels are compared to six decimals. Smaller differences may come from rounding in sums over a
  different order of nodes, and the node order must not affect the result.
- torch-geometric's SortAggregation is not used: it pads to the largest graph and does not break
  ties.
"""

from itertools import pairwise

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from ihgnn_cli.models.baselines.hops import neighbours
from ihgnn_cli.models.baselines.pieces import Classifier
from ihgnn_cli.models.entries.dgcnn import AT_ONCE, CHANNELS, KERNEL, DGCNNSettings
from ihgnn_cli.models.graphs import Graphs
from ihgnn_cli.models.settings import Inputs

_DECIMALS = 1e6


class DGCNN(nn.Module):
    """Graph convolutions, SortPooling, 1-D convolutions over the nodes in order."""

    def __init__(self, settings: DGCNNSettings, inputs: Inputs) -> None:
        super().__init__()
        widths = [inputs.features] + [settings.width] * settings.layers + [1]
        self.layers = nn.ModuleList(
            nn.Linear(before, after, bias=False) for before, after in pairwise(widths)
        )
        self.taken = settings.taken(inputs.max_nodes)
        self.of_node = nn.Linear(sum(widths[1:]), CHANNELS[0])
        self.of_nodes = nn.Conv1d(*CHANNELS, KERNEL)
        places = self.taken // AT_ONCE - KERNEL + 1
        self.classifier = Classifier(places * CHANNELS[1], settings, inputs)

    def forward(self, graphs: Graphs) -> Tensor:
        """[B, classes] logits."""
        nodes = self.of_node(sort_pool(self.channels(graphs), graphs, self.taken)).relu()
        pairs = F.max_pool1d(nodes.transpose(1, 2), AT_ONCE)
        logits: Tensor = self.classifier(self.of_nodes(pairs).relu().flatten(1))
        return logits

    def sort_keys(self, graphs: Graphs) -> tuple[Tensor, Tensor]:
        """Each node's channels, and the first that SortPooling compares."""
        z = self.channels(graphs)
        return z, z[:, -1]

    def channels(self, graphs: Graphs) -> Tensor:
        """[n, channels] Z^1:h."""
        neighbors, share = neighbours(graphs), 1 / (graphs.degree + 1).unsqueeze(1)
        z, all_ = graphs.x, []
        for layer in self.layers:
            z = layer(z)
            z = ((z + neighbors.sum(z)) * share).tanh()
            all_.append(z)
        return torch.cat(all_, dim=1)


def sort_pool(z: Tensor, graphs: Graphs, taken: int) -> Tensor:
    """[B, taken, channels] each graph's first rows of z [n, channels] in order, then zeros."""
    with torch.no_grad():
        keys = (z.flip(1) * _DECIMALS).round()
        # The rank of each row among all rows, compared channel by channel.
        place = torch.unique(keys, dim=0, return_inverse=True)[1]
        order = (graphs.graph * len(z) - place).argsort(stable=True)
    sizes = torch.tensor(graphs.sizes, device=z.device).unsqueeze(1)
    starts = torch.tensor(graphs.node_ptr[:-1], device=z.device).unsqueeze(1)
    at = torch.arange(taken, device=z.device)
    rows = order[(starts + at).clamp(max=len(z) - 1)]
    return torch.where((at < sizes).unsqueeze(2), z[rows], 0.0)
