"""IHGNN as a torch-geometric module: the readable definition of the model.

"Incorporating Heterophily into Graph Neural Networks for Graph Classification",
https://arxiv.org/abs/2203.07678. With the paper's equation numbers:

    h_N(v)  = sum of h_u^(k-1) over the neighbours u of v                           (5)
    h_v^(k) = MLP^(k)(h_v^(k-1) || h_N(v) || (h_v^(k-1) + h_N(v)))    k = 1..K      (6)
    h_v     = sum of theta_k · h_v^(k) over k = 0..K                                (7)
    h_G     = h_v1 || h_v2 || ... || 0 || ... || 0                                  (8)

h^(0) = MLP^(0)(x), and each MLP is Linear, BatchNorm, ReLU, Linear. Equation 8 sorts the nodes of a
graph by the last column of h (a continuous 1-WL label) and appends zero rows up to m, the number of
nodes of the largest graph. A classifier with one hidden layer follows.

With edge labels (not in the paper), the second block of equation 6 has a sum for each label t:

    h_v^(k) = MLP^(k)(h_v^(k-1) || h_N1(v) || ... || h_NT(v) || (h_v^(k-1) + h_N(v)))

where N_t(v) are the neighbours of v over edges with label t.

`ihgnn_cli.models.stacked` computes the same faster, for many models at once; the tests hold its
logits, losses and gradients to this module.
"""

import math
from collections import OrderedDict
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.nn import MessagePassing, global_add_pool
from torch_geometric.utils import to_dense_batch

from ihgnn_cli.errors import InputError, SettingError
from ihgnn_cli.models.checkpoint import SavedModel, load_model
from ihgnn_cli.models.settings import (
    IHGNNSettings,
    SortKey,
    SortOrder,
    ThetaInit,
    Variant,
    WeightInit,
)
from ihgnn_cli.models.stacked import readable_weights


def mlp(in_channels: int, out_channels: int) -> nn.Sequential:
    """The MLP of the layers. The first Linear has no bias: BatchNorm would subtract it again."""
    return nn.Sequential(
        OrderedDict(
            first=nn.Linear(in_channels, out_channels, bias=False),
            norm=nn.BatchNorm1d(out_channels),
            relu=nn.ReLU(),
            second=nn.Linear(out_channels, out_channels),
        )
    )


class IHGNNConv(MessagePassing):  # type: ignore[misc]
    """One layer, equations 5 and 6: [N, in_channels] and [2, E] to [N, out_channels].

    Args:
        in_channels: the width of the node embeddings.
        out_channels: the width of the new ones.
        separate: whether the MLP sees h and A·h on their own (not in the ablation w/o-Sepa).
        integrate: whether the MLP sees h + A·h (not in the ablation w/o-Integ).
        edge_labels: the number of edge labels, with a sum for each; 0: one sum for all edges.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        *,
        separate: bool = True,
        integrate: bool = True,
        edge_labels: int = 0,
    ) -> None:
        super().__init__(aggr="sum")
        self.separate, self.integrate, self.edge_labels = separate, integrate, edge_labels
        blocks = (1 + max(1, edge_labels)) * separate + integrate
        self.mlp = mlp(blocks * in_channels, out_channels)

    def forward(self, h: Tensor, edge_index: Tensor, edge_label: Tensor | None = None) -> Tensor:
        """The embeddings of the next layer; `edge_label` [E] is from 0 to edge_labels - 1."""
        sums = [self.propagate(each, x=h) for each in self._by_label(edge_index, edge_label)]
        blocks = [h, *sums] if self.separate else []
        if self.integrate:
            blocks.append(h + sum(sums))
        found: Tensor = self.mlp(torch.cat(blocks, dim=1))
        return found

    def propagate(self, edge_index: Tensor, **given: Any) -> Tensor:
        """As PyG's; without this, PyG writes a module into the temporary folder and leaves it."""
        sums: Tensor = super().propagate(edge_index, **given)
        return sums

    def _by_label(self, edge_index: Tensor, edge_label: Tensor | None) -> list[Tensor]:
        """The edges of each label, or all edges."""
        if edge_label is None or not self.edge_labels:
            return [edge_index]
        return [edge_index[:, edge_label == label] for label in range(self.edge_labels)]


def sort_concat(h: Tensor, key: Tensor, batch: Tensor | None, max_nodes: int) -> Tensor:
    """Equation 8: h [N, width], sorted by key [N] in each graph, to [B, m · width]."""
    dense, _ = to_dense_batch(h, batch)  # [B, nodes of the largest graph, width]
    keys, _ = to_dense_batch(key, batch, fill_value=torch.inf)  # zero rows come last
    order = keys.argsort(dim=1, stable=True)
    dense = dense.gather(1, order.unsqueeze(-1).expand_as(dense))
    missing = max_nodes - dense.shape[1]  # below 0, pad cuts off the nodes beyond m
    return nn.functional.pad(dense, (0, 0, 0, missing)).flatten(1)


class IHGNN(nn.Module):
    """The model: node features and edges of a batch of graphs to class logits.

    Args:
        in_channels: columns of `x`.
        num_classes: columns of the logits.
        max_nodes: m. Of larger graphs, the first m nodes in sorted order count.
        layers: K, the layers after MLP^(0).
        width: columns of the node embeddings.
        hidden: units in the hidden layer of the classifier.
        dropout: on the hidden layer of the classifier.
        variant: "full", or an ablation: "no-integration", "no-separation", "no-adaptive" (the
            layers are concatenated instead of equation 7) or "no-concat" (the nodes are summed
            instead of equation 8).
        sort_key: "aggregated" sorts by h, as in the text; "last-layer" by h^(K), as in the
            authors' code.
        sort_order: "ascending", as in the text, or "descending", as in the authors' code.
        readout_relu: a ReLU on h_G, as in the authors' code.
        theta_init: "mean" (1 / (K + 1)), "ones", or "glorot", as in the authors' code.
        weight_init: "torch" (the defaults of nn.Linear), or "glorot", as in the authors' code.
        edge_labels: the number of edge labels, if the model reads them.

    Raises:
        InputError: an argument is out of its range.
    """

    def __init__(
        self,
        in_channels: int,
        num_classes: int,
        max_nodes: int,
        *,
        layers: int = 3,
        width: int = 32,
        hidden: int = 128,
        dropout: float = 0.5,
        variant: Variant | str = Variant.FULL,
        sort_key: SortKey | str = SortKey.AGGREGATED,
        sort_order: SortOrder | str = SortOrder.ASCENDING,
        readout_relu: bool = False,
        theta_init: ThetaInit | str = ThetaInit.MEAN,
        weight_init: WeightInit | str = WeightInit.TORCH,
        edge_labels: int = 0,
    ) -> None:
        super().__init__()
        sizes = {"in_channels": in_channels, "num_classes": num_classes, "max_nodes": max_nodes}
        for name, size in sizes.items():
            if size < 1:
                raise SettingError(name, f"must be at least 1, not {size}.")
        options = (variant, sort_key, sort_order, readout_relu, theta_init, weight_init)
        self.settings = made = IHGNNSettings(layers, width, hidden, dropout, *options)  # type: ignore[arg-type]
        self.in_channels, self.num_classes = in_channels, num_classes
        self.max_nodes, self.edge_labels = max_nodes, edge_labels
        self.input = mlp(in_channels, width)
        self.convs = nn.ModuleList(
            IHGNNConv(
                width,
                width,
                separate=made.variant != Variant.NO_SEPARATION,
                integrate=made.variant != Variant.NO_INTEGRATION,
                edge_labels=edge_labels,
            )
            for _ in range(layers)
        )
        if made.variant == Variant.NO_ADAPTIVE:
            width *= layers + 1
        else:
            self.theta = nn.Parameter(torch.empty(layers + 1))
        rows = 1 if made.variant == Variant.NO_CONCAT else max_nodes
        self.classifier = nn.Sequential(
            OrderedDict(
                first=nn.Linear(rows * width, hidden),
                relu=nn.ReLU(),
                dropout=nn.Dropout(dropout),
                second=nn.Linear(hidden, num_classes),
            )
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new initial parameters."""
        for module in self.modules():
            if isinstance(module, nn.Linear | nn.BatchNorm1d):
                module.reset_parameters()
            if isinstance(module, nn.Linear) and self.settings.weight_init == WeightInit.GLOROT:
                nn.init.xavier_uniform_(module.weight)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
        if self.settings.variant == Variant.NO_ADAPTIVE:
            return
        count = len(self.theta)
        if self.settings.theta_init == ThetaInit.GLOROT:
            nn.init.uniform_(self.theta, -math.sqrt(3 / count), math.sqrt(3 / count))
        else:
            ones = self.settings.theta_init == ThetaInit.ONES
            nn.init.constant_(self.theta, 1.0 if ones else 1 / count)

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor,
        batch: Tensor | None = None,
        edge_label: Tensor | None = None,
    ) -> Tensor:
        """Logits [B, num_classes].

        Args:
            x: [N, in_channels] features of the nodes of all graphs.
            edge_index: [2, E], each undirected edge in both directions.
            batch: [N] the graph of each node, ascending; `None` for a single graph.
            edge_label: [E] from 0 to edge_labels - 1, if the model reads edge labels.

        Raises:
            InputError: the model reads edge labels, and none are given.
        """
        hidden = self.graph_embedding(x, edge_index, batch, edge_label)
        logits: Tensor = self.classifier[2:](hidden)
        return logits

    def graph_embedding(
        self,
        x: Tensor,
        edge_index: Tensor,
        batch: Tensor | None = None,
        edge_label: Tensor | None = None,
    ) -> Tensor:
        """[B, hidden] the hidden layer of the classifier; arguments as of `forward`."""
        h, last_layer = self.embed(x, edge_index, edge_label)
        hidden: Tensor = self.classifier[:2](self._readout(h, last_layer, batch))
        return hidden

    def embed(
        self, x: Tensor, edge_index: Tensor, edge_label: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """[N, ·] the aggregated node embeddings h, and those of the last layer, h^(K)."""
        if self.edge_labels and edge_label is None:
            raise InputError("The model reads edge labels. Give edge_label, one per edge.")
        layers = [self.input(x)]
        for conv in self.convs:
            layers.append(conv(layers[-1], edge_index, edge_label))
        if self.settings.variant == Variant.NO_ADAPTIVE:
            h = torch.cat(layers, dim=1)
        else:
            h = torch.einsum("k,knd->nd", self.theta, torch.stack(layers))  # equation 7
        return h, layers[-1]

    def _readout(self, h: Tensor, last_layer: Tensor, batch: Tensor | None) -> Tensor:
        """[B, m · width], or [B, width] where the nodes are summed."""
        read: Tensor
        if self.settings.variant == Variant.NO_CONCAT:
            read = global_add_pool(h, batch)
        else:
            key = (h if self.settings.sort_key == SortKey.AGGREGATED else last_layer)[:, -1]
            descending = self.settings.sort_order == SortOrder.DESCENDING
            read = sort_concat(h, -key if descending else key, batch, self.max_nodes)
        return read.relu() if self.settings.readout_relu else read

    @classmethod
    def from_checkpoint(cls, path: str | Path, member: int = 0) -> "IHGNN":
        """The trained model in a checkpoint, in evaluation mode.

        Args:
            path: a run folder, or the `ckpt.pt` in it.
            member: which of the checkpoint's models, if it holds several.

        Raises:
            InputError: the file is not a checkpoint of IHGNN, or has no such member.
        """
        path = Path(path)
        saved = load_model(path / "ckpt.pt" if path.is_dir() else path)
        made = saved.settings
        if not isinstance(made, IHGNNSettings):
            raise InputError(f"{path} is a checkpoint of {saved.spec.title}, not of IHGNN.")
        if not 0 <= member < saved.members:
            raise InputError(f"{path} has members 0 to {saved.members - 1}, and no {member}.")
        return cls.of_saved(saved, member)

    @classmethod
    def of_saved(cls, saved: SavedModel, member: int = 0) -> "IHGNN":
        """A member of saved models of IHGNN, in evaluation mode."""
        inputs = saved.card.inputs
        sizes = inputs.features, inputs.classes, inputs.max_nodes
        model = cls(*sizes, edge_labels=inputs.edge_labels, **vars(saved.settings))
        model.load_state_dict(readable_weights(saved.weights, member))
        return model.eval()
