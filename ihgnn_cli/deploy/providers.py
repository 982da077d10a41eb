"""The execution providers of onnxruntime that really load.

`get_available_providers` lists the providers of a build. A session silently replaces a provider
whose libraries are missing, so each one is tried.
"""

from functools import cache


@cache
def _probe_model() -> bytes:
    """A minimal model: its output is its input."""
    from onnx import TensorProto, helper

    shape = [1]
    graph = helper.make_graph(
        [helper.make_node("Identity", ["x"], ["y"])],
        "probe",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
    )
    # Every supported onnxruntime reads opset 13 and IR 8.
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    return bytes(model.SerializeToString())


def loadable_providers() -> dict[str, bool]:
    """The providers of the installed onnxruntime, and whether a session starts on each."""
    import onnxruntime

    onnxruntime.set_default_logger_severity(4)  # missing providers are expected here
    return {provider: _loads(provider) for provider in onnxruntime.get_available_providers()}


def _loads(provider: str) -> bool:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        # Without enable_fallback=0, onnxruntime prints a failure and falls back to the CPU.
        session = onnxruntime.InferenceSession(
            _probe_model(), options, providers=[provider], enable_fallback=0
        )
    except Exception:  # noqa: BLE001 - onnxruntime raises its own types as well as RuntimeError
        return False
    return provider in session.get_providers()
