"""The forms that a model is exported in: layout of its inputs, opset, precision of its weights."""

from dataclasses import dataclass
from enum import StrEnum

from ihgnn_cli.errors import InputError
from ihgnn_cli.settings import Settings

OPSET = 18
"""The default: such a file loads in onnxruntime 1.17 and later."""
IR_VERSIONS = {18: 8, 19: 9, 20: 9, 21: 10, 22: 10, 23: 11}
"""By opset, the oldest version of the file format that has it: all the opsets that are tested."""

_FLOAT = 4
# One matrix of ten megabytes: a batch of a hundred graphs would take a gigabyte.
_ABSURD = 10_000_000


class Layout(StrEnum):
    """How a batch of graphs is laid out in the inputs."""

    PADDED = "padded"
    """Matrices, padded to one size."""
    SPARSE = "sparse"
    """Lists of nodes and edges."""


@dataclass(frozen=True)
class Form(Settings):
    """What to choose when a model is exported.

    Raises:
        InputError: there is no such form.
    """

    layout: Layout = Layout.PADDED
    nodes: int | None = None
    """The size that graphs are padded to, if it is fixed."""
    opset: int = OPSET
    small: bool = False
    """The classifier's first matrix, by far the largest, is stored in half precision."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.opset not in IR_VERSIONS:
            raise InputError(
                f"No export to opset {self.opset}: {min(IR_VERSIONS)} to {max(IR_VERSIONS)} are "
                f"tested, and {OPSET}, the default, runs in the most places."
            )
        if self.nodes is None:
            return
        if self.layout == Layout.SPARSE:
            raise InputError(
                "--layout sparse pads nothing, so there is no --max-nodes to pad to. Drop one."
            )
        if self.nodes < 1:
            raise InputError(f"--max-nodes must be at least 1, not {self.nodes}.")

    @property
    def ir_version(self) -> int:
        """Of the file format."""
        return IR_VERSIONS[self.opset]


def padded_bytes(nodes: int) -> int:
    """What the adjacency matrix of one graph takes while the model runs, padded to this size."""
    return _FLOAT * nodes * nodes


def is_absurd(size: int) -> bool:
    """Whether so many bytes for each graph speak against the padded layout."""
    return size > _ABSURD
