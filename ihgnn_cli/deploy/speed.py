"""Measures the latency and throughput of an exported model."""

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ihgnn_cli.data.dataset import GraphDataset
from ihgnn_cli.deploy.binding import Bound
from ihgnn_cli.deploy.inputs import Arrays
from ihgnn_cli.deploy.onnx_model import OnnxClassifier
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
    *,
    io_binding: bool = False,
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
        io_binding: keep inputs and outputs on the session's device. Copying inputs to it then
            counts as building them.

    Raises:
        InputError: a batch does not fit in memory, a graph is too large for the model, the model
            has another fixed batch size, or the duration is not finite.
    """
    if not math.isfinite(seconds):
        raise InputError(f"Cannot measure for {seconds} seconds. Use a finite number.")
    fixed = classifier.described.batch
    if fixed not in (None, batch_size):
        raise InputError(
            f"The model was exported for batches of {fixed:,} (--batch), not of {batch_size:,}."
        )
    classifier.refuse_too_large(np.diff(dataset.node_ptr), batch_size)
    batches = _drawn(len(dataset), batch_size)
    runner = Bound(classifier) if io_binding else _Plain(classifier)

    def give(graphs: NDArray[np.int64]) -> None:
        runner.give(classifier.inputs(dataset, graphs))

    warm_up = seconds / 10 if warm_up is None else warm_up
    _timed(give, runner.run, batches, warm_up, least=1)
    made, ran = _timed(give, runner.run, batches, seconds, least=_LEAST_RUNS)
    return Speed(
        batch_size=batch_size,
        batches=len(ran),
        graphs_per_second=batch_size / float(ran.mean()),
        graphs_per_second_with_inputs=batch_size / float((made + ran).mean()),
        model=_latency(ran),
        inputs=_latency(made),
    )


class _Plain:
    """Runs a session on arrays of the program."""

    def __init__(self, classifier: OnnxClassifier) -> None:
        self._session = classifier.session
        self._inputs: Arrays = {}

    def give(self, inputs: Arrays) -> None:
        self._inputs = inputs

    def run(self) -> None:
        self._session.run(None, self._inputs)


def _timed(
    give: Callable[[NDArray[np.int64]], None],
    run: Callable[[], None],
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
        give(graphs)
        middle = time.perf_counter()
        run()
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
