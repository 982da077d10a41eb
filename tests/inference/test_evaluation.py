"""Evaluating models on ten paths of 1 to 10 nodes, C and N in turn, of two classes in turn.

Graphs 0 to 5 train, 6 and 7 validate, 8 and 9 test.
"""

from dataclasses import dataclass, field, replace

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from ihgnn_cli.data.batching.batches import GraphStore
from ihgnn_cli.data.build import ListedGraphs, build
from ihgnn_cli.data.dataset import GraphDataset, LabelSource, offsets
from ihgnn_cli.data.features import Features
from ihgnn_cli.data.splits import Split
from ihgnn_cli.errors import InputError
from ihgnn_cli.inference.evaluation import evaluate
from ihgnn_cli.inference.kinds import Part
from ihgnn_cli.models.card import ModelCard, describe
from ihgnn_cli.models.settings import IHGNNSettings
from ihgnn_cli.training.checkpoint import Checkpoint
from ihgnn_cli.training.checkpoint import build as build_model
from ihgnn_cli.training.classifier import TorchClassifier
from ihgnn_cli.training.config import RunConfig
from ihgnn_cli.training.stack import predict

SPLIT = Split(np.arange(6), np.array([6, 7]), np.array([8, 9]))
CPU = torch.device("cpu")


def paths(sizes: list[int], *, labelled: bool = True) -> GraphDataset:
    ptr = offsets(np.array(sizes))
    inner = np.setdiff1d(np.arange(ptr[-1] - 1), ptr[1:] - 1).astype(np.int32)
    number = np.arange(ptr[-1]) - np.repeat(ptr[:-1], sizes)
    return build(
        ListedGraphs(
            name="PATHS",
            sizes=np.array(sizes),
            source=inner,
            target=inner + 1,
            classes=(np.arange(len(sizes), dtype=np.int32) % 2, ("even", "odd")),
            node_labels=((number % 2).astype(np.int32), ("C", "N")) if labelled else None,
            node_attributes=number[:, None].astype(np.float32),
            undirected=True,
        )
    )


TEN = paths(list(range(1, 11)))


def card_of(dataset: GraphDataset = TEN, features: Features = Features.LABELS) -> ModelCard:
    return describe("ten.jsonl", dataset, features, SPLIT)


@dataclass
class Sure:
    """Says 90 % for the first class, whatever it is asked."""

    card: ModelCard
    runs_on: str = "paper"
    node_limit: int | None = 10
    members: int = 1
    asked: list[GraphDataset] = field(default_factory=list)

    def with_uncertainty(
        self, dataset: GraphDataset, graphs: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], None]:
        return self.probabilities(dataset, graphs), None

    def probabilities(
        self, dataset: GraphDataset, graphs: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        self.asked.append(dataset)
        return np.tile([0.9, 0.1], (len(graphs), 1))


# Which graphs


def test_the_model_s_own_test_graphs_are_the_default() -> None:
    found = evaluate(Sure(card_of()), TEN)
    assert found.part is Part.TEST
    assert found.graphs.tolist() == [8, 9]
    assert found.metrics.graphs == 2
    assert (found.trained_on, found.selected_on) == (0, 0)


@pytest.mark.parametrize(
    ("part", "graphs", "trained_on", "selected_on"),
    [
        (Part.TRAIN, list(range(6)), 6, 0),
        (Part.VALIDATION, [6, 7], 0, 2),
        (Part.TEST, [8, 9], 0, 0),
        (Part.ALL, list(range(10)), 6, 2),
    ],
)
def test_a_part_says_how_much_of_it_was_seen(
    part: Part, graphs: list[int], trained_on: int, selected_on: int
) -> None:
    found = evaluate(Sure(card_of()), TEN, part)
    assert found.part is part
    assert found.graphs.tolist() == graphs
    assert found.probabilities.shape == (len(graphs), 2)
    assert (found.trained_on, found.selected_on) == (trained_on, selected_on)


def test_the_same_content_under_another_name_is_the_model_s_own_data() -> None:
    found = evaluate(Sure(card_of()), replace(TEN, name="COPY"))
    assert found.part is Part.TEST


def test_other_data_is_evaluated_as_a_whole() -> None:
    found = evaluate(Sure(card_of()), paths([20, 21, 22]))
    assert found.part is Part.ALL
    assert found.graphs.tolist() == [0, 1, 2]
    assert (found.trained_on, found.selected_on) == (0, None)


@pytest.mark.parametrize("part", [Part.TRAIN, Part.VALIDATION, Part.TEST])
def test_other_data_has_no_parts(part: Part) -> None:
    other = replace(paths([20, 21]), name="OTHER")
    with pytest.raises(InputError) as caught:
        evaluate(Sure(card_of()), other, part)
    assert str(caught.value) == (
        "OTHER is not the data set the model was trained on (PATHS, or its content has "
        f"changed), so it has no {part} part. Evaluate all its graphs."
    )


def test_data_that_has_changed_is_other_data() -> None:
    changed = replace(TEN, graph_class=TEN.graph_class[::-1].copy())
    with pytest.raises(InputError, match="its content has changed"):
        evaluate(Sure(card_of()), changed, Part.TEST)


# Seen before, by content


@pytest.mark.parametrize(
    ("chosen", "seen"),
    [([8, 9], 0), ([0, 8], 1), ([7, 8], 1), ([9, 7, 5, 0, 0], 4), (list(range(9)), 8)],
)
def test_graphs_cut_out_of_the_model_s_data_are_recognised(chosen: list[int], seen: int) -> None:
    """Those of training and of validation, counted together."""
    found = evaluate(Sure(card_of()), TEN.select(chosen))
    assert found.part is Part.ALL
    assert (found.trained_on, found.selected_on) == (seen, None)


def test_graphs_in_other_words_are_recognised() -> None:
    other = replace(
        TEN.select([5, 6, 9]),
        name="COPY",
        label_values=("N", "C", "O"),
        node_label=1 - TEN.select([5, 6, 9]).node_label,
        class_values=("odd", "even"),
    )
    assert evaluate(Sure(card_of()), other).trained_on == 2


def test_graphs_of_another_class_are_recognised() -> None:
    other = TEN.select([0, 9])
    assert evaluate(Sure(card_of()), replace(other, graph_class=1 - other.graph_class)).trained_on


def test_a_labelled_copy_is_recognised_by_a_model_of_degrees() -> None:
    unlabelled = paths(list(range(1, 11)), labelled=False)
    found = evaluate(Sure(card_of(unlabelled)), TEN.select([0, 5, 9]))
    assert found.trained_on == 2


# How good


def test_metrics_are_those_of_the_chosen_graphs() -> None:
    found = evaluate(Sure(card_of()), TEN, Part.TRAIN)
    assert found.metrics.accuracy == 0.5
    assert found.metrics.confusion == ((3, 0), (3, 0))
    assert found.metrics.log_loss == pytest.approx(-(np.log(0.9) + np.log(0.1)) / 2)


def test_classes_are_compared_by_what_they_are_called() -> None:
    """Three of the class that the model calls first and the data second, one of the other."""
    other = replace(
        paths([20, 21, 22, 23]),
        class_values=("odd", "even"),
        graph_class=np.array([1, 1, 0, 1], dtype=np.int32),
    )
    found = evaluate(Sure(card_of()), other)
    assert found.metrics.accuracy == 0.75
    assert found.metrics.confusion == ((3, 0), (1, 0))


def test_data_need_not_have_all_classes() -> None:
    other = replace(paths([20]), class_values=("even",))
    found = evaluate(Sure(card_of()), other)
    assert found.metrics.accuracy == 1
    assert found.metrics.confusion == ((1, 0), (0, 0))


def test_homophily_is_by_the_data_s_own_labels() -> None:
    """All neighbours differ, whatever the model knows of the labels."""
    other = replace(paths([20, 21]), label_values=("X", "Y"))
    found = evaluate(Sure(card_of()), other, allow_unknown=True)
    assert found.beta.tolist() == [0, 0]
    assert found.bins[0].graphs == 2
    assert found.sides.heterophilic.graphs == 2
    assert found.sides.homophilic.graphs == 0


def test_a_diverged_model_is_told_as_such() -> None:
    class Diverged(Sure):
        def probabilities(
            self, dataset: GraphDataset, graphs: NDArray[np.int64]
        ) -> NDArray[np.float64]:
            return np.full((len(graphs), 2), np.nan)

    with pytest.raises(InputError, match="its training diverged"):
        evaluate(Diverged(card_of()), TEN)


# What the model does not know


def test_unknown_labels_are_counted_and_named() -> None:
    other = replace(paths([4, 5]), label_values=("C", "S"))
    model = Sure(card_of())
    found = evaluate(model, other)
    assert found.unknown_nodes == 2 + 2
    assert found.labels.values == ("S",)
    assert found.labels.many
    assert model.asked[0].node_label.tolist() == [0, -1, 0, -1, 0, -1, 0, -1, 0]
    assert found.dataset is model.asked[0]


def test_a_model_that_knows_none_of_the_labels_is_not_evaluated_unless_asked_to() -> None:
    other = replace(paths([4, 5]), label_values=(0, 1))
    with pytest.raises(
        InputError, match=r"(?s)9 of 9 nodes in 2 graphs are unknown .* --allow-unknown"
    ):
        evaluate(Sure(card_of()), other)
    assert evaluate(Sure(card_of()), other, allow_unknown=True).unknown_nodes == 9


def test_only_the_evaluated_graphs_count() -> None:
    """The test graphs, 8 and 9, are known; nearly all other nodes are not."""
    label = TEN.node_label.copy()
    label[: TEN.node_ptr[8]] = 2
    strange = replace(TEN, node_label=label, label_values=("C", "N", "S"))
    card = replace(card_of(strange), label_values=("C", "N"))
    assert evaluate(Sure(card), strange).unknown_nodes == 0
    with pytest.raises(InputError, match="hardly any label of 8 graphs, the first of them graph 0"):
        evaluate(Sure(card), strange, Part.ALL)
    found = evaluate(Sure(card), strange, Part.ALL, allow_unknown=True)
    assert found.unknown_nodes == TEN.node_ptr[8]


def test_the_model_s_own_data_has_no_unknown_labels() -> None:
    found = evaluate(Sure(card_of()), TEN, Part.ALL)
    assert found.unknown_nodes == 0


def test_a_model_of_degrees_calls_its_labels_so() -> None:
    assert card_of().label_words == "labels"
    assert card_of(paths(list(range(1, 11)), labelled=False)).label_words == "degrees"


def test_graphs_larger_than_m_are_counted() -> None:
    assert card_of().max_nodes == 10
    assert evaluate(Sure(card_of()), paths([9, 10, 11, 12])).truncated == 2
    assert evaluate(Sure(card_of()), TEN, Part.ALL).truncated == 0
    summing = Sure(card_of(), node_limit=None)
    assert evaluate(summing, paths([9, 10, 11, 12])).truncated == 0


def test_a_class_that_the_model_does_not_know_is_refused() -> None:
    other = replace(paths([20, 21, 22, 23]), class_values=("even", "prime"))
    with pytest.raises(InputError) as caught:
        evaluate(Sure(card_of()), other)
    assert str(caught.value) == (
        "PATHS has classes that the model does not know: prime, in 2 graphs. It knows even, odd: "
        "evaluate on data with these."
    )


def test_data_without_labels_does_not_fit_a_model_of_labels() -> None:
    with pytest.raises(InputError, match="PATHS has no node labels"):
        evaluate(Sure(card_of()), paths([3, 4], labelled=False))


# Degrees


def test_a_model_of_degrees_evaluates_labelled_data_by_its_degrees() -> None:
    unlabelled = paths(list(range(1, 11)), labelled=False)
    assert unlabelled.label_source is LabelSource.DEGREE
    model = Sure(card_of(unlabelled))
    found = evaluate(model, paths([4, 1]))
    assert model.card.label_values == (0, 1, 2)
    assert model.asked[0].node_label.tolist() == [1, 2, 2, 1, 0]
    assert found.unknown_nodes == 0
    assert found.beta.tolist() == [0, 0]  # by C and N; by degrees, the first would have 1/4


def test_a_degree_beyond_those_of_training_is_unknown() -> None:
    star = replace(
        TEN.select([4]),
        neighbor_ptr=np.array([0, 4, 5, 6, 7, 8]),
        neighbors=np.array([1, 2, 3, 4, 0, 0, 0, 0], dtype=np.int32),
    )
    found = evaluate(Sure(card_of(paths(list(range(1, 11)), labelled=False))), star)
    assert found.unknown_nodes == 1
    assert found.labels.values == (4,)


# Attributes


@pytest.mark.parametrize("features", [Features.ATTRIBUTES, Features.BOTH])
@pytest.mark.parametrize("columns", [0, 2])
def test_other_attributes_than_the_model_reads_are_refused(
    features: Features, columns: int
) -> None:
    other = paths([20, 21])
    attributes = np.zeros((other.num_nodes, columns), dtype=np.float32) if columns else None
    with pytest.raises(InputError) as caught:
        evaluate(Sure(card_of(features=features)), replace(other, node_attributes=attributes))
    assert str(caught.value) == (
        f"The model reads 1 node attribute, and PATHS has {columns}. Give data of the same kind."
    )


def test_attributes_that_the_model_does_not_read_are_nobody_s_business() -> None:
    assert evaluate(Sure(card_of()), replace(paths([20, 21]), node_attributes=None))


def test_a_model_of_attributes_alone_needs_no_labels() -> None:
    assert evaluate(Sure(card_of(features=Features.ATTRIBUTES)), paths([20, 21], labelled=False))


def test_a_model_of_attributes_alone_misses_no_labels() -> None:
    other = replace(paths([20, 21]), label_values=("X", "Y"))
    assert evaluate(Sure(card_of(features=Features.ATTRIBUTES)), other).unknown_nodes == 0


# The models of a checkpoint


def trained(
    dataset: GraphDataset = TEN, features: Features = Features.LABELS, members: int = 1
) -> TorchClassifier:
    """At their start, which will do here."""
    config = RunConfig(model=IHGNNSettings(layers=2, width=8, hidden=4))
    card = card_of(dataset, features)
    weights = build_model(config, card.inputs, list(range(members))).state_dict()
    return TorchClassifier(Checkpoint(config, card, weights, members, None), CPU)


@pytest.mark.parametrize("features", [each for each in Features if each != Features.AUTO])
def test_a_checkpoint_is_evaluated(features: Features) -> None:
    model = trained(features=features)
    found = evaluate(model, TEN, Part.ALL)
    assert model.runs_on == "cpu"
    np.testing.assert_allclose(found.probabilities.sum(axis=1), 1)
    store = GraphStore(TEN, features, 10, 2, CPU)
    logits = predict(model.checkpoint.model(CPU), store, np.arange(10))
    expected = torch.tensor(logits[0]).double().softmax(-1)
    np.testing.assert_allclose(found.probabilities, expected)


def test_a_part_is_answered_as_the_whole_is() -> None:
    whole = evaluate(trained(), TEN, Part.ALL).probabilities
    np.testing.assert_allclose(evaluate(trained(), TEN).probabilities, whole[[8, 9]], rtol=1e-5)


def test_several_members_answer_with_their_mean_probability() -> None:
    alone = []
    together = trained(members=3)
    for member in range(3):
        weights = {
            name: each[member : member + 1] for name, each in together.checkpoint.weights.items()
        }
        one = replace(together.checkpoint, weights=weights, members=1)
        alone.append(evaluate(TorchClassifier(one, CPU), TEN).probabilities)
    expected = np.mean(alone, axis=0)
    np.testing.assert_allclose(evaluate(together, TEN).probabilities, expected, rtol=1e-5)


def test_a_checkpoint_is_evaluated_in_its_own_words() -> None:
    """Data with other positions of the same labels has the same answers."""
    other = replace(
        TEN, label_values=("O", "N", "C"), node_label=(2 - TEN.node_label).astype(np.int32)
    )
    found = evaluate(trained(), other).probabilities
    np.testing.assert_allclose(found, evaluate(trained(), TEN, Part.ALL).probabilities, rtol=1e-5)


def test_a_checkpoint_of_degrees_is_evaluated_on_labelled_data() -> None:
    unlabelled = paths(list(range(1, 11)), labelled=False)
    model = trained(unlabelled)
    found = evaluate(model, TEN).probabilities
    expected = evaluate(model, unlabelled, Part.ALL).probabilities
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_a_checkpoint_is_evaluated_on_larger_graphs_with_unknown_labels() -> None:
    other = replace(paths([30, 31]), label_values=("C", "S"))
    found = evaluate(trained(), other)
    assert (found.truncated, found.unknown_nodes) == (2, 30)
    assert np.isfinite(found.probabilities).all()


def test_an_unknown_label_is_answered_as_if_rows_were_nodes() -> None:
    """Long paths of N and of an unknown label, where the ends are the only other colours."""
    other = replace(paths([30, 31]), label_values=("S", "N"))
    model = trained()
    found = evaluate(model, other)
    nodes = GraphStore(found.dataset, Features.LABELS, 10, None, CPU)
    logits = predict(model.checkpoint.model(CPU), nodes, np.arange(2))
    expected = torch.tensor(logits[0]).double().softmax(-1)
    np.testing.assert_allclose(found.probabilities, expected, rtol=1e-4)
