"""PPGN: Maron, Ben-Hamu, Serviansky and Lipman 2019, Provably powerful graph networks, NeurIPS.

A graph of n nodes is a tensor X of n × n positions. Its channels are the adjacency matrix A, the
identity, and each node feature as a diagonal matrix. A block maps it to

    X' = m3(X ‖ m1(X) · m2(X) / √n)

where m1 and m2 are MLPs on the channels of each position (with a ReLU after each map), · is the
matrix product in each channel, ‖ concatenates channels, and m3 is one linear map. The readout of a
block is the maximum over the diagonal and the maximum over all other positions, concatenated.
Either a linear map of each block's readout gives logits, which are summed (the paper's second
suffix), or the last block's readout is fed to a classifier (its first).

Such a network is exactly as powerful as the folklore 2-WL test (and thus as 3-WL).

Differences from the paper: the identity is a channel, since nothing else distinguishes nodes of
unknown label from pairs. A is not normalized by degrees as in the authors' code; products are
divided by √n instead, which keeps large graphs in scale and loses no information (no layer
normalizes). The default width is 16 instead of the authors' 400, with which an epoch of MUTAG takes
half a minute on one core; the grid has their widths.
"""

from itertools import pairwise

import torch
from torch import Tensor, nn

from ihgnn_cli.models.baselines.pieces import Classifier
from ihgnn_cli.models.entries.ppgn import PPGNSettings, Suffix
from ihgnn_cli.models.graphs import Graphs
from ihgnn_cli.models.settings import Inputs

# Pairs of nodes, with padding, that go through the blocks together: few enough for the cache and
# for graphs of similar size. A step of MUTAG takes 0.7 times as long as in one part.
_PAIRS_AT_ONCE = 2**13


class PPGN(nn.Module):
    """Blocks of matrix products, and their readout."""

    def __init__(self, settings: PPGNSettings, inputs: Inputs) -> None:
        super().__init__()
        widths = [inputs.features + 2] + [settings.width] * settings.layers
        self.blocks = nn.ModuleList(
            Block(before, after, settings.depth) for before, after in pairwise(widths)
        )
        read = 2 * settings.width
        each = settings.suffix == Suffix.EACH
        # One for each of the blocks that are read out.
        self.readers = nn.ModuleList(
            [_score(read, settings, inputs) for _ in self.blocks]
            if each
            else [Classifier(read, settings, inputs)]
        )

    def forward(self, graphs: Graphs) -> Tensor:
        """[B, classes] logits."""
        return torch.cat([self._logits(part) for _, part in graphs.parts(_PAIRS_AT_ONCE)])

    def _logits(self, graphs: Graphs) -> Tensor:
        x = input_tensor(graphs)
        mask = graphs.mask
        sizes = mask.sum(1, keepdim=True)
        # Values at padded positions are arbitrary. They could reach others in two places only: as
        # terms of a product, which this mask removes, and in the readout, which has its own mask.
        terms = (mask / sizes.sqrt()).unsqueeze(1)
        real = mask.unsqueeze(1) & mask.unsqueeze(2)
        node = torch.eye(graphs.largest, dtype=torch.bool, device=x.device)
        # Added before the readout, so it costs the backward pass nothing.
        no_node = torch.zeros_like(mask, dtype=x.dtype).masked_fill_(~mask, -torch.inf)
        no_pair = torch.zeros_like(x[0]).masked_fill_(~real | node, -torch.inf)
        alone = sizes.t() == 1
        first = len(self.blocks) - len(self.readers)
        logits = x.new_zeros(())
        for at, block in enumerate(self.blocks):
            x = block(x, terms)
            if at >= first:
                logits = logits + self.readers[at - first](_read(x, no_node, no_pair, alone))
        return logits


class Block(nn.Module):
    """X' = m3(X ‖ m1(X) · m2(X) / √n), channels first: [channels, B, n, n].

    A map of channels is one matrix product for all positions of all graphs. The maps of X (the
    first of m1 and m2, and the part of m3 that sees X) are computed together, and so are the other
    maps of m1 and m2.
    """

    def __init__(self, before: int, width: int, depth: int) -> None:
        super().__init__()
        self.of_x = nn.Parameter(torch.empty(3 * width, before))
        self.of_x_bias = nn.Parameter(torch.zeros(3 * width, 1))
        self.deeper = nn.ParameterList(torch.empty(2, width, width) for _ in range(depth - 1))
        self.deeper_bias = nn.ParameterList(torch.zeros(2, width, 1) for _ in range(depth - 1))
        self.of_product = nn.Parameter(torch.empty(width, width))
        # Glorot initialization and zero biases, as in the authors' code.
        squares = [each for pair in self.deeper for each in pair.data]
        for each in (*self.of_x.data[: 2 * width].chunk(2), *squares):
            nn.init.xavier_uniform_(each)
        both = nn.init.xavier_uniform_(torch.empty(width, before + width))
        self.of_x.data[2 * width :], self.of_product.data[:] = both[:, :before], both[:, before:]

    def forward(self, x: Tensor, terms: Tensor) -> Tensor:
        """[width, B, n, n] from x [before, B, n, n] and terms [B, 1, n]: 1/√n, 0 for padding."""
        width = len(self.of_product)
        mapped = (self.of_x @ x.flatten(1)).add_(self.of_x_bias)
        both, direct = torch.split(mapped, [2 * width, width])
        both = both.relu().view(2, width, -1)
        for weight, bias in zip(self.deeper, self.deeper_bias, strict=True):
            both = torch.bmm(weight, both).add_(bias).relu_()
        left, right = both.view(2, width, *x.shape[1:])
        product = (left * terms) @ right
        return torch.addmm(direct, self.of_product, product.flatten(1)).view_as(product)


def input_tensor(graphs: Graphs) -> Tensor:
    """[2 + features, B, n, n] A, I and the features on the diagonal, 0 beyond a graph's nodes."""
    adjacency = graphs.adjacency
    nodes = graphs.padded(torch.cat([torch.ones_like(graphs.x[:, :1]), graphs.x], dim=1))
    identity = torch.eye(graphs.largest, dtype=nodes.dtype, device=nodes.device)
    return torch.cat([adjacency.unsqueeze(0), nodes.permute(2, 0, 1).unsqueeze(3) * identity])


def _score(read: int, settings: PPGNSettings, inputs: Inputs) -> nn.Sequential:
    return nn.Sequential(nn.Dropout(settings.dropout), nn.Linear(read, inputs.classes))


def _read(x: Tensor, no_node: Tensor, no_pair: Tensor, alone: Tensor) -> Tensor:
    """[B, 2 width] the maximum over nodes, and over pairs of nodes (0 if there are none).

    Args:
        x: [width, B, n, n].
        no_node: [B, n] 0 for nodes, -∞ for padding.
        no_pair: [B, n, n] 0 for pairs of two nodes, -∞ elsewhere.
        alone: [1, B] whether a graph has only one node.
    """
    nodes = (x.diagonal(dim1=2, dim2=3) + no_node).max(-1).values
    others = (x + no_pair).flatten(2).max(-1).values
    return torch.cat([nodes, others.masked_fill(alone, 0)]).t()
