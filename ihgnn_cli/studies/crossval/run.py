"""Runs the open stacks of one or more jobs, on this machine or on a Ray cluster.

Work is pulled: every worker takes the next open stack that nobody else has locked, trains it, and
writes its file. Several commands may do that in the same folder; the system frees the locks of a
process that dies.
"""

import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from shutil import rmtree

import torch

from ihgnn_cli.errors import IhgnnError, InputError, InUseError, NoLocksError
from ihgnn_cli.files import remove_parts, try_lock, writing
from ihgnn_cli.jobs.processes import Killed, Place, Send, run_workers
from ihgnn_cli.jobs.ray import Cluster, Task, run_tasks
from ihgnn_cli.studies.crossval.job import LOCKS, PARTIAL, UNITS, Job, JobFolder
from ihgnn_cli.studies.crossval.records import Record
from ihgnn_cli.studies.crossval.stacks import Stack
from ihgnn_cli.studies.crossval.train_stack import Trainer, remove_checkpoints
from ihgnn_cli.studies.workers import Workers
from ihgnn_cli.training.devices import resolve_device
from ihgnn_cli.words import counted

_PAUSE = 0.3  # seconds of a worker when others have all open stacks
_REPORT_SECONDS = 0.2  # between two messages of a worker, so that reporting costs nothing
# Maximum pause between two looks into the folders; shorter if looking is fast.
_LOOK_SECONDS, _LOOK_SHARE = 3.0, 20
_STACK_DEATHS = 3  # a stack whose workers are killed more often is given up
_FAILED = "failed"
_NO_LOCKS = "in-use"


@dataclass(frozen=True)
class Progress:
    """The progress of all jobs, by any process."""

    models: int
    """Finished trainings."""
    of_models: int
    epochs: int
    """Model-epochs that are done or no longer needed."""
    of_epochs: int
    seconds_left: float | None = None
    """An estimate, as soon as there is one."""
    killed: bool = False
    """Whether a worker of this command was just killed; its work is done again."""


@dataclass(frozen=True)
class Ran:
    """What a command trained."""

    model_epochs: int | None
    """`None` if nothing was left to do."""
    seconds: float
    """From the first ready worker to the last trained epoch."""


Watch = Callable[[Progress], None]


def run_jobs(
    folders: Sequence[JobFolder],
    where: Workers | Cluster,
    watch: Watch = lambda _progress: None,
    *,
    costs: Sequence[float] = (),
    on_failure: Callable[[int, IhgnnError], None] | None = None,
    on_finished: Callable[[int, Ran], None] = lambda _number, _ran: None,
    warn: Callable[[str], None] = lambda _text: None,
) -> Ran:
    """Train all open stacks of some jobs.

    Args:
        folders: the jobs.
        where: who works.
        watch: receives the progress.
        costs: relative cost of a model-epoch, by job, to estimate the time left.
        on_failure: receives the number of a job that failed, and why; the others go on. By default
            the error is raised.
        on_finished: receives the number of a job once all its stacks are finished, and what this
            command trained for it.
        warn: receives warnings.

    Raises:
        IhgnnError: a job or a worker failed, or another command uses a folder without locks.
    """
    meter = _Meter(folders, watch, costs, on_finished)
    meter.look()
    if meter.finished:
        return Ran(None, 0.0)
    with _locks(folders, warn) as locks:
        for folder, place in zip(folders, locks, strict=True):
            for made in (folder.path / UNITS, folder.path / PARTIAL):
                with writing(made):
                    made.mkdir(exist_ok=True)
            with suppress(OSError):
                (place / _FAILED).unlink()
        running = _Running(folders, locks, meter, on_failure)
        match where:
            case Workers():
                work = _Work(tuple(folders), tuple(locks))
                run_workers(
                    _work,
                    work,
                    places=_places(where, sum(each.most_open() for each in folders)),
                    on_message=running.hear,
                    tick=meter.tick,
                )
            case Cluster():
                jobs = [folder.job for folder in folders]
                run_tasks(
                    where,
                    _on_node,
                    jobs,
                    running.next_task,
                    finished=lambda: running.over,
                    on_death=lambda: meter.tell(killed=True),
                    tick=meter.tick,
                )
        meter.look()
        meter.tell()
        running.report_unfinished(meter)
    return meter.ran


def clean_up(folder: JobFolder) -> None:
    """Remove what killed processes left in a finished job, unless another process is working."""
    locks = folder.path / LOCKS
    for path in locks.glob("*"):
        with suppress(IhgnnError), try_lock(path) as free:
            if not free:
                return
    remove_parts(folder.path / UNITS)
    for name in (PARTIAL, LOCKS):
        rmtree(folder.path / name, ignore_errors=True)


def _places(workers: Workers, most: int) -> tuple[Place, ...]:
    """One place per worker, but no more than can have a stack at a time."""
    if len(workers.places) <= most:
        return workers.places
    # Fewer workers than cores are not pinned: they go where there is room.
    return tuple(replace(place, core=None) for place in workers.places[:most])


@contextmanager
def _locks(folders: Sequence[JobFolder], warn: Callable[[str], None]) -> Iterator[list[Path]]:
    """A folder for the locks of each job.

    Where the file system has no locks, one command at a time may use a folder: its workers lock
    files in a temporary folder of this machine.
    """
    with ExitStack() as stack:
        try:
            for folder in folders:
                with try_lock(folder.path / LOCKS / "probe"):
                    pass
        except NoLocksError as error:
            for folder in folders:
                stack.enter_context(_only_command(folder.path))
            warn(f"{error} Only one command at a time can use a folder there.")
            made = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ihgnn-locks-")))
            yield [made / str(number) for number in range(len(folders))]
        else:
            yield [folder.path / LOCKS for folder in folders]


@contextmanager
def _only_command(folder: Path) -> Iterator[None]:
    """Mark a folder as in use.

    Raises:
        InUseError: it is.
    """
    mark = folder / _NO_LOCKS
    try:
        with writing(folder):
            mark.touch(exist_ok=False)
    except IhgnnError as error:
        if not isinstance(error.__cause__, FileExistsError):
            raise
        raise InUseError(
            f"Another command is using {folder}, whose file system has no locks. Wait until it "
            f"ends. If there is none, it was killed: remove {mark}."
        ) from error
    try:
        yield
    finally:
        with suppress(OSError):
            mark.unlink()


@dataclass
class _Taken:
    """A stack that this process has locked."""

    number: int
    """That of its job."""
    stack: Stack
    lock: ExitStack


@dataclass(frozen=True, eq=False)
class _Work:
    """What every worker receives."""

    folders: tuple[JobFolder, ...]
    locks: tuple[Path, ...]

    def take(self, skip: set[int]) -> _Taken | None:
        """Lock an open stack; `None` if there is none now.

        Raises:
            _JobError: a job cannot go on.
        """
        for number, (folder, locks) in enumerate(zip(self.folders, self.locks, strict=True)):
            if number in skip:
                continue
            if (locks / _FAILED).exists():
                skip.add(number)
                continue
            try:
                for stack in folder.open_stacks():
                    lock = ExitStack()
                    with lock:
                        free = lock.enter_context(try_lock(locks / f"{stack.name}.lock"))
                        if free and not folder.done(stack):
                            return _Taken(number, stack, lock.pop_all())
            except IhgnnError as error:
                raise _JobError(number, error) from error
        return None

    def over(self, skip: set[int]) -> bool:
        """Whether nothing is left to do."""
        for number, folder in enumerate(self.folders):
            with suppress(IhgnnError):  # `take` raises it again
                if number in skip or folder.finished:
                    continue
            return False
        return True

    def fail(self, number: int) -> None:
        """Keep others from working on a job."""
        with suppress(OSError):
            self.locks[number].mkdir(exist_ok=True)
            (self.locks[number] / _FAILED).touch()


class _JobError(Exception):
    """A job cannot go on."""

    def __init__(self, number: int, error: IhgnnError) -> None:
        super().__init__(str(error))
        self.number, self.error = number, error


@dataclass(frozen=True)
class _Step:
    """A message of a worker; one without a stack says that it is ready."""

    pid: int
    number: int = 0
    """That of the job."""
    stack: str = ""
    done: int = 0
    """Model-epochs of the stack that are done so far."""
    trained: int = 0
    """Model-epochs trained since the last message."""


@dataclass(frozen=True)
class _Failed:
    """The message that a job failed."""

    number: int
    text: str
    input_error: bool


def _work(work: _Work, place: Place, send: Send) -> None:
    """The loop of a worker process."""
    device = resolve_device(place.device)
    trainer: Trainer | None = None
    skip: set[int] = set()
    send(_Step(os.getpid()))
    while not work.over(skip):
        try:
            taken = work.take(skip)
            if taken is None:
                time.sleep(_PAUSE)
                continue
            folder = work.folders[taken.number]
            with taken.lock:
                if trainer is None or trainer.job is not folder.job:
                    if trainer is not None and trainer.job.data is not folder.job.data:
                        trainer.job.data.drop()
                    trainer = Trainer(folder.job, device)
                reporter = _Reporter(send, taken)
                try:
                    partial = folder.path / PARTIAL
                    records = trainer.train(taken.stack, reporter.add, partial)
                    reporter.send()  # before the file: who sees it will hear of all epochs
                    folder.write(taken.stack, records)
                    remove_checkpoints(partial, taken.stack)
                except IhgnnError as error:
                    raise _JobError(taken.number, error) from error
        except _JobError as failure:
            skip.add(failure.number)
            work.fail(failure.number)
            is_input = failure.error.exit_code == 2
            send(_Failed(failure.number, str(failure.error), is_input))


class _Reporter:
    """Reports the progress of a stack now and then."""

    def __init__(self, send: Send, taken: _Taken) -> None:
        self._send = send
        self._step = _Step(os.getpid(), taken.number, taken.stack.name)
        self._sent = 0.0
        self.send()

    def add(self, trained: int, done: int) -> None:
        step = self._step
        self._step = replace(step, trained=step.trained + trained, done=step.done + done)
        if time.monotonic() - self._sent >= _REPORT_SECONDS:
            self.send()

    def send(self) -> None:
        self._send(self._step)
        self._step = replace(self._step, trained=0)
        self._sent = time.monotonic()


_kept: list[Trainer] = []


def _on_node(job: Job, stack: Stack, device: str) -> tuple[int, list[Record]]:
    """Train a stack in a task; returns the model-epochs trained, and the records."""
    if not _kept or _kept[0].job is not job:
        _kept[:] = [Trainer(job, torch.device(device))]
    trained = 0

    def report(more: int, _done: int) -> None:
        nonlocal trained
        trained += more

    records = _kept[0].train(stack, report)
    return trained, records


class _Running:
    """What the process that started the workers does."""

    def __init__(
        self,
        folders: Sequence[JobFolder],
        locks: Sequence[Path],
        meter: "_Meter",
        on_failure: Callable[[int, IhgnnError], None] | None,
    ) -> None:
        self.work = _Work(tuple(folders), tuple(locks))
        self._meter = meter
        self._on_failure = on_failure
        self._skip: set[int] = set()
        self._at: dict[int, tuple[int, str]] = {}
        """The stack that a worker is training, by its pid."""
        self._deaths: dict[tuple[int, str], int] = {}

    @property
    def over(self) -> bool:
        """Whether nothing is left to do."""
        return self.work.over(self._skip)

    def hear(self, message: object) -> None:
        match message:
            case _Step():
                self._at[message.pid] = message.number, message.stack
                self._meter.step(message.number, message.stack, message.done, message.trained)
            case _Failed():
                kind = InputError if message.input_error else IhgnnError
                self._failed(message.number, kind(message.text))
            case Killed():
                self._meter.tell(killed=True)
                number, stack = self._at.pop(message.pid, (0, ""))
                deaths = self._deaths[number, stack] = self._deaths.get((number, stack), 0) + 1
                if stack and deaths == _STACK_DEATHS:
                    self.work.fail(number)
                    self._failed(
                        number,
                        IhgnnError(
                            f"{deaths} workers were killed while training the stack {stack}, "
                            "perhaps because memory was full. Use fewer --workers, or a smaller "
                            "--stack with another --out."
                        ),
                    )

    def next_task(self) -> Task | None:
        """The next stack for a cluster; its lock is held until it is finished."""
        try:
            taken = self.work.take(self._skip)
        except _JobError as failure:
            self._failed(failure.number, failure.error)
            return None
        if taken is None:
            return None
        folder = self.work.folders[taken.number]

        def finish(result: tuple[int, list[Record]]) -> None:
            trained, records = result
            folder.write(taken.stack, records)
            taken.lock.close()
            done = sum(each.validated.epochs for each in records)
            self._meter.step(taken.number, taken.stack.name, done, trained)

        name = f"{taken.stack.name} ({counted(len(taken.stack), 'model')})"
        return Task(name, taken.number, taken.stack, finish, taken.lock.close)

    def report_unfinished(self, meter: "_Meter") -> None:
        """Report the jobs that the workers left because another command has failed there."""
        for number, folder in enumerate(self.work.folders):
            if number not in self._skip and not meter.is_finished(number):
                why = f"Another command failed to train in {folder.path}. Run this one again."
                self._failed(number, IhgnnError(why))

    def _failed(self, number: int, error: IhgnnError) -> None:
        if self._on_failure is None:
            raise error
        if number not in self._skip:
            self._skip.add(number)
            self._on_failure(number, error)


class _Times:
    """The model-epochs trained by this command, for a job or all of them, and how long it took."""

    def __init__(self) -> None:
        self.trained = 0
        self.began: float | None = None
        self._last = 0.0

    def add(self, trained: int) -> None:
        now = time.monotonic()
        if self.began is None:
            self.began = self._last = now
        if trained:
            self._last = now
        self.trained += trained

    @property
    def ran(self) -> Ran:
        return Ran(self.trained, 0.0 if self.began is None else self._last - self.began)


class _Meter:
    """Adds up the progress of the workers and of other processes."""

    def __init__(
        self,
        folders: Sequence[JobFolder],
        watch: Watch,
        costs: Sequence[float],
        on_finished: Callable[[int, Ran], None],
    ) -> None:
        self._folders, self._watch, self._on_finished = folders, watch, on_finished
        jobs = [folder.job for folder in folders]
        self._models = [job.protocol.trainings(job.folds) for job in jobs]
        self._epochs = [job.protocol.model_epochs(job.folds) for job in jobs]
        self._costs = costs if any(costs) else [1.0] * len(jobs)
        self._done = [(0, 0)] * len(jobs)
        """Finished models and model-epochs, by job."""
        self._live: dict[tuple[int, str], int] = {}
        """Model-epochs of unfinished stacks that workers of this command are training."""
        self._times = [_Times() for _ in jobs]
        self._all = _Times()
        self._share = 0.0
        """The share of the work that was done when this command began."""
        self._over: set[int] = set()
        self._unannounced: list[int] = []
        """Jobs that are over, while messages about them may be on their way."""
        self._looked = self._pause = 0.0

    @property
    def finished(self) -> bool:
        """Whether all jobs are finished."""
        return len(self._over) == len(self._folders)

    def is_finished(self, number: int) -> bool:
        """Whether a job was found to be finished."""
        return number in self._over

    @property
    def ran(self) -> Ran:
        """What was trained in all."""
        return self._all.ran

    def step(self, number: int, stack: str, done: int, trained: int) -> None:
        """A worker has trained so many model-epochs; without a stack, it is ready."""
        if self._all.began is None:
            self._share = self._work_share()
        self._all.add(trained)
        if stack:
            self._times[number].add(trained)
            if not self._folders[number].knows(stack):
                self._live[number, stack] = done
        self.tell()

    def tick(self) -> None:
        """Look into the folders if it is time; what was sent before the last call is heard."""
        self._announce()
        if time.monotonic() - self._looked >= self._pause:
            self._look()
            self.tell()

    def look(self) -> None:
        """Count the trainings finished by any process, when no message is on its way."""
        self._look()
        self._announce()

    def _announce(self) -> None:
        while self._unannounced:
            number = self._unannounced.pop(0)
            times = self._times[number]
            self._on_finished(number, times.ran if times.trained else Ran(None, 0.0))

    def _look(self) -> None:
        began = time.monotonic()
        for number, folder in enumerate(self._folders):
            if number in self._over:
                continue
            try:
                finished = self._count(number, folder)
            except IhgnnError:  # a worker reports it
                continue
            if finished:
                self._over.add(number)
                self._unannounced.append(number)
        self._looked = time.monotonic()
        self._pause = min(_LOOK_SECONDS, _LOOK_SHARE * (self._looked - began))

    def _count(self, number: int, folder: JobFolder) -> bool:
        """Count what is finished of a job; returns whether all of it is."""
        found = folder.finished_trainings()
        whole = folder.job.protocol.config.training.epochs
        self._done[number] = len(found), sum(each.epochs or whole for each in found)
        self._live = {
            (job, stack): epochs
            for (job, stack), epochs in self._live.items()
            if job != number or not folder.knows(stack)
        }
        return folder.finished

    def tell(self, *, killed: bool = False) -> None:
        """Report the progress."""
        models, of_models = sum(each for each, _ in self._done), sum(self._models)
        of_epochs = sum(self._epochs)
        # Report the last epoch only when all models are on disk, so that both counts end together.
        epochs = min(sum(self._by_job()), of_epochs - (models < of_models))
        left = self._seconds_left()
        self._watch(Progress(models, of_models, epochs, of_epochs, left, killed))

    def _by_job(self) -> list[int]:
        """The model-epochs of each job that are done."""
        found = [epochs for _, epochs in self._done]
        for (number, _), epochs in self._live.items():
            found[number] += epochs
        return found

    def _work_share(self) -> float:
        done, whole = (
            sum(cost * epochs for cost, epochs in zip(self._costs, counts, strict=True))
            for counts in (self._by_job(), self._epochs)
        )
        return done / whole if whole else 1.0

    def _seconds_left(self) -> float | None:
        share = self._work_share()
        if self._all.began is None or share <= self._share:
            return None
        elapsed = time.monotonic() - self._all.began
        return max(0.0, 1 - share) * elapsed / (share - self._share)
