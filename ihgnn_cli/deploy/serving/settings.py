"""Settings of the service: how requests are batched, and what is too much."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ihgnn_cli.errors import SettingError
from ihgnn_cli.models.spec import Layout
from ihgnn_cli.settings import Settings

if TYPE_CHECKING:
    from ihgnn_cli.deploy.onnx_model import OnnxClassifier

REQUEST_SIZE = 1 << 20
"""Nodes and edges of one request. A graph without labels takes few bytes per node: the size of
the body does not bound them."""
BATCH_SIZE = 1 << 18
"""A batch is full at this number of nodes and edges, however few its graphs."""
_BODIES = 4
_MIB = 1 << 20
# A padded graph takes memory for each pair of nodes.
_NODES = {Layout.PADDED: 2_000, Layout.SPARSE: 100_000}


@dataclass(frozen=True)
class ServeSettings(Settings):
    """How requests are batched, and the limits that keep memory and waiting times bounded.

    Raises:
        InputError: a value is out of range.
    """

    batch_size: int = 64
    """A batch starts at this number of graphs."""
    batch_wait: float = 2.0
    """Milliseconds that a request waits for others to share its batch."""
    max_graphs: int = 1_000
    """Per request."""
    max_nodes: int | None = None
    """Per graph; `None`: see `nodes_of`."""
    max_body: float = 8.0
    """MiB per request."""
    max_waiting: int = 256
    """Requests that are read or wait for an answer; more get 503."""
    timeout: float = 30.0
    """Seconds to receive a request, and to answer it."""
    allow_unknown: bool = False
    """Answer for graphs even if the model knows hardly any of their labels."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("batch_size", "max_graphs", "max_waiting"):
            if getattr(self, name) < 1:
                raise SettingError(name, f"must be at least 1, not {getattr(self, name)}.")
        if self.max_nodes is not None and self.max_nodes < 1:
            raise SettingError("max_nodes", f"must be at least 1, not {self.max_nodes}.")
        for name, most in (("batch_wait", 10_000), ("max_body", 1_024), ("timeout", 3_600)):
            value = getattr(self, name)
            if not 0 <= value <= most or (value == 0 and name != "batch_wait"):
                raise SettingError(name, f"must be above 0 and at most {most:,}, not {value:g}.")

    @property
    def body_bytes(self) -> int:
        """The largest body."""
        return int(self.max_body * _MIB)

    @property
    def waiting_bytes(self) -> int:
        """Bodies of all requests that are read or wait; more get 503."""
        return _BODIES * self.body_bytes

    def nodes_of(self, classifier: "OnnxClassifier") -> int:
        """The largest graph that is accepted: at least m if it is not set."""
        if self.max_nodes is not None:
            return self.max_nodes
        return max(_NODES[classifier.layout], classifier.card.max_nodes)
