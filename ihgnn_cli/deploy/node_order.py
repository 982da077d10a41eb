"""The order in which the readout of an exported IHGNN sorts nodes, which is no output of the file.

A second session has the sort keys of the first member as its output. It is opened when it is first
needed. `examples/web/onnx_file.mjs` does the same in browsers.
"""

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ihgnn_cli.data.dataset import GraphDataset
from ihgnn_cli.deploy.onnx_model import OnnxClassifier

if TYPE_CHECKING:
    import onnx
    import onnxruntime

_SUM_OF_LAYERS = ".nodes.total.weight"


class NodeOrder:
    """The sorted nodes of graphs.

    Args:
        path: the .onnx file.
        classifier: the same file, loaded.
    """

    def __init__(self, path: Path, classifier: OnnxClassifier) -> None:
        self._path, self._classifier = path, classifier

    def of_graph(self, dataset: GraphDataset) -> list[int] | None:
        """The nodes of an encoded data set of one graph in sorted order.

        `None` if the model is no IHGNN that sorts.
        """
        if self._session is None:
            return None
        (keys,) = self._session.run(
            [self._session.get_outputs()[-1].name], self._classifier.inputs(dataset, np.arange(1))
        )
        order: list[int] = np.argsort(keys.ravel()[: dataset.num_nodes], kind="stable").tolist()
        return order

    @cached_property
    def _session(self) -> "onnxruntime.InferenceSession | None":
        if self._classifier.node_limit is None:
            return None
        import onnx
        import onnxruntime

        model = onnx.load(self._path)
        key = _sort_keys(model)
        if key is None:
            return None
        model.graph.output.add().name = key
        content = model.SerializeToString()
        return onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])


def _sort_keys(model: "onnx.ModelProto") -> str | None:
    """The tensor that the readout sorts by: the input of the first TopK after the sum of layers."""
    summed = False
    for node in model.graph.node:
        summed = summed or any(name.endswith(_SUM_OF_LAYERS) for name in node.input)
        if summed and node.op_type == "TopK":
            return str(node.input[0])
    return None
