"""A training step of the stacked IHGNN with written gradients, against automatic differentiation.

Three sides compute the same gradients of the same loss on the same batches of MUTAG: the stack with
its written gradients; the same stacked forward pass with the same kernels, recorded by autograd;
and the readable model (`ihgnn_cli.IHGNN`), one member after the other. The sides take turns on one
thread. The output shows medians, and ratios to the written gradients.

    python benchmarks/gradients.py [--runs N] [--json]
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from _plain import BATCH_SIZE, load_task, stack
from ihgnn_cli.models.stacked.kernels import by_block, neighbor_sum
from torch import Tensor
from torch.nn.functional import cross_entropy, pad
from torch_geometric.data import Batch as PygBatch

from ihgnn_cli.data.features import Features
from ihgnn_cli.data.pyg import to_pyg
from ihgnn_cli.models.ihgnn import IHGNN
from ihgnn_cli.models.stacked import EPS, readable_weights
from ihgnn_cli.training.loss import CrossEntropy

WRITTEN, RECORDED, READABLE = "written gradients", "autograd, same kernels", "readable model"


def recorded_logits(model: Any, batch: Any, factor: Tensor) -> Tensor:
    """The training forward pass of `StackedIHGNN`, in a form that autograd can record."""

    def tail(own: Any, x: Tensor, share: Tensor) -> Tensor:
        centered = x - torch.bmm(share, x)
        variance = torch.bmm(share, centered.square())
        y = torch.addcmul(own.shift, centered, own.scale * (variance + EPS).rsqrt()).relu()
        return torch.baddbmm(own.bias, y, own.weight)

    table = tail(model.input.tail, pad(model.input.weight, (0, 0, 0, 1)), batch.label_share)
    width = table.shape[-1]
    h = table.reshape(-1, width).index_select(0, batch.label).view(*batch.size.shape, width)
    layers = [h]
    for layer in model.layers:
        own, other = layer.folded()
        x = torch.bmm(h, own).baddbmm(neighbor_sum(h, batch), other)
        h = tail(layer.tail, x, batch.share)
        layers.append(h)
    h = model.aggregation(torch.stack(layers), None)
    with torch.no_grad():
        slot = model.readout.slots(h, layers[-1], batch)
    rows = h.reshape(-1, width).index_select(0, batch.layout.node_row)
    members, graphs = batch.truth.shape
    places = h.new_zeros(members * batch.layout.slots + 1, width).index_copy(0, slot, rows)
    hidden = model.hidden_bias
    for block, part in by_block(places, batch.layout, members):
        matrix = model.readout.weight.narrow(1, block.low * width, block.ranks * width)
        hidden = hidden + pad(torch.bmm(part, matrix), (0, 0, 0, graphs - block.graphs))
    return torch.baddbmm(model.bias, hidden.relu() * factor, model.weight)


def sides(members: int) -> dict[str, Callable[[], object]]:
    """A training step for each side, on the same graphs; checks that the gradients agree."""
    task = load_task("MUTAG")
    trained = stack(task, members)
    model: Any = trained.model
    model.train()
    graphs = [member.train[:BATCH_SIZE] for member in trained.members]
    batch = trained.store.batch(graphs)
    factor = torch.ones(*batch.truth.shape, model.dropped_units)
    gradient = CrossEntropy().gradient(batch)
    inputs = task.inputs
    plain = []
    for member, own in enumerate(graphs):
        readable = IHGNN(
            *(inputs.features, inputs.classes, inputs.max_nodes),
            **{**vars(task.settings), "dropout": 0.0},
        )
        readable.load_state_dict(readable_weights(model.state_dict(), member))
        pyg = PygBatch.from_data_list(list(to_pyg(task.dataset.select(own), Features.LABELS)))
        plain.append((readable, pyg))

    def written() -> None:
        model.train_step(batch, factor, [], gradient)

    def recorded() -> None:
        for parameter in model.parameters():
            parameter.grad = None
        logits = recorded_logits(model, batch, factor)
        logits.backward(gradient(logits.detach()))

    def readable() -> None:
        for each, pyg in plain:
            each.zero_grad()
            cross_entropy(each(pyg.x, pyg.edge_index, pyg.batch), pyg.y).backward()

    found = []
    for side in (written, recorded):
        side()
        found.append({name: each.grad.clone() for name, each in model.named_parameters()})
    readable()
    for name, expected in plain[0][0].named_parameters():
        for gradients in found:
            own = readable_weights(gradients, 0)[name]
            torch.testing.assert_close(own, expected.grad, rtol=1e-3, atol=1e-4)
    return {WRITTEN: written, RECORDED: recorded, READABLE: readable}


def measured(members: int, rounds: int) -> dict[str, float]:
    """Median seconds per step, by side."""
    seconds: dict[str, list[float]] = {}
    made = sides(members)
    for _ in range(rounds):
        for name, side in made.items():
            started = time.perf_counter()
            side()
            seconds.setdefault(name, []).append(time.perf_counter() - started)
    return {name: statistics.median(each) for name, each in seconds.items()}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Written gradients against autograd.")
    parser.add_argument("--runs", type=int, default=100, help="Steps of each side.")
    parser.add_argument("--json", action="store_true", help="One JSON document.")
    given = parser.parse_args()
    torch.set_num_threads(1)
    results = {members: measured(members, given.runs) for members in (1, 10)}
    if given.json:
        print(json.dumps(results))
        return
    for members, found in results.items():
        print(f"{members} members, batches of {BATCH_SIZE} graphs of MUTAG")
        for name, seconds in found.items():
            ratio = seconds / found[WRITTEN]
            print(f"  {name:24} {1000 * seconds:7.2f} ms a step  {ratio:5.2f} ×")


if __name__ == "__main__":
    main()
