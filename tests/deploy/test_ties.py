"""No exported file depends on the order in which a runtime's TopK leaves equal values."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx import ModelProto
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun
from tiny_models import ALL, SMALL, dataset, torch_logits, untrained

from ihgnn_cli.data.access import Access
from ihgnn_cli.data.dataset import GraphDataset
from ihgnn_cli.data.sources import locate, read
from ihgnn_cli.deploy.export import as_onnx
from ihgnn_cli.deploy.inputs import padded_inputs, sparse_inputs
from ihgnn_cli.deploy.verification import reference_of
from ihgnn_cli.models.settings import IHGNNSettings, SortKey
from ihgnn_cli.models.spec import Layout
from ihgnn_cli.training.checkpoint import Checkpoint

_AT_ONCE = 100
layouts = pytest.mark.parametrize("layout", Layout)


class TopK(OpRun):
    """The operator of ONNX for sorting, with equal values in random order."""

    op_domain = ""
    drawn = np.random.default_rng(0)

    def _run(
        self, x: NDArray[Any], k: NDArray[np.int64], axis: int, largest: int, **others: int
    ) -> tuple[NDArray[Any], NDArray[np.int64]]:
        assert others == {"sorted": 1}
        # Another order of the values first, then a stable sort: ties come out in that order.
        mixed = self.drawn.permuted(
            np.broadcast_to(np.arange(x.shape[axis]), np.moveaxis(x, axis, -1).shape), axis=-1
        )
        values = np.take_along_axis(np.moveaxis(x, axis, -1), mixed, -1)
        found = np.argsort(-values if largest else values, axis=-1, kind="stable")[..., : k.item()]
        indices = np.moveaxis(np.take_along_axis(mixed, found, -1), -1, axis)
        return np.take_along_axis(x, indices, axis), indices.astype(np.int64)


def answers(proto: ModelProto, checkpoint: Checkpoint, data: GraphDataset) -> NDArray[np.float32]:
    """The logits by ONNX's reference implementation with a TopK that shuffles ties."""
    sparse = "ptr" in {each.name for each in proto.graph.input}
    inputs = sparse_inputs if sparse else padded_inputs
    session = ReferenceEvaluator(proto, new_ops=[TopK])
    with np.errstate(over="ignore"):
        found = [
            session.run(["logits"], inputs(checkpoint.card, data, graphs))[0]
            for graphs in np.array_split(np.arange(len(data)), -(-len(data) // _AT_ONCE))
        ]
    return np.concatenate(found)


def test_the_operator_of_this_test_shuffles_ties_and_sorts_the_rest() -> None:
    run = TopK.eval
    values, first = run(np.array([2.0, 1.0] * 50), np.array([100]), largest=0)
    assert values.tolist() == [1.0] * 50 + [2.0] * 50
    assert sorted(first.tolist()) == list(range(100))
    assert first.tolist() != run(np.array([2.0, 1.0] * 50), np.array([100]), largest=0)[1].tolist()


@layouts
@pytest.mark.parametrize("name", ["MUTAG", "IMDB-BINARY"])
def test_every_graph_is_answered_as_by_the_checkpoint(
    name: str, layout: Layout, real_data: Path
) -> None:
    data = read(locate(name, Access(real_data, offline=True)))
    checkpoint = untrained(data, SMALL, max_nodes=int(np.diff(data.node_ptr).max()))
    found = answers(as_onnx(reference_of(checkpoint).members, layout), checkpoint, data)
    expected = torch_logits(checkpoint, data)[0]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


@layouts
@pytest.mark.parametrize("key", SortKey)
def test_different_nodes_with_equal_keys_keep_the_order_they_are_given_in(
    key: SortKey, layout: Layout
) -> None:
    data = dataset(*ALL)
    checkpoint = untrained(data, IHGNNSettings(layers=2, width=16, hidden=8, sort_key=key))
    for name, value in checkpoint.weights.items():
        if name.endswith((".mlp.second.weight", ".mlp.second.bias")):
            value[..., -1] = 0
    found = answers(as_onnx(reference_of(checkpoint).members, layout), checkpoint, data)
    np.testing.assert_allclose(found, torch_logits(checkpoint, data)[0], rtol=1e-5, atol=1e-5)


def test_no_sort_in_a_file_has_ties_that_matter(real_data: Path) -> None:
    """The order in which edges are given changes no bit of the logits."""
    data = read(locate("MUTAG", Access(real_data, offline=True)))
    checkpoint = untrained(data, SMALL, max_nodes=28)
    session = ReferenceEvaluator(
        as_onnx(reference_of(checkpoint).members, Layout.SPARSE), new_ops=[TopK]
    )
    inputs = sparse_inputs(checkpoint.card, data, np.arange(20))
    shuffled = np.random.default_rng(0).permutation(inputs["edge_index"].shape[1])
    given = session.run(["logits"], inputs)[0]
    inputs["edge_index"] = inputs["edge_index"][:, shuffled]
    np.testing.assert_array_equal(session.run(["logits"], inputs)[0], given)
