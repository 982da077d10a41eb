"""GNNML: Balcilar et al. 2021, Breaking the limits of message passing graph neural networks, ICML.

This is GNNML3. With L = I - D^(-1/2) A D^(-1/2) = U diag(λ) Uᵀ, a graph has the supports

    C'_s = M ∘ U diag(exp(-b (λ - f_s)²)) Uᵀ   for `bands` frequencies f_s from min λ to max λ
    C'_S = I

where ∘ is the entrywise product and M is 1 where two nodes are at most `hops` apart. Each layer
computes its own supports from these, entry by entry (c' are the S supports of one entry, ‖
concatenates, and the maps have no biases),

    c = ReLU(W₄ (ReLU(W₁ c') ‖ tanh(W₂ c') ∘ tanh(W₃ c')))

and then

    H' = ReLU(Σ_s C_s H W_s + b) ‖ tanh(H V₁ + a₁) ∘ tanh(H V₂ + a₂)

The authors' scripts (balcilar/gnn-matlang) build a different network around these layers for each
data set, and none learns supports: all use C = C' (`learn_supports` off). `design` selects one:

    mutag     batch normalization after each layer, mean over nodes, classifier with a hidden layer
    proteins  no product part in H', mean ‖ maximum over nodes, linear classifier
    enzymes   no product part in H', sum ‖ maximum over nodes with batch normalization, linear
              classifier

Dropout applies to the input of each layer and to the classifier's hidden layer.

GNNML1 (`kind`), which is as powerful as 1-WL, needs no spectrum and always has all three parts:

    H' = ReLU(H W + b) ‖ ReLU(A H W' + b') ‖ ReLU(H V₁ + a₁) ∘ ReLU(H V₂ + a₂)

GNNML3 is more powerful than 1-WL and at most as powerful as 3-WL. Supports are functions of L, so
neither the signs of eigenvectors nor the basis of a multiple eigenvalue's eigenspace matters.

Differences from the authors' code: degrees are not node features, since the IHGNN paper uses node
labels only; `hops` counts hops (that code squares a matrix for each). The decomposition is dense
and done once per graph (DD's largest graph, with 5,748 nodes, takes a minute and about 2 GB); what
is kept is as sparse as M.
"""

from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from numpy.typing import NDArray
from torch import Tensor, nn

from ihgnn_cli.models.baselines.pieces import Classifier, Norm
from ihgnn_cli.models.entries.gnnml import Design, GNNMLSettings, Kind
from ihgnn_cli.models.graphs import Derived, Graphs
from ihgnn_cli.models.settings import Inputs

# Eigenvector entries looked up at a time when supports are computed: 128 MB.
_AT_ONCE = 2**24


@dataclass(frozen=True, eq=False)
class Supports:
    """The S supports of a batch's graphs, for the E pairs of nodes where M is 1."""

    sender: Tensor
    """[E], in ascending order of receiver."""
    received: Tensor
    """[n] number of pairs of each receiver."""
    values: Tensor
    """[E, S]."""

    @cached_property
    def bags(self) -> tuple[Tensor, Tensor]:
        """One bag per node, with all supports of all pairs that it receives: rows and bounds."""
        supports = self.values.shape[1]
        each = torch.arange(supports, device=self.sender.device)
        ptr = F.pad(self.received.cumsum(0), (1, 0))
        return (self.sender.unsqueeze(1) * supports + each).flatten(), ptr * supports

    def summed(self, rows: Tensor, values: Tensor) -> Tensor:
        """[n, width] Σ_s C_s Y_s, from the rows Y [n, S, width] and the values [E, S] of the C."""
        index, ptr = self.bags
        found: Tensor = torch.embedding_bag(
            rows.flatten(0, 1),
            index,
            ptr,
            mode=0,  # the sum
            per_sample_weights=values.flatten(),
            include_last_offset=True,
        )[0]
        return found


class GNNML(nn.Module):
    """Layers on supports, a readout over the nodes, and a classifier."""

    def __init__(self, settings: GNNMLSettings, inputs: Inputs) -> None:
        super().__init__()
        self.settings = settings
        made, before = [], inputs.features
        for _ in range(settings.layers):
            layer: ML1Layer | ML3Layer
            if settings.kind == Kind.GNNML1:
                layer = ML1Layer(before, settings.width)
            else:
                supports = settings.bands + 1
                layer = ML3Layer(
                    before,
                    settings.width,
                    supports,
                    learn=settings.learn_supports,
                    product=settings.design == Design.MUTAG,
                )
            made.append(layer)
            before = layer.after
        self.layers = nn.ModuleList(made)
        self.norms, self.read_norm = nn.ModuleList(), None
        self.classifier: nn.Module
        if settings.design == Design.MUTAG:
            self.norms = nn.ModuleList(Norm(before) for _ in made)
            self.classifier = Classifier(before, settings, inputs)
        else:
            if settings.design == Design.ENZYMES:
                self.read_norm = Norm(2 * before)
            self.classifier = nn.Linear(2 * before, inputs.classes)

    def forward(self, graphs: Graphs) -> Tensor:
        """[B, classes] logits."""
        chosen = self.settings
        supports: Supports
        if chosen.kind == Kind.GNNML1:
            supports = adjacency(graphs)
        else:
            supports = spectral(graphs, chosen.bands, chosen.sharpness, chosen.hops)
        h = graphs.x
        for at, layer in enumerate(self.layers):
            h = layer(F.dropout(h, chosen.dropout, self.training), supports)
            if self.norms:
                h = self.norms[at](h)
        logits: Tensor = self.classifier(self._read(h, graphs))
        return logits

    def _read(self, h: Tensor, graphs: Graphs) -> Tensor:
        """[B, width or 2 width] the classifier's input, from nodes h [n, width]."""
        enzymes = self.settings.design == Design.ENZYMES
        read = graphs.sum_nodes(h) if enzymes else graphs.mean_nodes(h)
        if self.settings.design == Design.MUTAG:
            return read
        read = torch.cat([read, graphs.max_nodes(h)], dim=1)
        return read if self.read_norm is None else self.read_norm(read)


class ML3Layer(nn.Module):
    """A layer of GNNML3, with the product part or without."""

    def __init__(
        self, before: int, width: int, supports: int, *, learn: bool, product: bool
    ) -> None:
        super().__init__()
        self.after = (1 + product) * width
        self.supports = SupportMLP(supports) if learn else None
        self.conv = nn.Linear(before, supports * width, bias=False)
        for each in self.conv.weight.chunk(supports):  # as in the authors' code
            nn.init.xavier_uniform_(each)
        self.bias = nn.Parameter(torch.zeros(width))
        self.left = nn.Linear(before, width) if product else None
        self.right = nn.Linear(before, width) if product else None

    def forward(self, h: Tensor, supports: Supports) -> Tensor:
        """[n, width or 2 width] from h [n, before]."""
        values = supports.values if self.supports is None else self.supports(supports.values)
        rows = self.conv(h).view(h.shape[0], values.shape[1], -1)
        summed = (supports.summed(rows, values) + self.bias).relu()
        if self.left is None or self.right is None:
            return summed
        return torch.cat([summed, self.left(h).tanh() * self.right(h).tanh()], dim=1)


class SupportMLP(nn.Module):
    """A layer's own supports, from each entry's c' [E, S]."""

    def __init__(self, supports: int) -> None:
        super().__init__()
        self.direct = nn.Linear(supports, 2 * supports, bias=False)
        self.left = nn.Linear(supports, 2 * supports, bias=False)
        self.right = nn.Linear(supports, 2 * supports, bias=False)
        self.out = nn.Linear(4 * supports, supports, bias=False)

    def forward(self, values: Tensor) -> Tensor:
        """[E, S]."""
        product = self.left(values).tanh() * self.right(values).tanh()
        made: Tensor = self.out(torch.cat([self.direct(values).relu(), product], dim=1)).relu()
        return made


class ML1Layer(nn.Module):
    """A layer of GNNML1."""

    def __init__(self, before: int, width: int) -> None:
        super().__init__()
        self.after = 3 * width
        self.own = nn.Linear(before, width)
        self.conv = nn.Linear(before, width, bias=False)
        self.bias = nn.Parameter(torch.zeros(width))
        self.left = nn.Linear(before, width)
        self.right = nn.Linear(before, width)

    def forward(self, h: Tensor, supports: Supports) -> Tensor:
        """[n, 3 width] from h [n, before]."""
        summed = supports.summed(self.conv(h).unsqueeze(1), supports.values) + self.bias
        product = self.left(h).relu() * self.right(h).relu()
        return torch.cat([self.own(h).relu(), summed.relu(), product], dim=1)


def adjacency(graphs: Graphs) -> Supports:
    """A as the only support."""
    values = graphs.x.new_ones(graphs.edge_index.shape[1], 1)
    return Supports(graphs.edge_index[0], graphs.degree.long(), values)


def spectral(graphs: Graphs, bands: int, sharpness: float, hops: int) -> Supports:
    """The supports C' from the spectrum."""
    found = graphs.derived(
        f"gnnml-{bands}-{sharpness}-{hops}",
        partial(graph_supports, bands=bands, sharpness=sharpness, hops=hops),
    )
    senders, received, values = zip(*found, strict=True)
    sender = torch.cat([each + graphs.node_ptr[at] for at, each in enumerate(senders)])
    return Supports(sender, torch.cat(received), torch.cat(values))


def graph_supports(
    edges: Tensor, nodes: int, *, bands: int, sharpness: float, hops: int
) -> Derived:
    """One graph's senders [E], number of senders per receiver, and values [E, S]."""
    adjacent = np.zeros((nodes, nodes))
    adjacent[edges[1].numpy(), edges[0].numpy()] = 1
    degree = adjacent.sum(1)
    root = np.divide(1, np.sqrt(degree), out=np.zeros(nodes), where=degree > 0)
    within = _within(adjacent, hops)
    eigenvalues, vectors = np.linalg.eigh(np.eye(nodes) - root[:, None] * adjacent * root[None, :])
    centers = np.linspace(eigenvalues.min(), eigenvalues.max(), bands)
    passed = np.exp(-sharpness * (eigenvalues[:, None] - centers) ** 2)
    receiver, sender = np.nonzero(within)
    values = np.empty((len(receiver), bands + 1), dtype=np.float32)
    step = max(1, _AT_ONCE // nodes)
    for start in range(0, len(receiver), step):
        part = slice(start, start + step)
        values[part, :bands] = (vectors[receiver[part]] * vectors[sender[part]]) @ passed
    values[:, bands] = receiver == sender
    return (
        torch.from_numpy(sender),
        torch.from_numpy(np.bincount(receiver, minlength=nodes)),
        torch.from_numpy(values),
    )


def _within(adjacent: NDArray[np.float64], hops: int) -> NDArray[np.bool_]:
    """[n, n] whether two nodes are at most `hops` apart."""
    reached = step = adjacent + np.eye(len(adjacent)) > 0
    for _ in range(hops - 1):
        reached = reached.astype(np.float32) @ step.astype(np.float32) > 0
    return reached
