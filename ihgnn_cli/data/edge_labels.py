"""Edge labels: whether to tell edges apart by them, and the label that means "no edge".

Some data sets are complete graphs in which an edge label says that there is no bond: BZR_MD, with
label 1. Without these edges, the graphs are the molecules. Bins of an edge attribute become edge
labels, too (`edge_bins`).
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ihgnn_cli.data.dataset import GraphDataset, LabelSource, Value, offsets
from ihgnn_cli.data.edge_bins import EdgeBins, quantile_boundaries
from ihgnn_cli.data.kinds import check_edge_bins
from ihgnn_cli.data.recode import UNKNOWN, positions
from ihgnn_cli.errors import InputError
from ihgnn_cli.words import counted

_SHOWN = 10


def with_edge_labels(
    dataset: GraphDataset, *, use: bool = False, background: str = "", bins: int = 0
) -> GraphDataset:
    """The data set as models, 1-WL colours and references are to see it.

    Args:
        dataset: the graphs.
        use: whether to tell edges apart by label.
        background: edges with this label are left out; empty: none. Labels match by their text.
        bins: number of bins of the edge attribute to tell edges apart by; 0: none. Data that has
            bins already is not changed.

    Raises:
        InputError: there are no edge labels, they differ between the two directions of an edge, no
            edge has the background label, or all have it; or the same for the edge attribute; or
            the data has other bins already.
    """
    check_edge_bins(bins)
    if dataset.edge_bins is not None:
        _refuse_other_bins(dataset, dataset.edge_bins, use, background, bins)
        return dataset
    if background == dataset.background_edge_label:
        background = ""  # left out already
    if background or (use and (bins or not dataset.uses_edge_labels)):
        if dataset.edge_label is None:
            option = "--edge-labels" if use else "--background-edge-label"
            raise InputError(f"{dataset.name} has no edge labels. Leave out {option}.")
        refuse_directed(dataset, "the options for edge labels")
        if background:
            _refuse_missing(dataset, dataset.edge_label, background)
            dataset = without_edges(dataset, background)
        dataset = replace(dataset, uses_edge_labels=use or dataset.uses_edge_labels)
    if not bins:
        return dataset
    boundaries = quantile_boundaries(_edge_attribute(dataset, "--edge-bins"), bins)
    if not boundaries:
        raise InputError(
            f"All edges of {dataset.name} have the same attribute, so there is one bin. Leave out "
            "--edge-bins."
        )
    return with_edge_bins(dataset, EdgeBins(boundaries, dataset.uses_edge_labels))


def with_edge_bins(dataset: GraphDataset, bins: EdgeBins) -> GraphDataset:
    """The data set with edge labels that are computed from the edge attribute.

    Raises:
        InputError: there is no edge attribute, there are several, or the two directions of an edge
            differ.
    """
    attribute = np.empty(0) if not dataset.num_edges else _edge_attribute(dataset)
    label, values = bins.of(attribute), tuple[Value, ...](range(bins.count))
    if bins.labels and dataset.edge_label is not None:
        code, label = np.unique(dataset.edge_label * bins.count + label, return_inverse=True)
        pairs = np.stack(np.divmod(code, bins.count), axis=1).tolist()
        values = tuple(f"{dataset.edge_label_values[one]},{bin_}" for one, bin_ in pairs)
    return replace(
        dataset,
        edge_label=label.astype(np.int32),
        edge_label_values=values,
        uses_edge_labels=True,
        edge_bins=bins,
    )


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


def refuse_directed(dataset: GraphDataset, options: str = "") -> None:
    """Refuse an edge whose two directions have different labels.

    Args:
        dataset: the graphs.
        options: those that can be left out instead, if there are any.

    Raises:
        InputError: there is one.
    """
    if dataset.edge_label is not None:
        _refuse_differing(dataset, dataset.edge_label, "label", options)


def _refuse_differing(
    dataset: GraphDataset, column: NDArray[np.generic], what: str, options: str
) -> None:
    """Refuse an edge whose two directions differ in a column."""
    # Edges are sorted by source, then target; sorted by target, then source, they are reversed.
    backward = column[np.argsort(dataset.neighbors, kind="stable")]
    differ = int((column != backward).sum()) // 2
    if differ:
        other = f", or leave out {options}" if options else ""
        raise InputError(
            f"{dataset.name}: {counted(differ, 'edge')} {'has' if differ == 1 else 'have'} a "
            f"different {what} in each direction. Give both directions the same {what}{other}."
        )


def _edge_attribute(dataset: GraphDataset, option: str = "") -> NDArray[np.float32]:
    """[E] the single edge attribute, the same in both directions of an edge.

    Messages advise to leave out the option that asks for it. Without one, a model does.
    """
    found = dataset.edge_attributes
    columns = 0 if found is None else found.shape[1]
    if found is None or columns != 1:
        if option:
            number = counted(columns, "edge attribute") if columns else "no edge attributes"
            reason = f"{dataset.name} has {number}, and edge bins need exactly one"
            raise InputError(f"{reason}. Leave out {option}.")
        raise InputError(
            f"The model reads one edge attribute, and {dataset.name} has {columns or 'none'}. Give "
            "data of the same kind."
        )
    _refuse_differing(dataset, found[:, 0], "attribute", option)
    return found[:, 0]


def _refuse_other_bins(
    dataset: GraphDataset, made: EdgeBins, use: bool, background: str, bins: int
) -> None:
    """Refuse settings that are not those that the bins of a data set were made with."""
    attributes = dataset.edge_attributes
    other = {
        "edge labels": use and not made.labels,
        "background label": background not in ("", dataset.background_edge_label),
        "number of bins": bins
        and attributes is not None
        and quantile_boundaries(attributes[:, 0], bins) != made.boundaries,
    }
    differing = [what for what, differs in other.items() if differs]
    if differing:
        raise InputError(
            f"{dataset.name} has edge bins already, made with another setting of the "
            f"{' and '.join(differing)}. Give it without bins, or leave these settings out."
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
