"""Options of an export: layout and size of the inputs."""

from dataclasses import dataclass
from enum import StrEnum

from ihgnn_cli.errors import InputError, SettingError
from ihgnn_cli.settings import Settings

OPSET = 18
IR_VERSION = 8
"""onnxruntime 1.17 and later can load files of this operator set and format version."""

_FLOAT = 4
TENSORRT_NODES = 3840
"""TensorRT sorts no more than this many nodes (k of its TopK)."""
# 10 MB per graph: a batch of a hundred graphs would take a gigabyte.
_ABSURD = 10_000_000


class Layout(StrEnum):
    """How a batch of graphs is laid out in the inputs."""

    PADDED = "padded"
    """Matrices, padded to one size."""
    SPARSE = "sparse"
    """Lists of nodes and edges."""


@dataclass(frozen=True)
class Form(Settings):
    """Options of an export.

    Raises:
        InputError: the options are invalid.
    """

    layout: Layout = Layout.PADDED
    nodes: int | None = None
    """The fixed size that graphs are padded to, if any."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.nodes is None:
            return
        if self.layout == Layout.SPARSE:
            raise InputError(
                "--max-nodes has no effect with --layout sparse, which does not pad. Drop one."
            )
        if self.nodes < 1:
            raise SettingError("max_nodes", f"must be at least 1, not {self.nodes}.")


def padded_bytes(nodes: int) -> int:
    """Bytes of one graph's adjacency matrix, padded to this size, while the model runs."""
    return _FLOAT * nodes * nodes


def is_absurd(size: int) -> bool:
    """Whether the padded layout needs too many bytes per graph to be practical."""
    return size > _ABSURD
