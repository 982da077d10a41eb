"""Removes superfluous operations that torch's exporter leaves in a network.

For a batch of one small graph, most of the time goes into starting operations.
"""

import onnx
from onnx import NodeProto, numpy_helper


def tidy(proto: onnx.ModelProto) -> None:
    """Remove reshapes of vectors to vectors, and detours to the length of a vector."""
    graph = proto.graph
    found = _Found(graph)
    replaced: dict[str, str] = {}
    for node in graph.node:
        for position, name in enumerate(node.input):
            node.input[position] = replaced.get(name, name)
        if node.op_type == "Reshape":
            same = found.same_as(*node.input)
            if same is not None:
                replaced[node.output[0]] = same
    _remove_unused(graph)


class _Found:
    """What is known about the values in a graph."""

    def __init__(self, graph: onnx.GraphProto) -> None:
        values = (*graph.input, *graph.value_info)
        self.vectors = {each.name for each in values if len(each.type.tensor_type.shape.dim) == 1}
        self.constants = {
            each.name: numpy_helper.to_array(each).tolist()
            for each in graph.initializer
            if each.dims in ([], [1])
        }
        self.made = {name: node for node in graph.node for name in node.output}

    def same_as(self, source: str, shape: str) -> str | None:
        """The existing value that equals `source` in this shape."""
        wanted = self.constants.get(shape)
        if wanted == [-1] and source in self.vectors:
            return source
        node = self.made.get(source)
        if wanted in ([1], [-1]) and node is not None and self._is_length_of_vector(node):
            return str(node.input[0])  # a vector's shape: its only element was gathered
        return None

    def _is_length_of_vector(self, node: NodeProto) -> bool:
        if node.op_type != "Gather" or self.constants.get(node.input[1]) not in (0, -1):
            return False
        shape = self.made.get(node.input[0])
        return shape is not None and shape.op_type == "Shape" and shape.input[0] in self.vectors


def _remove_unused(graph: onnx.GraphProto) -> None:
    """Remove everything that no output depends on."""
    needed = {each.name for each in graph.output}
    kept = []
    for node in reversed(graph.node):
        if needed.intersection(node.output):
            needed.update(node.input)
            kept.append(node)
    del graph.node[:]
    graph.node.extend(reversed(kept))
    named = needed.union(*(node.output for node in kept))
    for part in (graph.initializer, graph.value_info):
        staying = [each for each in part if each.name in named]
        del part[:]
        part.extend(staying)
