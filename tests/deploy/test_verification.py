"""An exported file that differs from its model is detected; near ties are counted."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from tiny_models import ALL, AUTHORS, PATH, SINGLE, SMALL, STAR, Eager, Graph, dataset, untrained

from ihgnn_cli.data import load_dataset
from ihgnn_cli.data.dataset import GraphDataset
from ihgnn_cli.deploy.onnx_model import Answers
from ihgnn_cli.deploy.verification import Parity, reference_of, verify
from ihgnn_cli.errors import IhgnnError, InputError
from ihgnn_cli.models.ihgnn_traced import TracedIHGNN
from ihgnn_cli.models.settings import SortKey, Variant
from ihgnn_cli.models.spec import Layout
from ihgnn_cli.models.traced import TracedGraphs
from ihgnn_cli.training.checkpoint import Checkpoint

DATA = dataset(*ALL)


class Stand(Eager):
    """The module that is exported, in place of its file."""

    nodes: int | None = None

    def __init__(self, checkpoint: Checkpoint, layout: Layout = Layout.PADDED) -> None:
        super().__init__(checkpoint, layout)
        self.layout = layout

    def run(self, inputs: dict[str, Any]) -> Answers:
        with torch.no_grad():
            found = self.model(**{name: torch.tensor(each) for name, each in inputs.items()})
        return Answers(**{name: each.numpy() for name, each in found.items()})


def compared(
    checkpoint: Checkpoint, stand: Stand | None = None, data: GraphDataset = DATA
) -> Parity:
    return verify(reference_of(checkpoint), stand or Stand(checkpoint), data)


@pytest.mark.parametrize("layout", Layout)
@pytest.mark.parametrize("labelled", [True, False])
def test_each_case_has_its_largest_difference(layout: Layout, labelled: bool) -> None:
    data = dataset(*ALL, labelled=labelled)
    checkpoint = untrained(data)
    found = compared(checkpoint, Stand(checkpoint, layout), data)
    counts = {each.case: each.graphs for each in found.cases}
    assert counts == {
        "small to large": 7,
        "without edges": 2,
        "larger than m": 1,
        "nodes permuted": 7,
        ("unknown labels" if labelled else "degree above all seen"): 7 if labelled else 1,
    }
    assert max(each.logits for each in found.cases) < 1e-5
    assert found.scale > 0
    assert found.near_ties == 0


def test_the_cases_that_differ_are_named() -> None:
    checkpoint = untrained(DATA)

    class BlindToLargeGraphs(Stand):
        def answers(self, data: GraphDataset, graphs: NDArray[np.int64]) -> Answers:
            large = np.repeat(np.diff(data.node_ptr) > 6, np.diff(data.node_ptr))
            label = np.where(large, 0, data.node_label).astype(np.int32)
            return super().answers(replace(data, node_label=label), graphs)

    with pytest.raises(
        IhgnnError, match=r"differs from the trained one: \d+ graphs of \d+ \(small"
    ):
        compared(checkpoint, BlindToLargeGraphs(checkpoint))
    with pytest.raises(IhgnnError, match="differs from the trained one"):
        compared(checkpoint, Stand(untrained(DATA, members=2)))


def test_a_model_that_depends_on_the_order_of_nodes_is_detected() -> None:
    checkpoint = untrained(dataset(PATH, STAR))

    class FirstNodeOnly(Stand):
        """Takes the label of a graph's first node for that of all."""

        def answers(self, data: GraphDataset, graphs: NDArray[np.int64]) -> Answers:
            first = np.repeat(data.node_label[data.node_ptr[:-1]], np.diff(data.node_ptr))
            return super().answers(replace(data, node_label=first), graphs)

    with pytest.raises(IhgnnError, match="nodes permuted"):
        compared(checkpoint, FirstNodeOnly(checkpoint))


def test_answers_that_are_no_numbers_are_detected() -> None:
    checkpoint = untrained(DATA)
    stand = Stand(checkpoint)
    stand.model.traced.classifier.bias.fill_(torch.nan)
    with pytest.raises(IhgnnError, match="no answer for 2 graphs without nodes"):
        compared(checkpoint, stand)


@pytest.mark.parametrize(("error", "refused"), [(5e-5, False), (5e-4, True)])
def test_differences_are_measured_by_the_largest_logit_of_the_graph(
    error: float, refused: bool
) -> None:
    checkpoint = untrained(DATA)
    # One class far ahead in all graphs: probabilities hardly move.
    checkpoint.weights["classifier.second.bias"] += torch.tensor([30.0, 0])
    stand = Stand(checkpoint)
    stand.model.traced.classifier.bias += torch.tensor([30 * error, 0])
    if refused:
        with pytest.raises(IhgnnError, match="in logits"):
            compared(checkpoint, stand)
    else:
        assert compared(checkpoint, stand).cases[0].logits == pytest.approx(30 * error, rel=0.1)


First = Callable[..., torch.Tensor]
FIRST: First = TracedGraphs.first_nodes


def sorting_by(key: Callable[[torch.Tensor], torch.Tensor]) -> First:
    """An export that is right but for what it sorts by."""
    return lambda graphs, h, right, most: FIRST(graphs, h, key(right), most)


# Without separation the nodes of a complete graph are equal in the last layer, and only there.
COMPLETE: Graph = ([0, 1, 2, 0, 1], [(i, j) for i in range(5) for j in range(i)])
TYING = replace(SMALL, variant=Variant.NO_SEPARATION, **AUTHORS)


def test_near_ties_are_counted_and_not_held_against_the_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # As if rounding had gone the other way in every second node.
    other = sorting_by(lambda key: key + 2e-7 * (torch.arange(key.shape[-1]) % 2))
    monkeypatch.setattr(TracedGraphs, "first_nodes", other)
    data = dataset(COMPLETE, PATH, SINGLE)
    checkpoint = untrained(data, TYING)
    first = compared(checkpoint, None, data).cases[0]
    assert (first.case, first.graphs, first.near_ties) == ("small to large", 3, 1)
    assert first.logits < 1e-5
    # Sorted by the aggregate, their order is certain.
    certain = untrained(data, replace(TYING, sort_key=SortKey.AGGREGATED))
    assert compared(certain, None, data).cases[0].near_ties == 0
    gaps = reference_of(checkpoint).key_gaps(data)
    assert gaps[0] < 5e-6 < gaps[1]
    assert gaps[2] == np.inf  # a single node


BROKEN = {
    "constant": sorting_by(torch.zeros_like),
    "rounded": sorting_by(lambda key: (key * 10).round() / 10),
}


@pytest.mark.parametrize("layout", Layout)
@pytest.mark.parametrize("broken", BROKEN)
def test_a_broken_sort_is_not_taken_for_near_ties(
    broken: str, layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = load_dataset("MUTAG")
    checkpoint = untrained(data, max_nodes=data.max_nodes)
    assert compared(checkpoint, Stand(checkpoint, layout), data).near_ties == 0
    monkeypatch.setattr(TracedGraphs, "first_nodes", BROKEN[broken])
    with pytest.raises(IhgnnError, match="differs from the trained one"):
        compared(checkpoint, Stand(checkpoint, layout), data)


@pytest.mark.long
def test_nor_is_it_on_large_graphs(real_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = load_dataset(str(real_data / "PROTEINS.zip"))
    checkpoint = untrained(data, max_nodes=data.max_nodes)
    monkeypatch.setattr(TracedGraphs, "first_nodes", BROKEN["rounded"])
    with pytest.raises(IhgnnError, match="differs from the trained one"):
        compared(checkpoint, Stand(checkpoint, Layout.SPARSE), data)


def test_where_rounding_decides_everything_nothing_is_verified() -> None:
    checkpoint = untrained(DATA)
    reference, stand = reference_of(checkpoint), Stand(checkpoint)
    stand.model.traced.classifier.bias += 1
    everywhere = SimpleNamespace(
        card=reference.card, outputs=reference.outputs, key_gaps=lambda data: np.zeros(len(data))
    )
    with pytest.raises(IhgnnError, match=r"cannot be verified: in all \d+ graphs"):
        verify(everywhere, stand, DATA)


def test_graphs_that_are_all_too_large_are_refused() -> None:
    data = dataset(PATH, STAR)
    stand = Stand(untrained(data))
    stand.nodes = 3
    with pytest.raises(InputError, match="All graphs of tiny have more than 3 nodes"):
        compared(untrained(data), stand, data)


def test_the_traced_module_is_that_of_the_members() -> None:
    reference = reference_of(untrained(DATA, members=2))
    assert isinstance(Stand(untrained(DATA, members=2)).model.traced, TracedIHGNN)
    assert len(reference.members.modules) == 2
