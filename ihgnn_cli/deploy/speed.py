"""Measures the latency and throughput of an exported model."""

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ihgnn_cli.data.dataset import GraphDataset
from ihgnn_cli.deploy.onnx_model import OUTPUTS, OnnxClassifier
from ihgnn_cli.errors import InputError

_LEAST_RUNS = 3


@dataclass(frozen=True)
class Latency:
    """Seconds per batch of one step."""

    mean: float
    p50: float
    p90: float
    p99: float


@dataclass(frozen=True)
class Speed:
    """Speed at one batch size."""

    batch_size: int
    batches: int
    """Number of batches measured."""
    graphs_per_second: float
    """Throughput of the model alone, with its inputs ready."""
    graphs_per_second_with_inputs: float
    """Throughput including the time to build the input arrays from graphs in memory."""
    model: Latency
    inputs: Latency


def measure(
    classifier: OnnxClassifier,
    dataset: GraphDataset,
    batch_size: int,
    seconds: float,
    warm_up: float | None = None,
) -> Speed:
    """Run batches of graphs for some time.

    Graphs are taken in a fixed random order, repeatedly if there are few. The inputs of each batch
    are built again and timed separately from the model.

    Args:
        classifier: the model in its session.
        dataset: an encoded data set.
        batch_size: graphs per batch.
        seconds: duration of the measurement; at least three batches are run.
        warm_up: seconds to run before, at least one batch. [default: a tenth of `seconds`]

    Raises:
        InputError: a batch does not fit in memory, a graph is too large for the model, or the
            duration is not finite.
    """
    if not math.isfinite(seconds):
        raise InputError(f"Cannot measure for {seconds} seconds. Use a finite number.")
    classifier.refuse_too_large(np.diff(dataset.node_ptr), batch_size)
    batches = _drawn(len(dataset), batch_size)
    _timed(classifier, dataset, batches, seconds / 10 if warm_up is None else warm_up, least=1)
    made, ran = _timed(classifier, dataset, batches, seconds, least=_LEAST_RUNS)
    return Speed(
        batch_size=batch_size,
        batches=len(ran),
        graphs_per_second=batch_size / float(ran.mean()),
        graphs_per_second_with_inputs=batch_size / float((made + ran).mean()),
        model=_latency(ran),
        inputs=_latency(made),
    )


def _timed(
    classifier: OnnxClassifier,
    dataset: GraphDataset,
    batches: Iterator[NDArray[np.int64]],
    seconds: float,
    least: int,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Seconds to build the inputs of each batch, and to run it."""
    made: list[float] = []
    ran: list[float] = []
    end = time.perf_counter() + seconds
    while len(ran) < least or time.perf_counter() < end:
        graphs = next(batches)
        start = time.perf_counter()
        inputs = classifier.inputs(dataset, graphs)
        middle = time.perf_counter()
        classifier.session.run(OUTPUTS, inputs)
        made.append(middle - start)
        ran.append(time.perf_counter() - middle)
    return np.array(made), np.array(ran)


def _drawn(graphs: int, batch_size: int) -> Iterator[NDArray[np.int64]]:
    order = np.random.default_rng(0).permutation(graphs)
    start = 0
    while True:
        yield order[(start + np.arange(batch_size)) % graphs]
        start += batch_size


def _latency(seconds: NDArray[np.float64]) -> Latency:
    p50, p90, p99 = np.percentile(seconds, (50, 90, 99)).tolist()
    return Latency(float(seconds.mean()), p50, p90, p99)
