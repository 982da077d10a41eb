"""A Ray cluster gives the numbers of one process, and loses nothing where workers and nodes die."""

import importlib.util
import json
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from small_job import small_job

from ihgnn_cli.errors import InputError
from ihgnn_cli.jobs.ray import ray_cluster
from ihgnn_cli.studies.crossval.run import Progress
from ihgnn_cli.studies.crossval.study import Finished, open_study
from ihgnn_cli.studies.workers import local_workers

pytestmark = [
    pytest.mark.skipif(
        sys.platform != "linux" or importlib.util.find_spec("ray") is None,
        reason="needs Linux and ray: pip install 'ihgnn-cli[cluster]'",
    ),
    # Ray's own: files and processes that it leaves to the end, and what it will change some day.
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="module")
def nodes() -> Iterator[Any]:
    """A head that does no work, and a node of two cores."""
    from ray.cluster_utils import Cluster

    folder = tempfile.mkdtemp(prefix="ray-", dir="/tmp")  # names of sockets have to be short
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_TMPDIR", folder)
        made = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
        try:
            made.add_node(num_cpus=2)
            yield made
        finally:
            made.shutdown()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def connected(nodes: Any) -> Iterator[None]:
    import ray

    ray.init(nodes.address, log_to_driver=False, logging_level="critical")
    yield
    ray.shutdown()


def done(folder: Path, where: Any, epochs: int = 4, watch=lambda _progress: None) -> Finished:
    return open_study(folder, [small_job(epochs=epochs)], where, stack=3).run(watch)


def lines(folder: Path) -> list[dict[str, Any]]:
    """What was trained, without how long it took."""
    found = []
    for path in sorted((folder / "units").glob("*.jsonl")):
        found += [json.loads(line) | {"seconds": 0} for line in path.read_text().splitlines()]
    return found


@pytest.mark.parametrize("address", ["nowhere", "127.0.0.1:99999", "http://a:1"])
def test_a_wrong_address_is_refused(address: str) -> None:
    with pytest.raises(InputError, match="is not a Ray cluster address"):
        ray_cluster(address, "cpu", None)


def test_a_wrong_device_or_number_or_an_address_that_does_not_answer_is_refused() -> None:
    with pytest.raises(InputError, match="Ray assigns GPUs"):
        ray_cluster("auto", "cuda:1", None)
    with pytest.raises(InputError, match="workers must be at least 1"):
        ray_cluster("auto", "cpu", 0)
    with pytest.raises(InputError, match=r"Cannot reach a Ray cluster at 127\.0\.0\.1:9"):
        ray_cluster("127.0.0.1:9", "cpu", None)


@pytest.mark.long
@pytest.mark.usefixtures("connected")
def test_the_numbers_are_those_of_this_machine(tmp_path: Path, thread_workers: None) -> None:
    cluster = ray_cluster("auto", "auto", None)
    assert (cluster.device.type, cluster.count) == ("cpu", 2)
    with pytest.raises(InputError, match="has no GPU"):
        ray_cluster("auto", "cuda", None)
    here = done(tmp_path / "here", local_workers("cpu", 1))
    there = done(tmp_path / "there", cluster)
    assert lines(tmp_path / "there") == lines(tmp_path / "here")
    assert there.trained == here.trained == there.result.model_epochs
    assert there.result.folds == here.result.folds


@pytest.mark.long
@pytest.mark.usefixtures("connected")
def test_a_stack_whose_worker_dies_is_sent_again(tmp_path: Path) -> None:
    killed: list[int] = []
    deaths: list[Progress] = []

    def watch(progress: Progress) -> None:
        if progress.killed:
            deaths.append(progress)
        elif len(killed) < 2:
            found = [pid for pid in _workers() if pid not in killed][:1]
            for pid in found:
                os.kill(pid, signal.SIGKILL)
            killed.extend(found)

    result = done(tmp_path / "job", ray_cluster("auto", "cpu", None), epochs=300, watch=watch)
    assert killed
    assert len(deaths) == len(killed)
    assert result.result.models == 12


def _workers() -> list[int]:
    """The processes that train a stack now."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                command = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if command.startswith(b"ray::ihgnn"):
                found.append(int(entry.name))
    return found
