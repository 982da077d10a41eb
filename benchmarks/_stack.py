"""The cost of a stack of models on one thread: operations, growth with the data, and phases."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from _measure import Timing
from _plain import Task, load_task, stack, task_on
from _together import use_threads

MEMBERS = 10
"""One per fold."""
PROFILED = 15
"""Members of the stack whose phases are timed."""
WARM_UP = 2
DRAWING, BATCHES, LAYERS, READOUT, BACKWARD, ADAM, VALIDATION, REST = (
    "orders and dropout",
    "building batches",
    "layers, forward",
    "readout, forward",
    "classifier and backward",
    "Adam",
    "validation",
    "the rest",
)
PHASES = (DRAWING, BATCHES, LAYERS, READOUT, BACKWARD, ADAM, VALIDATION, REST)


def operations_of_an_epoch(task: Task) -> float:
    """Floating-point operations in the matrix products of a model-epoch, padding included."""
    use_threads(1)
    return operations(stack(task, MEMBERS).train_epoch) / MEMBERS


def operations(call: Callable[[], object]) -> int:
    """Floating-point operations in the matrix products of a call: 2 per multiplication."""
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    def added(_: Any, left: Any, right: Any, **__: Any) -> int:
        members, rows, inner = left
        return int(2 * members * rows * inner * right[-1])

    # torch counts products that create a tensor, but not those added in place.
    with FlopCounterMode(display=False, custom_mapping={torch.ops.aten.baddbmm_: added}) as counter:
        call()
    return int(counter.get_total_flops())


def growth(name: str, epochs: int) -> list[dict[str, float]]:
    """Seconds per model-epoch on repeated copies of a data set; the sizes take turns."""
    from homophily import SCALES, repeated

    use_threads(1)
    dataset = load_task(name).dataset
    stacks = {scale: stack(task_on(repeated(dataset, scale)), MEMBERS) for scale in SCALES}
    seconds: dict[int, list[float]] = {scale: [] for scale in SCALES}
    for turn in range(WARM_UP + epochs):
        for scale, each in stacks.items():
            start = time.perf_counter()
            each.train_epoch()
            if turn >= WARM_UP:
                seconds[scale].append((time.perf_counter() - start) / MEMBERS)
    return [
        {
            "scale": scale,
            "graphs": scale * len(dataset),
            "seconds": (median := Timing(tuple(spent)).median),
            "seconds_per_graph": median / (scale * len(dataset)),
        }
        for scale, spent in seconds.items()
    ]


class Clock:
    """Seconds by phase; a nested phase pauses the outer one."""

    def __init__(self) -> None:
        self.seconds: Counter[str] = Counter()
        self._phase = REST
        self._since = time.perf_counter()

    def switch(self, phase: str) -> str:
        """Switch to a phase; returns the previous one."""
        now, before = time.perf_counter(), self._phase
        self.seconds[before] += now - self._since
        self._phase, self._since = phase, now
        return before

    def timed(self, phase: str, call: Callable[..., Any]) -> Callable[..., Any]:
        """The same function, timed; all work inside validation counts as validation."""

        def wrapped(*arguments: Any) -> Any:
            if self._phase == VALIDATION:
                return call(*arguments)
            before = self.switch(phase)
            try:
                return call(*arguments)
            finally:
                self.switch(before)

        return wrapped

    def timed_items(self, phase: str, call: Callable[..., Iterator[Any]]) -> Callable[..., Any]:
        """The same for a generator, timed item by item."""

        def wrapped(*arguments: Any) -> Iterator[Any]:
            following = self.timed(phase, call(*arguments).__next__)
            while True:
                try:
                    item = following()
                except StopIteration:
                    return
                yield item

        return wrapped


def profile(name: str, epochs: int) -> tuple[dict[str, float], float]:
    """The share of each phase in an epoch of a stack, and the seconds per model-epoch."""
    use_threads(1)
    watched: Any = stack(load_task(name), PROFILED)
    for _ in range(WARM_UP):
        watched.train_epoch()  # also creates the validation batches
    clock = Clock()
    model = watched.model
    watched.store.batches = clock.timed_items(BATCHES, watched.store.batches)
    watched.store.rows_of = clock.timed(BATCHES, watched.store.rows_of)
    for owner, method, phase in (
        (watched, "_draw", DRAWING),
        (watched, "evaluate", VALIDATION),
        (watched._optimizer, "step", ADAM),
        (model, "train_step", BACKWARD),
        (model, "embed", LAYERS),
        (model, "_read", READOUT),
    ):
        setattr(owner, method, clock.timed(phase, getattr(owner, method)))
    for _ in range(epochs):
        watched.train_epoch()
    clock.switch(REST)
    total = clock.seconds.total()
    return {phase: clock.seconds[phase] / total for phase in PHASES}, total / epochs / PROFILED
