"""Counters of the service, for Prometheus."""

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    Info,
    ProcessCollector,
    generate_latest,
)

from ihgnn_cli import __version__

CONTENT_TYPE = CONTENT_TYPE_LATEST
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_GRAPHS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 1024)


class Metrics:
    """What the service has done so far."""

    def __init__(self, model: str, dataset: str) -> None:
        self._registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        Info("ihgnn", "Version and model.", registry=registry).info(
            {"version": __version__, "model": model, "dataset": dataset}
        )
        self.requests = Counter(
            "ihgnn_requests", "Requests by endpoint and status.", ["endpoint", "status"],
            registry=registry,
        )  # fmt: skip
        self.seconds = Histogram(
            "ihgnn_request_seconds", "Time to receive and answer a request.",
            ["endpoint"], registry=registry, buckets=_SECONDS,
        )  # fmt: skip
        self.graphs = Counter(
            "ihgnn_graphs", "Graphs by result: answered or refused.", ["result"], registry=registry
        )
        self.batch_graphs = Histogram(
            "ihgnn_batch_graphs", "Graphs per batch.", registry=registry, buckets=_GRAPHS
        )
        self.batch_seconds = Histogram(
            "ihgnn_batch_seconds", "Time that the model takes for a batch.", registry=registry,
            buckets=_SECONDS,
        )  # fmt: skip
        self.waiting = Gauge(
            "ihgnn_waiting_requests", "Requests that are read or wait for an answer.",
            registry=registry,
        )  # fmt: skip

    def batch(self, graphs: int, seconds: float) -> None:
        """Count a batch."""
        self.batch_graphs.observe(graphs)
        self.batch_seconds.observe(seconds)

    def text(self) -> bytes:
        """All of them in the format of Prometheus."""
        return bytes(generate_latest(self._registry))
