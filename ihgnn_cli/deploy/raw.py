"""Checks input arrays that a caller has built: a runtime answers wrong ones without a word.

`docs/export.md` lists the mistakes. Those that the exported graph ignores are accepted here.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ihgnn_cli.deploy.form import Layout
from ihgnn_cli.deploy.inputs import PADDING, Arrays
from ihgnn_cli.deploy.metadata import Described, inputs_of
from ihgnn_cli.errors import InputError


def checked(about: Described, given: Mapping[str, Any]) -> Arrays:
    """The inputs as arrays of the right types.

    Raises:
        InputError: they are not inputs of this model, or not what they should be.
    """
    wanted = inputs_of(about.card, about.layout, about.nodes)
    if given.keys() != wanted.keys():
        raise InputError(
            f"The inputs are {', '.join(sorted(given)) or 'missing'}. This model takes "
            f"{', '.join(wanted)}."
        )
    labels = len(about.card.edge_label_values)
    arrays = {name: _array(name, given[name], what, labels) for name, what in wanted.items()}
    _check_sizes(arrays, wanted)
    if about.layout == Layout.SPARSE:
        _check_sparse(arrays)
        if labels:
            _check_edge_labels(arrays, labels)
        real = np.ones(len(arrays["node_labels"]), dtype=bool)
    else:
        real = arrays["node_labels"] != PADDING
        there = arrays["adjacency"]
        back = there.transpose(0, 2, 1)
        if labels and ((there != back) & (there > 0) & (back > 0)).any():
            raise InputError("adjacency has different labels for the two directions of an edge.")
    if "attributes" in arrays and not np.isfinite(arrays["attributes"][real]).all():
        raise InputError("attributes has a node with a value that is not a finite number.")
    return arrays


def _array(name: str, given: Any, what: Mapping[str, Any], labels: int) -> NDArray[Any]:
    """One input, if its kind and shape fit, of a model with this many edge labels."""
    array, kind = np.asarray(given), np.dtype(what["type"])
    if array.size == 0 and array.dtype == np.float64:
        array = array.astype(kind)  # what NumPy makes of an empty list
    numbers = "biuf" if kind.kind == "f" else "biu"
    if array.dtype.kind not in numbers:
        raise InputError(f"{name} has values of type {array.dtype}. Give {kind}.")
    shape = what["shape"]
    fits = array.ndim == len(shape) and all(
        isinstance(size, str) or size == found
        for size, found in zip(shape, array.shape, strict=True)
    )
    if not fits:
        raise InputError(
            f"{name} has the shape {_words(array.shape)}. This model takes {_words(shape)}."
        )
    if kind == np.uint8 and not labels:  # any value but 0 is an edge, 256 too
        array = array != 0
    elif kind == np.uint8 and ((array < 0) | (array > labels)).any():
        raise InputError(
            f"{name} has the value {array[(array < 0) | (array > labels)][0]}. For an edge, give 1 "
            f"+ the position of its label, up to {labels}; otherwise 0."
        )
    found: NDArray[Any] = array.astype(kind)
    return found


def _check_sizes(arrays: Arrays, wanted: Mapping[str, Mapping[str, Any]]) -> None:
    """Check that sizes of the same name agree."""
    seen: dict[str, tuple[str, int]] = {}
    for name, array in arrays.items():
        for size, found in zip(wanted[name]["shape"], array.shape, strict=True):
            if isinstance(size, str):
                first, expected = seen.setdefault(size, (name, found))
                if found != expected:
                    raise InputError(
                        f"{name} has the shape {_words(array.shape)}, and {first} has {size} = "
                        f"{expected:,}. They must agree."
                    )


def _check_sparse(arrays: Arrays) -> None:
    nodes, ptr = len(arrays["node_labels"]), arrays["ptr"]
    if not len(ptr) or ptr[0] != 0 or ptr[-1] != nodes or (np.diff(ptr) < 0).any():
        sizes = " These are sizes; give their cumulative sum." if ptr.sum() == nodes else ""
        raise InputError(
            f"ptr must start with 0, never fall, and end with {nodes:,}, the number of nodes."
            f"{sizes}"
        )
    source, target = arrays["edge_index"]
    outside = (arrays["edge_index"] < 0) | (arrays["edge_index"] >= nodes)
    if outside.any():
        raise InputError(
            f"edge_index has node {arrays['edge_index'][outside][0]:,}, and the nodes of the batch "
            f"are 0 to {nodes - 1:,}."
        )
    graph = np.repeat(np.arange(len(ptr) - 1), np.diff(ptr))
    apart = graph[source] != graph[target]
    if apart.any():
        raise InputError(
            f"edge_index joins node {source[apart][0]:,} of graph {graph[source[apart][0]]:,} and "
            f"node {target[apart][0]:,} of graph {graph[target[apart][0]]:,}. Number the nodes "
            "across the batch: add ptr[g] to those of graph g."
        )
    between = source != target
    source, target = source[between], target[between]
    keys = source * nodes + target
    distinct = np.unique(keys)
    if len(distinct) < len(keys):
        raise InputError(
            "edge_index lists an edge twice. List each once in each direction, with nodes "
            "numbered across the batch: add ptr[g] to those of graph g."
        )
    missing = ~np.isin(target * nodes + source, distinct)
    if missing.any():
        raise InputError(
            f"edge_index has the edge from node {source[missing][0]:,} to node "
            f"{target[missing][0]:,}, but not the one back. List each edge in both directions."
        )


def _check_edge_labels(arrays: Arrays, count: int) -> None:
    source, target = arrays["edge_index"]
    label = arrays["edge_labels"]
    outside = (label < 0) | (label >= count)
    if outside.any():
        raise InputError(
            f"edge_labels has the value {label[outside][0]}, and the positions of the model's edge "
            f"labels are 0 to {count - 1}."
        )
    there, back = np.lexsort((target, source)), np.lexsort((source, target))
    if (label[there] != label[back]).any():
        raise InputError("edge_labels differ between the two directions of an edge.")


def _words(shape: Any) -> str:
    return f"[{', '.join(str(each) for each in shape)}]"
