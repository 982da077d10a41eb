"""A transformer layer written out for one graph without padding, head by head and row by row."""

import math

import torch


def normed(norm, h):
    rows = []
    for row in h:
        centred = row - row.mean()
        rows.append(centred / (centred.square().mean() + norm.eps).sqrt() * norm.weight + norm.bias)
    return torch.stack(rows)


def applied(linear, h):
    return h @ linear.weight.T + linear.bias


def layer_of(layer, h, bias):
    """All tokens after a layer; `bias` [heads, T, T]."""
    width = h.shape[1] // layer.heads
    given = normed(layer.before_attention, h)
    queries, keys_values = applied(layer.queries, given), applied(layer.keys_values, given)
    heads = []
    for at in range(layer.heads):
        columns = slice(at * width, (at + 1) * width)
        query, key = queries[:, columns], keys_values[:, columns]
        value = keys_values[:, h.shape[1] :][:, columns]
        scores = (query @ key.T / math.sqrt(width) + bias[at]).exp()
        heads.append(scores / scores.sum(1, keepdim=True) @ value)
    h = h + applied(layer.out, torch.cat(heads, dim=1))
    inner = applied(layer.first, normed(layer.before_mlp, h))
    gelu = inner * (1 + torch.erf(inner / math.sqrt(2))) / 2
    return h + applied(layer.second, gelu)


def logits_of_vector(model, vector):
    """The head, of the last vector of the token that is read."""
    graph = normed(model.norm, vector.unsqueeze(0))
    return applied(model.classifier.second, applied(model.classifier.first, graph).relu())[0]
