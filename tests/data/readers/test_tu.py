"""The TU format: small data sets worked out by hand, and every reason to refuse one."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from ihgnn_cli.data.dataset import GraphDataset, LabelSource, ReadingNotes
from ihgnn_cli.data.readers.tu import read_tu
from ihgnn_cli.data.readers.tu_files import open_tu
from ihgnn_cli.errors import DataError, Problem

WriteTU = Callable[..., Path]

# Graph 1 is the path 1 - 2 - 3, graph 2 the edge 4 - 5.
PATH_AND_EDGE = {
    "A": "1, 2\n2, 1\n2, 3\n3, 2\n4, 5\n5, 4\n",
    "graph_indicator": "1\n1\n1\n2\n2\n",
    "graph_labels": "1\n-1\n",
}
BOTH_WAYS = [(0, 1), (1, 0), (1, 2), (2, 1), (3, 4), (4, 3)]
EDGE = {"A": "1, 2\n2, 1\n", "graph_indicator": "1\n1\n", "graph_labels": "0\n"}


def read(folder: Path) -> GraphDataset:
    return read_tu(open_tu(folder))


def problems(folder: Path) -> tuple[Problem, ...]:
    with pytest.raises(DataError) as caught:
        read(folder)
    return caught.value.problems


def edges(dataset: GraphDataset) -> list[tuple[int, int]]:
    source, target = dataset.edge_index().tolist()
    return list(zip(source, target, strict=True))


def labels(dataset: GraphDataset) -> list[int | str]:
    return [dataset.label_values[position] for position in dataset.node_label]


def edge_labels(dataset: GraphDataset) -> list[int | str]:
    assert dataset.edge_label is not None
    return [dataset.edge_label_values[position] for position in dataset.edge_label]


def test_two_graphs_as_columns(write_tu: WriteTU) -> None:
    dataset = read(write_tu(**PATH_AND_EDGE, node_labels="3\n1\n3\n1\n1\n"))
    assert dataset.name == "TINY"
    assert dataset.node_ptr.tolist() == [0, 3, 5]
    assert dataset.neighbor_ptr.tolist() == [0, 1, 3, 4, 5, 6]
    assert dataset.neighbors.tolist() == [1, 0, 2, 1, 4, 3]
    assert (dataset.node_label.tolist(), dataset.label_values) == ([1, 0, 1, 0, 0], (1, 3))
    assert (dataset.graph_class.tolist(), dataset.class_values) == ([1, 0], (-1, 1))
    assert dataset.label_source is LabelSource.LABELS
    assert dataset.node_attributes is dataset.edge_label is dataset.edge_attributes is None
    assert dataset.notes == ReadingNotes()


def test_a_last_graph_without_edges_keeps_its_nodes(write_tu: WriteTU) -> None:
    dataset = read(
        write_tu(A="1, 2\n2, 1\n", graph_indicator="1\n1\n2\n2\n", graph_labels="0\n1\n")
    )
    assert dataset.node_ptr.tolist() == [0, 2, 4]
    assert dataset.neighbor_ptr.tolist() == [0, 1, 2, 2, 2]


def test_a_data_set_of_one_graph(write_tu: WriteTU) -> None:
    dataset = read(write_tu(A="1, 2\n2, 1\n", graph_indicator="1\n1\n", graph_labels="5\n"))
    assert (len(dataset), dataset.num_nodes, dataset.num_edges) == (1, 2, 1)
    assert dataset.class_values == (5,)


def test_graphs_of_one_node_and_no_edge_at_all(write_tu: WriteTU) -> None:
    dataset = read(write_tu(A="", graph_indicator="1\n2\n", graph_labels="0\n1\n"))
    assert dataset.node_ptr.tolist() == [0, 1, 2]
    assert dataset.neighbors.tolist() == []
    assert labels(dataset) == [0, 0]


def test_labels_and_classes_keep_the_numbers_of_the_file(write_tu: WriteTU) -> None:
    dataset = read(
        write_tu(
            A="",
            graph_indicator="1\n2\n3\n",
            graph_labels="7\n-2\n100\n",
            node_labels="-5\n4000000000\n-5\n",
        )
    )
    assert (dataset.class_values, dataset.graph_class.tolist()) == ((-2, 7, 100), [1, 0, 2])
    assert (dataset.label_values, dataset.node_label.tolist()) == ((-5, 4_000_000_000), [0, 1, 0])


def test_node_labels_of_several_columns_become_one_joint_label(write_tu: WriteTU) -> None:
    dataset = read(write_tu(**PATH_AND_EDGE, node_labels="1, 0\n0, 1\n1, 0\n0, 0\n0, 1\n"))
    assert labels(dataset) == ["1,0", "0,1", "1,0", "0,0", "0,1"]
    assert dataset.label_values == ("0,0", "0,1", "1,0")


def test_without_node_labels_the_degree_is_the_label(write_tu: WriteTU) -> None:
    # A star around node 1 with three rays, and a node alone.
    dataset = read(
        write_tu(
            A="1, 2\n2, 1\n1, 3\n3, 1\n1, 4\n4, 1\n",
            graph_indicator="1\n1\n1\n1\n2\n",
            graph_labels="0\n1\n",
        )
    )
    assert labels(dataset) == [3, 1, 1, 1, 0]
    assert dataset.label_source is LabelSource.DEGREE


def test_the_degree_counts_neighbours_and_not_lines(write_tu: WriteTU) -> None:
    # 1 - 2 in one direction, 2 - 3 twice, a loop at 3: degrees 1, 2, 1.
    dataset = read(
        write_tu(
            A="1, 2\n2, 3\n2, 3\n3, 2\n3, 3\n", graph_indicator="1\n1\n1\n", graph_labels="0\n"
        )
    )
    assert labels(dataset) == [1, 2, 1]
    assert dataset.notes == ReadingNotes(self_loops=1, duplicate_edges=1, one_directional=1)


def test_node_attributes_follow_their_nodes(write_tu: WriteTU) -> None:
    dataset = read(write_tu(**PATH_AND_EDGE, node_attributes="1,.5\n2,0\n3,0\n4,0\n-5e-1,0\n"))
    assert dataset.node_attributes is not None
    assert dataset.node_attributes.tolist() == [[1, 0.5], [2, 0], [3, 0], [4, 0], [-0.5, 0]]
    assert dataset.node_attributes.dtype == np.float32


def test_edge_labels_and_attributes_follow_their_edge_through_sorting(write_tu: WriteTU) -> None:
    parts = {
        "A": "5, 4\n3, 2\n2, 3\n4, 5\n2, 1\n1, 2\n",
        "edge_labels": "54\n32\n23\n45\n21\n12\n",
        "edge_attributes": "5.4, 0\n3.2, 0\n2.3, 0\n4.5, 0\n2.1, 0\n1.2, 0\n",
    }
    dataset = read(write_tu(**{**PATH_AND_EDGE, **parts}))
    assert edges(dataset) == BOTH_WAYS
    assert edge_labels(dataset) == [12, 21, 23, 32, 45, 54]
    assert dataset.edge_attributes is not None
    expected = np.array([1.2, 2.1, 2.3, 3.2, 4.5, 5.4], dtype=np.float32)
    assert dataset.edge_attributes[:, 0].tolist() == expected.tolist()


def test_an_added_direction_takes_the_label_and_attributes_of_its_edge(write_tu: WriteTU) -> None:
    parts = {
        "A": "3, 2\n1, 2\n4, 5\n",
        "edge_labels": "7\n8\n9\n",
        "edge_attributes": "7\n8\n9\n",
    }
    dataset = read(write_tu(**{**PATH_AND_EDGE, **parts}))
    assert edges(dataset) == BOTH_WAYS
    assert edge_labels(dataset) == [8, 8, 7, 7, 9, 9]
    assert dataset.edge_attributes is not None
    assert dataset.edge_attributes.tolist() == [[8], [8], [7], [7], [9], [9]]
    assert dataset.notes == ReadingNotes(one_directional=3)


def test_of_duplicates_that_disagree_the_first_counts(write_tu: WriteTU) -> None:
    parts = {
        "A": "1, 2\n2, 1\n1, 2\n1, 2\n",
        "edge_labels": "1\n1\n1\n2\n",
        "edge_attributes": "0.5\n0.5\n0.25\n0.5\n",
    }
    dataset = read(write_tu(**{**EDGE, **parts}))
    assert dataset.edge_attributes is not None
    assert dataset.edge_attributes.tolist() == [[0.5], [0.5]]
    assert dataset.notes == ReadingNotes(duplicate_edges=2, conflicting_duplicates=2)


def test_edge_labels_that_only_dropped_edges_had_are_no_labels(write_tu: WriteTU) -> None:
    parts = {"A": "1, 1\n1, 2\n2, 1\n", "edge_labels": "3\n5\n5\n"}
    dataset = read(write_tu(**{**EDGE, **parts}))
    assert edge_labels(dataset) == [5, 5]
    assert dataset.edge_label_values == (5,)


def test_edge_labels_of_several_columns_become_one_joint_label(write_tu: WriteTU) -> None:
    dataset = read(write_tu(**EDGE, edge_labels="1, 0\n0, 1\n"))
    assert edge_labels(dataset) == ["1,0", "0,1"]
    assert dataset.edge_label_values == ("0,1", "1,0")


def test_nodes_of_a_graph_that_stand_apart_are_brought_together(write_tu: WriteTU) -> None:
    # Nodes 1, 3 and 5 are graph 1 with the path 1 - 3 - 5; nodes 2 and 4 are graph 2.
    dataset = read(
        write_tu(
            A="1, 3\n3, 1\n3, 5\n5, 3\n2, 4\n4, 2\n",
            graph_indicator="1\n2\n1\n2\n1\n",
            graph_labels="10\n20\n",
            node_labels="1\n2\n3\n4\n5\n",
            node_attributes="1\n2\n3\n4\n5\n",
            edge_labels="13\n31\n35\n53\n24\n42\n",
        )
    )
    assert dataset.node_ptr.tolist() == [0, 3, 5]
    assert labels(dataset) == [1, 3, 5, 2, 4]
    assert dataset.node_attributes is not None
    assert dataset.node_attributes[:, 0].tolist() == [1, 3, 5, 2, 4]
    assert edges(dataset) == BOTH_WAYS
    assert edge_labels(dataset) == [13, 31, 35, 53, 24, 42]
    # In the order 1 3 5 2 4 only node 1 stands where it stood.
    assert dataset.notes == ReadingNotes(reordered_nodes=4)


def test_windows_line_ends_in_every_file_change_nothing(write_tu: WriteTU) -> None:
    parts = {
        **PATH_AND_EDGE,
        "node_labels": "1\n2\n1\n2\n1\n",
        "node_attributes": "1, 2.5\n2, 2.5\n3, 2.5\n4, 2.5\n5, 2.5\n",
        "edge_labels": "1\n1\n2\n2\n3\n3\n",
        "edge_attributes": "0.5\n0.5\n1\n1\n2\n2\n",
    }
    windows = {part: content.replace("\n", "\r\n") for part, content in parts.items()}
    unix = read(write_tu("UNIX", **parts))
    assert read(write_tu("WINDOWS", **windows)).fingerprint == unix.fingerprint


def test_every_byte_is_told_to_the_progress(write_tu: WriteTU) -> None:
    files = open_tu(write_tu(**PATH_AND_EDGE, node_labels="1\n1\n1\n1\n1\n"))
    told: list[int] = []
    read_tu(files, told.append)
    assert sum(told) == sum(files.parts.values())


# What is refused.

NUMBERING = "Node and graph numbers start at 1."
SAME_ROWS = "Both need one line per item, in the same order."
SAME_VALUES = "Write 2 values per line, separated by commas."
NO_GRAPH = "no graph with this number among 2 graph labels."
NO_NODE = "no node with this number among 5 lines of the graph indicator."
CROSSING = ("the edge joins nodes of two graphs.", "Correct it, or the indicator.")
NOT_FINITE = (
    "a value is NaN, infinite or beyond 32-bit floats.",
    "Replace it with a finite number, or drop the attribute or the graph.",
)
EMPTY_GRAPH = (
    "the graph of this line has no nodes in the graph indicator.",
    "Remove the graph, or give it nodes.",
)


MISTAKES: list[tuple[str, str, int | None, str, str]] = [
    ("A", "1, 2\n0, 1\n", 2, NO_NODE, NUMBERING),
    ("A", "1, 2\n2, 6\n", 2, NO_NODE, NUMBERING),
    ("A", "1, 2\n-1, 2\n", 2, NO_NODE, NUMBERING),
    ("A", "1, 2\n2, 1\n3, 4\n", 3, *CROSSING),
    ("A", "1, 2\n2 one\n", 2, "'one' is not a whole number of at most 18 digits.", "Correct it."),
    ("A", "1, 2, 1\n", 1, "3 values instead of 2.", SAME_VALUES),
    ("graph_indicator", "0\n1\n1\n2\n2\n", 1, NO_GRAPH, NUMBERING),
    ("graph_indicator", "1\n1\n1\n2\n3\n", 5, NO_GRAPH, NUMBERING),
    ("graph_indicator", "1\n1\n\n2\n2\n", 3, "the line is empty.", "Remove it or fill it."),
    ("graph_labels", "1\n-1\n1\n", 3, *EMPTY_GRAPH),
    ("graph_labels", "", None, "the file is empty.", "Give each graph a class."),
    (
        "graph_labels",
        "1\n2.5\n",
        2,
        "'2.5' is not a whole number of at most 18 digits.",
        "TU labels are integers; JSON lines take words (docs/data.md).",
    ),
    ("node_labels", "1\n1\n", None, "2 lines where TINY_graph_indicator.txt has 5.", SAME_ROWS),
    ("node_labels", "", None, "0 lines where TINY_graph_indicator.txt has 5.", SAME_ROWS),
    (
        "node_labels",
        "1\n1\nC\n1\n1\n",
        3,
        "'C' is not a whole number of at most 18 digits.",
        "TU labels are integers; JSON lines take words (docs/data.md).",
    ),
    (
        "node_attributes",
        "1\n" * 6,
        None,
        "6 lines where TINY_graph_indicator.txt has 5.",
        SAME_ROWS,
    ),
    ("node_attributes", "1\n1\nnan\n1\n1\n", 3, *NOT_FINITE),
    ("edge_labels", "1\n1\n", None, "2 lines where TINY_A.txt has 6.", SAME_ROWS),
    ("edge_attributes", "1\n" * 7, None, "7 lines where TINY_A.txt has 6.", SAME_ROWS),
    ("edge_attributes", "1\n1\n1\n1\n1\ninf\n", 6, *NOT_FINITE),
]


@pytest.mark.parametrize(
    ("part", "content", "expected"), [(each[0], each[1], each[2:]) for each in MISTAKES]
)
def test_a_mistake_is_told_with_file_line_and_remedy(
    write_tu: WriteTU, part: str, content: str, expected: tuple[int | None, str, str]
) -> None:
    folder = write_tu(**{**PATH_AND_EDGE, part: content})
    assert problems(folder) == (Problem(f"TINY_{part}.txt", *expected),)


def test_a_graph_between_others_without_nodes(write_tu: WriteTU) -> None:
    folder = write_tu(A="1, 2\n", graph_indicator="1\n1\n3\n", graph_labels="1\n2\n3\n")
    assert problems(folder) == (Problem("TINY_graph_labels.txt", 2, *EMPTY_GRAPH),)


@pytest.mark.parametrize("part", ["graph_indicator", "graph_labels"])
def test_a_required_file_that_is_missing(write_tu: WriteTU, part: str) -> None:
    folder = write_tu(**PATH_AND_EDGE)
    (folder / f"TINY_{part}.txt").unlink()
    assert problems(folder) == (
        Problem(
            f"TINY_{part}.txt",
            None,
            f"the file is missing in {folder}.",
            "Add it; docs/data.md describes the format.",
        ),
    )


def test_all_missing_files_are_told_at_once(write_tu: WriteTU) -> None:
    found = problems(write_tu(A="1, 2\n"))
    assert [each.file for each in found] == ["TINY_graph_indicator.txt", "TINY_graph_labels.txt"]


def test_a_regression_data_set_is_told_to_be_one(write_tu: WriteTU) -> None:
    folder = write_tu(A="1, 2\n", graph_indicator="1\n1\n", graph_attributes="0.5\n")
    [problem] = problems(folder)
    assert problem.file == "TINY_graph_labels.txt"
    assert problem.remedy == "graph_attributes are for regression; ihgnn only classifies."


def test_graph_attributes_beside_classes_do_no_harm(write_tu: WriteTU) -> None:
    assert len(read(write_tu(**PATH_AND_EDGE, graph_attributes="0.5\n1.5\n"))) == 2


def test_a_data_set_without_nodes(write_tu: WriteTU) -> None:
    folder = write_tu(A="", graph_indicator="", graph_labels="1\n")
    assert problems(folder) == (Problem("TINY_graph_labels.txt", 1, *EMPTY_GRAPH),)


def test_mistakes_of_several_files_are_told_at_once(write_tu: WriteTU) -> None:
    folder = write_tu(
        A="1, 2\n2, 9\nx, 1\n",
        graph_indicator="1\n1\n1\n2\n2\n",
        graph_labels="1\none\n",
        node_labels="1\n1\n",
        node_attributes="1\nnan\n1\n1\n1, 2\n",
        edge_labels="1\n1\n",
    )
    assert {(each.file, each.line) for each in problems(folder)} == {
        ("TINY_A.txt", 2),
        ("TINY_A.txt", 3),
        ("TINY_graph_labels.txt", 2),
        ("TINY_node_labels.txt", None),
        ("TINY_node_attributes.txt", 2),
        ("TINY_node_attributes.txt", 5),
        ("TINY_edge_labels.txt", None),
    }


def test_an_edge_out_of_range_does_not_hide_an_edge_across_graphs(write_tu: WriteTU) -> None:
    folder = write_tu(**{**PATH_AND_EDGE, "A": "1, 9\n3, 4\n1, 2\n"})
    assert problems(folder) == (
        Problem("TINY_A.txt", 1, NO_NODE, NUMBERING),
        Problem("TINY_A.txt", 2, *CROSSING),
    )


def test_many_mistakes_in_one_file_leave_room_for_those_of_another(write_tu: WriteTU) -> None:
    folder = write_tu(**{**PATH_AND_EDGE, "A": "0, 1\n" * 1000}, node_labels="1\n")
    found = problems(folder)
    assert [(each.file, each.count) for each in found] == [
        ("TINY_A.txt", 1000),
        ("TINY_node_labels.txt", 1),
    ]


def test_words_as_labels_get_one_explanation_per_file(write_tu: WriteTU) -> None:
    words = {"node_labels": "C\nC\nO\nN\nC\n", "graph_labels": "yes\nno\n"}
    found = problems(write_tu(**{**PATH_AND_EDGE, **words}))
    assert [(each.file, each.line, each.count) for each in found] == [
        ("TINY_graph_labels.txt", 1, 2),
        ("TINY_node_labels.txt", 1, 5),
    ]
    assert {each.remedy for each in found} == {
        "TU labels are integers; JSON lines take words (docs/data.md)."
    }


def test_a_number_of_18_digits_is_out_of_range_and_no_crash(write_tu: WriteTU) -> None:
    huge = "999999999999999999"
    folder = write_tu(
        A=f"1, {huge}\n", graph_indicator=f"1\n{huge}\n", graph_labels="1\n", node_labels="1\n1\n"
    )
    assert {(each.file, each.line) for each in problems(folder)} == {
        ("TINY_A.txt", 1),
        ("TINY_graph_indicator.txt", 2),
    }


def read_without_classes(folder: Path) -> GraphDataset:
    return read_tu(open_tu(folder), classes=False)


def test_graphs_to_predict_need_no_classes(write_tu: WriteTU) -> None:
    parts = {name: text for name, text in PATH_AND_EDGE.items() if name != "graph_labels"}
    dataset = read_without_classes(write_tu(**parts))
    assert (dataset.graph_class.tolist(), dataset.class_values) == ([-1, -1], ())
    assert dataset.node_ptr.tolist() == [0, 3, 5]
    assert dataset.neighbors.tolist() == [1, 0, 2, 1, 4, 3]


def test_classes_that_are_there_are_read_all_the_same(write_tu: WriteTU) -> None:
    folder = write_tu(**PATH_AND_EDGE)
    assert read_without_classes(folder).fingerprint == read(folder).fingerprint


@pytest.mark.parametrize(
    ("indicator", "line", "message"),
    [
        ("1\n0\n", 2, "not a graph number."),
        ("1\n3\n", None, "graph 2 has no nodes."),
        ("2\n2\n", None, "graph 1 has no nodes."),
        ("", None, "the file is empty."),
    ],
)
def test_without_classes_the_indicator_numbers_the_graphs(
    write_tu: WriteTU, indicator: str, line: int | None, message: str
) -> None:
    with pytest.raises(DataError) as caught:
        read_without_classes(write_tu(A="", graph_indicator=indicator))
    problem = caught.value.problems[0]
    assert (problem.file, problem.line) == ("TINY_graph_indicator.txt", line)
    assert problem.message == message
