"""Definition of a search: space, data, splits, sampler and pruner.

Trials are compared by validation accuracy. At the end the best settings are trained as an ordinary
run, and only that run uses the test graphs.
"""

import hashlib
import json
import math
from dataclasses import dataclass, replace
from typing import Any

from ihgnn_cli.data.dataset import GraphDataset
from ihgnn_cli.data.splits import Split, inner_folds, load_split
from ihgnn_cli.jsonable import jsonable
from ihgnn_cli.studies.tuning.names import PrunerName, SamplerName
from ihgnn_cli.studies.tuning.space import SearchSpace
from ihgnn_cli.training.config import RunConfig

_DIGEST = 8  # hexadecimal digits in the name of a search
# Reports per training: enough for a pruner, and few enough for a database.
_REPORTS = 50


@dataclass(frozen=True, eq=False)
class Search:
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

    @property
    def interval(self) -> int:
        """Epochs between two reports of a trial to the pruner."""
        return math.ceil(self.config.training.epochs / _REPORTS)

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


def make_search(
    config: RunConfig,
    space: SearchSpace,
    dataset: GraphDataset,
    *,
    sampler: SamplerName = SamplerName.TPE,
    pruner: PrunerName = PrunerName.MEDIAN,
    inner: int = 1,
) -> Search:
    """Define the search for the best settings on a data set.

    Raises:
        InputError: the split or the number of inner folds is not valid.
    """
    seed = config.training.seed
    split = load_split(config.data.split, dataset, seed)
    config = config.with_epochs(len(split.train))
    splits = inner_folds(dataset.graph_class, split, seed, inner)
    return Search(config, space, dataset, split, splits, sampler, pruner)
