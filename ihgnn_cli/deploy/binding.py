"""Runs an exported model on inputs and outputs that stay on the session's device."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnxruntime import OrtValue

from ihgnn_cli.deploy.inputs import Arrays
from ihgnn_cli.deploy.onnx_model import CUDA, OnnxClassifier, output_type

_OF_CUDA = (CUDA, "TensorrtExecutionProvider")


class Bound:
    """A session with bound inputs and outputs.

    With fixed shapes their addresses never change, as CUDA graphs require.
    """

    def __init__(self, classifier: OnnxClassifier) -> None:
        session = classifier.session
        self._session, self._binding = session, session.io_binding()
        provider = classifier.runs_on
        self._device = "cuda" if provider in _OF_CUDA else "cpu"
        options = session.get_provider_options().get(provider, {})
        self._number = int(options.get("device_id", 0))
        self._inputs: dict[str, Any] = {}
        self._outputs: dict[str, Any] = {}
        for each in session.get_outputs():
            if all(isinstance(size, int) for size in each.shape):
                self._outputs[each.name] = self._empty(each.shape, output_type(each.name))
                self._binding.bind_ortvalue_output(each.name, self._outputs[each.name])
            else:
                self._binding.bind_output(each.name, self._device, self._number)

    def give(self, inputs: Arrays) -> None:
        """Copy a batch to the device, in place if the shapes are those of the batch before."""
        for name, array in inputs.items():
            held = self._inputs.get(name)
            if held is not None and tuple(held.shape()) == array.shape:
                held.update_inplace(array)
                continue
            # A copy: on the CPU, the value is a view of the array.
            held = OrtValue.ortvalue_from_numpy(array.copy(), self._device, self._number)
            self._inputs[name] = held
            self._binding.bind_ortvalue_input(name, held)

    def run(self) -> None:
        """Run the batch."""
        self._session.run_with_iobinding(self._binding)

    def outputs(self) -> dict[str, NDArray[Any]]:
        """The outputs of the last batch, by name."""
        names = [each.name for each in self._session.get_outputs()]
        return dict(zip(names, self._binding.copy_outputs_to_cpu(), strict=True))

    def _empty(self, shape: list[int], kind: type[np.generic]) -> Any:
        return OrtValue.ortvalue_from_shape_and_type(shape, kind, self._device, self._number)
