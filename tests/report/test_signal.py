"""Sentences on the edges of a data set."""

from ihgnn_cli import load_dataset
from ihgnn_cli.data.edge_labels import with_edge_labels
from ihgnn_cli.report.signal import edge_lines, edges_read


def triangles(labels: str, **more: object) -> list[dict]:
    edges = [[0, 1], [1, 2], [0, 2]]
    graph = {"node_labels": [0, 0, 0], "edges": edges, "edge_labels": list(labels), **more}
    return [{**graph, "class": kind} for kind in (0, 1)]


def test_edge_labels_of_complete_graphs_suggest_both_options() -> None:
    first, second = edge_lines(load_dataset(triangles("xxy")))
    assert first == "2 edge labels, not used: --edge-labels tells edges apart"
    assert "all graphs are complete; if the most frequent edge label, x (66.7 %)" in second
    assert second.endswith("--background-edge-label x")


def test_a_single_edge_label_tells_nothing_apart() -> None:
    assert edge_lines(load_dataset(triangles("xxx"))) == []


def test_attributes_of_edges_suggest_bins() -> None:
    lines = edge_lines(load_dataset(triangles("xxx", edge_attributes=[[0.5], [1.5], [2.5]])))
    assert lines == ["edge attributes, not used: --edge-bins 8 tells edges apart by 8 bins"]


def test_several_attributes_of_edges_suggest_no_bins() -> None:
    two = triangles("xxx", edge_attributes=[[0.5, 1], [1.5, 1], [2.5, 1]])
    assert edge_lines(load_dataset(two)) == []


def test_options_that_would_be_refused_are_not_suggested() -> None:
    assert edge_lines(load_dataset(triangles("xxx", edge_attributes=[[1], [1], [1]]))) == []
    one_way = [[0, 1], [1, 0], [1, 2], [2, 1], [0, 2], [2, 0]]
    directed = triangles("xyxyxy", edges=one_way, edge_attributes=[[1], [2]] * 3)
    assert not any("apart" in each for each in edge_lines(load_dataset(directed)))


def test_the_background_label_is_suggested_beside_labels_that_are_read() -> None:
    (line,) = edge_lines(with_edge_labels(load_dataset(triangles("xxy")), use=True))
    assert line.endswith("--background-edge-label x")


def test_a_title_says_how_edges_are_read() -> None:
    assert edges_read(load_dataset(triangles("xxy"))) == ""
