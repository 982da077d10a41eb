"""How fast a model is: what is counted, and what is refused instead of filling the memory."""

from dataclasses import replace

import numpy as np
import pytest

from ihgnn_cli.data import GraphDataset, load_dataset
from ihgnn_cli.deploy.onnx_model import OnnxClassifier, load_onnx
from ihgnn_cli.deploy.speed import measure
from ihgnn_cli.errors import InputError


@pytest.fixture(scope="module")
def mutag() -> GraphDataset:
    return load_dataset("MUTAG")


@pytest.fixture(scope="module")
def classifier(mutag_model) -> OnnxClassifier:
    return load_onnx(mutag_model.exported, "cpu", threads=1)


@pytest.mark.parametrize("batch_size", [1, 500])
def test_throughput_is_graphs_by_time(
    classifier: OnnxClassifier, mutag: GraphDataset, batch_size: int
) -> None:
    found = measure(classifier, mutag, batch_size, seconds=0.01)
    assert found.batch_size == batch_size
    assert found.batches >= 3
    assert found.graphs_per_second == pytest.approx(batch_size / found.model.mean)
    both = found.model.mean + found.inputs.mean
    assert found.graphs_per_second_with_inputs == pytest.approx(batch_size / both)
    for each in (found.model, found.inputs):
        assert 0 < each.p50 <= each.p90 <= each.p99


def test_the_session_has_the_threads_that_were_asked_for(classifier: OnnxClassifier) -> None:
    assert classifier.session.get_session_options().intra_op_num_threads == 1


@pytest.mark.parametrize("threads", [0, 100_000])
def test_threads_beyond_measure_are_refused(mutag_model, threads: int) -> None:
    with pytest.raises(InputError, match=f"Cannot use {threads:,} threads. Use 1 to"):
        load_onnx(mutag_model.exported, "cpu", threads=threads)


@pytest.mark.parametrize("seconds", [float("inf"), float("nan")])
def test_a_time_without_end_is_refused(
    classifier: OnnxClassifier, mutag: GraphDataset, seconds: float
) -> None:
    with pytest.raises(InputError, match="Use a finite number"):
        measure(classifier, mutag, 1, seconds)


def test_every_graph_has_its_turn(
    classifier: OnnxClassifier, mutag: GraphDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    inputs = OnnxClassifier.inputs

    def watched(self: OnnxClassifier, dataset: GraphDataset, graphs: np.ndarray):
        seen.extend(graphs.tolist())
        return inputs(self, dataset, graphs)

    monkeypatch.setattr(OnnxClassifier, "inputs", watched)
    measure(classifier, mutag, 47, seconds=0.0, warm_up=0.0)  # one batch, and then three
    assert sorted(seen) == list(range(188))


def test_a_batch_that_would_fill_the_memory_is_refused(
    classifier: OnnxClassifier, mutag: GraphDataset
) -> None:
    nodes = 6000
    giant = replace(
        mutag,
        node_ptr=np.array([0, nodes]),
        neighbor_ptr=np.zeros(nodes + 1, dtype=np.int64),
        neighbors=np.zeros(0, dtype=np.int32),
        node_label=np.zeros(nodes, dtype=np.int32),
        graph_class=np.zeros(1, dtype=np.int32),
        edge_label=None,
    )
    with pytest.raises(InputError, match=r"padded to 6,000 nodes takes 5\.4 GiB.*--layout sparse"):
        measure(classifier, giant, 32, seconds=0.01)
