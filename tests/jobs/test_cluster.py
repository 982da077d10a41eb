"""A Ray cluster gives the numbers of one process, and loses nothing where workers and nodes die."""

import importlib.util
import json
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from ihgnn_cli import __version__
from ihgnn_cli.data.sources import load_dataset
from ihgnn_cli.errors import IhgnnError, InputError
from ihgnn_cli.jobs import cluster
from ihgnn_cli.jobs.cluster import cluster_executor
from ihgnn_cli.jobs.executor import Executor
from ihgnn_cli.jobs.local import work
from ihgnn_cli.jobs.queue import Callback, Queue, Step
from ihgnn_cli.studies import crossval
from ihgnn_cli.studies.folds import make_folds
from ihgnn_cli.studies.grid import Configuration
from ihgnn_cli.studies.plan import Protocol
from ihgnn_cli.studies.schedule import Schedule
from ihgnn_cli.studies.work import Job
from ihgnn_cli.training.config import RunConfig

EPOCHS, STACK = 20, 1
MODELS = 2 * 3 + 3
"""Two configurations on three folds, then one run a fold."""

needs_ray = pytest.mark.skipif(
    sys.platform != "linux" or importlib.util.find_spec("ray") is None,
    reason="needs Linux and ray: pip install 'ihgnn-cli[cluster]'",
)
# Ray's own: files and processes that it leaves to the end, and what it will change some day.
pytestmark = [
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="module")
def nodes() -> Iterator[Any]:
    """A head that does no work, and two nodes of a core each, one of which says it has a GPU."""
    from ray.cluster_utils import Cluster

    folder = tempfile.mkdtemp(prefix="ray-", dir="/tmp")  # names of sockets have to be short
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_TMPDIR", folder)
        made = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
        try:
            made.add_node(num_cpus=1)
            made.add_node(num_cpus=1, num_gpus=1)
            yield made
        finally:
            made.shutdown()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def job() -> Job:
    config = RunConfig()
    config = replace(
        config,
        model=replace(config.model, width=4, hidden=4),
        training=replace(config.training, epochs=EPOCHS),
    )
    grid = (Configuration(0.01, 64, 2), Configuration(0.001, 64, 2))
    data = load_dataset("MUTAG")
    return Job(Protocol(config, grid, runs=1), data, make_folds(data, 0, folds=3))


@pytest.fixture(scope="module")
def alone(job: Job, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the job, done by this process."""
    folder = tmp_path_factory.mktemp("alone") / "job"

    def run(queue: Queue, callback: Callback) -> None:
        work(queue, "cpu", callback)

    done(job, folder, Executor(1, torch.device("cpu"), None, run))
    return folder


@pytest.fixture
def connected(nodes: Any) -> Iterator[None]:
    """A connection that is there before."""
    import ray

    ray.init(nodes.address, log_to_driver=False, logging_level="critical")
    yield
    ray.shutdown()


def done(
    job: Job, folder: Path, executor: Executor, watch: Callback = lambda _step: None
) -> dict[str, Any]:
    stack = crossval.begin(job, folder, executor, stack=STACK)
    return crossval.finish(job, folder, executor, stack, lambda _progress, step: watch(step)).result


def units(folder: Path) -> dict[str, dict[str, Any]]:
    """What was found, without how long it took."""
    found = {path.name: json.loads(path.read_text()) for path in (folder / "units").iterdir()}
    return {name: {**unit, "seconds": None} for name, unit in found.items()}


def claims(folder: Path) -> list[Path]:
    return list((folder / "claims").glob("*.json"))


def running(nodes: Any) -> dict[int, tuple[str, Any]]:
    """The processes of the cluster that have a bundle: its name, and their node."""
    raylets = {
        process.process.pid: node
        for node in nodes.worker_nodes
        for process in node.all_processes["raylet"]
    }
    found = {}
    for entry in Path("/proc").iterdir():
        try:
            title = (entry / "cmdline").read_text().strip("\0 ")
            if title.startswith("ray::ihgnn "):
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                if parent in raylets:
                    found[int(entry.name)] = title.removeprefix("ray::ihgnn "), raylets[parent]
        except OSError:
            continue  # gone, or no process
    return found


@needs_ray
@pytest.mark.long
def test_a_cluster_ends_with_the_numbers_of_one_process(
    nodes: Any, job: Job, alone: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    import ray

    executor = cluster_executor(nodes.address, "cpu", None)
    assert (executor.workers, executor.device) == (2, torch.device("cpu"))
    assert executor.memory is not None
    assert executor.memory > 2**20
    steps: list[Step] = []
    before = signal.getsignal(signal.SIGTERM)
    result = done(job, tmp_path / "job", executor, steps.append)

    expected = json.loads((alone / "result.json").read_text())
    assert result["folds"] == expected["folds"]
    assert result["test_mean"] == expected["test_mean"]
    assert units(tmp_path / "job") == units(alone)
    assert steps[0] == Step()
    assert sum(step.trained for step in steps) == EPOCHS * MODELS
    assert sum(step.settled for step in steps) == EPOCHS * MODELS
    assert claims(tmp_path / "job") == []
    assert not ray.is_initialized()
    assert signal.getsignal(signal.SIGTERM) is before
    assert capfd.readouterr() == ("", "")


@needs_ray
@pytest.mark.long
def test_an_interruption_gives_everything_back(nodes: Any, job: Job, tmp_path: Path) -> None:
    import ray

    def interrupt(step: Step) -> None:
        if step.settled:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        done(job, tmp_path / "job", cluster_executor(nodes.address, "cpu", None), interrupt)
    assert len(units(tmp_path / "job")) == STACK
    assert claims(tmp_path / "job") == []
    assert not ray.is_initialized()


@needs_ray
@pytest.mark.long
@pytest.mark.usefixtures("connected")
def test_processes_that_share_the_folder_share_the_work(
    nodes: Any, job: Job, alone: Path, tmp_path: Path
) -> None:
    executor = cluster_executor(nodes.address, "cpu", 1)
    crossval.begin(job, tmp_path / "job", executor, stack=STACK)
    steps: list[Step] = []
    arguments = (Schedule(job, tmp_path / "job", STACK), "cpu", steps.append)
    other = threading.Thread(target=work, args=arguments)
    other.start()
    done(job, tmp_path / "job", executor, steps.append)
    other.join()
    assert sum(step.trained for step in steps) == EPOCHS * MODELS  # none was trained twice
    assert units(tmp_path / "job") == units(alone)


@needs_ray
@pytest.mark.long
def test_the_work_of_a_killed_worker_is_done_by_others(
    nodes: Any, job: Job, alone: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    dead = 0

    def kill(step: Step) -> None:
        nonlocal dead
        dead += step.dead
        if step.settled and not dead:
            for process in list(running(nodes))[:1]:
                os.kill(process, signal.SIGKILL)

    done(job, tmp_path / "job", cluster_executor(nodes.address, "cpu", None), kill)
    assert dead
    assert units(tmp_path / "job") == units(alone)
    assert capfd.readouterr() == ("", "")


@needs_ray
@pytest.mark.long
@pytest.mark.usefixtures("connected")
def test_nothing_is_lost_with_a_node(nodes: Any, job: Job, alone: Path, tmp_path: Path) -> None:
    doomed = nodes.add_node(num_cpus=1)
    executor = cluster_executor(nodes.address, "cpu", None)
    assert executor.workers == 3

    over = threading.Event()

    def kill_at_work() -> None:
        """Its first task takes seconds for imports alone: it is not missed."""
        while not over.wait(0.02):
            if doomed in [node for _, node in running(nodes).values()]:
                nodes.remove_node(doomed, allow_graceful=False)
                return

    killer = threading.Thread(target=kill_at_work)
    killer.start()
    try:
        done(job, tmp_path / "job", executor)
    finally:
        over.set()
        killer.join()
    assert doomed not in nodes.worker_nodes
    assert units(tmp_path / "job") == units(alone)


@needs_ray
@pytest.mark.long
@pytest.mark.usefixtures("connected")
def test_a_bundle_that_kills_its_workers_is_given_up(
    nodes: Any, job: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "_DEATHS", 1)
    victim: list[str] = []

    def kill(step: Step) -> None:
        """Whoever works on one bundle."""
        deadline = time.monotonic() + 30
        while step.settled or step.dead:
            for process, (bundle, _) in running(nodes).items():
                if bundle in (victim or [bundle]):
                    victim[:] = [bundle]
                    os.kill(process, signal.SIGKILL)
                    return
            if step.settled:
                return
            assert time.monotonic() < deadline
            time.sleep(0.01)

    with pytest.raises(IhgnnError, match=r"(?s)2 workers died .* smaller --stack") as caught:
        done(job, tmp_path / "job", cluster_executor(nodes.address, "cpu", None), kill)
    assert victim[0] in str(caught.value)
    assert claims(tmp_path / "job") == []


@needs_ray
@pytest.mark.long
@pytest.mark.usefixtures("connected")
def test_a_cluster_without_nodes_is_not_waited_for_without_end(
    nodes: Any, job: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    executor = cluster_executor(nodes.address, "cpu", None)
    monkeypatch.setattr(cluster, "_capacity", lambda _ray, _kind: 0)
    monkeypatch.setattr(cluster, "_EMPTY_SECONDS", 0.0)
    with pytest.raises(IhgnnError, match="its nodes are gone"):
        done(job, tmp_path / "job", executor)


@needs_ray
@pytest.mark.long
@pytest.mark.usefixtures("connected")
def test_a_node_with_another_version_is_refused(
    nodes: Any, job: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "__version__", "99.0")
    with pytest.raises(IhgnnError, match=rf"has ihgnn {__version__}, .* is ihgnn 99\.0"):
        done(job, tmp_path / "job", cluster_executor(nodes.address, "cpu", None))
    assert claims(tmp_path / "job") == []


def test_a_node_without_ihgnn_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    task = cluster._task()
    monkeypatch.setitem(sys.modules, "ihgnn_cli", None)
    assert task("99.0", [], "cpu") == (None, None)


@needs_ray
@pytest.mark.long
@pytest.mark.usefixtures("connected")
@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_mistake_on_a_node_reaches_the_user_as_itself(
    nodes: Any, job: Job, tmp_path: Path
) -> None:
    executor = cluster_executor(nodes.address, "auto", None)
    assert (executor.workers, executor.device) == (1, torch.device("cuda"))
    assert executor.memory is None  # nobody tells that of a GPU elsewhere
    with pytest.raises(InputError, match=r"no GPU that torch .* can use") as caught:
        done(job, tmp_path / "job", executor)
    assert type(caught.value) is InputError
    assert claims(tmp_path / "job") == []


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_job_for_gpus_elsewhere_begins_where_there_is_none(job: Job, tmp_path: Path) -> None:
    """Two workers share six models."""
    executor = Executor(2, torch.device("cuda"), None, lambda *_: None)
    assert crossval.begin(job, tmp_path / "job", executor, stack=None) == 3


def memory_a_core(*nodes: dict[str, Any]) -> int | None:
    return cluster._memory_a_core(SimpleNamespace(nodes=lambda: nodes))


def node(*, alive: bool = True, **resources: float) -> dict[str, Any]:
    return {"Alive": alive, "Resources": resources}


def test_a_task_may_take_its_share_of_the_node_that_has_least() -> None:
    large, small = node(CPU=2.0, memory=1000.0), node(CPU=4.0, memory=1200.0)
    assert memory_a_core(large) == 500
    assert memory_a_core(large, small) == 300


def test_nodes_that_are_gone_or_do_no_work_do_not_count() -> None:
    useless = [
        node(alive=False, CPU=1.0, memory=1.0),
        {"Alive": False, "Resources": {}},
        node(memory=1.0),
        node(CPU=0.0, memory=1.0),
        node(CPU=1.0),
    ]
    assert memory_a_core(*useless, node(CPU=2.0, memory=1000.0)) == 500
    assert memory_a_core(*useless) is None


@needs_ray
@pytest.mark.parametrize("address", ["127.0.0.1:1", "ray://127.0.0.1:1"])
def test_an_address_where_nobody_answers_is_refused(address: str) -> None:
    with pytest.raises(InputError, match=f"Cannot reach a Ray cluster at {address}: .*refused"):
        cluster_executor(address, "cpu", None)


@needs_ray
def test_auto_is_what_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    with pytest.raises(InputError, match=r"at 127\.0\.0\.1:1: "):
        cluster_executor("auto", "cpu", None)


@needs_ray
def test_where_there_is_no_cluster_the_advice_is_of_this_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import ray

    def refuse(**_: object) -> None:
        raise ConnectionError(
            "Could not find any running Ray instance. Please specify the one to connect to by "
            "setting `--address` flag or `RAY_ADDRESS` environment variable."
        )

    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "init", refuse)
    with pytest.raises(InputError) as caught:
        cluster_executor("auto", "cpu", None)
    assert str(caught.value) == (
        "Cannot reach a Ray cluster at auto: Could not find any running Ray instance.\n"
        "'ray start --head' starts one on this machine; --cluster ray://HOST:10001 connects to "
        "one on another machine."
    )


@needs_ray
@pytest.mark.parametrize("address", ["", "localhost", "ray://", "http://host:1", "host:65536"])
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(InputError, match="is not a Ray cluster address"):
        cluster_executor(address, "cpu", None)


def test_a_gpu_of_a_cluster_is_not_chosen_by_its_number() -> None:
    with pytest.raises(InputError, match="Cannot use 'cuda:1' on a cluster"):
        cluster_executor("auto", "cuda:1", None)


def test_there_are_workers() -> None:
    with pytest.raises(InputError, match="workers must be at least 1, not 0"):
        cluster_executor("auto", "cpu", 0)


def test_ray_is_asked_for_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(InputError, match=r"pip install 'ihgnn-cli\[cluster\]'"):
        cluster_executor("auto", "cpu", None)
