"""The runtimes on this machine that can run an exported file: onnxruntime's providers, OpenVINO."""

import importlib.util
import json
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from ihgnn_cli.deploy.inputs import Arrays
from ihgnn_cli.deploy.onnx_model import open_session
from ihgnn_cli.errors import IhgnnError, InputError
from ihgnn_cli.words import hint

if TYPE_CHECKING:
    import onnxruntime

OPENVINO = "openvino"
"""`openvino:DEVICE` is OpenVINO's own Python package; its onnxruntime provider has another name."""


class Runtime(Protocol):
    """An exported file, loaded."""

    @property
    def version(self) -> str:
        """The package and its version."""

    def run(self, inputs: Arrays, outputs: Sequence[str]) -> Arrays:
        """The outputs by name."""

    def operators(self) -> dict[str, int]:
        """Where the operators really ran so far, by provider or device; ends the runtime."""


def installed_runtimes() -> list[str]:
    """The names of all runtimes that are installed; some may not start on this machine."""
    import onnxruntime

    found: list[str] = onnxruntime.get_available_providers()
    if importlib.util.find_spec(OPENVINO) is None:
        return found
    import openvino

    return [*found, *(f"{OPENVINO}:{each}" for each in openvino.Core().available_devices)]


def check_runtimes(names: Sequence[str]) -> None:
    """Check that runtimes are installed.

    Raises:
        InputError: one is not.
    """
    known = installed_runtimes()
    for name in names:
        if name not in known:
            raise InputError(f"No provider or runtime '{name}' is installed. {hint(name, known)}")


def start(name: str, model: Path) -> Runtime:
    """Load an exported file in an installed runtime.

    Raises:
        IhgnnError: the runtime does not start on this machine, or cannot load the file.
    """
    kind, _, device = name.partition(":")
    if kind == OPENVINO:
        return _openvino(model, device)
    # The profile says which provider ran an operator; a session says only which ones it may use.
    folder = tempfile.TemporaryDirectory(prefix="ihgnn-")
    try:
        session = open_session(model, providers=[name], profile=Path(folder.name) / "profile")
    except BaseException:
        folder.cleanup()
        raise
    return _OnnxRuntime(session, folder)


@dataclass(frozen=True, eq=False)
class _OnnxRuntime:
    session: "onnxruntime.InferenceSession"
    folder: "tempfile.TemporaryDirectory[str]"

    @property
    def version(self) -> str:
        import onnxruntime

        return f"onnxruntime {onnxruntime.__version__}"

    def run(self, inputs: Arrays, outputs: Sequence[str]) -> Arrays:
        return dict(zip(outputs, self.session.run(outputs, inputs), strict=True))

    def operators(self) -> dict[str, int]:
        with self.folder:
            events = json.loads(Path(self.session.end_profiling()).read_text(encoding="utf-8"))
        ran = {
            (each["name"], each["args"]["provider"])
            for each in events
            if each.get("cat") == "Node" and "provider" in each.get("args", {})
        }
        return dict(Counter(provider for _, provider in ran))


@dataclass(frozen=True, eq=False)
class _OpenVINO:
    compiled: Any

    @property
    def version(self) -> str:
        import openvino

        return f"OpenVINO {openvino.__version__.partition('-')[0]}"

    def run(self, inputs: Arrays, outputs: Sequence[str]) -> Arrays:
        found = self.compiled(inputs)
        return {name: found[name] for name in outputs}

    def operators(self) -> dict[str, int]:
        devices = self.compiled.get_property("EXECUTION_DEVICES")
        count = len(self.compiled.get_runtime_model().get_ops())
        return {f"{OPENVINO}:{','.join(devices)}": count}


def _openvino(model: Path, device: str) -> _OpenVINO:
    import openvino

    # The default is half precision on some processors, which changes the order of nodes.
    exact = {"INFERENCE_PRECISION_HINT": "f32"}
    try:
        return _OpenVINO(openvino.compile_model(model, device, exact))
    except RuntimeError as error:
        raise IhgnnError(f"OpenVINO cannot load {model}: {_first_line(error)}") from error


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
