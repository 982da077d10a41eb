"""Workers on a Ray cluster.

The process that the user started alone has the folder: it takes bundles, sends each to the cluster
as a task, and writes what comes back. Nodes need the same ihgnn, and neither the folder nor the
data. A task whose worker or node dies is sent again.
"""

import math
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from ihgnn_cli import __version__
from ihgnn_cli.errors import IhgnnError, InputError
from ihgnn_cli.selection import folder as folders
from ihgnn_cli.selection.agenda import Agenda
from ihgnn_cli.selection.claims import Claims
from ihgnn_cli.selection.executor import Executor, Step, Watch
from ihgnn_cli.selection.plan import Bundle
from ihgnn_cli.selection.ray_connection import connected, first_line
from ihgnn_cli.selection.units import Record, parsed
from ihgnn_cli.selection.work import Job, Trainer
from ihgnn_cli.training.devices import AUTO, resolve_device
from ihgnn_cli.words import counted

# How long to wait for a task before looking for bundles that others gave back.
_PAUSE = 0.3
# Nodes come and go; this often they are counted, and a cluster may be without any for this long.
_LOOK_SECONDS, _EMPTY_SECONDS = 3.0, 60.0
# Deaths of its workers that a bundle survives: more are hardly by chance.
_DEATHS = 5
_RESOURCES = {"cpu": "CPU", "cuda": "GPU"}


def cluster_executor(address: str, device: str, workers: int | None) -> Executor:
    """Workers on the nodes of a Ray cluster; by default one a core, or one a GPU, of them all.

    Where this process is connected to Ray already, that cluster is used.

    Args:
        address: `auto`, `HOST:PORT` or `ray://HOST:PORT`.
        device: `cpu`, `cuda`, or `auto`: GPUs where the cluster has any.
        workers: tasks at a time.

    Raises:
        InputError: Ray is not installed, the cluster cannot be reached or has no such device, or
            there are no workers.
    """
    if workers is not None and workers < 1:
        raise InputError(f"workers must be at least 1, not {workers}.")
    if device not in (AUTO, *_RESOURCES):
        raise InputError(
            f"Not '{device}' on a cluster: Ray decides which GPU. Use auto, cpu or cuda."
        )
    with connected(address) as ray:
        found = {kind: _capacity(ray, kind) for kind in _RESOURCES}
        memory = _memory_a_core(ray)
    if device == AUTO:
        device = "cuda" if found["cuda"] else "cpu"
    if device == "cuda":
        memory = None  # Ray does not tell; a stack that is too large is trained in halves
    if not found[device]:
        raise InputError(
            f"The cluster at {address} has no {_RESOURCES[device]} to offer. 'ray status' shows "
            "what it has."
        )
    there = _Cluster(address, device, workers)
    return Executor(workers or found[device], torch.device(device), memory, there.run)


@dataclass(frozen=True)
class _Cluster:
    """A cluster, and what of it is used."""

    address: str
    device: str
    """`cpu` or `cuda`."""
    workers: int | None
    """Tasks at a time; `None` for as many as it has room for."""

    def run(self, job: Job, folder: Path, stack: int, watch: Watch) -> None:
        """Do all that is left of a job.

        Raises:
            IhgnnError: a task failed, or the cluster is gone.
        """
        with connected(self.address) as ray:
            dispatch = _Dispatch(ray, self, Agenda(job, folder, stack), watch)
            try:
                dispatch.finish()
            except (ConnectionError, ray.exceptions.RayError) as error:
                raise IhgnnError(
                    f"Lost the cluster at {self.address}: {first_line(error)} Finished units are "
                    "kept: the same command goes on with the rest."
                ) from error
            finally:
                dispatch.stop()


def _memory_a_core(ray: Any) -> int | None:
    """Bytes that a task may take, on the node that has least."""
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    found = [each["memory"] / each["CPU"] for each in nodes if each.get("CPU") and "memory" in each]
    return int(min(found)) if found else None


def _capacity(ray: Any, kind: str) -> int:
    """The tasks that the cluster can run at a time, as it is now."""
    return int(ray.cluster_resources().get(_RESOURCES[kind], 0))


@dataclass(frozen=True)
class _Flight:
    """A bundle that is out on the cluster."""

    bundle: Bundle
    claims: Claims
    """That hold it."""
    deaths: int = 0
    """Of workers that had it."""


class _Dispatch:
    """Sends bundles out, and brings home what comes back."""

    def __init__(self, ray: Any, cluster: _Cluster, agenda: Agenda, watch: Watch) -> None:
        self._ray, self._agenda, self._watch = ray, agenda, watch
        self._device, self._workers = cluster.device, cluster.workers
        self._flights: dict[Any, _Flight] = {}
        self._job = ray.put(agenda.job)
        self._task = ray.remote(_task())
        self._options = {
            "num_cpus": int(cluster.device == "cpu"),
            "num_gpus": int(cluster.device == "cuda"),
            "scheduling_strategy": "SPREAD",
            "runtime_env": {"env_vars": {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}},
            # Ray's own retries know no end where the memory of a node is full, and tell nobody.
            "max_retries": 0,
        }
        self._capacity = 0
        self._looked = -math.inf
        self._seen = time.monotonic()
        """When there was a node."""

    def finish(self) -> None:
        self._watch(Step())  # ready
        while True:
            self._fill()
            if self._flights:
                ready, _ = self._ray.wait(list(self._flights), timeout=_PAUSE)
                for task in ready:
                    self._land(task)
            elif self._agenda.finished():
                return
            else:
                time.sleep(_PAUSE)

    def stop(self) -> None:
        """Call back what is out; others may have it."""
        for task, flight in self._flights.items():
            with suppress(Exception):  # the cluster may be gone
                if self._ray.is_initialized():
                    self._ray.cancel(task, force=True)
            flight.claims.release()
        self._flights.clear()

    def _fill(self) -> None:
        """Send out as many bundles as there is room for."""
        self._look()
        while len(self._flights) < (self._workers or self._capacity):
            claims = Claims(self._agenda.units.folder / folders.CLAIMS)
            try:
                bundle = self._agenda.take(claims)
                if bundle is None:
                    return
                self._send(_Flight(bundle, claims))
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
                "gone. Finished units are kept: the same command goes on with the rest."
            )

    def _send(self, flight: _Flight) -> None:
        bundle = self._ray.put(flight.bundle)
        named = self._task.options(name=f"ihgnn {flight.bundle.name}", **self._options)
        # In a list they stay references: the task first looks whether it can read them.
        task = named.remote(__version__, [self._job, bundle], self._device)
        self._flights[task] = flight

    def _land(self, task: Any) -> None:
        """Write what a task brings; send its bundle again where it died."""
        flight = self._flights[task]
        try:
            version, lines = self._ray.get(task)
        except self._ray.exceptions.RayTaskError as error:
            raise _cause(error) from None
        except self._ray.exceptions.RayError as error:
            self._send_again(flight, error)
            del self._flights[task]
            self._watch(Step(dead=1))
            return
        if version != __version__:
            raise _other_version(version)
        records = [parsed(line) for line in lines]
        for record in records:
            self._agenda.units.write(record)
        del self._flights[task]
        flight.claims.release()
        trained = sum(record.validated.epochs for record in records)
        epochs = self._agenda.job.protocol.config.training.epochs
        self._watch(Step(trained, epochs * len(records)))

    def _send_again(self, flight: _Flight, error: Exception) -> None:
        again = replace(flight, deaths=flight.deaths + 1)
        if again.deaths > _DEATHS:
            models = counted(len(flight.bundle.units), "model")
            raise IhgnnError(
                f"{again.deaths} workers died of the stack {flight.bundle.name} ({models}), "
                f"perhaps because memory was full. Ray says: {first_line(error)}\n"
                "Use a smaller --stack, with another --out."
            )
        self._send(again)


def _cause(error: Any) -> IhgnnError:
    """What went wrong in a task, as it was raised there."""
    if isinstance(error.cause, IhgnnError):
        return error.cause
    told = f"{type(error.cause).__name__}: {error.cause}"
    return IhgnnError(f"A task failed on a node: {told}\nThis is a mistake in ihgnn.")


def _other_version(version: str | None) -> IhgnnError:
    there = "no ihgnn" if version is None else f"ihgnn {version}"
    return IhgnnError(
        f"A node of the cluster has {there}, and this command is ihgnn {__version__}. Install "
        f"ihgnn-cli {__version__} on all nodes, in the Python that 'ray start' runs in."
    )


def _task() -> Callable[[str, list[Any], str], tuple[str | None, list[str]]]:
    """What nodes run: gives the version of ihgnn there, and lines of records if it is the same."""

    # Inside a function, so that Ray sends the code itself: by its name alone, a node that has no
    # ihgnn, or another one, could not say so. For the same reason it uses nothing of this module.
    def train(version: str, references: list[Any], device: str) -> tuple[str | None, list[str]]:
        try:
            import ihgnn_cli
        except ImportError:
            return None, []
        if ihgnn_cli.__version__ != version:
            return ihgnn_cli.__version__, []
        from ihgnn_cli.selection.cluster import train_on_node

        job, bundle = references
        return version, train_on_node(job, bundle, device)

    return train


# Of a worker process: the trainer of the last task, with its store of graphs. Workers with a GPU
# live for one task, because the next may be given another GPU.
_KEPT: dict[tuple[str, str], Trainer] = {}


def train_on_node(job: Any, bundle: Any, device: str) -> list[str]:
    """Train a bundle in a task of Ray, and give the lines of its records.

    Raises:
        IhgnnError: memory is too small for one model, or there is no such device.
    """
    import ray

    torch.set_num_threads(1)
    key = job.hex(), device
    if key not in _KEPT:
        _KEPT.clear()
        _KEPT[key] = Trainer(ray.get(job), resolve_device(device))
    records: dict[str, Record] = {}

    def deliver(record: Record) -> None:
        records[record.validated.unit.name] = record

    _KEPT[key].train(ray.get(bundle), deliver, lambda _trained, _settled: None)
    return [record.line() for record in records.values()]
