"""The card of an IHGNN that was trained in a loop of its own."""

from dataclasses import replace

import numpy as np

from ihgnn_cli.data.dataset import GraphDataset
from ihgnn_cli.data.features import Features
from ihgnn_cli.data.splits import Split
from ihgnn_cli.errors import InputError
from ihgnn_cli.models.card import ModelCard, describe, inputs_of
from ihgnn_cli.models.ihgnn import IHGNN


def card_of_model(model: IHGNN, dataset: GraphDataset, given: str = "") -> ModelCard:
    """The card of a model that was trained on this data; all its graphs count as seen.

    The input columns are those of torch-geometric's `x`: attributes, one-hot labels (or degrees),
    or attributes followed by labels.

    Raises:
        InputError: the model does not fit the data.
    """
    dataset = replace(dataset, uses_edge_labels=model.edge_labels > 0)
    columns, classes = model.in_channels, model.num_classes
    features = {
        inputs_of(dataset, each).features: each
        for each in (Features.BOTH, Features.ATTRIBUTES, Features.LABELS)
        if each == Features.LABELS or dataset.node_attributes is not None
    }
    if columns not in features:
        raise InputError(
            f"The model reads {columns} columns, and {dataset.name} has "
            f"{' or '.join(map(str, sorted(features)))}. Give the data that it was trained on."
        )
    every = np.arange(len(dataset))
    split = Split(every, every[:0], every[:0], may_be_empty=True)
    card = replace(describe(given, dataset, features[columns], split), max_nodes=model.max_nodes)
    if (classes, model.edge_labels) != (card.inputs.classes, card.inputs.edge_labels):
        raise InputError(
            f"The model has {classes} classes and {model.edge_labels} edge labels, and "
            f"{dataset.name} has {card.inputs.classes} and {card.inputs.edge_labels}. Give the "
            "data that it was trained on."
        )
    return card
