"""Adds conformal prediction sets to an exported network, with the threshold as a constant.

    prediction_set = probabilities >= min(threshold, largest probability of the graph)

Thresholds by homophily bin are in the metadata only: the network does not know a graph's homophily,
which depends on labels that it may not read.
"""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from ihgnn_cli.deploy.onnx_model import PREDICTION_SET


def add_prediction_set(proto: onnx.ModelProto, threshold: float) -> None:
    """Add the output `prediction_set`, [batch, classes] uint8, to a network with probabilities."""
    graph = proto.graph
    constant, most, largest, least, listed = (
        f"{PREDICTION_SET}.{name}" for name in ("threshold", "one", "largest", "least", "listed")
    )
    graph.initializer.extend(
        [
            numpy_helper.from_array(np.array([[threshold]], dtype=np.float32), constant),
            numpy_helper.from_array(np.array([1], dtype=np.int64), most),
        ]
    )
    # Not ReduceMax, which onnxruntime gives a wrong shape for an empty batch.
    graph.node.extend(
        [
            helper.make_node("TopK", ["probabilities", most], [largest, f"{largest}.class"]),
            helper.make_node("Min", [constant, largest], [least]),
            helper.make_node("GreaterOrEqual", ["probabilities", least], [listed]),
            helper.make_node("Cast", [listed], [PREDICTION_SET], to=TensorProto.UINT8),
        ]
    )
    (likely,) = (each for each in graph.output if each.name == "probabilities")
    added = graph.output.add()
    added.CopyFrom(likely)
    added.name, added.type.tensor_type.elem_type = PREDICTION_SET, TensorProto.UINT8
