"""Definition of a search: space, data, splits, sampler and pruner.

Trials are compared by validation accuracy. At the end the best settings are trained as an ordinary
run (see `best_run`), and only that run uses the test graphs.
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
from ihgnn_cli.studies.crossval.stacks import fitting, paying
from ihgnn_cli.studies.places import Places
from ihgnn_cli.studies.tuning.kinds import PrunerName, SamplerName
from ihgnn_cli.studies.tuning.space import SearchSpace
from ihgnn_cli.training.config import RunConfig
from ihgnn_cli.training.needs import model_bytes, require_room

_DIGEST = 8  # hexadecimal digits in the name of a search
# Reports per training: enough for a pruner, and few enough for a database.
_REPORTS = 50
# Models per stack for samplers that learn: five keep a core busy (measured on MUTAG and
# IMDB-BINARY), and with fewer trials at a time the sampler knows more about the next ones.
_LEARNING_CPU, _LEARNING_CUDA = 5, 16


@dataclass(frozen=True, eq=False)
class Search(Settings):
    """Everything that defines a search."""

    config: RunConfig
    """Configuration of every trial, except for the searched settings."""
    space: SearchSpace
    dataset: GraphDataset
    split: Split
    """The split of the final run."""
    inner: tuple[Split, ...]
    """The splits of the trials; their test graphs are those of `split` and are never used."""
    sampler: SamplerName = SamplerName.TPE
    pruner: PrunerName = PrunerName.MEDIAN
    interval: int = 1
    """Epochs between two reports."""

    @property
    def identity(self) -> dict[str, Any]:
        """What has to be equal for two commands to share a search."""
        plain = self.config.as_plain()
        for name in self.space.parts:
            for section in plain.values():
                section.pop(name, None)
        data, training = plain["data"], plain["training"]
        for section, key in ((data, "split"), (data, "split_from"), (training, "device")):
            del section[key]
        data["dataset"] = self.dataset.name  # the path may differ on another machine
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
        """A short hash of the identity."""
        text = json.dumps(self.identity, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:_DIGEST]

    def without_test_classes(self) -> "Search":
        """The search for workers: all test graphs have class 0."""
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
    """Define the search for the best settings on a data set.

    Raises:
        InputError: the split, the number of inner folds or the interval is not valid.
    """
    seed = config.training.seed
    split = load_split(config.data.split, dataset, seed)
    config = config.with_epochs(len(split.train))
    epochs = config.training.epochs
    if interval is not None and not 1 <= interval <= epochs:
        raise InputError(f"--report-every must be from 1 to {epochs} (epochs), not {interval}.")
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
    """Default number of trials per stack: as many as improve throughput and fit in memory.

    Raises:
        NoRoomError: even the smallest configuration of the space does not fit in memory.
    """
    learning = search.sampler in (SamplerName.TPE, SamplerName.GP)
    on_gpu = places.first.type == "cuda"
    corners = search.space.corners(search.config)
    for corner in search.space.smallest(search.config):
        require_room(corner, search.dataset, places.first, places.memory)
    if search.config.spec.stacked is None:
        return 1
    each = max(model_bytes(search.dataset, corner) for corner in corners)
    models = paying(places.first, each)
    if learning:
        models = min(models, _LEARNING_CUDA if on_gpu else _LEARNING_CPU)
    models = min(models, fitting(places.memory, places.first, search.dataset, each))
    return max(1, models // len(search.inner))
