"""An exported model that answers otherwise than its checkpoint is told apart."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from tiny_models import ALL, AUTHORS, PATH, SINGLE, SMALL, STAR, Eager, dataset, untrained

from ihgnn_cli.data.dataset import GraphDataset
from ihgnn_cli.deploy.cases import Case, cases_of
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
    cases = cases_of(checkpoint.card, data)
    found = compare(checkpoint, Eager(checkpoint, layout), cases)
    assert [each.case for each in found.cases] == [case.name for case in cases]
    assert [each.graphs for each in found.cases] == [len(case.graphs) for case in cases]
    assert max(each.logits for each in found.cases) < 1e-5
    assert max(each.probabilities for each in found.cases) < 1e-6
    assert found.scale > 0


def test_another_model_is_told_apart() -> None:
    data = dataset(*ALL)
    with pytest.raises(IhgnnError, match=r"does not answer .* of 7 differ \(all\)"):
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
    with pytest.raises(IhgnnError, match=r"1 graph of 2 differ \(star\)"):
        compare(checkpoint, BlindToTheFirst(checkpoint), cases)


def test_a_model_that_answers_nothing_is_told_apart() -> None:
    data = dataset(*ALL)
    checkpoint = untrained(data)
    exported = Eager(checkpoint)
    exported.model.members[0].classifier.bias.fill_(torch.nan)
    with pytest.raises(IhgnnError, match="does not answer"):
        compare(checkpoint, exported, all_of(data))


def test_more_is_forgiven_to_half_precision() -> None:
    data = dataset(*ALL)
    checkpoint = untrained(data)
    exported = Eager(checkpoint)
    exported.model.members[0].classifier.bias += torch.tensor([3e-4, 0])
    with pytest.raises(IhgnnError, match="Please report this"):
        compare(checkpoint, exported, all_of(data))
    assert compare(checkpoint, exported, all_of(data), small=True).cases[0].logits > 2e-4
    exported.model.members[0].classifier.bias += torch.tensor([1e-3, 0])
    with pytest.raises(IhgnnError, match="without --small"):
        compare(checkpoint, exported, all_of(data), small=True)


def test_a_model_that_depends_on_the_order_of_nodes_is_told_apart() -> None:
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
    with pytest.raises(IhgnnError, match=r"differ \(turned\)"):
        compare(checkpoint, FirstNodeOnly(checkpoint), [Case("turned", alike, turned)])


def test_graphs_whose_order_is_chance_are_counted_and_not_held_against_the_file() -> None:
    # Without separation the nodes of a complete graph are equal in the last layer, and only there.
    complete = ([0, 1, 2, 0, 1], [(i, j) for i in range(5) for j in range(i)])
    turned = ([1, 0, 2, 1, 0], complete[1])
    settings = replace(SMALL, variant=Variant.NO_SEPARATION, **AUTHORS)
    data = dataset(complete, PATH, SINGLE)
    cases = [Case("turned", data, dataset(turned, PATH, SINGLE))]
    checkpoint = untrained(data, settings)
    found = compare(checkpoint, Eager(checkpoint), cases)
    assert found.swapped == found.cases[0].swapped == 1
    assert found.cases[0].logits < 1e-5
    # Sorted by the aggregate, their order is certain.
    checkpoint = untrained(data, replace(settings, sort_key=SortKey.AGGREGATED))
    assert compare(checkpoint, Eager(checkpoint), cases).swapped == 0
    # Where nothing else is compared, nothing is proved.
    checkpoint = untrained(data, settings)
    alone = [Case("turned", dataset(complete), dataset(turned))]
    with pytest.raises(IhgnnError, match="Nothing can be said"):
        compare(checkpoint, Eager(checkpoint), alone)
