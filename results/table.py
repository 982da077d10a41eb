"""Prints the tables of docs/results.md from the folders beside this file.

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
from ihgnn_cli.data.splits import read_fold_file
from ihgnn_cli.models.settings import Variant
from ihgnn_cli.studies.beside import tested_share
from ihgnn_cli.studies.paired import Method, paired
from ihgnn_cli.studies.paper import paper_accuracy
from ihgnn_cli.studies.significance import p_text
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

    @property
    def best_reference(self) -> dict[str, Any]:
        """The reference with the highest accuracy."""
        told = self.content["references"]
        return next(each for each in told["methods"] if each["key"] == told["best"])

    def truth(self) -> NDArray[np.int64]:
        """The class of each graph."""
        return load_dataset(self.content["dataset"], offline=True).graph_class

    def hits(self) -> NDArray[np.float64]:
        """[G] how often each graph was classified correctly when it was in the test part."""
        truth = self.truth()
        folds = read_fold_file(self.folder / "splits.json", len(truth))
        lines = (self.folder / "units.jsonl").read_text("utf-8").splitlines()
        final = [each for each in map(parsed, lines) if each.validated.unit.stage is Stage.FINAL]
        if self.content.get("snapshots"):  # the probabilities of all runs are averaged
            final = ensembles(final, {at: truth[fold.test] for at, fold in enumerate(folds)})
        found = np.full((len(final), len(truth)), np.nan)
        for row, each in zip(found, final, strict=True):
            test = folds[each.validated.unit.fold].test
            row[test] = each.tested.predictions == truth[test]
        return np.nanmean(found, axis=0)

    def folds(self) -> list[float]:
        """The accuracy of each fold."""
        return [each["test_mean"] for each in self.content["folds"]]

    def reference(self) -> tuple[list[float], NDArray[np.float64]]:
        """The accuracies of the best reference by fold and [G] by graph."""
        truth = self.truth()
        folds = read_fold_file(self.folder / "splits.json", len(truth))
        stored = json.loads((self.folder / "references.json").read_text("utf-8"))["references"]
        best = next(each for each in stored if each["key"] == self.best_reference["key"])
        found = np.full(len(truth), np.nan)
        for fold, predictions in zip(folds, best["predictions"], strict=True):
            found[fold.test] = predictions == truth[fold.test]
        return best["scores"]["folds"], found

    def test_share(self) -> float:
        """n_test/n_train of a fold."""
        graphs = self.content["graphs"]
        return tested_share(read_fold_file(self.folder / "splits.json", graphs), graphs)


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


def method(found: Sequence[tuple[list[float], NDArray[np.float64]]]) -> Method:
    """A method on all partitions: its accuracies by fold, and by graph the mean over partitions."""
    folds = [each for of_folds, _ in found for each in of_folds]
    return Method(tuple(folds), tuple(np.mean([hits for _, hits in found], axis=0).tolist()))


def gap(one: Sequence[Result], other: Sequence[Result] | None) -> str:
    """The difference of two methods ± standard error, and p; `None`: from the best reference."""
    pairs = list(zip(one, one if other is None else other, strict=False))
    if not pairs:
        return NONE
    first = [(each.folds(), each.hits()) for each, _ in pairs]
    second = [
        each.reference() if other is None else (each.folds(), each.hits()) for _, each in pairs
    ]
    found = paired(method(first), method(second), one[0].test_share())
    if found.error is None or found.p is None:
        return NONE
    return f"{100 * found.difference:+.1f} ± {100 * found.error:.1f} ({p_text(found.p)})"


def accuracy_row(name: str) -> str:
    """The row of a data set in the table of accuracies."""
    robust, (ours, which) = partitions(f"robust/{name}"), setup(name)
    dataset = robust[0].content["dataset"]
    best = [each.best_reference for each in robust]
    paper = paper_accuracy(dataset, Variant.FULL)
    boxes = [
        BONDS.get(name, name),
        f"{100 * robust[0].content['majority_share']:.1f}",
        "; ".join(percent(each["accuracy"], each["accuracy_std"]) for each in best),
        "; ".join(each.accuracy for each in ours) + f" ({which})" if ours else NONE,
        "; ".join(each.accuracy for each in robust),
        gap(robust, ours),
        gap(robust, None),
        NONE if paper is None else percent(paper.mean, paper.std),
    ]
    return f"| {' | '.join(boxes)} |"


def auc_row(name: str) -> str:
    """The row of a data set in the table of ROC-AUC and balanced accuracy."""
    robust, raced = partitions(f"robust/{name}"), partitions(f"race/{name}")

    def balanced(found: Sequence[dict[str, Any]]) -> str:
        return "; ".join(f"{100 * each['balanced_accuracy']:.1f}" for each in found) or NONE

    methods = [each.content["references"]["methods"] for each in robust]
    best = [max(each["roc_auc"] for each in found) for found in methods]
    boxes = [
        BONDS.get(name, name),
        "; ".join(f"{each:.3f}" for each in best),
        "; ".join(each.roc_auc for each in raced) or NONE,
        "; ".join(each.roc_auc for each in robust),
        balanced([each.best_reference for each in robust]),
        balanced([each.content for each in raced]),
        balanced([each.content for each in robust]),
    ]
    return f"| {' | '.join(boxes)} |"


def rows() -> Iterator[str]:
    """The rows of both tables."""
    finished = [name for name in (*NAMES, *BONDS) if partitions(f"robust/{name}")]
    yield from map(accuracy_row, finished)
    yield from map(auc_row, finished)


if __name__ == "__main__":
    print("\n".join(rows()))
