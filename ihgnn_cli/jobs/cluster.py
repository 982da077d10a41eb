"""Workers on a Ray cluster.

Only the process that the user started uses the folder: it takes units, sends each to the cluster
as a task, and writes the results. Nodes need the same version of ihgnn, but neither the folder nor
the data. If a worker or node dies, its task is sent again.
"""

import math
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import torch

from ihgnn_cli import __version__
from ihgnn_cli.errors import IhgnnError, InputError, SettingError
from ihgnn_cli.jobs.claims import Claims
from ihgnn_cli.jobs.executor import Executor
from ihgnn_cli.jobs.queue import Callback, Queue, Runner, Step, Unit
from ihgnn_cli.jobs.ray_connection import AUTO, connected, first_line
from ihgnn_cli.words import counted

# Seconds to wait for a task before checking for units that others released.
_PAUSE = 0.3
# Nodes come and go: seconds between two counts, and how long a cluster may be without nodes.
_LOOK_SECONDS, _EMPTY_SECONDS = 3.0, 60.0
# A unit is given up after more worker deaths than this, because they are hardly by chance.
_DEATHS = 5
_RESOURCES = {"cpu": "CPU", "cuda": "GPU"}


def cluster_executor(address: str, device: str, workers: int | None) -> Executor:
    """Workers on the nodes of a Ray cluster; by default one per core, or one per GPU.

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
    with connected(address) as ray:
        found = {kind: _capacity(ray, kind) for kind in _RESOURCES}
        memory = _memory_a_core(ray)
    if device == AUTO:
        device = "cuda" if found["cuda"] else "cpu"
    if device == "cuda":
        memory = None  # Ray does not report it; a stack that is too large is trained in halves
    if not found[device]:
        raise InputError(
            f"The cluster at {address} has no {_RESOURCES[device]}. 'ray status' shows its "
            "resources."
        )
    there = _Cluster(address, device, workers)
    return Executor(workers or found[device], torch.device(device), memory, there.run)


@dataclass(frozen=True)
class _Cluster:
    """A cluster and the resources to use."""

    address: str
    device: str
    """`cpu` or `cuda`."""
    workers: int | None
    """Tasks at a time; `None`: as many as the cluster can run."""

    def run(self, queue: Queue, callback: Callback) -> None:
        """Run all units of a queue.

        Raises:
            IhgnnError: a task failed, or the connection to the cluster was lost.
        """
        with connected(self.address) as ray:
            dispatch = _Dispatch(ray, self, queue, callback)
            try:
                dispatch.finish()
            except (ConnectionError, ray.exceptions.RayError) as error:
                raise IhgnnError(
                    f"Lost the cluster at {self.address}: {first_line(error)} Finished units are "
                    "kept: the same command continues with the rest."
                ) from error
            finally:
                dispatch.stop()


def _memory_a_core(ray: Any) -> int | None:
    """Bytes per core, on the node with the least."""
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    found = [each["memory"] / each["CPU"] for each in nodes if each.get("CPU") and "memory" in each]
    return int(min(found)) if found else None


def _capacity(ray: Any, kind: str) -> int:
    """The number of tasks that the cluster can currently run at a time."""
    return int(ray.cluster_resources().get(_RESOURCES[kind], 0))


@dataclass(frozen=True)
class _Sent:
    """A unit that was sent to the cluster."""

    unit: Unit
    claims: Claims
    """The claim on the unit."""
    deaths: int = 0
    """Workers that died while running it."""


class _Dispatch:
    """Sends units to the cluster, and writes their results."""

    def __init__(self, ray: Any, cluster: _Cluster, queue: Queue, callback: Callback) -> None:
        self._ray, self._queue, self._callback = ray, queue, callback
        self._device, self._workers = cluster.device, cluster.workers
        self._tasks: dict[Any, _Sent] = {}
        self._job = ray.put(queue.job)
        self._task = ray.remote(_task())
        self._options = {
            "num_cpus": int(cluster.device == "cpu"),
            "num_gpus": int(cluster.device == "cuda"),
            "scheduling_strategy": "SPREAD",
            "runtime_env": {"env_vars": {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}},
            # Ray's own retries never end when a node's memory is full, and report nothing.
            "max_retries": 0,
        }
        self._capacity = 0
        self._looked = -math.inf
        self._seen = time.monotonic()
        """When a node was last seen."""

    def finish(self) -> None:
        self._callback(Step())  # ready
        while True:
            self._fill()
            if self._tasks:
                ready, _ = self._ray.wait(list(self._tasks), timeout=_PAUSE)
                for task in ready:
                    self._land(task)
            elif self._queue.finished():
                return
            else:
                time.sleep(_PAUSE)

    def stop(self) -> None:
        """Cancel all tasks and release their units."""
        for task, sent in self._tasks.items():
            with suppress(Exception):  # the cluster may be gone
                if self._ray.is_initialized():
                    self._ray.cancel(task, force=True)
            sent.claims.release()
        self._tasks.clear()

    def _fill(self) -> None:
        """Send as many units as the cluster can run."""
        self._look()
        while len(self._tasks) < (self._workers or self._capacity):
            claims = Claims(self._queue.claims)
            try:
                unit = self._queue.take(claims)
                if unit is None:
                    return
                self._send(_Sent(unit, claims))
            except BaseException:
                claims.release()
                raise

    def _look(self) -> None:
        now = time.monotonic()
        if now - self._looked < _LOOK_SECONDS:
            return
        self._looked = now
        self._capacity = _capacity(self._ray, self._device)
        if self._capacity:
            self._seen = now
        elif now - self._seen > _EMPTY_SECONDS:
            raise IhgnnError(
                f"The cluster has had no {_RESOURCES[self._device]} for a minute: its nodes are "
                "gone. Finished units are kept: the same command continues with the rest."
            )

    def _send(self, sent: _Sent) -> None:
        unit = self._ray.put(sent.unit)
        named = self._task.options(name=f"ihgnn {sent.unit.name}", **self._options)
        # Inside a list they stay references: the task first checks whether it can read them.
        task = named.remote(__version__, [self._job, unit], self._device)
        self._tasks[task] = sent

    def _land(self, task: Any) -> None:
        """Write the results of a task, or send its unit again if its worker died."""
        sent = self._tasks[task]
        try:
            version, found = self._ray.get(task)
        except self._ray.exceptions.RayTaskError as error:
            raise _cause(error) from None
        except self._ray.exceptions.RayError as error:
            self._send_again(sent, error)
            del self._tasks[task]
            self._callback(Step(dead=1))
            return
        if version != __version__:
            raise _other_version(version)
        step, results = found
        for result in results:
            self._queue.write(result)
        del self._tasks[task]
        sent.claims.release()
        self._callback(step)

    def _send_again(self, sent: _Sent, error: Exception) -> None:
        again = replace(sent, deaths=sent.deaths + 1)
        if again.deaths > _DEATHS:
            models = counted(len(sent.unit), "model")
            raise IhgnnError(
                f"{again.deaths} workers died while training the stack {sent.unit.name} "
                f"({models}), perhaps because memory was full. Ray says: {first_line(error)}\n"
                "Use a smaller --stack, with another --out."
            )
        self._send(again)


def _cause(error: Any) -> IhgnnError:
    """The error that was raised in a task."""
    if isinstance(error.cause, IhgnnError):
        return error.cause
    what = f"{type(error.cause).__name__}: {error.cause}"
    return IhgnnError(f"A task failed on a node: {what}\nThis is a bug in ihgnn.")


def _other_version(version: str | None) -> IhgnnError:
    there = "no ihgnn" if version is None else f"ihgnn {version}"
    return IhgnnError(
        f"A node of the cluster has {there}, but this command is ihgnn {__version__}. Install "
        f"ihgnn-cli {__version__} on all nodes, in the Python that 'ray start' runs in."
    )


def _task() -> Callable[[str, list[Any], str], tuple[str | None, Any]]:
    """The function that nodes run.

    It returns the node's version of ihgnn, with progress and results if the versions match.
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
        from ihgnn_cli.jobs.cluster import run_on_node

        job, unit = references
        return version, run_on_node(job, unit, device)

    return run


# The runner of this worker process's last task, with the data it prepared. Workers with a GPU run
# one task only, because the next task may get another GPU.
_KEPT: dict[tuple[str, str], Runner] = {}


def run_on_node(job: Any, unit: Any, device: str) -> tuple[Step, list[Any]]:
    """Run a unit in a Ray task, and return its progress and results.

    Raises:
        IhgnnError: the unit failed, or the device is not available.
    """
    import ray

    torch.set_num_threads(1)
    key = job.hex(), device
    if key not in _KEPT:
        _KEPT.clear()
        _KEPT[key] = ray.get(job).runner(device)
    results: list[Any] = []
    trained = settled = 0

    def tell(more_trained: int, more_settled: int) -> None:
        nonlocal trained, settled
        trained, settled = trained + more_trained, settled + more_settled

    _KEPT[key](ray.get(unit), results.append, tell, None)
    return Step(trained, settled), results
