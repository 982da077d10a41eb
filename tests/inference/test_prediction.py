"""Answers for graphs: which class, how sure, of which graph, and what to know about it."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from numpy.typing import NDArray

from ihgnn_cli.data import Features, GraphDataset, load_dataset
from ihgnn_cli.data.recode import UNKNOWN
from ihgnn_cli.data.splits import Split
from ihgnn_cli.errors import DataError, InputError
from ihgnn_cli.inference.prediction import Failure, GraphBatch, Origin, batches_of, predictions
from ihgnn_cli.inference.vocabulary import UnknownLabels
from ihgnn_cli.models.card import ModelCard, describe


@dataclass(frozen=True)
class BySize:
    """Says 1 with a probability of a tenth for each node, and refuses graphs of more than ten."""

    card: ModelCard
    runs_on: str = "paper"
    node_limit: int | None = 9
    members: int = 1

    def with_uncertainty(
        self, dataset: GraphDataset, graphs: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], None]:
        return self.probabilities(dataset, graphs), None

    def probabilities(
        self, dataset: GraphDataset, graphs: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        sizes = np.diff(dataset.node_ptr)[graphs]
        if (sizes > 10).any():
            raise InputError("A graph is too large. Cut it.")
        return np.stack([1 - sizes / 10, sizes / 10], axis=1)


@pytest.fixture(scope="module")
def mutag() -> GraphDataset:
    return load_dataset("MUTAG")


@pytest.fixture(scope="module")
def model(mutag: GraphDataset) -> BySize:
    card = describe("MUTAG", mutag, Features.LABELS, Split([0], [1], [2]))
    return BySize(replace(card, max_nodes=9))


def of_sizes(dataset: GraphDataset, *sizes: int) -> GraphDataset:
    """Graphs without edges of the sizes given."""
    ptr = np.cumsum([0, *sizes])
    return replace(
        dataset,
        name="BARE",
        node_ptr=ptr,
        neighbor_ptr=np.zeros(ptr[-1] + 1, dtype=np.int64),
        neighbors=np.zeros(0, dtype=np.int32),
        node_label=np.zeros(ptr[-1], dtype=np.int32),
        graph_class=np.full(len(sizes), UNKNOWN, dtype=np.int32),
        class_values=(),
        edge_label=None,
    )


def test_an_answer_has_the_most_probable_class_and_all_probabilities(
    model: BySize, mutag: GraphDataset
) -> None:
    batches = batches_of(model.card, of_sizes(mutag, 1, 8, 5, 10), 3, UnknownLabels(model.card))
    first, second = predictions(model, batches)
    assert [each.graph for each in (*first, *second)] == [0, 1, 2, 3]
    # Of equal ones, the first.
    assert [each.class_value for each in (*first, *second)] == [-1, 1, -1, 1]
    assert first[1].probabilities == pytest.approx({-1: 0.2, 1: 0.8})
    assert [each.larger_than_m for each in (*first, *second)] == [False, False, False, True]


def test_where_all_nodes_count_no_graph_is_too_large(model: BySize, mutag: GraphDataset) -> None:
    summing = replace(model, node_limit=None)
    batches = batches_of(model.card, of_sizes(mutag, 9, 10), 9, UnknownLabels(model.card))
    (answered,) = predictions(summing, batches)
    assert [each.larger_than_m for each in answered] == [False, False]


def test_nodes_of_unknown_labels_are_counted(model: BySize, mutag: GraphDataset) -> None:
    bare = of_sizes(mutag, 2, 3)
    strange = replace(bare, node_label=np.array([0, 1, 1, 0, 1]), label_values=(0, "plutonium"))
    ((first, second),) = predictions(
        model, batches_of(model.card, strange, 9, UnknownLabels(model.card))
    )
    assert (first.unknown_nodes, second.unknown_nodes) == (1, 2)
    blind = BySize(replace(model.card, features=Features.ATTRIBUTES))
    batch = GraphBatch(replace(bare, node_label=np.full(5, UNKNOWN)), (Origin(0, "x"),) * 2)
    assert [each.unknown_nodes for each in next(predictions(blind, [batch]))] == [0, 0]


def test_a_graph_that_the_model_refuses_does_not_affect_the_others(
    model: BySize, mutag: GraphDataset
) -> None:
    dataset = of_sizes(mutag, 2, 11, 3, 12, 4)
    batches = batches_of(model.card, dataset, 4, UnknownLabels(model.card))
    answers = [each for batch in predictions(model, batches, "return") for each in batch]
    assert [each.graph for each in answers] == [0, 1, 2, 3, 4]
    assert [str(each) for each in answers if isinstance(each, Failure)] == [
        "BARE, graph 1: A graph is too large. Cut it.",
        "BARE, graph 3: A graph is too large. Cut it.",
    ]


def test_an_error_is_raised_after_the_graphs_before_it(model: BySize, mutag: GraphDataset) -> None:
    batches = batches_of(model.card, of_sizes(mutag, 2, 11, 3), 3, UnknownLabels(model.card))
    answered = predictions(model, batches)
    assert [each.graph for each in next(answered)] == [0]
    with pytest.raises(DataError, match="BARE, graph 1: A graph is too large"):
        next(answered)


@pytest.mark.parametrize("batch_size", [1, 50, 188, 1000])
def test_batches_hold_every_graph_once_in_order(
    model: BySize, mutag: GraphDataset, batch_size: int
) -> None:
    batches = list(batches_of(model.card, mutag, batch_size, UnknownLabels(model.card)))
    assert [each.number for batch in batches for each in batch.origins] == list(range(188))
    assert max(len(batch.dataset) for batch in batches) == min(batch_size, 188)
    sizes = np.concatenate([np.diff(batch.dataset.node_ptr) for batch in batches])
    np.testing.assert_array_equal(sizes, np.diff(mutag.node_ptr))


def test_a_graph_of_unknown_labels_is_a_failure_of_its_own(
    model: BySize, mutag: GraphDataset
) -> None:
    label = np.array([0, 0, 1, 1, 1])
    strange = replace(of_sizes(mutag, 2, 3), node_label=label, label_values=(0, "plutonium"))
    labels = UnknownLabels(model.card)
    ((first, second),) = predictions(model, batches_of(model.card, strange, 9, labels), "return")
    assert first.unknown_nodes == 0
    assert "The labels of 3 of 3 nodes in 1 graph are unknown to the model" in str(second)
    assert (labels.unknown, labels.nodes) == (3, 5)
    allowed = UnknownLabels(model.card, allowed=True)
    ((_, second),) = predictions(model, batches_of(model.card, strange, 9, allowed))
    assert second.unknown_nodes == 3
