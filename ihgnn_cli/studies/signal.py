"""What is attainable on a data set before any network is trained."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from ihgnn_cli.data.dataset import GraphDataset
from ihgnn_cli.data.splits.folds import Fold
from ihgnn_cli.data.twins import colorings
from ihgnn_cli.studies.graph_features import GraphFeatures
from ihgnn_cli.studies.kinds import check_permutations
from ihgnn_cli.studies.permutation import PermutationTest, permutation_test
from ihgnn_cli.studies.references import Reference, best_reference, references
from ihgnn_cli.studies.significance import LEVEL, NOISE, p_text
from ihgnn_cli.studies.wl_ceiling import (
    Ceiling,
    TwinAccuracy,
    Twins,
    accuracy_by_twins,
    ceiling,
    twins,
)
from ihgnn_cli.words import counted

_LARGE = 2000  # graphs

Tell = Callable[[str, int, int, str], None]
"""Takes the step, the units done, their total, and a text."""


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

    @property
    def best_reference(self) -> Reference:
        """The best reference."""
        return next(each for each in self.references if each.key == self.best)

    @property
    def majority(self) -> float:
        """The accuracy of always predicting one class, the best for these folds.

        The reference alone can be below it: the majority class of the training graphs can be the
        rarer class in the test part, in stratified folds too.
        """
        return max(self.references[0].scores.accuracy, self.majority_share)

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
        return self._without_signal(test, level)

    def _without_signal(self, test: PermutationTest, level: float) -> str:
        """What a test says whose p-values are not below the level."""
        if test.fixed > test.graphs / 2:
            best = self.best_reference
            return (
                f"The permutation test cannot tell: {test.fixed:,} of "
                f"{counted(test.graphs, 'graph')} are in test parts with a single class, where "
                f"shuffling changes nothing. The best reference, {best.title}, reaches "
                f"{100 * best.scores.accuracy:.1f} %, the majority class "
                f"{100 * self.majority:.1f} %."
            )
        return (
            "No signal was found: neither accuracy nor ROC-AUC is better than with shuffled "
            f"classes (p is not below {level:g}). A network would have to show that it finds more."
        )


def default_permutations(graphs: int) -> int:
    """Fewer for large data, where a shuffle takes longer."""
    return 1000 if graphs <= _LARGE else 200


def measure_signal(
    dataset: GraphDataset,
    folds: Sequence[Fold],
    *,
    seed: int = 0,
    permutations: int | None = None,
    tell: Tell = lambda _step, _done, _total, _text: None,
) -> Signal:
    """Compute everything; `permutations=0` leaves the test out.

    Raises:
        InputError: the number of permutations is neither 0 nor large enough.
    """
    if permutations is None:
        permutations = default_permutations(len(dataset))
    check_permutations(permutations)
    features = GraphFeatures(dataset)
    found = references(features, folds, seed, partial(tell, "fits of references"))
    test = None
    if permutations:
        shuffled = partial(tell, "fits of shuffled classes")
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
