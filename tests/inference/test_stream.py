"""Streams of graphs: numbered, in batches, with each failure in its place."""

import json
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

from ihgnn_cli.data import Features, load_dataset
from ihgnn_cli.data.problems import NOT_TEXT, SAVE_AS_TEXT
from ihgnn_cli.data.splits import Split
from ihgnn_cli.inference import prediction as module
from ihgnn_cli.inference.prediction import Arrival, Origin, collected, of_lines, of_objects
from ihgnn_cli.inference.vocabulary import UnknownLabels
from ihgnn_cli.models.card import ModelCard, describe

GOOD = b'{"node_labels": [0, 1], "edges": [[0, 1]]}'


@pytest.fixture(scope="module")
def card() -> ModelCard:
    return describe("MUTAG", load_dataset("MUTAG"), Features.LABELS, Split([0], [1], [2]))


def numbers(
    arrivals: Iterable[Arrival | None], card: ModelCard, batch_size: int = 100
) -> tuple[list[list[int]], list[str]]:
    """The graphs of each batch, and what was told."""
    found = list(collected(arrivals, card, batch_size, UnknownLabels(card)))
    batches = [[each.number for each in batch.origins] for batch in found]
    return batches, [str(each) for batch in found for each in batch.failures]


def test_batches_have_as_many_graphs_as_asked_for(card: ModelCard) -> None:
    assert numbers(of_lines([GOOD] * 5, "x"), card, batch_size=2) == ([[0, 1], [2, 3], [4]], [])


def test_a_pause_closes_a_batch_and_an_empty_one_is_none(card: ModelCard) -> None:
    lines = [None, GOOD, GOOD, None, None, GOOD, None]
    assert numbers(of_lines(lines, "x"), card) == ([[0, 1], [2]], [])


def test_large_graphs_make_small_batches(card: ModelCard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_ENOUGH", 6)  # 2 nodes and 1 edge each
    assert numbers(of_lines([GOOD] * 5, "x"), card) == ([[0, 1], [2, 3], [4]], [])


def test_so_do_attributes(card: ModelCard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_ENOUGH", 20)
    numbers_of_both = {"node_attributes": [[1, 2], [3, 4]], "edge_attributes": [[5, 6, 7]]}
    line = json.dumps({**json.loads(GOOD), **numbers_of_both}).encode()  # 2 + 1 + 4 + 3
    assert numbers(of_lines([line] * 5, "x"), card) == ([[0, 1], [2, 3], [4]], [])


def test_nothing_is_read_ahead_of_the_batch(card: ModelCard) -> None:
    taken = []

    def arriving() -> Iterable[bytes]:
        for number in range(10):
            taken.append(number)
            yield GOOD

    next(collected(of_lines(arriving(), "x"), card, 3, UnknownLabels(card)))
    assert taken == [0, 1, 2]


def test_a_bad_graph_is_told_with_its_line_and_keeps_its_number(card: ModelCard) -> None:
    lines = [
        b"\xef\xbb\xbf" + GOOD,
        b"  ",
        b"{",
        b"[]",
        b'{"node_labels": [0]}',
        b"\0",
        GOOD + b"\r",
    ]
    batches, told = numbers(of_lines(lines, "set.jsonl"), card)
    assert batches == [[0, 5]]
    assert [each.split(":")[0] for each in told] == [f"set.jsonl, line {n}" for n in (3, 4, 5, 6)]
    assert told[2] == (
        'set.jsonl, line 5: no edges. Add "edges": [[0, 1], ...], or [] for a graph without.'
    )
    assert told[3].endswith(f"{NOT_TEXT} {SAVE_AS_TEXT}")


def test_a_line_beyond_measure_is_bad(card: ModelCard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_LINE", 60)
    batches, told = numbers(of_lines([GOOD, GOOD + b" " * 50 + b"x"], "x"), card)
    assert batches == [[0]]
    assert told == ["x, line 2: a line of more than 0 MiB. Split the graph."]


def test_an_id_goes_along(card: ModelCard) -> None:
    named = {**json.loads(GOOD), "id": {"made": "by me"}}
    (batch,) = collected(of_objects([named, json.loads(GOOD)]), card, 9, UnknownLabels(card))
    assert [each.id for each in batch.origins] == [{"made": "by me"}, None]


def test_other_keys_are_told_once(card: ModelCard, caplog: pytest.LogCaptureFixture) -> None:
    strange = b'{"node_labels": [0, 1], "edges": [[0, 1]], "weight": 18, "label": 1}'
    assert numbers(of_lines([GOOD, strange, strange], "x"), card) == ([[0, 1, 2]], [])
    assert caplog.messages == [
        "x, line 2: ignoring 'label', 'weight', not part of the format (docs/data.md)."
    ]


ODD = b'{"node_labels": ["x", "x"], "edges": [[0, 1]]}'


def test_unknown_labels_are_judged_for_each_graph_alone(card: ModelCard) -> None:
    batches, told = numbers(of_lines([ODD, GOOD, None, ODD, ODD], "x"), card)
    assert batches == [[1], []]
    assert len(told) == 3
    assert told[0].startswith("x, line 1: The labels of 2 of 2 nodes in 1 graph are unknown")
    allowed = UnknownLabels(card, allowed=True)
    (batch,) = collected(of_lines([ODD, GOOD], "x"), card, 9, allowed)
    assert [each.number for each in batch.origins] == [0, 1]
    assert (allowed.unknown, allowed.nodes, allowed.many) == (2, 4, True)


def test_arrays_and_tuples_do_as_well_as_lists(card: ModelCard) -> None:
    labels, edges = np.array([0, 1, 9]), np.array([[0, 1], [1, 2]])
    forms: list[dict[str, Any]] = [
        {"node_labels": [0, 1, 9], "edges": [[0, 1], [1, 2]]},
        {"node_labels": (0, 1, 9), "edges": ((0, 1), (1, 2))},
        {"node_labels": labels, "edges": edges},
        {"node_labels": list(labels), "edges": list(zip(*edges.T, strict=True))},
    ]
    (batch,) = collected(of_objects(forms), card, 9, UnknownLabels(card))
    assert batch.dataset.node_label.reshape(4, 3).tolist() == [[0, 1, -1]] * 4
    assert batch.dataset.degree.reshape(4, 3).tolist() == [[1, 2, 1]] * 4


@pytest.mark.parametrize(
    ("graph", "said"),
    [
        (5, "graph 0: int is not a graph. Give torch-geometric Data, networkx graphs"),
        ({"node_labels": [0], "edges": {0}}, "graph 0: edges is not a list"),
        ({"node_labels": [object()], "edges": []}, "graph 0: node_labels"),
    ],
)
def test_what_is_no_graph_of_python_is_told_by_its_number(
    card: ModelCard, graph: Any, said: str
) -> None:
    _, told = numbers([(Origin(0, "graph 0"), graph)], card)
    assert told[0].startswith(said)


def test_a_graph_that_is_not_valid_keeps_its_id_where_it_can_be_read(card: ModelCard) -> None:
    lines = [
        b'{"node_labels": [0], "id": "mine"}',
        b'{"node_labels": [0], "edges": [[0, 9]], "id": [1, 2]}',
        b'{"node_labels": [0], "id": 1e999}',
        b'{"node_labels": [0], "id": 1',
        b"[7]",
    ]
    (batch,) = collected(of_lines(lines, "x"), card, 100, UnknownLabels(card))
    assert [each.id for each in batch.failures] == ["mine", [1, 2], None, None, None]
    assert batch.failures[0].as_entry()["id"] == "mine"
    (batch,) = collected(
        of_objects([{"node_labels": [0], "id": "mine"}]), card, 1, UnknownLabels(card)
    )
    assert batch.failures[0].id == "mine"
