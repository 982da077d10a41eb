"""A search for good settings: what it is about, and how it is conducted.

Trials compete by validation accuracy alone. When all are done the best settings are trained once
more as an ordinary run (see `final`), and that run is what looks at the test graphs.
"""

import hashlib
import json
import math
from dataclasses import dataclass, replace
from typing import Any

from ihgnn_cli.data.dataset import GraphDataset
from ihgnn_cli.data.splits import Split, inner_folds, load_split
from ihgnn_cli.errors import InputError
from ihgnn_cli.jsonable import jsonable
from ihgnn_cli.settings import Settings
from ihgnn_cli.studies.memory import fitting, paying
from ihgnn_cli.studies.places import Places
from ihgnn_cli.studies.tuning.kinds import PrunerName, SamplerName
from ihgnn_cli.studies.tuning.slots import Slot
from ihgnn_cli.studies.tuning.space import SearchSpace
from ihgnn_cli.studies.tuning.trainer import Task
from ihgnn_cli.training.config import RunConfig
from ihgnn_cli.training.needs import model_bytes, require_room

_DIGEST = 8  # hexadecimal digits that tell searches of a data set apart
# Reports of a training: enough for a pruner, and few enough for a database.
_REPORTS = 50
# Models together of samplers that learn: with five a core is as good as busy (measured on MUTAG
# and IMDB-BINARY), and the fewer trials are begun at a time the more the next ones know.
_LEARNING_CPU, _LEARNING_CUDA = 5, 16


@dataclass(frozen=True, eq=False)
class Search(Settings):
    """All that decides what a search is about."""

    config: RunConfig
    """Of every trial, but for what is searched."""
    space: SearchSpace
    dataset: GraphDataset
    split: Split
    """Of the run that the best settings get."""
    inner: tuple[Split, ...]
    """That trials are trained with; their test graphs are those of the split, and never used."""
    sampler: SamplerName = SamplerName.TPE
    pruner: PrunerName = PrunerName.MEDIAN
    interval: int = 1
    """Epochs between two reports."""

    @property
    def identity(self) -> dict[str, Any]:
        """What two searches have to have in common to be one."""
        plain = self.config.identity()
        for name in self.space.parts:
            for section in plain.values():
                section.pop(name, None)
        data, training = plain["data"], plain["training"]
        for section, key in ((data, "split"), (data, "split_from"), (training, "device")):
            del section[key]
        data["dataset"] = self.dataset.name  # the same data may lie elsewhere on another machine
        splits = "".join(each.digest for each in (self.split, *self.inner))
        found: dict[str, Any] = jsonable(  # type: ignore[assignment]
            {
                "space": self.space.as_plain(),
                **plain,
                "data_sha256": self.dataset.fingerprint,
                "splits_sha256": hashlib.sha256(splits.encode()).hexdigest(),
                "inner_folds": len(self.inner),
                "sampler": self.sampler,
                "pruner": self.pruner,
                "report_every": self.interval,
            }
        )
        return found

    @property
    def digest(self) -> str:
        """Short for the identity."""
        text = json.dumps(self.identity, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:_DIGEST]

    def task(self) -> Task:
        """What workers are given: which graphs train and validate, and no class of another."""
        splits = tuple((each.train, each.validation) for each in self.inner)
        return Task(self.blinded().dataset, splits, self.interval)

    def blinded(self) -> "Search":
        """The search for workers: without the classes of test graphs."""
        classes = self.dataset.graph_class.copy()
        classes[self.split.test] = 0
        return replace(self, dataset=replace(self.dataset, graph_class=classes))


def prepare(
    config: RunConfig,
    space: SearchSpace,
    dataset: GraphDataset,
    *,
    sampler: SamplerName = SamplerName.TPE,
    pruner: PrunerName = PrunerName.MEDIAN,
    inner: int = 1,
    interval: int | None = None,
) -> Search:
    """The search for a configuration's best settings on a data set.

    Raises:
        InputError: the split or the number of inner folds cannot be.
    """
    seed, epochs = config.training.seed, config.training.epochs
    if interval is not None and not 1 <= interval <= epochs:
        raise InputError(f"--report-every must be from 1 to {epochs} (epochs), not {interval}.")
    split = load_split(config.data.split, dataset, seed)
    return Search(
        config,
        space,
        dataset,
        split,
        inner_folds(dataset.graph_class, split, seed, inner),
        sampler,
        pruner,
        math.ceil(epochs / _REPORTS) if interval is None else interval,
    )


def trials_together(search: Search, places: Places) -> int:
    """How many trials a worker trains as one stack, by itself: as many as pay and fit.

    Raises:
        NoRoomError: not even the smallest of the space fits in memory.
    """
    learning = search.sampler in (SamplerName.TPE, SamplerName.GP)
    on_gpu = places.first.type == "cuda"
    models = (_LEARNING_CUDA if on_gpu else _LEARNING_CPU) if learning else paying(places.first)
    corners = search.space.corners(search.config)
    for corner in search.space.smallest(search.config):
        require_room(corner, search.dataset, places.first, places.memory)
    if search.config.spec.stacked is None:
        return 1
    each = max(model_bytes(search.dataset, corner) for corner in corners)
    models = min(models, fitting(places.memory, places.first, search.dataset, each))
    return max(1, models // len(search.inner))


@dataclass(frozen=True)
class Conducted:
    """What one process has done for a search."""

    slots: tuple[Slot, ...]
    total: int
    model_epochs: int
    seconds: float

    @property
    def finished(self) -> bool:
        """Whether every trial that was asked for is settled."""
        return len(self.slots) >= self.total and all(slot.settled for slot in self.slots)
