"""The contribution of each node to IHGNN's prediction for a graph."""

import torch
from torch import Tensor

from ihgnn_cli.data.batching.batch import Batch
from ihgnn_cli.models.stacked.model import StackedIHGNN
from ihgnn_cli.models.stacked.readout import SortConcat


@torch.no_grad()
def without_each_node(model: StackedIHGNN, batch: Batch) -> tuple[list[int | None], Tensor]:
    """Leave out one node's row at a time in the readout.

    The other nodes keep their sorted positions. `batch` is one graph, the same for every member,
    with one row per node.

    Returns:
        The sorted position of each node for the first member, `None` if the nodes are summed or
        the position is beyond m; and the logits [S, 1 + n, classes] with all nodes, then without
        each node.
    """
    h, last_layer = model.embed(batch)
    members, nodes, _ = h.shape
    position: list[int | None] = [None] * nodes
    if isinstance(model.readout, SortConcat):
        slots = model.readout.slots(h, last_layer, batch).view(members, nodes)
        rank = slots - slots.min(dim=1, keepdim=True).values
        places = model.readout.weight.shape[1] // h.shape[-1]
        position = [each if each < places else None for each in rank[0].tolist()]
        read = _read_sorted(model.readout, h, rank)
    else:
        summed = h.sum(1, keepdim=True)
        each_left_out = torch.cat([summed, summed - h], dim=1)
        if model.readout.relu:
            each_left_out.relu_()
        read = torch.bmm(each_left_out, model.readout.weight)
    hidden = (read + model.hidden_bias).relu_()
    return position, torch.baddbmm(model.bias, hidden, model.weight)


def _read_sorted(readout: SortConcat, h: Tensor, rank: Tensor) -> Tensor:
    """[S, 1 + n, hidden] the readout with all nodes, then without each; the bias is not added."""
    members, _, width = h.shape
    matrix = readout.weight.view(members, -1, width, readout.weight.shape[-1])
    last = matrix.shape[1] - 1
    rows = h.relu() if readout.relu else h
    added = torch.stack(
        [
            # Each node adds its row times its rank's block of the matrix to the hidden layer.
            torch.bmm(own.unsqueeze(1), of_rank[at.clamp(max=last)]).squeeze(1)
            for own, of_rank, at in zip(rows, matrix, rank, strict=True)
        ]
    )
    added *= (rank <= last).unsqueeze(-1)
    whole = added.sum(1, keepdim=True)
    return torch.cat([whole, whole - added], dim=1)
