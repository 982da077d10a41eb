"""Edge labels: whether to tell edges apart by them, and the label that means "no edge".

Some data sets are complete graphs in which an edge label says that there is no bond: BZR_MD, with
label 1. Without these edges, the graphs are the molecules.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ihgnn_cli.data.dataset import GraphDataset, LabelSource, offsets
from ihgnn_cli.data.recode import UNKNOWN, positions
from ihgnn_cli.errors import InputError
from ihgnn_cli.words import counted

_SHOWN = 10


def with_edge_labels(
    dataset: GraphDataset, *, use: bool = False, background: str = ""
) -> GraphDataset:
    """The data set as models, 1-WL colours and references are to see it.

    Args:
        dataset: the graphs.
        use: whether to tell edges apart by label.
        background: edges with this label are left out; empty: none. Labels match by their text.

    Raises:
        InputError: there are no edge labels, they differ between the two directions of an edge, no
            edge has the background label, or all have it.
    """
    if background == dataset.background_edge_label:
        background = ""  # left out already
    if not background and use in (False, dataset.uses_edge_labels):
        return dataset
    if dataset.edge_label is None:
        option = "--edge-labels" if use else "--background-edge-label"
        raise InputError(f"{dataset.name} has no edge labels. Leave out {option}.")
    refuse_directed(dataset)
    if background:
        _refuse_missing(dataset, dataset.edge_label, background)
        dataset = without_edges(dataset, background)
    return replace(dataset, uses_edge_labels=use or dataset.uses_edge_labels)


def without_edges(dataset: GraphDataset, background: str) -> GraphDataset:
    """The graphs without the edges of a label, and without that label; degrees are counted again.

    Both directions of an edge must have the same label.
    """
    dropped = int(positions([background], dataset.edge_label_values)[0])
    if dataset.edge_label is None or dropped == UNKNOWN:
        return replace(dataset, background_edge_label=background)
    kept = dataset.edge_label != dropped
    node = np.repeat(np.arange(dataset.num_nodes), dataset.degree)[kept]
    label, values = dataset.edge_label[kept], dataset.edge_label_values
    attributes = dataset.edge_attributes
    found = replace(
        dataset,
        neighbor_ptr=offsets(np.bincount(node, minlength=dataset.num_nodes)),
        neighbors=dataset.neighbors[kept],
        edge_label=label - (label > dropped),
        edge_label_values=(*values[:dropped], *values[dropped + 1 :]),
        edge_attributes=None if attributes is None else attributes[kept],
        background_edge_label=background,
    )
    if dataset.label_source == LabelSource.DEGREE:
        found = replace(found.with_degree_labels(), source=dataset.source)
    return found


def refuse_directed(dataset: GraphDataset) -> None:
    """Refuse an edge whose two directions have different labels.

    Raises:
        InputError: there is one.
    """
    label = dataset.edge_label
    if label is None:
        return
    # Edges are sorted by source, then target; sorted by target, then source, they are reversed.
    backward = label[np.argsort(dataset.neighbors, kind="stable")]
    differ = int((label != backward).sum()) // 2
    if differ:
        raise InputError(
            f"{dataset.name}: {counted(differ, 'edge')} {'has' if differ == 1 else 'have'} a "
            "different label in each direction. Give both directions the same label, or leave out "
            "the options for edge labels."
        )


def _refuse_missing(dataset: GraphDataset, label: NDArray[np.int32], background: str) -> None:
    """Refuse a background label that no edge has, or that all have."""
    values = dataset.edge_label_values
    counts = np.bincount(label, minlength=len(values)) // 2
    position = int(positions([background], values)[0])
    if position == UNKNOWN or not counts[position]:
        order = np.argsort(-counts, kind="stable")[:_SHOWN].tolist()
        listed = ", ".join(f"{values[at]} ({counted(int(counts[at]), 'edge')})" for at in order)
        more = f" and {counted(len(values) - _SHOWN, 'other')}" if len(values) > _SHOWN else ""
        raise InputError(
            f"No edge of {dataset.name} has the label {background}. Its edge labels are "
            f"{listed}{more}."
        )
    if counts[position] == dataset.num_edges:
        raise InputError(
            f"All edges of {dataset.name} have the label {background}, so none would be left. "
            "Leave out --background-edge-label."
        )
