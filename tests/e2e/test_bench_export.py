"""`ihgnn bench-export` as a user meets it."""

import json

import pytest
from refusals import assert_refused

QUICK = ("--seconds", "0.05", "--device", "cpu", "--threads", "1")


def test_people_get_latency_and_throughput(ihgnn, mutag_model) -> None:
    result = ihgnn("bench-export", mutag_model.exported, *QUICK)
    measuring = "Measuring batches of 1, 32, 256 graphs, 0.05 s each ...\n"
    assert (result.returncode, result.stderr) == (0, measuring)
    assert "on MUTAG (188 graphs, 17.9 nodes on average)" in result.stdout
    assert "on CPUExecutionProvider, 1 thread" in result.stdout
    for each in ("p50", "p90", "p99", "Graphs per second", "Building its inputs"):
        assert each in result.stdout


def test_machines_get_every_number(ihgnn, mutag_model) -> None:
    args = ("--batch-size", "3", "--batch-size", "300", "--dataset", "MUTAG", "--json")
    told = json.loads(ihgnn("bench-export", mutag_model.exported, *QUICK, *args).stdout)
    assert (told["runs_on"], told["threads"]) == ("CPUExecutionProvider", 1)
    assert (told["dataset"], told["graphs"]) == ("MUTAG", 188)
    assert [each["batch_size"] for each in told["speeds"]] == [3, 300]
    for each in told["speeds"]:
        assert each["graphs_per_second"] > each["graphs_per_second_with_inputs"] > 0
        assert 0 < each["model"]["p50"] <= each["model"]["p99"]


def test_inputs_can_stay_on_the_device(ihgnn, mutag_model) -> None:
    args = ("--batch-size", "8", "--io-binding", "--json")
    told = json.loads(ihgnn("bench-export", mutag_model.exported, *QUICK, *args).stdout)
    assert (told["io_binding"], told["cuda_graph"]) == (True, False)
    assert told["speeds"][0]["graphs_per_second"] > 0


def test_a_gpu_that_does_not_run_is_a_warning(
    ihgnn, mutag_model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ihgnn_cli.deploy.providers.unused_gpu", lambda _: True)
    args = ("--seconds", "0.01", "--batch-size", "1")
    asked = ihgnn("bench-export", mutag_model.exported, *args, "--device", "cpu")
    assert "WARNING" not in asked.stderr
    result = ihgnn("bench-export", mutag_model.exported, *args)
    assert "WARNING: this machine has an NVIDIA GPU" in result.stderr


def test_cuda_graphs_need_cuda(ihgnn, mutag_model) -> None:
    bad = ihgnn("bench-export", mutag_model.exported, "--cuda-graph", "--device", "cpu")
    assert_refused(bad, 2, "CUDA graphs need an NVIDIA GPU")
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        bad = ihgnn("bench-export", mutag_model.exported, "--cuda-graph")
        assert_refused(bad, 2, "CUDAExecutionProvider")


def test_mistakes_are_refused(ihgnn, mutag_model) -> None:
    assert_refused(ihgnn("bench-export", "none.onnx"), 2, "none.onnx does not exist")
    assert_refused(ihgnn("bench-export", mutag_model.checkpoint), 2, "not an ONNX file")
    bad = ihgnn("bench-export", mutag_model.exported, "--dataset", "./none")
    assert_refused(bad, 2, "No file or folder")
