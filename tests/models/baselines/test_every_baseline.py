"""What holds for each of the fourteen: invariance, batches, odd graphs, memory, repetition.

Also which graphs each can tell apart, and what each learns.
"""

import random
from functools import partial

import numpy as np
import pytest
import torch
from graph_makers import (
    ALL,
    CPU,
    HEXAGON,
    NO_EDGES,
    SINGLE,
    TWO_TRIANGLES,
    UNKNOWN_LABELS,
    accuracy_after_training,
    batch_of,
    dataset_of,
    graphs_of,
    logits_of,
    model_of,
    relabelled,
    with_statistics,
)
from hard_pairs import ROOK, SHRIKHANDE, stars_or_paths, triangles_or_hexagons
from heterophilic import ALTERNATING, GROUPED, circle_task, homophily_task, hub_task

from ihgnn_cli.data.batching.batches import GraphStore
from ihgnn_cli.data.features import Features
from ihgnn_cli.models.autograd import AutogradStack
from ihgnn_cli.models.card import inputs_of
from ihgnn_cli.models.entries.acm import Order
from ihgnn_cli.models.entries.gnnml import Kind
from ihgnn_cli.models.registry import IHGNN, find_model, model_names
from ihgnn_cli.models.spec import Load
from ihgnn_cli.training.loss import CrossEntropy

NAMES = [name for name in model_names() if name != IHGNN]
each_model = pytest.mark.parametrize("name", NAMES)


def _drawn():
    drawn = random.Random(3)
    graphs = []
    for nodes in (24, 20, 16, 12):
        edges = {tuple(sorted(drawn.sample(range(nodes), 2))) for _ in range(2 * nodes)}
        graphs.append(([drawn.randrange(3) for _ in range(nodes)], sorted(edges)))
    return graphs


DRAWN = _drawn()


def _stack(name, dataset, members=1, **settings):
    spec = find_model(name)
    inputs = inputs_of(dataset, Features.LABELS)
    generators = [torch.Generator().manual_seed(each) for each in range(members)]
    return AutogradStack(
        lambda: spec.make(spec.settings(**settings), inputs), generators, by_size=spec.by_size
    )


def _difference(name, settings, graphs):
    """The largest between the logits of two graphs."""
    dataset = dataset_of(graphs)
    model = with_statistics(model_of(name, dataset, **settings), dataset)
    first, second = logits_of(model, dataset)
    return float((first - second).abs().max())


@each_model
def test_the_order_of_nodes_does_not_matter(name):
    drawn = random.Random(1)
    other = [relabelled(each, drawn.sample(range(len(each[0])), len(each[0]))) for each in ALL]
    dataset, shuffled = dataset_of(ALL), dataset_of(other)
    model = model_of(name, dataset)
    torch.testing.assert_close(
        logits_of(model, shuffled), logits_of(model, dataset), rtol=1e-4, atol=1e-4
    )


@each_model
def test_a_graph_gets_the_same_answer_alone_and_beside_others(name):
    dataset = dataset_of(ALL)
    model = model_of(name, dataset)
    together = logits_of(model, dataset)
    alone = torch.cat([logits_of(model, dataset_of([each, each]))[:1] for each in ALL])
    torch.testing.assert_close(alone, together, rtol=1e-4, atol=1e-4)


@each_model
def test_answers_differ_between_graphs(name):
    dataset = dataset_of(ALL)
    logits = logits_of(model_of(name, dataset), dataset)
    assert logits.shape == (len(ALL), 2)
    assert len(logits.mul(1e5).round().unique(dim=0)) > len(ALL) // 2


@each_model
@pytest.mark.parametrize("graphs", [[SINGLE], [NO_EDGES], [UNKNOWN_LABELS, SINGLE], ALL])
def test_odd_graphs_train(name, graphs):
    dataset = dataset_of(graphs)
    stack = _stack(name, dataset).train()
    logits = stack.train_step(batch_of(dataset), torch.empty(0), [0], CrossEntropy())
    assert logits.isfinite().all()
    gradients = [each.grad for each in stack.parameters() if each.grad is not None]
    assert gradients
    assert all(each.isfinite().all() for each in gradients)


@each_model
def test_every_parameter_is_trained(name):
    dataset = dataset_of(ALL)
    # By default a tenth of six nodes is one cluster, to which all belong and none can be assigned.
    settings = {"cluster_share": 0.5} if name == "diffpool" else {}
    stack = _stack(name, dataset, **settings).train()
    untouched = {key for key, _ in stack.named_parameters()}
    for step in range(4):  # dropout may hide some at one step
        stack.train_step(batch_of(dataset), torch.empty(0), [step], CrossEntropy())
        untouched -= {key for key, each in stack.named_parameters() if each.grad.any()}
    assert not untouched


@each_model
def test_a_step_is_a_function_of_its_seed(name):
    dataset = dataset_of(ALL)
    stack, batch = _stack(name, dataset).train(), batch_of(dataset)
    before = {key: each.clone() for key, each in stack.state_dict().items()}
    found = []
    for seed in (7, 7):
        stack.load_state_dict(before)
        found.append(stack.train_step(batch, torch.empty(0), [seed], CrossEntropy()))
    assert torch.equal(*found)


@each_model
def test_a_member_of_a_stack_answers_as_it_would_alone(name):
    dataset = dataset_of(ALL)
    pair = _stack(name, dataset, members=2).eval()
    alone = _stack(name, dataset).eval()
    alone.load_state_dict({key: each[1:] for key, each in pair.state_dict().items()})
    store = GraphStore(dataset, Features.LABELS, dataset.max_nodes, None, CPU)
    own = np.array([2, 0, 5])
    first, second = pair(store.batch([np.arange(len(ALL)), own]))
    torch.testing.assert_close(second[: len(own)], alone(store.batch([own]))[0])
    assert not torch.allclose(first, pair(store.batch([np.arange(len(ALL))] * 2))[1])


@pytest.mark.parametrize(
    ("name", "settings", "told_apart", "threshold"),
    [
        ("acm", {"order": Order.ACM}, False, 1e-5),
        ("acm", {"order": Order.ACMII}, False, 1e-5),
        ("dcgnn", {"layers": 1}, False, 1e-5),  # neighbours alone
        ("dcgnn", {"layers": 2}, True, 1e-3),  # with nodes at distance two
        ("dgcnn", {}, False, 1e-5),
        ("diffpool", {"cluster_share": 0.5}, False, 1e-5),
        ("gin", {}, False, 1e-5),
        ("gnnml", {"kind": Kind.GNNML1}, False, 1e-6),
        ("gnnml", {"learn_supports": False}, True, 5e-5),
        ("gnnml", {"learn_supports": True}, True, 5e-5),
        ("gprgnn", {}, False, 1e-5),
        ("graphormer", {}, True, 1e-5),  # by distances
        ("h2gcn", {}, True, 1e-3),  # by nodes at distance two
        ("kgnn", {"order": 2}, True, 1e-4),
        ("kgnn", {"order": 3}, True, 1e-4),
        ("pcnet", {}, False, 1e-5),
        ("pgcn", {}, False, 1e-5),
        ("ppgn", {}, True, 1e-3),
        ("tokengt", {}, True, 1e-5),
    ],
)
def test_two_triangles_and_a_hexagon_are_told_apart_only_beyond_1_wl(
    name, settings, told_apart, threshold
):
    difference = _difference(name, settings, [TWO_TRIANGLES, HEXAGON])
    assert difference > threshold if told_apart else difference <= threshold


@pytest.mark.parametrize(
    ("name", "settings", "told_apart", "threshold"),
    [
        # Of a strongly regular graph, a function of L has one value for all edges, one for all
        # nodes and one for all other pairs.
        ("gnnml", {"hops": 1}, False, 1e-5),
        ("gnnml", {"hops": 2}, False, 1e-5),
        ("graphormer", {}, False, 1e-5),  # any two nodes are at most two apart
        # In both, a pair has as many pairs of each kind beside it. But a triangle of the rook's
        # graph lies in a clique of four, and is beside three triangles; one of Shrikhande's is
        # beside none.
        ("kgnn", {"order": 2}, False, 1e-5),
        ("kgnn", {"order": 3}, True, 1e-4),
        ("ppgn", {}, False, 1e-4),
    ],
)
def test_only_triples_tell_the_rooks_graph_from_shrikhandes(name, settings, told_apart, threshold):
    difference = _difference(name, settings, [ROOK, SHRIKHANDE])
    assert difference > threshold if told_apart else difference <= threshold


@pytest.mark.parametrize(
    ("name", "settings", "told_apart", "threshold"),
    [
        ("acm", {"order": Order.ACM}, True, 1e-3),
        ("acm", {"order": Order.ACMII}, True, 1e-3),
        ("dcgnn", {}, True, 1e-3),
        # These see only where labels stand.
        ("gprgnn", {}, False, 1e-5),
        ("h2gcn", {}, False, 1e-5),
        ("pcnet", {}, False, 1e-5),
    ],
)
def test_which_labels_meet_is_seen_by_acm_and_dcgnn_only(name, settings, told_apart, threshold):
    difference = _difference(name, settings, [ALTERNATING, GROUPED])
    assert difference > threshold if told_apart else difference <= threshold


@pytest.mark.parametrize(
    ("name", "task", "steps", "settings"),
    [
        ("acm", hub_task, 80, {"dropout": 0.0}),
        ("acm", homophily_task, 80, {"dropout": 0.0}),
        ("dcgnn", hub_task, 80, {"dropout": 0.0}),
        ("dcgnn", homophily_task, 80, {"dropout": 0.0}),
        ("dcgnn", circle_task, 80, {"dropout": 0.0}),
        # Means over neighbours see no degrees: the first node has a label of its own.
        ("dgcnn", partial(stars_or_paths, others=1), 60, {}),
        ("diffpool", partial(stars_or_paths, others=1), 50, {}),
        ("gin", stars_or_paths, 60, {"dropout": 0.0}),
        # The running statistics of the normalization take some 60 steps to follow.
        ("gnnml", triangles_or_hexagons, 90, {}),
        ("gprgnn", hub_task, 200, {"layers": 4, "dropout": 0.0, "walk_dropout": 0.0}),
        ("h2gcn", hub_task, 80, {"dropout": 0.0}),
        ("kgnn", triangles_or_hexagons, 40, {}),
        ("pcnet", hub_task, 100, {"layers": 2, "terms": 4, "dropout": 0.0, "walk_dropout": 0.0}),
        ("pgcn", stars_or_paths, 100, {"width": 16, "dropout": 0.2}),
        ("ppgn", triangles_or_hexagons, 60, {}),
    ],
)
def test_it_learns_a_task_that_it_can_tell(name, task, steps, settings):
    assert accuracy_after_training(name, task(), steps=steps, **settings) >= 0.95


@pytest.mark.parametrize(
    ("name", "chosen"),
    [(name, {}) for name in NAMES]
    + [("gnnml", {"design": design, "dropout": 0.1}) for design in ("proteins", "enzymes")]
    + [("gnnml", {"learn_supports": True}), ("ppgn", {"width": 100, "depth": 3})],
)
def test_the_estimate_of_memory_is_near_what_backward_keeps(name, chosen):
    dataset = dataset_of(DRAWN)
    spec, given = find_model(name), graphs_of(dataset)
    model = model_of(name, dataset, **chosen).train()
    model(given)  # what is derived from graphs is made
    kept: dict[int, int] = {}

    def pack(tensor):
        kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    own = {each.untyped_storage().data_ptr() for each in [*model.parameters(), *model.buffers()]}
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        answer = model(given)
    measured = sum(size for place, size in kept.items() if place not in own) / 4
    pairs = len(given) * given.largest**2 if spec.by_size else sum(n**2 for n in given.sizes)
    load = Load(len(given), sum(given.sizes), given.edge_index.shape[1], given.largest, pairs)
    estimate = spec.numbers(spec.settings(**chosen), load)
    assert answer is not None
    assert measured / 2.5 <= estimate <= measured * 2.5


@each_model
def test_the_estimate_of_what_is_derived_is_near_what_is_kept_of_graphs(name):
    given = graphs_of(dataset_of(DRAWN))
    spec = find_model(name)
    model_of(name, dataset_of(DRAWN))(given)
    kept = [each for made in given.memo.values() for each in made]
    measured = sum(each.numel() * each.element_size() for each in kept) / 4
    estimate = sum(
        spec.derived(spec.settings(), Load(1, nodes, edges, nodes, nodes**2))
        for nodes, edges in zip(given.sizes, given.edge_counts, strict=True)
    )
    assert measured / 2.5 <= estimate <= measured * 2.5


@each_model
def test_the_grid_holds_settings_that_the_model_takes(name):
    spec = find_model(name)
    of_training = {"lr", "batch_size", "weight_decay"}
    assert spec.grid
    combinations = 1
    for key, values in spec.grid.items():
        combinations *= len(values)
        assert len(set(values)) == len(values) >= 1
        for value in values:
            if key not in of_training:
                spec.settings(**{key: value})
    assert 1 <= combinations <= 36
    assert spec.grid_source
    assert spec.reference


@pytest.mark.parametrize(
    ("name", "theirs"),
    [
        ("ppgn", {"lr": (5e-5, 1e-4, 1e-3), "width": (400, 256), "batch_size": (5,)}),
        ("pgcn", {"operator": ("adjacency", "laplacian"), "layers": (2, 4, 6, 8), "lr": (1e-4,)}),
        ("dgcnn", {"lr": (1e-4, 1e-5), "batch_size": (1, 50)}),
        ("gnnml", {"design": ("mutag", "proteins", "enzymes"), "lr": (0.001,)}),
        ("kgnn", {"width": (32, 64), "lr": (0.001,)}),
        ("diffpool", {"width": (20,), "batch_size": (20,), "lr": (0.001,)}),
        ("graphormer", {"layers": (12,), "width": (80,), "heads": (8,), "lr": (2e-4,)}),
        ("tokengt", {"identifiers": (16,), "lr": (2e-4,)}),
    ],
)
def test_the_grid_has_the_values_of_the_authors_code(name, theirs):
    grid = find_model(name).grid
    for key, values in theirs.items():
        assert set(values) <= set(grid[key])
