"""The graphs that an exported model is tried on."""

from dataclasses import replace

import numpy as np
import pytest
from tiny_models import (
    AUTHORS,
    LARGER_THAN_M,
    NO_EDGES,
    PATH,
    SINGLE,
    SMALL,
    STAR,
    TRIANGLE,
    M,
    dataset,
    torch_logits,
    untrained,
)

from ihgnn_cli.data.dataset import GraphDataset
from ihgnn_cli.data.features import Features
from ihgnn_cli.deploy.cases import Case, cases_of
from ihgnn_cli.errors import InputError
from ihgnn_cli.models.settings import Variant


def by_name(cases: list[Case]) -> dict[str, Case]:
    return {case.name: case for case in cases}


def sizes(graphs: GraphDataset) -> list[int]:
    return np.diff(graphs.node_ptr).tolist()


def edges(graphs: GraphDataset) -> set[tuple[int, int]]:
    return {(int(one), int(other)) for one, other in graphs.edge_index().T if one < other}


def test_the_cases_hold_the_extremes_and_many_sizes() -> None:
    data = dataset(*[PATH, STAR] * 40, SINGLE, TRIANGLE)
    cases = by_name(cases_of(untrained(data), data))
    assert list(cases) == [
        "smallest graph",
        "largest graph",
        "graph without edges",
        "mixed sizes",
        "identical graphs",
        "graph larger than m",
        "unknown labels",
        "nodes permuted",
        "closest sort keys",
    ]
    assert sizes(cases["smallest graph"].graphs) == [1]
    assert sizes(cases["largest graph"].graphs) == [5]
    mixed = sizes(cases["mixed sizes"].graphs)
    assert len(mixed) == 32
    assert (mixed[0], mixed[-1]) == (1, 5)


def test_a_graph_without_edges_is_a_real_one_or_made_of_one() -> None:
    data = dataset(PATH, NO_EDGES, TRIANGLE)
    real = by_name(cases_of(untrained(data), data))["graph without edges"].graphs
    assert (sizes(real), real.num_edges, real.node_label.tolist()) == ([3], 0, [0, 1, 1])
    data = dataset(PATH, STAR, TRIANGLE)
    made = by_name(cases_of(untrained(data), data))["graph without edges"].graphs
    assert (sizes(made), made.num_edges, made.node_label.tolist()) == ([3], 0, [0, 1, 2])


def test_a_graph_larger_than_m_is_the_largest_beside_itself_up_to_one_node_more() -> None:
    data = dataset(TRIANGLE, STAR, SINGLE)
    made = by_name(cases_of(untrained(data, max_nodes=6), data))["graph larger than m"].graphs
    assert sizes(made) == [7]
    assert made.node_label.tolist() == [1, 0, 0, 0, 2, 1, 0]
    assert edges(made) == {(0, 1), (0, 2), (0, 3), (0, 4), (5, 6)}


def test_permuted_graphs_are_the_same_graphs() -> None:
    data = dataset(PATH, STAR, TRIANGLE, LARGER_THAN_M)
    checkpoint = untrained(data, features=Features.BOTH)
    case = by_name(cases_of(checkpoint, data))["nodes permuted"]
    assert case.exported_input is not case.graphs
    assert sizes(case.exported_input) == sizes(case.graphs)
    assert case.exported_input.node_label.tolist() != case.graphs.node_label.tolist()
    np.testing.assert_allclose(
        torch_logits(checkpoint, case.exported_input),
        torch_logits(checkpoint, case.graphs),
        atol=1e-5,
    )


def test_a_third_of_the_labels_is_unknown_where_labels_are_read() -> None:
    data = dataset(PATH, STAR, TRIANGLE)
    unknown = by_name(cases_of(untrained(data), data))["unknown labels"].graphs
    assert np.flatnonzero(unknown.node_label == -1).tolist() == [0, 3, 6, 9, 12]
    attributes = untrained(data, features=Features.ATTRIBUTES)
    assert "unknown labels" not in by_name(cases_of(attributes, data))


def test_models_of_degrees_meet_one_that_is_above_all_they_know() -> None:
    data = dataset(PATH, STAR, TRIANGLE, labelled=False)
    cases = by_name(cases_of(untrained(data), data))
    assert "unknown labels" not in cases
    above = cases["degree above all seen"].graphs
    assert above.degree.tolist()[0] == 5  # up to 4 were seen
    assert above.node_label[0] == -1
    # Degrees follow the edges also where these are taken away.
    assert (cases["graph without edges"].graphs.node_label == -1).all()


def test_no_case_is_larger_than_what_the_model_is_padded_to() -> None:
    data = dataset(PATH, STAR, TRIANGLE, SINGLE)
    checkpoint = untrained(data)
    for nodes in (1, 3, 4, 5, M):
        cases = by_name(cases_of(checkpoint, data, nodes))
        assert max(case.graphs.max_nodes for case in cases.values()) <= nodes
        assert "graph larger than m" not in cases
    assert "graph larger than m" in by_name(cases_of(checkpoint, data, M + 1))
    with pytest.raises(InputError, match=r"more than 2 nodes.*--max-nodes"):
        cases_of(checkpoint, dataset(PATH, STAR), 2)
    degrees = dataset(PATH, STAR, TRIANGLE, labelled=False)
    assert "degree above all seen" not in by_name(cases_of(untrained(degrees), degrees, 5))


def test_other_data_is_in_the_words_of_the_model() -> None:
    data = dataset(PATH, STAR, TRIANGLE)
    other = replace(data, label_values=("c", "z", "a"))
    words = by_name(cases_of(untrained(data), other))["smallest graph"].graphs
    assert words.node_label.tolist() == [2, -1, 0]


def test_a_single_graph_has_others_of_similar_size_beside_it() -> None:
    data = dataset(PATH, SINGLE, TRIANGLE, NO_EDGES)
    cases = by_name(cases_of(untrained(data), data))
    beside = {name: [sizes(each) for each in case.others] for name, case in cases.items()}
    assert beside["smallest graph"] == [[3], [3], [5]]
    assert beside["largest graph"] == [[3], [3], [1]]
    assert beside["graph without edges"] == [[3]]
    assert beside["graph larger than m"] == [[M + 1]] * 7  # copies of small graphs come last
    assert beside["mixed sizes"] == beside["nodes permuted"] == beside["unknown labels"] == []


def test_the_graphs_with_the_closest_sort_keys_are_compared() -> None:
    complete = ([0, 1, 2], [(0, 1), (1, 2), (0, 2)])
    data = dataset(*[PATH] * 100, complete, SINGLE)
    tying = replace(SMALL, variant=Variant.NO_SEPARATION, **AUTHORS)
    case = by_name(cases_of(untrained(data, tying), data))["closest sort keys"]
    assert case.hardest
    assert sizes(case.graphs) == [3, *[5] * 7]  # the complete graph first: its keys are all equal
    summing = untrained(data, replace(SMALL, variant=Variant.NO_CONCAT))
    assert "closest sort keys" not in by_name(cases_of(summing, data))
