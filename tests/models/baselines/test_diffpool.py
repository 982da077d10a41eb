"""DiffPool against its equations in dense matrices, its penalties among them."""

import math

import pytest
import torch
from graph_makers import (
    KITE,
    PATH,
    TRIANGLE,
    dataset_of,
    graphs_of,
    logits_of,
    model_of,
    with_statistics,
)
from heterophilic import adjacency

from ihgnn_cli.errors import InputError
from ihgnn_cli.models.entries.diffpool import DiffPoolSettings

SMALL = {"layers": 2, "width": 4, "hidden": 6, "pools": 2, "cluster_share": 0.7}


def _sage(module, a, h):
    found = []
    weight = a.sum(1, keepdim=True).clamp(min=1)
    for at, layer in enumerate(module.layers):
        of_node, of_mean = layer.weight.split(h.shape[1], dim=1)
        h = h @ of_node.T + (a @ h / weight) @ of_mean.T + layer.bias
        h = h / h.square().sum(1, keepdim=True).sqrt()
        if at < len(module.layers) - 1:  # the last layer is neither rectified nor normalized
            norm = module.norms[at]
            h = (h.clamp(min=0) - norm.running_mean) / (norm.running_var + norm.eps).sqrt()
            h = h * norm.weight + norm.bias
        found.append(h)
    return torch.cat(found, dim=1)


def _by_hand(model, graph):
    a, x = adjacency(graph), torch.eye(3)[list(graph[0])]
    z = _sage(model.embeds[0], a, x)
    read, penalty = [z.max(0).values], 0.0
    for pool, embed in zip(model.pools, model.embeds[1:], strict=True):
        scores = (_sage(pool.sage, a, x) @ pool.last.weight.T + pool.last.bias).exp()
        s = scores / scores.sum(1, keepdim=True)
        links = (a - s @ s.T).square().sum().sqrt() / len(a)
        penalty += links - (s * s.log()).sum(1).mean()
        x, a = s.T @ z, s.T @ a @ s
        z = _sage(embed, a, x)
        read.append(z.max(0).values)
    first, second = model.classifier.first, model.classifier.second
    hidden = (first.weight @ torch.cat(read) + first.bias).clamp(min=0)
    return second.weight @ hidden + second.bias, penalty


@torch.no_grad()
def test_logits_and_penalties_are_those_of_the_equations():
    dataset = dataset_of([PATH, KITE, TRIANGLE])
    model = with_statistics(model_of("diffpool", dataset, **SMALL), dataset)
    assert [each.last.out_features for each in model.pools] == [3, 2]
    found = logits_of(model, dataset)
    penalties = []
    for at, graph in enumerate((PATH, KITE, TRIANGLE)):
        logits, penalty = _by_hand(model, graph)
        torch.testing.assert_close(found[at], logits, rtol=1e-5, atol=1e-5)
        penalties.append(penalty)
    together = model(graphs_of(dataset))[1]
    torch.testing.assert_close(together, torch.stack(penalties).mean(), rtol=1e-5, atol=1e-5)


@torch.no_grad()
@pytest.mark.parametrize("layers", [1, 3])
def test_the_last_layer_of_a_stack_has_no_relu_and_no_batch_normalization(layers):
    dataset = dataset_of([PATH, KITE])
    model = with_statistics(model_of("diffpool", dataset, layers=layers, width=4), dataset)
    for stack in (*model.embeds, *(pool.sage for pool in model.pools)):
        assert len(stack.layers) == layers
        assert len(stack.norms) == layers - 1
    seen = []
    model.embeds[0].register_forward_hook(lambda *call: seen.append(call[2][:, -4:]))
    model(graphs_of(dataset))
    assert (seen[0] < 0).any()
    torch.testing.assert_close(seen[0].norm(dim=1), torch.ones(len(seen[0])))


@torch.no_grad()
def test_penalties_of_even_clusters_by_hand():
    # Two clusters, each node half in both: S S^T is 1/2 everywhere, and each of the 16 entries of
    # A - S S^T is 1/2 or -1/2. The entropy of a row is log 2.
    dataset = dataset_of([KITE])
    for links, entropy in ((1.0, 0.0), (0.0, 1.0)):
        settings = {"link_weight": links, "entropy_weight": entropy, "pools": 1}
        model = model_of("diffpool", dataset, cluster_share=0.5, **settings)
        model.pools[0].last.weight.zero_()
        model.pools[0].last.bias.zero_()
        penalty = float(model(graphs_of(dataset))[1])
        assert penalty == pytest.approx(links * math.sqrt(16 / 4) / 4 + entropy * math.log(2))


@torch.no_grad()
def test_one_cluster_of_hard_assignments_sums_nodes_and_edges():
    dataset = dataset_of([KITE, TRIANGLE])
    model = model_of("diffpool", dataset, pools=1, cluster_share=0.3)
    seen = {}
    model.pools[0].register_forward_hook(lambda *call: seen.update(given=call[1], made=call[2]))
    graphs = graphs_of(dataset)
    model(graphs)
    x, adjacency, _ = seen["made"]
    assert adjacency.flatten().tolist() == [8, 6]  # 4 and 3 edges in both directions
    torch.testing.assert_close(x, graphs.sum_nodes(seen["given"][1]))


@pytest.mark.parametrize(
    ("settings", "largest", "clusters"),
    [
        ({"pools": 2, "cluster_share": 0.25}, 28, (7, 1)),
        ({}, 100, (10,)),
        ({"pools": 2}, 5748, (50, 5)),
        ({"pools": 3}, 6, (1, 1, 1)),
    ],
)
def test_clusters_are_a_share_of_the_largest_graph_up_to_a_limit(settings, largest, clusters):
    assert DiffPoolSettings(**settings).clusters(largest) == clusters


def test_memory_grows_with_the_largest_graph_and_not_with_its_square():
    def kept(nodes):
        path = ([0] * nodes, [(at - 1, at) for at in range(1, nodes)])
        dataset = dataset_of([path])
        model, found = model_of("diffpool", dataset).train(), {}

        def pack(tensor):
            found[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            answer = model(graphs_of(dataset))
        assert answer[0].isfinite().all()
        return sum(found.values())

    assert kept(4000) < 2.2 * kept(2000)


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"layers": 0}, "layers must be at least 1, not 0"),
        ({"pools": 0}, "pools must be from 1 to 20, not 0"),
        ({"cluster_share": 1.5}, "cluster_share must be from 0 to 1, not 1.5"),
        ({"most_clusters": 0}, "most_clusters must be at least 1"),
        ({"link_weight": -1.0}, "link_weight must be at least 0"),
    ],
)
def test_settings_out_of_range_are_refused(settings, problem):
    with pytest.raises(InputError, match=problem):
        DiffPoolSettings(**settings)
