"""The execution providers of onnxruntime that really load.

`get_available_providers` lists what a build was made with; a provider whose libraries are missing
is replaced without a word when a session starts, and only the session itself tells.
"""

from functools import cache


@cache
def _probe_model() -> bytes:
    """The smallest model there is: its output is its input."""
    from onnx import TensorProto, helper

    shape = [1]
    graph = helper.make_graph(
        [helper.make_node("Identity", ["x"], ["y"])],
        "probe",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
    )
    # Opset 13 and IR 8 are old enough for every onnxruntime that the project supports.
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    return bytes(model.SerializeToString())


def loadable_providers() -> dict[str, bool]:
    """Each provider of the installed onnxruntime, and whether a session really starts on it."""
    import onnxruntime

    onnxruntime.set_default_logger_severity(4)  # a provider that is missing is our answer, not news
    return {provider: _loads(provider) for provider in onnxruntime.get_available_providers()}


def _loads(provider: str) -> bool:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        # Without enable_fallback=0 a failure is printed, and the CPU taken instead.
        session = onnxruntime.InferenceSession(
            _probe_model(), options, providers=[provider], enable_fallback=0
        )
    except Exception:  # noqa: BLE001 - onnxruntime raises its own types and RuntimeError alike
        return False
    return provider in session.get_providers()
