"""How fast an exported model answers, batch by batch."""

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
    """Of one step, in seconds a batch."""

    mean: float
    p50: float
    p90: float
    p99: float


@dataclass(frozen=True)
class Speed:
    """How batches of one size went."""

    batch_size: int
    batches: int
    """That were measured."""
    graphs_per_second: float
    """Of the model alone: its inputs were there."""
    graphs_per_second_with_inputs: float
    """With the arrays made from graphs that were read already."""
    model: Latency
    inputs: Latency


def measure(
    classifier: OnnxClassifier,
    dataset: GraphDataset,
    batch_size: int,
    seconds: float,
    warm_up: float | None = None,
) -> Speed:
    """Run batches of graphs for some time, each made and then answered for.

    Graphs are drawn in an order of chance, the same each time, over and over where they are few.
    The inputs of each batch are made anew and timed apart from the model.

    Args:
        classifier: the model in its session.
        dataset: in the card's words.
        batch_size: graphs of a batch, as many in every one.
        seconds: to measure for, at least three batches.
        warm_up: seconds to run before that, a tenth of them unless told; at least one batch.

    Raises:
        InputError: a batch would not fit into memory, a graph not into the model, or it would take
            for ever.
    """
    if not math.isfinite(seconds):
        raise InputError(f"Nothing can be measured for {seconds} seconds. Use a finite number.")
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
    """Seconds to make the inputs of each batch, and to run it."""
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
