"""A network's result beside the references, graph by graph, and the scores of final runs."""

import json
from dataclasses import replace

import numpy as np
import pytest
from graph_makers import dataset_of

from ihgnn_cli.data.splits import Fold, Split
from ihgnn_cli.studies.beside import beside, final_scores
from ihgnn_cli.studies.fold_scores import Scores
from ihgnn_cli.studies.grid import Configuration
from ihgnn_cli.studies.signal.references import Reference
from ihgnn_cli.studies.units import Record, Stage, Unit, Validated, parsed
from ihgnn_cli.studies.units import Tested as Outcome


def fold(train: list[int], validation: list[int], test: list[int]) -> Fold:
    return Fold((Split(*map(np.array, (train, validation, test))),))


def record(number: int, run: int, tested: Outcome) -> Record:
    unit = Unit(Stage.FINAL, number, 0, Configuration(0.01, 32, 3), run)
    return Record(Validated(unit, 0, "", 1, False, None, 1, (1,), (0.5,), 0.1, 1, "cpu"), tested)


FOLDS = [fold([2], [3], [0, 1]), fold([0], [1], [2, 3])]
TRUTH = np.array([0, 1, 0, 1])
DATA = dataset_of([([0], [])] * 4, TRUTH.tolist())
RIGHT = Reference("svm-wl", "SVM", Scores(1, 0, 1, 1, (1, 1)), ((0, 1), (0, 1)))


def test_a_network_is_compared_with_the_best_reference_graph_by_graph() -> None:
    wrong = replace(RIGHT, key="majority", scores=replace(RIGHT.scores, accuracy=0.5))
    runs = [[(0, 1), (0, 0)], [(0, 0), (0, 0)]]  # [run][fold]
    final = [
        record(number, run, Outcome(2, 0.5, runs[run][number]))
        for run in (0, 1)
        for number in (0, 1)
    ]
    found = beside([wrong, RIGHT], final, FOLDS, DATA)
    assert found["best"] == "svm-wl"
    # Hits 1, 1/2, 1, 0 of the network and 1, 1, 1, 1 of the reference.
    assert found["difference"] == pytest.approx(-3 / 8)
    assert found["error"] == pytest.approx(np.std([0, 0.5, 0, 1], ddof=1) / 2)
    assert not found["above"]
    assert found["sentence"] == (
        "Not distinguishable from the best reference, SVM: -37.5 ± 23.9 points "
        "(paired over graphs, ± standard error; corrected resampled t-test, p = 0.667 after Holm's "
        "correction over 2 comparisons)."
    )
    # Folds: -1/4 and -1/2. t = -3/8 / sqrt((1/2 + 1) / 32) = -sqrt(3), one degree of freedom: 1/3.
    by_key = {each["key"]: each for each in found["methods"]}
    assert by_key["svm-wl"]["p"] == found["p"] == pytest.approx(1 / 3)
    assert found["comparisons"] == 2


def test_a_network_that_is_always_wrong_is_worse() -> None:
    final = [record(number, 0, Outcome(2, 0.0, (1, 0))) for number in (0, 1)]
    found = beside([RIGHT], final, FOLDS, DATA)
    assert (found["difference"], found["error"], found["p"]) == (-1, 0, None)
    assert found["sentence"] == (
        "Not tested against the best reference, SVM: -100.0 ± 0.0 points (paired over graphs, ± "
        "standard error; the difference is the same in all folds, or there is only one fold)."
    )


def test_repeats_are_averaged_per_graph_before_the_error_is_taken() -> None:
    """The same two folds twice: once all right, once all wrong."""
    final = [record(number, 0, Outcome(2, 1.0, (0, 1))) for number in (0, 1)]
    final += [record(number, 0, Outcome(2, 0.0, (1, 0))) for number in (2, 3)]
    twice = replace(
        RIGHT, predictions=RIGHT.predictions * 2, scores=replace(RIGHT.scores, folds=(1,) * 4)
    )
    found = beside([twice], final, FOLDS * 2, DATA)
    assert (found["difference"], found["error"]) == (-0.5, 0)  # every graph is right half the time


def test_probabilities_of_final_runs_give_area_and_balanced_accuracy() -> None:
    likely = ((0.9, 0.1), (0.8, 0.2))
    final = [record(number, 0, Outcome(2, 0.5, (0, 0), probabilities=likely)) for number in (0, 1)]
    again = [parsed(each.line()) for each in final]
    assert again == final
    found = final_scores(again, FOLDS, TRUTH)
    assert found is not None
    assert (found.accuracy, found.balanced_accuracy, found.roc_auc) == (0.5, 0.5, 1)


def test_areas_of_repeats_are_joined_as_those_of_references_are() -> None:
    """The second fold of the first partition has graphs of one class, so no area."""
    truth = np.array([0, 1, 1, 1])
    folds = [fold([2], [3], [0, 1]), fold([0], [1], [2, 3]), *[fold([1], [2], [0, 3])] * 2]
    right, wrong = ((0.9, 0.1), (0.2, 0.8)), ((0.2, 0.8), (0.9, 0.1))
    outcomes = [right, right, wrong, right]
    final = [
        record(number, 0, Outcome(2, 0.5, (0, 1), probabilities=likely))
        for number, likely in enumerate(outcomes)
    ]
    found = final_scores(final, folds, truth, repeats=2)
    assert found is not None
    assert found.roc_auc == 0.75  # the mean of 1 and (0 + 1) / 2
    assert found.folds == (1, 0.5, 0, 1)


def test_final_runs_of_older_versions_have_no_area() -> None:
    line = json.loads(record(0, 0, Outcome(2, 0.5, (0, 0))).line())
    line["test"].pop("probabilities", None)
    old = parsed(json.dumps(line))
    assert final_scores([old], FOLDS, TRUTH) is None
