"""The other rules of the literature, on trainings whose curves are written by hand."""

import pytest
import small_job

from ihgnn_cli.errors import IhgnnError
from ihgnn_cli.studies.crossval.protocol import Configuration, Stage, Training
from ihgnn_cli.studies.crossval.records import Record
from ihgnn_cli.studies.crossval.records import Tested as OnTest  # pytest takes Test... for tests
from ihgnn_cli.studies.crossval.rules import Rule, rules

A, B = small_job.at(0.01, 32, 3), small_job.at(0.001, 64, 4)


def trained(
    configuration: Configuration,
    fold: int,
    *,
    hits: list[int],
    losses: list[float],
    test: list[int],
    split: int = 0,
) -> Record:
    """A training with these curves; none at all where it diverged at once."""
    training = Training(Stage.SELECT, fold, split, configuration, 0)
    return small_job.trained(training, hits, losses, test=test)


def by_key(found: list[Rule]) -> dict[str, tuple[float, float]]:
    return {rule.key: (rule.mean, rule.std) for rule in found}


def approx(mean: float, std: float) -> tuple[float, float]:
    return pytest.approx((mean, std), abs=1e-12)


FOUR = [
    # Best by validation: epoch 2, of lowest loss: epoch 3.
    trained(A, 0, hits=[5, 8, 6], losses=[0.9, 0.5, 0.4], test=[1, 10, 7]),
    # Epochs 3 and 1.
    trained(B, 0, hits=[5, 6, 7], losses=[0.3, 0.6, 0.5], test=[9, 2, 5]),
    # Epochs 3 and 3.
    trained(A, 1, hits=[3, 4, 6], losses=[0.9, 0.8, 0.7], test=[2, 9, 3]),
    # Epochs 1 and 2.
    trained(B, 1, hits=[9, 5, 5], losses=[0.6, 0.4, 0.5], test=[6, 8, 9]),
]


def test_each_rule_gives_its_own_number() -> None:
    found = rules(FOUR, (A, B), 2)
    keys = ["nested", "common-validation", "authors", "common-test-epoch"]
    assert [rule.key for rule in found] == keys
    nested, common, authors, epoch = found
    # Fold 0 chooses A (0.8 against 0.7) and tests 1.0, fold 1 chooses B (0.9) and tests 0.6.
    assert (nested.mean, nested.std) == approx(0.8, 0.2)
    assert (nested.honest, nested.configuration, nested.epoch) == (True, None, None)
    # On validation A has 0.7 over folds and B 0.8; B tests 0.5 and 0.6.
    assert (common.mean, common.std) == approx(0.55, 0.05)
    assert (common.honest, common.configuration, common.epoch) == (True, B, None)
    # At the lowest loss A tests 0.7 and 0.3, B 0.9 and 0.8.
    assert (authors.mean, authors.std) == approx(0.85, 0.05)
    assert (authors.honest, authors.configuration, authors.epoch) == (False, B, None)
    # Mean test of A by epoch: 0.15, 0.95, 0.5; of B: 0.75, 0.5, 0.7.
    assert (epoch.mean, epoch.std) == approx(0.95, 0.05)
    assert (epoch.honest, epoch.configuration, epoch.epoch) == (False, A, 2)


def test_titles_say_what_looks_at_test() -> None:
    found = rules(FOUR, (A, B), 2)
    assert ["TEST" in rule.title for rule in found] == [False, False, True, True]
    assert [rule.honest for rule in found] == [True, True, False, False]
    # A fold's test graphs are validation graphs of other folds, by which the second chooses, too.
    assert [rule.note is None for rule in found] == [True, False, True, True]


def test_the_order_of_the_records_does_not_matter() -> None:
    assert rules(FOUR[::-1], (A, B), 2) == rules(FOUR, (A, B), 2)


def test_the_splits_of_a_fold_are_averaged() -> None:
    found = rules(
        [
            trained(A, 0, hits=[4, 5], losses=[0.2, 0.5], test=[2, 6], split=0),
            trained(A, 0, hits=[7, 3], losses=[0.9, 0.6], test=[4, 10], split=1),
            trained(A, 1, hits=[1, 2], losses=[0.8, 0.7], test=[5, 1], split=0),
            trained(A, 1, hits=[1, 2], losses=[0.8, 0.7], test=[9, 3], split=1),
        ],
        (A,),
        2,
    )
    assert by_key(found) == {
        # Fold 0: 0.6 at epoch 2 and 0.4 at epoch 1; fold 1: 0.1 and 0.3, both at epoch 2.
        "nested": approx(0.35, 0.15),
        "common-validation": approx(0.35, 0.15),
        # Fold 0: 0.2 at epoch 1 and 1.0 at epoch 2; fold 1 as above.
        "authors": approx(0.4, 0.2),
        # By epoch fold 0 has 0.3 and 0.8, fold 1 0.7 and 0.2: a tie, which the first wins.
        "common-test-epoch": approx(0.5, 0.2),
    }
    assert found[-1].epoch == 1


def test_trainings_that_stopped_early_count_as_far_as_all_reach() -> None:
    found = rules(
        [
            trained(A, 0, hits=[5, 6, 7], losses=[0.9, 0.8, 0.7], test=[1, 2, 10]),
            trained(A, 1, hits=[6, 5], losses=[0.8, 0.9], test=[5, 3]),
        ],
        (A,),
        2,
    )
    # The third epoch, which only fold 0 has, is its own best one but cannot be common.
    assert by_key(found)["nested"] == approx(0.75, 0.25)
    assert by_key(found)["common-test-epoch"] == approx(0.3, 0.2)
    assert found[-1].epoch == 1


def test_splits_of_different_length_count_as_far_as_all_reach() -> None:
    found = rules(
        [
            trained(A, 0, hits=[5, 6], losses=[0.9, 0.8], test=[2, 10], split=0),
            trained(A, 0, hits=[6], losses=[0.8], test=[4], split=1),
            trained(A, 1, hits=[6, 7], losses=[0.8, 0.7], test=[5, 9], split=0),
            trained(A, 1, hits=[6, 7], losses=[0.8, 0.7], test=[5, 9], split=1),
        ],
        (A,),
        2,
    )
    assert by_key(found)["common-test-epoch"] == approx(0.4, 0.1)


def test_one_that_diverged_in_a_fold_is_no_common_choice() -> None:
    """A is best where it was trained, and fold 0 may choose it for itself."""
    found = rules(
        [
            trained(A, 0, hits=[10], losses=[0.1], test=[10]),
            trained(B, 0, hits=[5], losses=[0.9], test=[4]),
            trained(A, 1, hits=[], losses=[], test=[]),
            trained(B, 1, hits=[5], losses=[0.9], test=[6]),
        ],
        (A, B),
        2,
    )
    assert by_key(found)["nested"] == approx(0.8, 0.2)
    for rule in found[1:]:
        assert rule.configuration == B
        assert (rule.mean, rule.std) == approx(0.5, 0.1)


def test_one_that_diverged_at_once_needs_no_test_accuracies() -> None:
    """As in a job that was trained without them: nothing of it can be trained again."""
    wild = trained(A, 0, hits=[], losses=[], test=[])
    found = rules(
        [
            Record(wild.validated, None),
            trained(B, 0, hits=[5], losses=[0.9], test=[4]),
            trained(A, 1, hits=[10], losses=[0.1], test=[10]),
            trained(B, 1, hits=[5], losses=[0.9], test=[6]),
        ],
        (A, B),
        2,
    )
    assert by_key(found)["nested"] == approx(0.7, 0.3)
    assert [rule.configuration for rule in found[1:]] == [B] * 3


def test_of_equals_on_test_the_earlier_in_the_grid_is_told() -> None:
    found = [
        trained(each, fold, hits=[5], losses=[0.5], test=[6])
        for each in (B, A)
        for fold in range(2)
    ]
    for order in ((A, B), (B, A)):
        assert [rule.configuration for rule in rules(found, order, 2)[1:]] == [order[0]] * 3


def test_equal_means_over_folds_are_a_tie() -> None:
    """1, 2 and 3 of 10 are as many as 2, 2 and 2, though a mean of 0.1, 0.2 and 0.3 is not 0.2."""
    found = [
        trained(each, fold, hits=[right], losses=[0.5], test=[right])
        for each, of_folds in ((A, (1, 2, 3)), (B, (2, 2, 2)))
        for fold, right in enumerate(of_folds)
    ]
    for order in ((A, B), (B, A)):
        assert [rule.configuration for rule in rules(found, order, 3)[1:]] == [order[0]] * 3


def test_where_each_configuration_diverged_in_some_fold_none_is_common() -> None:
    """Each fold has a choice for itself."""
    found = rules(
        [
            trained(A, 0, hits=[5], losses=[0.5], test=[7]),
            trained(B, 0, hits=[], losses=[], test=[]),
            trained(A, 1, hits=[], losses=[], test=[]),
            trained(B, 1, hits=[5], losses=[0.5], test=[5]),
        ],
        (A, B),
        2,
    )
    assert by_key(found) == {"nested": approx(0.6, 0.1)}


@pytest.mark.parametrize("tested", [None, OnTest(10), OnTest(10, hits=(1, 2))])
def test_trainings_without_test_accuracies_are_refused_and_named(tested: OnTest | None) -> None:
    found = [*FOUR[:3], Record(FOUR[3].validated, tested)]
    with pytest.raises(IhgnnError, match=r"select-fold1-split0-lr0\.001-.* no test accuracy"):
        rules(found, (A, B), 2)


def test_missing_trainings_are_refused() -> None:
    with pytest.raises(IhgnnError, match=r"Fold 1 is not complete: results of lr 0\.001"):
        rules(FOUR[:3], (A, B), 2)


def test_a_missing_split_is_refused() -> None:
    found = [*FOUR, trained(A, 0, hits=[5], losses=[0.5], test=[5], split=1)]
    with pytest.raises(IhgnnError, match=r"Fold 0 is not complete: results of lr 0\.001"):
        rules(found, (A, B), 2)
