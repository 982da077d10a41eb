"""What a model-epoch costs: by nodes, edges, largest graph, layers and models per stack.

Processor time on one thread. Each line changes one thing of the same task: 200 random graphs of 40
nodes and 80 edges, K = 4, batches of 32, a stack of 8. All lines take turns, epoch by epoch, as
after the first 300 steps of a training.
"""

import time
from dataclasses import replace
from statistics import median
from typing import TYPE_CHECKING, Any

from _measure import parser, report, table
from _plain import Task, late, stack, task_on
from _together import use_threads

if TYPE_CHECKING:
    from ihgnn_cli.data.dataset import GraphDataset

GRAPHS, NODES, EDGES, LAYERS, MEMBERS = 200, 40, 80, 4, 8


def main() -> None:
    given = parser("Time a model-epoch by the size of its parts.", runs=5).parse_args()
    use_threads(1)
    lines = tasks()
    stacks = {line: late(stack(task, members)) for line, (task, members) in lines.items()}
    seconds: dict[tuple[str, int], list[float]] = {line: [] for line in stacks}
    for turn in range(given.runs + 1):
        for line, each in stacks.items():
            began = time.process_time()
            each.train_epoch()
            if turn:  # the first creates the validation batches
                seconds[line].append((time.process_time() - began) / len(each.members))
    found = {line: median(each) for line, each in seconds.items()}
    base = {what: next(found[line] for line in found if line[0] == what) for what, _ in found}
    rows = [
        (what, f"{value:,}", f"{each * 1e3:.1f} ms", f"{each / base[what]:.2f}")
        for (what, value), each in found.items()
    ]
    text = (
        f"{GRAPHS} random graphs of {NODES} nodes and {EDGES} edges, K = {LAYERS}, a stack of "
        f"{MEMBERS}; each line changes one of these.\n\n"
        + table(("changed", "", "a model-epoch", "of the first"), rows)
    )
    figures = [
        {"changed": what, "value": value, "seconds": each} for (what, value), each in found.items()
    ]
    report("costs", {"lines": figures}, text, as_json=given.json)


def tasks() -> "dict[tuple[str, int], tuple[Task, int]]":
    """For each line: what changes and its value, the task and the number of models."""
    base = with_layers(task_on(random_graphs(NODES, EDGES)), LAYERS)
    found: dict[tuple[str, int], tuple[Task, int]] = {}
    for factor in (1, 2, 4, 8):
        both = task_on(random_graphs(NODES * factor, EDGES * factor))
        found["nodes and edges", NODES * factor] = with_layers(both, LAYERS), MEMBERS
    for factor in (1, 2, 4, 8):
        edges = task_on(random_graphs(NODES, EDGES * factor))
        found["edges", EDGES * factor] = with_layers(edges, LAYERS), MEMBERS
    for factor in (1, 4, 16, 64):
        inputs = replace(base.inputs, max_nodes=NODES * factor)
        found["m", NODES * factor] = replace(base, inputs=inputs), MEMBERS
    for layers in (1, 2, 4, 8):
        found["layers", layers] = with_layers(base, layers), MEMBERS
    for members in (1, 2, 4, 8, 16):
        found["models per stack", members] = base, members
    return found


def with_layers(task: Task, layers: int) -> Task:
    return replace(task, settings=replace(task.settings, layers=layers))


def random_graphs(nodes: int, edges: int) -> "GraphDataset":
    """Graphs with this many nodes and distinct edges, four labels and two classes, all random."""
    import numpy as np

    from ihgnn_cli.data.build import ListedGraphs, build

    drawn = np.random.default_rng(0)
    low, high = np.triu_indices(nodes, 1)
    pairs = np.concatenate(
        [drawn.choice(len(low), edges, replace=False) + graph * len(low) for graph in range(GRAPHS)]
    )
    graph, pair = np.divmod(pairs, len(low))
    listed: Any = ListedGraphs(
        name="random",
        sizes=np.full(GRAPHS, nodes),
        source=(low[pair] + graph * nodes).astype(np.int32),
        target=(high[pair] + graph * nodes).astype(np.int32),
        classes=(drawn.permutation(GRAPHS).astype(np.int32) % 2, (0, 1)),
        node_labels=(drawn.integers(0, 4, GRAPHS * nodes).astype(np.int32), ("a", "b", "c", "d")),
        undirected=True,
    )
    return build(listed)


if __name__ == "__main__":
    main()
