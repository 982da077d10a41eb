"""Tasks on a Ray cluster.

Only the process that the user started uses files: it sends what is to be done and receives the
results. Nodes need the same version of ihgnn, but neither folders nor data. If a worker or a node
dies, its task is sent again.
"""

import logging
import os
import re
import signal
import socket
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

import torch

from ihgnn_cli import __version__
from ihgnn_cli.errors import IhgnnError, InputError, SettingError

AUTO = "auto"
_ADDRESS = re.compile(r"(ray://)?([^\s:/]+|\[[0-9a-fA-F:.]+\]):(\d{1,5})")
_CONNECT_SECONDS = 10.0  # for a host that does not answer; Ray itself would try for 15 minutes
_PAUSE = 0.3  # seconds between two looks for more work
_EMPTY_SECONDS = 60.0  # that a cluster may be without nodes
_DEATHS = 5  # a task is given up after more of them: they are hardly by chance
_RESOURCES = {"cpu": "CPU", "cuda": "GPU"}
# Ray reads these when it is imported.
_SETTINGS = {
    "RAY_ENABLE_AUTO_CONNECT": "0",  # a lost connection must not start a new cluster
    "RAY_NUM_REDIS_GET_RETRIES": "1",  # each takes 40 seconds
    "GRPC_VERBOSITY": "NONE",  # keep standard error for the user
}


@dataclass(frozen=True)
class Cluster:
    """A Ray cluster and the resources to use."""

    address: str
    device: torch.device
    """CPUs or GPUs."""
    count: int
    """Tasks at a time."""
    memory: int | None
    """Bytes that each worker may use; `None` if unknown."""
    limited: bool = False
    """Whether the user gave the number of workers; otherwise it follows the cluster's size."""


@dataclass(frozen=True)
class Task:
    """A piece of work."""

    name: str
    shared: int
    """The position of what it shares with other tasks."""
    argument: object
    finish: Callable[[Any], None]
    """Receives the result."""
    release: Callable[[], None]
    """Called instead if the task was not finished."""
    deaths: int = 0
    """Workers that died while running it."""


def ray_cluster(address: str, device: str, workers: int | None) -> Cluster:
    """The workers of a cluster; by default one per core, or one per GPU.

    If this process is already connected to Ray, that cluster is used.

    Args:
        address: `auto`, `HOST:PORT` or `ray://HOST:PORT`.
        device: `cpu`, `cuda`, or `auto`: GPUs if the cluster has any.
        workers: number of tasks at a time.

    Raises:
        InputError: Ray is not installed, the cluster cannot be reached or has no such device, or
            there are no workers.
    """
    if workers is not None and workers < 1:
        raise SettingError("workers", f"must be at least 1, not {workers}.")
    if device not in (AUTO, *_RESOURCES):
        raise InputError(
            f"Cannot use '{device}' on a cluster: Ray assigns GPUs. Use auto, cpu or cuda."
        )
    with _connected(address) as ray:
        found = {kind: _capacity(ray, kind) for kind in _RESOURCES}
        nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    if device == AUTO:
        device = "cuda" if found["cuda"] else "cpu"
    if not found[device]:
        raise InputError(
            f"The cluster at {address} has no {_RESOURCES[device]}. 'ray status' shows its "
            "resources."
        )
    # That of the node with the least per core. Ray does not report a GPU's: a stack that is too
    # large is trained in halves.
    shares = [
        each["memory"] / each["CPU"] for each in nodes if each.get("CPU") and "memory" in each
    ]
    memory = int(min(shares)) if shares and device == "cpu" else None
    count = workers or found[device]
    return Cluster(address, torch.device(device), count, memory, limited=workers is not None)


def run_tasks(
    cluster: Cluster,
    function: Callable[[Any, Any, str], object],
    shared: Sequence[object],
    next_task: Callable[[], Task | None],
    *,
    finished: Callable[[], bool],
    on_death: Callable[[], None],
    tick: Callable[[], None],
) -> None:
    """Run tasks on the cluster until all work is finished.

    Args:
        cluster: where.
        function: called on a node with what is shared, the task's argument and the device.
        shared: sent to each node once.
        next_task: gives another task; `None` if there is none now.
        finished: whether no work is left.
        on_death: called when a worker died.
        tick: called at least once a second.

    Raises:
        IhgnnError: a task failed, or the cluster was lost.
    """
    kept = "Finished stacks are kept: the same command continues with the rest."
    sent: dict[Any, Task] = {}
    with _connected(cluster.address) as ray:
        try:
            send = _sender(ray, cluster, function, shared)
            seen = time.monotonic()
            while True:
                capacity = _capacity(ray, cluster.device.type)
                seen = time.monotonic() if capacity else seen
                if time.monotonic() - seen > _EMPTY_SECONDS:
                    raise IhgnnError(
                        f"The cluster has had no {_RESOURCES[cluster.device.type]} for a minute: "
                        f"its nodes are gone. {kept}"
                    )
                while len(sent) < (cluster.count if cluster.limited else capacity):
                    task = next_task()
                    if task is None:
                        break
                    sent[send(task)] = task
                if not sent and finished():
                    return
                ready, _ = ray.wait(list(sent), timeout=_PAUSE) if sent else ([], None)
                for reference in ready:
                    again = _finish(ray, reference, sent[reference])
                    if again is not None:
                        on_death()
                        sent[send(again)] = again
                    del sent[reference]
                if not sent:
                    time.sleep(_PAUSE)
                tick()
        except (ConnectionError, ray.exceptions.RayError) as error:
            raise IhgnnError(
                f"Lost the cluster at {cluster.address}: {_first_line(error)} {kept}"
            ) from error
        finally:
            for reference, task in sent.items():
                with suppress(Exception):  # the cluster may be gone
                    ray.cancel(reference, force=True)
                task.release()


def _finish(ray: Any, reference: Any, task: Task) -> Task | None:
    """Take the result of a task; returns the task if it is to be sent again."""
    try:
        version, result = ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        if isinstance(error.cause, IhgnnError):
            raise error.cause from None
        what = f"{type(error.cause).__name__}: {error.cause}"
        raise IhgnnError(f"A task failed on a node: {what}\nThis is a bug in ihgnn.") from None
    except ray.exceptions.RayError as error:
        if task.deaths == _DEATHS:
            raise IhgnnError(
                f"{_DEATHS + 1} workers died while training the stack {task.name}, perhaps because "
                f"memory was full. Ray says: {_first_line(error)}\n"
                "Use a smaller --stack, with another --out."
            ) from None
        return replace(task, deaths=task.deaths + 1)
    if version != __version__:
        there = "no ihgnn" if version is None else f"ihgnn {version}"
        raise IhgnnError(
            f"A node of the cluster has {there}, but this command is ihgnn {__version__}. Install "
            f"ihgnn-cli {__version__} on all nodes, in the Python that 'ray start' runs in."
        )
    task.finish(result)
    return None


def _sender(
    ray: Any, cluster: Cluster, function: Callable[..., object], shared: Sequence[object]
) -> Callable[[Task], Any]:
    """A function that sends a task."""
    kept = [ray.put(each) for each in shared]
    code = ray.put(function)
    remote = ray.remote(_remote_function())
    options = {
        "num_cpus": int(cluster.device.type == "cpu"),
        "num_gpus": int(cluster.device.type == "cuda"),
        "scheduling_strategy": "SPREAD",
        "runtime_env": {"env_vars": {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}},
        # Ray's own retries never end when a node's memory is full, and report nothing.
        "max_retries": 0,
    }

    def send(task: Task) -> Any:
        # Inside a list they stay references: the task first checks whether it can read them.
        references = [code, kept[task.shared], ray.put(task.argument)]
        named = remote.options(name=f"ihgnn {task.name}", **options)
        return named.remote(__version__, references, cluster.device.type)

    return send


def _remote_function() -> Callable[[str, list[Any], str], tuple[str | None, Any]]:
    """The function that nodes run.

    It returns the node's version of ihgnn, with the result if the versions match.
    """

    # Nested, so that Ray sends the code and not just its name: a node without ihgnn, or with
    # another version, can then report that. For the same reason it uses nothing from this module.
    def run(version: str, references: list[Any], device: str) -> tuple[str | None, Any]:
        try:
            import ihgnn_cli
        except ImportError:
            return None, None
        if ihgnn_cli.__version__ != version:
            return ihgnn_cli.__version__, None
        from ihgnn_cli.jobs.ray import run_on_node

        return version, run_on_node(references, device)

    return run


# What the last task of this process shared with others. Processes with a GPU run one task only,
# because the next one may get another GPU.
_shared: dict[str, Any] = {}


def run_on_node(references: Sequence[Any], device: str) -> object:
    """Run a task on a node."""
    import ray

    code, kept, argument = references
    torch.set_num_threads(1)
    key = kept.hex()
    if key not in _shared:
        _shared.clear()
        _shared[key] = ray.get(kept)
    return ray.get(code)(_shared[key], ray.get(argument), device)


def _capacity(ray: Any, kind: str) -> int:
    """The number of tasks that the cluster can run at a time now."""
    return int(ray.cluster_resources().get(_RESOURCES[kind], 0))


@contextmanager
def _connected(address: str) -> Iterator[Any]:
    """Ray, connected to a cluster inside the block.

    Raises:
        InputError: Ray is not installed, or there is no cluster.
    """
    for name, value in _SETTINGS.items():
        os.environ.setdefault(name, value)
    try:
        import ray
    except ImportError as error:
        raise InputError("--cluster needs Ray: pip install 'ihgnn-cli[cluster]'") from error
    if ray.is_initialized():
        yield ray
        return
    if address == AUTO:
        address = os.environ.get("RAY_ADDRESS") or AUTO
    _check(address)
    ours = signal.getsignal(signal.SIGTERM)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ray.init(address=address, log_to_driver=False, logging_level=logging.CRITICAL)
    except Exception as error:
        with suppress(Exception):
            ray.shutdown()
        # Without Ray's advice on options that ihgnn does not have.
        why = re.split(r"(?<=\.) +(?=Please\b)", _first_line(error))[0]
        raise _unreachable(address, why) from error
    finally:
        if ours is not None and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, ours)  # which Ray replaces
    try:
        yield ray
    finally:
        ray.shutdown()


def _check(address: str) -> None:
    """Refuse an invalid address, or one that does not answer."""
    if address == AUTO:
        return
    match = _ADDRESS.fullmatch(address)
    if match is None or not 0 < int(match[3]) < 2**16:
        raise InputError(
            f"'{address}' is not a Ray cluster address. Use auto, HOST:PORT or ray://HOST:PORT."
        )
    try:
        socket.create_connection((match[2].strip("[]"), int(match[3])), _CONNECT_SECONDS).close()
    except (OSError, UnicodeError) as error:
        why = error.strerror if isinstance(error, OSError) else None
        raise _unreachable(address, f"{why or error}.") from error


def _unreachable(address: str, why: str) -> InputError:
    if address == AUTO:
        advice = "'ray start --head' starts one on this machine."
    elif address.startswith("ray://"):
        advice = "Use the port of Ray's client server on the head node, by default 10001."
    else:
        advice = (
            "This machine must be a node of the cluster (ray start --address=HOST:PORT). From "
            "other machines, use ray://HOST:10001."
        )
    return InputError(f"Cannot reach a Ray cluster at {address}: {why}\n{advice}")


def _first_line(error: Exception) -> str:
    """The first line of an error message, as a sentence."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0].rstrip(".: ") + "."
