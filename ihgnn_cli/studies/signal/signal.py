"""What is attainable on a data set before any network is trained."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from ihgnn_cli.data.dataset import GraphDataset
from ihgnn_cli.data.splits import Fold
from ihgnn_cli.data.twins import colorings
from ihgnn_cli.errors import SettingError
from ihgnn_cli.studies.signal.ceiling import (
    Ceiling,
    TwinAccuracy,
    Twins,
    accuracy_by_twins,
    ceiling,
    twins,
)
from ihgnn_cli.studies.signal.features import GraphFeatures
from ihgnn_cli.studies.signal.permutation import PermutationTest, permutation_test
from ihgnn_cli.studies.signal.references import (
    MAJORITY_KEY,
    Reference,
    best_reference,
    references,
)
from ihgnn_cli.studies.statistics import LEVEL, NOISE, p_text
from ihgnn_cli.words import counted

FEWEST_PERMUTATIONS = 40
"""With n shuffles p is at least 1 / (1 + n), and each of two tests asks for p < 0.025."""
_LARGE = 2000  # graphs

Report = Callable[[str, int, int, str], None]
"""Receives the step, the units done, their total, and a text."""


@dataclass(frozen=True)
class Signal:
    """References, the 1-WL ceiling, twins, and a permutation test."""

    majority_share: float
    """Share of the majority class of all graphs."""
    references: tuple[Reference, ...]
    best: str
    """The key of the best one of those that read what networks read."""
    ceiling: Ceiling
    twins: Twins
    accuracy_by_twins: TwinAccuracy
    """Of the best reference."""
    permutation_test: PermutationTest | None
    """`None` without permutations."""

    def reference(self, key: str) -> Reference:
        """The reference with this key."""
        return next(each for each in self.references if each.key == key)

    @property
    def best_reference(self) -> Reference:
        """The best reference."""
        return self.reference(self.best)

    @property
    def majority(self) -> float:
        """The accuracy of always predicting one class, the best for these folds.

        The reference alone can be below it: the majority class of the training graphs can be the
        rarer class in the test part, in stratified folds too.
        """
        return max(self.reference(MAJORITY_KEY).scores.accuracy, self.majority_share)

    @property
    def conclusion(self) -> str:
        """What follows, in a sentence or two."""
        best, majority = self.best_reference, self.majority
        test = self.permutation_test
        if test is None:
            gap = 100 * (best.scores.accuracy - majority)
            if gap <= 0:
                return "No reference is above the majority class."
            return (
                f"The best reference, {best.title}, is {gap:.1f} points above the majority "
                "class. Whether that is chance was not tested."
            )
        value, level = test.accuracy.value, LEVEL / 2  # two tests
        gain = value - majority
        error = math.sqrt(value * (1 - value) / test.graphs)
        if test.accuracy.p < level and gain > NOISE * error:
            return (
                "There is signal: accuracy is better than with shuffled classes. A network has to "
                f"beat {100 * best.scores.accuracy:.1f} % ({best.title})."
            )
        if test.p < level:
            above = f"{100 * gain:.1f} points above" if gain > 0 else "not above"
            at_most = " at most" if gain > 0 else ""
            return (
                "There is signal, but accuracy hides it: the classes are predicted better than "
                f"shuffled ones ({p_text(test.p)}), but accuracy is {above} the majority class"
                f"{at_most}. Judge models by ROC-AUC or balanced accuracy."
            )
        if test.fixed > test.graphs / 2:
            return (
                f"The permutation test cannot tell: {test.fixed:,} of "
                f"{counted(test.graphs, 'graph')} are in test parts with a single class, where "
                f"shuffling changes nothing. The best reference, {best.title}, reaches "
                f"{100 * best.scores.accuracy:.1f} %, the majority class {100 * majority:.1f} %."
            )
        return (
            "No signal was found: neither accuracy nor ROC-AUC is better than with shuffled "
            f"classes (p is not below {level:g}). A network would have to show that it finds more."
        )


def check_permutations(count: int) -> None:
    """Refuse a number of shuffles that cannot tell.

    Raises:
        InputError: it is neither 0 nor large enough.
    """
    if count != 0 and count < FEWEST_PERMUTATIONS:
        raise SettingError(
            "permutations",
            f"must be 0 (no test) or at least {FEWEST_PERMUTATIONS}, not {count}.",
        )


def measure_signal(
    dataset: GraphDataset,
    folds: Sequence[Fold],
    *,
    seed: int = 0,
    permutations: int | None = None,
    report: Report = lambda _step, _done, _total, _text: None,
) -> Signal:
    """Compute everything; `permutations=0` leaves the test out.

    By default there are 1,000, or 200 for large data, where a shuffle takes longer.

    Raises:
        InputError: the number of permutations is neither 0 nor large enough.
    """
    if permutations is None:
        permutations = 1000 if len(dataset) <= _LARGE else 200
    check_permutations(permutations)
    features = GraphFeatures(dataset)
    found = references(features, folds, seed, partial(report, "fits of references"))
    test = None
    if permutations:
        shuffled = partial(report, "fits of shuffled classes")
        test = permutation_test(features, folds, permutations, seed, shuffled)
    rounds = colorings(dataset)
    best = best_reference(found, dataset)
    return Signal(
        majority_share=float(np.bincount(dataset.graph_class).max() / len(dataset)),
        references=found,
        best=best.key,
        ceiling=ceiling(dataset, rounds),
        twins=twins(dataset, rounds[-1]),
        accuracy_by_twins=accuracy_by_twins(dataset, rounds[-1], folds, best.predictions),
        permutation_test=test,
    )
