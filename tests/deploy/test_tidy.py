"""Operations that do nothing leave the network, and what it answers stays."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from ihgnn_cli.deploy.tidy import tidy


def sorting(axes: int) -> onnx.ModelProto:
    """Sorts x, and takes the second of the sorted, as torch's exporter writes it."""
    shape = ["n"] if axes == 1 else ["n", "m"]
    nodes = [
        helper.make_node("Shape", ["x"], ["lengths"]),
        helper.make_node("Gather", ["lengths", "last"], ["length"]),
        helper.make_node("Reshape", ["length", "one"], ["k"]),
        helper.make_node("TopK", ["x", "k"], ["sorted", "order"]),
        helper.make_node("Reshape", ["order", "any"], ["flat"]),
        helper.make_node("Identity", ["order"], ["unused"]),
        helper.make_node("Gather", ["flat", "place"], ["second"]),
    ]
    return helper.make_model(
        helper.make_graph(
            nodes,
            "sorting",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
            [helper.make_tensor_value_info("second", TensorProto.INT64, [])],
            [
                numpy_helper.from_array(np.array(-1), "last"),
                numpy_helper.from_array(np.array([1]), "one"),
                numpy_helper.from_array(np.array([-1]), "any"),
                numpy_helper.from_array(np.array(1), "place"),
            ],
            value_info=[
                helper.make_tensor_value_info("order", TensorProto.INT64, shape),
                helper.make_tensor_value_info("lengths", TensorProto.INT64, [axes]),
                helper.make_tensor_value_info("flat", TensorProto.INT64, [None]),
            ],
        ),
        opset_imports=[helper.make_opsetid("", 18)],
        ir_version=8,
    )


def answer(proto: onnx.ModelProto, x: np.ndarray) -> int:
    session = onnxruntime.InferenceSession(
        proto.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return int(session.run(None, {"x": x})[0])


@pytest.mark.parametrize(
    ("axes", "kept"),
    [
        (1, ["Shape", "TopK", "Gather"]),
        (2, ["Shape", "Gather", "Reshape", "TopK", "Reshape", "Gather"]),
    ],
)
def test_only_vectors_need_no_reshape(axes: int, kept: list[str]) -> None:
    proto = sorting(axes)
    x = np.array([3, 9, 7], dtype=np.float32).reshape([3] if axes == 1 else [1, 3])
    assert answer(proto, x) == 2  # 9, then 7
    tidy(proto)
    onnx.checker.check_model(proto, full_check=True)
    assert [node.op_type for node in proto.graph.node] == kept
    assert answer(proto, x) == 2
    names = {each.name for each in proto.graph.initializer}
    assert names == ({"place"} if axes == 1 else {"last", "one", "any", "place"})
