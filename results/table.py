"""Prints the tables of docs/results.md and of the README from the folders beside this file.

`IHGNN_DATA` names a folder with the data sets: paired differences need the class of each graph.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ihgnn_cli.data import load_dataset
from ihgnn_cli.data.splits.folds import Fold, read_fold_file
from ihgnn_cli.models.settings import Variant
from ihgnn_cli.studies.beside import reference_method, tested_method, tested_share
from ihgnn_cli.studies.paper import paper_accuracy
from ihgnn_cli.studies.signal import references
from ihgnn_cli.studies.statistics import Method, Paired, family, p_text, paired
from ihgnn_cli.studies.summary import ensembles
from ihgnn_cli.studies.units import Stage, parsed

RESULTS = Path(__file__).parent
NAMES = (
    "MUTAG",
    "BZR_MD",
    "DHFR_MD",
    "KKI",
    "IMDB-BINARY",
    "IMDB-MULTI",
    "PROTEINS",
    "DD",
    "COLLAB",
)
BONDS = {
    "MUTAG-bond-labels": "MUTAG, `--edge-labels`",
    "BZR_MD-bonds": "BZR_MD, `--background-edge-label 1`",
    "BZR_MD-bond-labels": "BZR_MD, both",
    "BZR_MD-bins": "BZR_MD, `--edge-bins 8`",
    "BZR_MD-bond-bins": "BZR_MD, all three",
}
"""Folders of runs that read edges, and their names in the tables."""
IN_README = {
    **dict.fromkeys(("MUTAG", "IMDB-BINARY", "IMDB-MULTI", "PROTEINS", "COLLAB", "DD", "BZR_MD")),
    "BZR_MD-bonds": 'BZR_MD without "no bond" edges',
    "BZR_MD-bond-bins": "the same, with kinds and lengths of bonds",
    **dict.fromkeys(("DHFR_MD", "KKI")),
}
"""Folders in the table of the README, and other names for them."""
SECOND = "-seed1"  # the same cross-validation with --seed 1
NONE = "–"


@dataclass(frozen=True)
class Result:
    """A finished cross-validation."""

    folder: Path

    @cached_property
    def content(self) -> dict[str, Any]:
        """`result.json`."""
        content: dict[str, Any] = json.loads((self.folder / "result.json").read_text("utf-8"))
        return content

    @property
    def accuracy(self) -> str:
        """Mean ± standard deviation over folds, in percent."""
        return percent(self.content["test_mean"], self.content["test_std"])

    @property
    def roc_auc(self) -> str:
        """The mean over folds and runs."""
        found = self.content.get("roc_auc")
        return NONE if found is None else f"{found:.3f}"

    @cached_property
    def truth(self) -> NDArray[np.int64]:
        """The class of each graph."""
        return load_dataset(self.content["dataset"], offline=True).graph_class

    @cached_property
    def cut(self) -> list[Fold]:
        """The folds."""
        return read_fold_file(self.folder / "splits.json", self.content["graphs"])

    @cached_property
    def method(self) -> Method:
        """The accuracies of the final runs."""
        lines = (self.folder / "units.jsonl").read_text("utf-8").splitlines()
        final = [each for each in map(parsed, lines) if each.validated.unit.stage is Stage.FINAL]
        if self.content.get("snapshots"):  # the probabilities of all runs are averaged
            final = ensembles(
                final, {at: self.truth[fold.test] for at, fold in enumerate(self.cut)}
            )
        return tested_method(final, self.cut, self.truth)

    @cached_property
    def references(self) -> dict[str, Method]:
        """The accuracies of each reference."""
        stored = json.loads((self.folder / "references.json").read_text("utf-8"))["references"]
        found = map(references.Reference.parsed, stored)
        return {each.key: reference_method(each, self.cut, self.truth) for each in found}

    def scores(self, key: str) -> dict[str, Any]:
        """The scores of a reference."""
        methods = self.content["references"]["methods"]
        return next(each for each in methods if each["key"] == key)


def percent(mean: float, std: float) -> str:
    """Mean ± standard deviation in percent."""
    return f"{100 * mean:.1f} ± {100 * std:.1f}"


def partitions(place: str) -> list[Result]:
    """The results of a data set: on one partition, or on two."""
    folders = (RESULTS / place, RESULTS / f"{place}{SECOND}")
    return [Result(each) for each in folders if (each / "result.json").is_file()]


def setup(name: str) -> tuple[list[Result], str]:
    """The paper's setup: the full protocol where it exists, else the race; and which it is."""
    full, raced = partitions(name), partitions(f"race/{name}")
    if full:
        return [*full, *raced[1:]], "full" if not raced[1:] else "full; race"
    if not raced:
        return [], ""
    epochs = raced[0].content["job"]["protocol"]["training"]["epochs"]
    return raced, "race" if epochs == 350 else f"race, {epochs} epochs"


def joined(found: Sequence[Method]) -> Method:
    """A method on several partitions: its accuracies by fold, and by graph the mean over them."""
    graphs = np.array([each.graphs for each in found], dtype=float).mean(axis=0)
    return Method(tuple(of for each in found for of in each.folds), tuple(graphs.tolist()))


def best_reference(found: Sequence[Result]) -> str:
    """The key of the reference with the highest mean over partitions that reads what they read."""
    bins = found[0].content["job"]["protocol"]["data"].get("edge_bins")
    fair = [key for key in found[0].references if key != references.ON_ATTRIBUTES or bins]
    return max(fair, key=lambda key: sum(each.scores(key)["accuracy"] for each in found))


def shown(gap: Paired, p: float | None) -> str:
    """A difference ± its standard error, and p."""
    error = "" if gap.error is None else f" ± {100 * gap.error:.1f}"
    return f"{100 * gap.difference:+.1f}{error} ({'no test' if p is None else p_text(p)})"


def from_setup(robust: Sequence[Result], ours: Sequence[Result]) -> str:
    """The difference from the paper's setup, on the partitions that both have."""
    pairs = list(zip(robust, ours, strict=False))
    if not pairs:
        return NONE
    first, second = (joined([each.method for each in part]) for part in zip(*pairs, strict=True))
    gap = paired(first, second, tested_share(robust[0].cut, len(robust[0].truth)))
    return shown(gap, gap.p)


def from_references(robust: Sequence[Result]) -> str:
    """The difference from the best reference, with Holm's correction over all references."""
    own, keys = joined([each.method for each in robust]), list(robust[0].references)
    share = tested_share(robust[0].cut, len(robust[0].truth))
    gaps = family(
        [paired(own, joined([each.references[key] for each in robust]), share) for key in keys]
    )
    gap = gaps[keys.index(best_reference(robust))]
    return shown(gap, gap.p_holm)


def accuracy_row(name: str) -> str:
    """The row of a data set in the table of accuracies."""
    robust, (ours, which) = partitions(f"robust/{name}"), setup(name)
    dataset = robust[0].content["dataset"]
    best = [each.scores(best_reference(robust)) for each in robust]
    paper = paper_accuracy(dataset, Variant.FULL)
    boxes = [
        BONDS.get(name, name),
        f"{100 * robust[0].content['majority_share']:.1f}",
        "; ".join(percent(each["accuracy"], each["accuracy_std"]) for each in best),
        "; ".join(each.accuracy for each in ours) + f" ({which})" if ours else NONE,
        "; ".join(each.accuracy for each in robust),
        from_setup(robust, ours),
        from_references(robust),
        NONE if paper is None else percent(paper.mean, paper.std),
    ]
    return f"| {' | '.join(boxes)} |"


def auc_row(name: str) -> str:
    """The row of a data set in the table of ROC-AUC and balanced accuracy."""
    robust, (ours, _) = partitions(f"robust/{name}"), setup(name)

    def balanced(found: Sequence[dict[str, Any]]) -> str:
        return "; ".join(f"{100 * each['balanced_accuracy']:.1f}" for each in found) or NONE

    methods = [each.content["references"]["methods"] for each in robust]
    best = [max(each["roc_auc"] for each in found) for found in methods]
    boxes = [
        BONDS.get(name, name),
        "; ".join(f"{each:.3f}" for each in best),
        "; ".join(each.roc_auc for each in ours) or NONE,
        "; ".join(each.roc_auc for each in robust),
        balanced([each.scores(best_reference(robust)) for each in robust]),
        balanced([each.content for each in ours]),
        balanced([each.content for each in robust]),
    ]
    return f"| {' | '.join(boxes)} |"


def readme_rows() -> Iterator[str]:
    """The rows of the table in the README."""
    for name, title in IN_README.items():
        robust, (ours, which) = partitions(f"robust/{name}"), setup(name)
        told = "" if which == "full" else f" ({which})"
        best = [each.scores(best_reference(robust)) for each in robust]
        paper = paper_accuracy(name, Variant.FULL)  # none for rows with other edges
        boxes = [
            title or name,
            f"{100 * robust[0].content['majority_share']:.1f}",
            "; ".join(percent(each["accuracy"], each["accuracy_std"]) for each in best),
            "; ".join(each.accuracy for each in ours) + told if ours else "not run",
            "; ".join(each.accuracy for each in robust),
            "" if paper is None else percent(paper.mean, paper.std),
        ]
        yield f"| {' | '.join(boxes)} |".replace("|  |", "| |")


def rows() -> Iterator[str]:
    """The rows of both tables of the page."""
    finished = [name for name in (*NAMES, *BONDS) if partitions(f"robust/{name}")]
    yield from map(accuracy_row, finished)
    yield from map(auc_row, finished)


if __name__ == "__main__":
    print("\n".join((*rows(), *readme_rows())))
