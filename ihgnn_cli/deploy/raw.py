"""Checks input arrays that a caller has built: a runtime answers wrong ones without a word.

`docs/export.md` lists the mistakes. Those that the exported graph ignores are accepted here.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ihgnn_cli.deploy.inputs import PADDING, Arrays
from ihgnn_cli.errors import InputError

Inputs = Mapping[str, tuple[str, Sequence[int | str]]]
"""onnxruntime's type and shape of each input; a dynamic size has a name."""

_TYPES = {"tensor(int64)": np.int64, "tensor(uint8)": np.uint8, "tensor(float)": np.float32}


def checked(inputs: Inputs, given: Mapping[str, Any], edge_labels: int) -> Arrays:
    """The inputs as arrays of the right types.

    Args:
        inputs: what the file takes.
        given: the arrays.
        edge_labels: how many edge labels the model tells apart.

    Raises:
        InputError: they are not inputs of this model, or not what they should be.
    """
    if given.keys() != inputs.keys():
        raise InputError(
            f"The inputs are {', '.join(sorted(given)) or 'missing'}. This model takes "
            f"{', '.join(inputs)}."
        )
    sizes: dict[str, tuple[str, int]] = {}
    arrays = {name: _array(name, given[name], inputs[name], sizes, edge_labels) for name in inputs}
    if "ptr" in arrays:
        _check_sparse(arrays, edge_labels)
        real = np.ones(len(arrays["node_labels"]), dtype=bool)
    else:
        real = arrays["node_labels"] != PADDING
        there = arrays["adjacency"]
        back = there.transpose(0, 2, 1)
        if edge_labels and ((there != back) & (there > 0) & (back > 0)).any():
            raise InputError("adjacency has different labels for the two directions of an edge.")
    if "attributes" in arrays and not np.isfinite(arrays["attributes"][real]).all():
        raise InputError("attributes has a node with a value that is not a finite number.")
    return arrays


def _array(
    name: str,
    given: Any,
    takes: tuple[str, Sequence[int | str]],
    sizes: dict[str, tuple[str, int]],
    edge_labels: int,
) -> NDArray[Any]:
    """One input, if its type and shape fit; `sizes` has those of the inputs before."""
    kind, shape = takes
    array, wanted = np.asarray(given), np.dtype(_TYPES[kind])
    if array.size == 0 and array.dtype == np.float64:
        array = array.astype(wanted)  # what NumPy makes of an empty list
    if array.dtype.kind not in ("biuf" if wanted.kind == "f" else "biu"):
        raise InputError(f"{name} has values of type {array.dtype}. Give {wanted}.")
    words = [_words(each) for each in (array.shape, shape)]
    if array.ndim != len(shape) or any(
        isinstance(size, int) and size != found
        for size, found in zip(shape, array.shape, strict=True)
    ):
        raise InputError(f"{name} has the shape {words[0]}. This model takes {words[1]}.")
    for size, found in zip(shape, array.shape, strict=True):
        if isinstance(size, str):
            first, expected = sizes.setdefault(size, (name, found))
            if found != expected:
                raise InputError(
                    f"{name} has the shape {words[0]}, and {first} has {size} = {expected:,}. "
                    "They must agree."
                )
    if wanted == np.uint8 and not edge_labels:
        array = array != 0  # any value but 0 is an edge, 256 too
    elif wanted == np.uint8 and ((array < 0) | (array > edge_labels)).any():
        raise InputError(
            "adjacency has a value that is no edge label. For an edge, give 1 + the position of "
            f"its label, up to {edge_labels}; otherwise 0."
        )
    with np.errstate(over="ignore"):
        found_array: NDArray[Any] = array.astype(wanted)
    return found_array


def _check_sparse(arrays: Arrays, edge_labels: int) -> None:
    nodes, ptr, edges = len(arrays["node_labels"]), arrays["ptr"], arrays["edge_index"]
    if not len(ptr) or ptr[0] != 0 or ptr[-1] != nodes or (np.diff(ptr) < 0).any():
        sizes = " These are sizes; give their cumulative sum." if ptr.sum() == nodes else ""
        raise InputError(
            f"ptr must start with 0, never fall, and end with {nodes:,}, the number of nodes."
            f"{sizes}"
        )
    outside = (edges < 0) | (edges >= nodes)
    if outside.any():
        raise InputError(
            f"edge_index has node {edges[outside][0]:,}, and the nodes of the batch are 0 to "
            f"{nodes - 1:,}."
        )
    graph = np.repeat(np.arange(len(ptr) - 1), np.diff(ptr))
    across = "Number the nodes across the batch: add ptr[g] to those of graph g."
    apart = edges[:, graph[edges[0]] != graph[edges[1]]]
    if apart.size:
        raise InputError(
            f"edge_index joins nodes {apart[0, 0]:,} and {apart[1, 0]:,} of two graphs. {across}"
        )
    between = edges[0] != edges[1]
    keys = edges[0, between] * nodes + edges[1, between]
    mirrored = edges[1, between] * nodes + edges[0, between]
    order, other = np.argsort(keys, kind="stable"), np.argsort(mirrored, kind="stable")
    if (np.diff(keys[order]) == 0).any():
        raise InputError(
            f"edge_index lists an edge twice. List each once in each direction. {across}"
        )
    if (keys[order] != mirrored[other]).any():
        missing = edges[:, between][:, ~np.isin(mirrored, keys)][:, 0]
        raise InputError(
            f"edge_index has the edge from node {missing[0]:,} to node {missing[1]:,}, but not the "
            "one back. List each edge in both directions."
        )
    if "edge_labels" in arrays:
        label = arrays["edge_labels"]
        if ((label < 0) | (label >= edge_labels)).any():
            raise InputError(
                "edge_labels has a value that is no edge label. Those of the model have the "
                f"positions 0 to {edge_labels - 1}."
            )
        if (label[between][order] != label[between][other]).any():
            raise InputError("edge_labels differ between the two directions of an edge.")


def _words(shape: Sequence[int | str]) -> str:
    return f"[{', '.join(str(each) for each in shape)}]"
