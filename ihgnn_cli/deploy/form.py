"""Options of an export: layout of the inputs, opset, precision of the weights."""

from dataclasses import dataclass
from enum import StrEnum

from ihgnn_cli.errors import InputError, SettingError
from ihgnn_cli.settings import Settings

OPSET = 18
"""The default, which onnxruntime 1.17 and later can load."""
IR_VERSIONS = {18: 8, 19: 9, 20: 9, 21: 10, 22: 10, 23: 11}
"""The oldest file format version of each tested opset."""

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
    opset: int = OPSET
    small: bool = False
    """Whether the classifier's first matrix, by far the largest, is stored in half precision."""
    batch: int | None = None
    """The fixed number of graphs in a batch, if any."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.opset not in IR_VERSIONS:
            raise InputError(
                f"Cannot export to opset {self.opset}. Use {min(IR_VERSIONS)} to "
                f"{max(IR_VERSIONS)}; {OPSET}, the default, has the widest support."
            )
        for name, size in (("max_nodes", self.nodes), ("batch", self.batch)):
            if size is not None and self.layout == Layout.SPARSE:
                raise InputError(
                    f"--{name.replace('_', '-')} has no effect with --layout sparse, which does "
                    "not pad. Drop one."
                )
            if size is not None and size < 1:
                raise SettingError(name, f"must be at least 1, not {size}.")
        if self.batch is not None and self.nodes is None:
            raise InputError(
                "--batch fixes one of the two sizes of a padded batch. Fix the other one with "
                "--max-nodes as well."
            )

    @property
    def ir_version(self) -> int:
        """Version of the file format."""
        return IR_VERSIONS[self.opset]


def padded_bytes(nodes: int) -> int:
    """Bytes of one graph's adjacency matrix, padded to this size, while the model runs."""
    return _FLOAT * nodes * nodes


def is_absurd(size: int) -> bool:
    """Whether the padded layout needs too many bytes per graph to be practical."""
    return size > _ABSURD
