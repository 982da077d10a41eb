"""An exported model that differs from its checkpoint is detected."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from tiny_models import (
    ALL,
    AUTHORS,
    NO_EDGES,
    PATH,
    SINGLE,
    SMALL,
    STAR,
    Eager,
    Graph,
    dataset,
    untrained,
)

from ihgnn_cli.data import load_dataset
from ihgnn_cli.data.dataset import GraphDataset
from ihgnn_cli.deploy.cases import Case, cases_of
from ihgnn_cli.deploy.folded import FoldedNodes
from ihgnn_cli.deploy.form import Layout
from ihgnn_cli.deploy.onnx_model import Answers
from ihgnn_cli.deploy.verification import compare
from ihgnn_cli.errors import IhgnnError
from ihgnn_cli.models.settings import SortKey, Variant


def all_of(data: GraphDataset) -> list[Case]:
    return [Case("all", data)]


@pytest.mark.parametrize("layout", Layout)
def test_each_case_tells_its_largest_difference(layout: Layout) -> None:
    data = dataset(*ALL)
    checkpoint = untrained(data)
    cases = cases_of(checkpoint, data)
    found = compare(checkpoint, Eager(checkpoint, layout), cases)
    assert [each.case for each in found.cases] == [case.name for case in cases]
    assert [each.graphs for each in found.cases] == [len(case.graphs) for case in cases]
    assert max(each.logits for each in found.cases) < 1e-5
    assert max(each.probabilities for each in found.cases) < 1e-6
    assert found.scale > 0


def test_another_model_is_detected() -> None:
    data = dataset(*ALL)
    with pytest.raises(IhgnnError, match=r"differs from the checkpoint: .* of 7 \(all\)"):
        compare(untrained(data), Eager(untrained(data, members=2)), all_of(data))


def test_the_cases_that_differ_are_named() -> None:
    data = dataset(*ALL)
    checkpoint = untrained(data)

    class BlindToTheFirst(Eager):
        def answers(self, data: GraphDataset, graphs: NDArray[np.int64]) -> Answers:
            labels = data.node_label.copy()
            labels[0] = 0
            return super().answers(replace(data, node_label=labels), graphs)

    cases = [Case("path", dataset(PATH)), Case("star", dataset(STAR))]
    with pytest.raises(IhgnnError, match=r"1 graph of 2 \(star\)"):
        compare(checkpoint, BlindToTheFirst(checkpoint), cases)


def test_a_model_that_answers_nothing_is_detected() -> None:
    data = dataset(*ALL)
    checkpoint = untrained(data)
    exported = Eager(checkpoint)
    exported.model.members.classifier.bias.fill_(torch.nan)
    with pytest.raises(IhgnnError, match="differs from the checkpoint"):
        compare(checkpoint, exported, all_of(data))


def test_a_model_that_depends_on_the_order_of_nodes_is_detected() -> None:
    data = dataset(*ALL)
    checkpoint = untrained(data)

    class FirstNodeOnly(Eager):
        """Takes the label of a graph's first node for that of all."""

        def answers(self, data: GraphDataset, graphs: NDArray[np.int64]) -> Answers:
            first = np.repeat(data.node_label[data.node_ptr[:-1]], np.diff(data.node_ptr))
            return super().answers(replace(data, node_label=first), graphs)

    alike = dataset(([1, 1, 1], [(0, 1)]), ([0, 0, 0, 0], [(0, 1), (1, 2)]))
    turned = replace(alike, node_label=np.array([1, 1, 1, 2, 0, 0, 0], dtype=np.int32))
    assert compare(checkpoint, FirstNodeOnly(checkpoint), [Case("alike", alike)])
    with pytest.raises(IhgnnError, match=r"of 2 \(turned\)"):
        compare(checkpoint, FirstNodeOnly(checkpoint), [Case("turned", alike, turned)])


Forward = Callable[..., tuple[torch.Tensor, torch.Tensor]]
FORWARD: Forward = FoldedNodes.forward


def sorting_by(key: Callable[[torch.Tensor], torch.Tensor]) -> Forward:
    """Nodes of an export that is right but for what it sorts by."""

    def forward(*args: Any) -> tuple[torch.Tensor, torch.Tensor]:
        h, right = FORWARD(*args)
        return h, key(right)

    return forward


# As if rounding had gone the other way in every second node.
OTHERWISE_ROUNDED = sorting_by(lambda key: key + 2e-7 * (torch.arange(len(key)) % 2))
# Without separation the nodes of a complete graph are equal in the last layer, and only there.
COMPLETE: Graph = ([0, 1, 2, 0, 1], [(i, j) for i in range(5) for j in range(i)])
TYING = replace(SMALL, variant=Variant.NO_SEPARATION, **AUTHORS)


def test_graphs_whose_order_is_chance_are_counted_and_not_held_against_the_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(FoldedNodes, "forward", OTHERWISE_ROUNDED)
    data = dataset(COMPLETE, PATH, SINGLE)
    checkpoint = untrained(data, TYING)
    found = compare(checkpoint, Eager(checkpoint), all_of(data))
    assert found.swapped == found.cases[0].swapped == 1
    assert found.cases[0].logits < 1e-5
    # Sorted by the aggregate, their order is certain.
    checkpoint = untrained(data, replace(TYING, sort_key=SortKey.AGGREGATED))
    assert compare(checkpoint, Eager(checkpoint), all_of(data)).swapped == 0


def test_where_the_order_is_chance_in_too_many_graphs_nothing_is_proved(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(FoldedNodes, "forward", OTHERWISE_ROUNDED)
    ties, clear = dataset(COMPLETE, COMPLETE), dataset(PATH, SINGLE, STAR, NO_EDGES)
    checkpoint = untrained(clear, TYING)
    exported = Eager(checkpoint)
    assert compare(checkpoint, exported, all_of(dataset(COMPLETE, PATH))).swapped == 1
    with pytest.raises(IhgnnError, match="in 2 of 3 graphs, nodes tie"):
        compare(checkpoint, exported, all_of(dataset(COMPLETE, COMPLETE, PATH)))
    with pytest.raises(IhgnnError, match=r"in 2 of 6 graphs \(all of 'ties'\)"):
        compare(checkpoint, exported, [Case("ties", ties), Case("clear", clear)])


def test_a_single_graph_whose_order_is_chance_has_others_beside_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(FoldedNodes, "forward", OTHERWISE_ROUNDED)
    alone, others = dataset(COMPLETE), (dataset(COMPLETE), dataset(PATH), dataset(STAR))
    cases = [Case("one", alone, others=others), Case("clear", dataset(PATH, SINGLE, STAR))]
    checkpoint = untrained(dataset(*ALL), TYING)
    one, _ = compare(checkpoint, Eager(checkpoint), cases).cases
    assert (one.graphs, one.swapped) == (3, 2)  # the third is certain, and the last not needed
    assert 0 < one.logits < 1e-5


BROKEN = {
    "constant": sorting_by(torch.zeros_like),
    "rounded": sorting_by(lambda key: (key * 10).round() / 10),
}


def broken_sort_is_detected(name: str, layout: Layout, sort: Forward) -> None:
    data = load_dataset(name)
    checkpoint = untrained(data, max_nodes=data.max_nodes)
    cases = cases_of(checkpoint, data)
    assert compare(checkpoint, Eager(checkpoint, layout), cases).swapped == 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FoldedNodes, "forward", sort)
        with pytest.raises(IhgnnError, match="differs from the checkpoint"):
            compare(checkpoint, Eager(checkpoint, layout), cases)


@pytest.mark.parametrize("layout", Layout)
@pytest.mark.parametrize("broken", BROKEN)
def test_a_broken_sort_is_not_taken_for_chance(broken: str, layout: Layout) -> None:
    broken_sort_is_detected("MUTAG", layout, BROKEN[broken])


@pytest.mark.parametrize("broken", BROKEN)
def test_nor_is_it_on_large_graphs(broken: str, real_data: Path) -> None:
    broken_sort_is_detected(str(real_data / "PROTEINS.zip"), Layout.SPARSE, BROKEN[broken])


def test_logits_are_measured_by_those_of_their_own_graph() -> None:
    data = dataset(*ALL)
    checkpoint = untrained(data)
    # One class far ahead in all graphs: probabilities hardly move.
    checkpoint.weights["classifier.second.bias"] += torch.tensor([30.0, 0])
    exported = Eager(checkpoint)
    exported.model.members.classifier.bias += torch.tensor([1e-3, 0])
    found = compare(checkpoint, exported, all_of(data))
    assert found.scale == pytest.approx(30, abs=2)
    assert found.cases[0].logits == pytest.approx(1e-3, rel=0.1)
    exported.model.members.classifier.bias += torch.tensor([4e-3, 0])
    with pytest.raises(IhgnnError, match="7 graphs of 7"):
        compare(checkpoint, exported, all_of(data))


def test_half_a_thousandth_of_a_probability_is_an_error_however_large_logits_are() -> None:
    data = dataset(*ALL)
    checkpoint = untrained(data)
    checkpoint.weights["classifier.second.bias"] += (
        50  # of both classes: probabilities stay as they are
    )
    exported = Eager(checkpoint)
    exported.model.members.classifier.bias += torch.tensor([2e-3, 0])
    with pytest.raises(IhgnnError, match="7 graphs of 7"):
        compare(checkpoint, exported, all_of(data))
