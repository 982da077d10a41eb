"""Node homophily of every graph, against a loop over networkx graphs and torch-geometric.

All three get the same labels and edges, converted to their preferred form before timing starts.
"""

import os
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import torch
from _measure import (
    Claim,
    Timing,
    add_dataset,
    duration,
    find_zip,
    parser,
    report,
    table,
)
from numpy.typing import NDArray
from torch_geometric.utils import homophily as pyg_homophily

from ihgnn_cli.data.dataset import GraphDataset
from ihgnn_cli.data.sources import load_dataset
from ihgnn_cli.homophily.measures import graph_homophily

OURS, NETWORKX, PYG = "ihgnn", "networkx, a loop", "torch-geometric"
# torch-geometric counts in float32.
TOLERANCE = {NETWORKX: 1e-12, PYG: 1e-5}
SCALES = (1, 2, 4, 8)

EXPLANATION = """\
ihgnn and torch-geometric ({threads} threads; ihgnn takes 1): {runs} runs in turn after one that is
not counted, medians. networkx: once over all graphs; each graph is built just before its own time
starts, so that it is warm and memory stays small.
"""


def main() -> None:
    options = parser("Time node homophily against networkx and torch-geometric.", runs=9)
    add_dataset(options)
    given = options.parse_args()
    archive = find_zip("homophily", given)
    if archive is None:
        return
    dataset = load(archive)
    timings, differences = compare(dataset, given.runs)
    growth = scaling(dataset, given.runs)
    base = timings[OURS].median
    claims = [
        Claim("faster than networkx", 20, timings[NETWORKX].median / base),
        Claim("as fast as torch-geometric, or faster", 1, timings[PYG].median / base),
    ]
    figures = {
        "dataset": given.dataset,
        "graphs": len(dataset),
        "directed_edges": len(dataset.neighbors),
        "labels": dataset.label_source,
        "torch_threads": torch.get_num_threads(),
        "times": {
            name: {"median": each.median, "seconds": each.seconds} for name, each in timings.items()
        },
        "largest_difference": differences,
        "agrees": {name: differences[name] <= TOLERANCE[name] for name in differences},
        "scaling": growth,
    }
    report("homophily", figures, as_text(figures, given.runs), claims, as_json=given.json)


def load(archive: Path) -> GraphDataset:
    """The data set, read with a temporary cache; the user's cache is not touched."""
    with tempfile.TemporaryDirectory() as cache:
        os.environ["IHGNN_CACHE"] = cache
        return load_dataset(str(archive), offline=True)


def compare(dataset: GraphDataset, runs: int) -> tuple[dict[str, Timing], dict[str, float]]:
    """Wall times of the three, and the largest differences from our values."""
    edge_index = torch.from_numpy(dataset.edge_index())
    label = torch.from_numpy(dataset.node_label.astype(np.int64))
    batch = torch.from_numpy(dataset.node_graph)

    theirs = partial(pyg_homophily, edge_index, label, batch, method="node")
    seconds: dict[str, list[float]] = {OURS: [], PYG: []}
    for turn in range(runs + 1):
        for name, call in ((OURS, partial(graph_homophily, dataset)), (PYG, theirs)):
            spent = timed(call)
            if turn:
                seconds[name].append(spent)
    looped, looping = networkx_values(dataset)
    beta = graph_homophily(dataset)
    differences = {
        NETWORKX: float(np.abs(beta - looped).max()),
        PYG: float(np.abs(beta - theirs().numpy()).max()),
    }
    timings = {name: Timing(tuple(each)) for name, each in seconds.items()}
    return {**timings, NETWORKX: Timing((looping,))}, differences


def timed(call: Callable[[], object]) -> float:
    """Seconds of one call."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def networkx_values(dataset: GraphDataset) -> tuple[NDArray[np.float64], float]:
    """The homophily of each graph by a loop, and the seconds spent in the loops alone."""
    values = np.empty(len(dataset))
    spent = 0.0
    for position in range(len(dataset)):
        graph = as_networkx(dataset, position)
        start = time.perf_counter()
        values[position] = networkx_homophily(graph)
        spent += time.perf_counter() - start
    return values, spent


def as_networkx(dataset: GraphDataset, position: int) -> "nx.Graph[int]":
    """One graph, each edge once, with the attribute `label` on the nodes."""
    one = dataset.select([position])
    graph: nx.Graph[int] = nx.Graph()
    graph.add_nodes_from(
        (node, {"label": label}) for node, label in enumerate(one.node_label.tolist())
    )
    source, target = one.edge_index()
    once = source < target
    graph.add_edges_from(zip(source[once].tolist(), target[once].tolist(), strict=True))
    return graph


def networkx_homophily(graph: "nx.Graph[int]") -> float:
    """Mean over the nodes of the share of neighbours with the node's own label."""
    label = nx.get_node_attributes(graph, "label")
    total = 0.0
    for node in graph:
        own = label[node]
        same = 0
        for neighbor in graph[node]:
            same += label[neighbor] == own
        total += same / max(graph.degree[node], 1)
    return total / len(graph)


def scaling(dataset: GraphDataset, runs: int) -> list[dict[str, float]]:
    """Our time on repeated copies of the data set."""
    found = []
    for scale in SCALES:
        larger = repeated(dataset, scale)
        graph_homophily(larger)
        spent = [timed(partial(graph_homophily, larger)) for _ in range(runs)]
        middle, edges = Timing(tuple(spent)).median, len(larger.neighbors)
        found.append(
            {"scale": scale, "edges": edges, "median": middle, "ns_per_edge": 1e9 * middle / edges}
        )
        del larger
    return found


def repeated(dataset: GraphDataset, times: int) -> GraphDataset:
    """The data set repeated `times` times."""
    return dataset.select(np.tile(np.arange(len(dataset)), times))


def as_text(figures: dict[str, Any], runs: int) -> str:
    """The figures in two tables."""
    timings = {name: Timing(each["seconds"]) for name, each in figures["times"].items()}
    rows = [
        (
            name,
            *each.cells(),
            f"{each.median / timings[OURS].median:.1f}×",
            agreement(figures, name),
        )
        for name, each in timings.items()
    ]
    growth = [
        (
            f"{each['scale']}×",
            f"{each['edges']:,}",
            duration(each["median"]),
            f"{each['ns_per_edge']:.2f}",
        )
        for each in figures["scaling"]
    ]
    return "\n".join(
        [
            f"Node homophily of {figures['dataset']} (labels: {figures['labels']}): "
            f"{figures['graphs']:,} graphs, {figures['directed_edges']:,} directed edges.",
            EXPLANATION.format(threads=figures["torch_threads"], runs=runs),
            table(("", "time", "range", "of ihgnn's", "largest difference"), rows),
            "",
            f"Growth of ihgnn's time with the data (its graphs repeated), medians of {runs} runs:",
            "",
            table(("graphs", "directed edges", "time", "ns an edge"), growth),
        ]
    )


def agreement(figures: dict[str, Any], name: str) -> str:
    """The largest difference from ours, marked if it is too large."""
    if name == OURS:
        return ""
    word = "" if figures["agrees"][name] else " DISAGREES"
    return f"{figures['largest_difference'][name]:.1e}{word}"


if __name__ == "__main__":
    main()
