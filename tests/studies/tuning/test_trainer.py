"""Training of stacks of trials: reports, pruning, and full memory."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pytest
import torch

from ihgnn_cli.data import load_dataset
from ihgnn_cli.studies.tuning.search import Search, prepare
from ihgnn_cli.studies.tuning.space import make_space
from ihgnn_cli.studies.tuning.trainer import DIVERGED, OUT_OF_MEMORY, TrialTrainer
from ihgnn_cli.studies.tuning.trials import Outcome, outcome_from_plain
from ihgnn_cli.training import cohort
from ihgnn_cli.training.config import RunConfig, configure
from ihgnn_cli.training.course import Course

CPU = torch.device("cpu")


@cache
def make_search(*, inner: int = 1, interval: int = 1) -> Search:
    space, base = make_space(configure(), {}, grid=False)
    return replace(prepare(base, space, load_dataset("MUTAG"), inner=inner), interval=interval)


def config(lr: float = 0.01, *, epochs: int = 3, **others: object) -> RunConfig:
    sizes = {"width": 4, "hidden": 8, "layers": 1, "device": "cpu", "batch_size": 64}
    return configure(overrides={**sizes, "lr": lr, "epochs": epochs, **others})


@dataclass(frozen=True)
class Finished:
    trial: int
    outcome: Outcome
    pruned: bool


@dataclass(frozen=True)
class Failed:
    trial: int
    reason: str


@dataclass(frozen=True)
class Smaller:
    trials: tuple[int, ...]


@dataclass(frozen=True)
class Report:
    """What the trials of a stack report after an epoch."""

    epoch: int
    accuracies: dict[int, float]


class Heard(list[object]):
    """What a trainer reports, in order; `prunes` says which trial is pruned at which epoch."""

    def __init__(self, prunes: Callable[[int, int], bool] = lambda _number, _epoch: False) -> None:
        super().__init__()
        self.prunes = prunes

    def report(self, number: int, epoch: int, accuracy: float) -> bool:
        last = self.reports[-1] if self.reports else None
        if last is None or last.epoch != epoch or number in last.accuracies:
            last = Report(epoch, {})
            self.append(last)
        last.accuracies[number] = accuracy
        return self.prunes(number, epoch)

    def finish(self, number: int, outcome: Outcome, *, pruned: bool) -> None:
        self.append(Finished(number, outcome, pruned))

    def fail(self, number: int, reason: str) -> None:
        self.append(Failed(number, reason))

    @property
    def reports(self) -> list[Report]:
        return [each for each in self if isinstance(each, Report)]

    @property
    def finished(self) -> dict[int, Finished]:
        return {each.trial: each for each in self if isinstance(each, Finished)}

    @property
    def failed(self) -> dict[int, str]:
        return {each.trial: each.reason for each in self if isinstance(each, Failed)}

    @property
    def smaller(self) -> list[tuple[int, ...]]:
        return [each.trials for each in self if isinstance(each, Smaller)]


def trained(search: Search, *configs: RunConfig, heard: Heard | None = None) -> Heard:
    heard = Heard() if heard is None else heard
    trainer = TrialTrainer(
        search, CPU, heard, halved=lambda numbers: heard.append(Smaller(tuple(numbers)))
    )
    trainer.train(dict(enumerate(configs)))
    return heard


def memory_for(monkeypatch: pytest.MonkeyPatch, models: int, after: int = 0) -> list[int]:
    """Let memory be full with more models, after some epochs; lists the stack sizes."""
    sizes: list[int] = []
    advance = cohort.Cohort.advance

    def full(self: cohort.Cohort) -> None:
        sizes.append(len(self.present))
        if len(self.present) > models and len(self.courses[0].history) >= after:
            raise torch.OutOfMemoryError("CUDA out of memory")
        advance(self)

    monkeypatch.setattr(cohort.Cohort, "advance", full)
    return sizes


@pytest.mark.parametrize("inner", [1, 2])
def test_a_trial_of_a_stack_has_the_curve_that_it_has_alone(
    monkeypatch: pytest.MonkeyPatch, inner: int
) -> None:
    """Learning rate and dropout are its own, and nothing of the others reaches it."""
    search = make_search(inner=inner)
    configs = [config(0.01), config(0.001), config(0.01, dropout=0.0), config(0.05, dropout=0.9)]
    losses: list[list[float]] = []
    finish = TrialTrainer.finish

    def keep(
        self: TrialTrainer, trial: int, courses: list[Course], *rest: object, **more: bool
    ) -> None:
        losses.append([each.validation_loss for course in courses for each in course.history])
        finish(self, trial, courses, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(TrialTrainer, "finish", keep)
    together = trained(search, *configs).finished
    in_stack, losses = losses, []
    for number, each in enumerate(configs):
        alone = trained(search, each).finished[0].outcome
        found = together[number].outcome
        assert found.hits == alone.hits
        assert found.best_epochs == alone.best_epochs
        assert found.loss == pytest.approx(alone.loss, abs=2e-5)
        assert (found.members, alone.members) == (4, 1)
        assert len(found.hits) == len(found.graphs) == inner
        assert {len(hits) for hits in found.hits} == {3}
        np.testing.assert_allclose(losses[number], in_stack[number], atol=2e-5)
    # Dropout makes a difference, or nothing is shown.
    assert not np.allclose(in_stack[0], in_stack[2], atol=1e-3)


def test_an_outcome_is_that_of_the_best_epochs() -> None:
    search = make_search(inner=2)
    outcome = trained(search, config(epochs=4)).finished[0].outcome
    for hits, best in zip(outcome.hits, outcome.best_epochs, strict=True):
        assert hits[best - 1] == max(hits)
    assert outcome.graphs == tuple(len(each.validation) for each in search.inner)
    assert outcome.model_epochs == 8
    assert outcome.seconds > 0


@pytest.mark.parametrize("inner", [1, 2])
def test_test_graphs_change_nothing(inner: int) -> None:
    search = make_search(inner=inner)
    poisoned = search.dataset.graph_class.copy()
    poisoned[search.split.test] = 1 - poisoned[search.split.test]
    other = replace(search, dataset=replace(search.dataset, graph_class=poisoned))
    clean, dirty = trained(search, config(), config(0.001)), trained(other, config(), config(0.001))
    assert clean.reports == dirty.reports
    for number in (0, 1):
        one, two = (each.finished[number].outcome for each in (clean, dirty))
        assert replace(one, seconds=0.0) == replace(two, seconds=0.0)


@pytest.mark.parametrize(
    ("interval", "epochs", "reported"),
    [(1, 4, [1, 2, 3]), (2, 5, [2, 4]), (3, 4, [3]), (4, 4, []), (9, 4, [])],
)
def test_running_trials_report_at_the_interval(
    interval: int, epochs: int, reported: list[int]
) -> None:
    heard = trained(make_search(interval=interval), config(epochs=epochs), config(epochs=epochs))
    assert [each.epoch for each in heard.reports] == reported
    assert [set(each.accuracies) for each in heard.reports] == [{0, 1}] * len(reported)


def test_a_report_is_the_accuracy_of_the_best_epoch_so_far() -> None:
    heard = trained(make_search(inner=2), config(0.05, epochs=6))
    outcome = heard.finished[0].outcome
    for report in heard.reports:
        best = [max(hits[: report.epoch]) for hits in outcome.hits]
        shares = [hits / graphs for hits, graphs in zip(best, outcome.graphs, strict=True)]
        assert report.accuracies == {0: pytest.approx(sum(shares) / 2)}


def test_a_pruned_trial_ends_at_once_and_the_others_go_on() -> None:
    heard = Heard(lambda number, epoch: (number, epoch) == (1, 4))
    trained(make_search(interval=2), *[config(lr, epochs=9) for lr in (0.1, 0.2, 0.3)], heard=heard)
    given_up = heard.finished[1]
    assert given_up.pruned
    assert [len(hits) for hits in given_up.outcome.hits] == [4]
    for number in (0, 2):
        assert not heard.finished[number].pruned
        assert heard.finished[number].outcome.model_epochs == 9
    assert [set(each.accuracies) for each in heard.reports] == [{0, 1, 2}] * 2 + [{0, 2}] * 2


def test_a_pruned_trial_does_not_change_the_others() -> None:
    configs = [config(lr, epochs=5) for lr in (0.01, 0.02, 0.03)]
    whole = trained(make_search(), *configs)
    heard = trained(make_search(), *configs, heard=Heard(lambda number, _: number == 0))
    for number in (1, 2):
        found, expected = (each.finished[number].outcome for each in (heard, whole))
        assert found.hits == expected.hits
        assert found.loss == pytest.approx(expected.loss, abs=2e-5)


def test_a_stack_ends_when_all_trials_are_pruned() -> None:
    heard = trained(
        make_search(), *[config(lr, epochs=50) for lr in (0.1, 0.2)], heard=Heard(lambda *_: True)
    )
    assert [each.pruned for each in heard.finished.values()] == [True, True]
    assert {each.outcome.model_epochs for each in heard.finished.values()} == {1}


def test_with_patience_a_trial_ends_with_its_last_split() -> None:
    heard = trained(
        make_search(inner=2, interval=60),
        *[config(lr, epochs=60, patience=2) for lr in (0.01, 1e-5)],
    )
    lengths = {n: [len(hits) for hits in each.outcome.hits] for n, each in heard.finished.items()}
    assert set(lengths) == {0, 1}
    for number, each in heard.finished.items():
        best = each.outcome.best_epochs
        assert lengths[number] == [epoch + 2 for epoch in best]
        assert not each.pruned
    order = [each.trial for each in heard if isinstance(each, Finished)]
    assert order == sorted(order, key=lambda number: max(lengths[number]))


def test_a_stack_that_does_not_fit_in_memory_is_trained_in_halves(monkeypatch) -> None:
    configs = [config(lr) for lr in (0.01, 0.02, 0.03, 0.04, 0.05)]
    whole = trained(make_search(), *configs).finished
    sizes = memory_for(monkeypatch, 2)
    heard = trained(make_search(), *configs)
    assert heard.smaller == [(0, 1, 2, 3, 4), (0, 1, 2)]
    assert sizes == [5, 3, 2, 2, 2, 1, 1, 1, 2, 2, 2]
    assert heard.failed == {}
    for number in range(5):
        assert heard.finished[number].outcome.hits == whole[number].outcome.hits
    assert [heard.finished[number].outcome.members for number in range(5)] == [2, 2, 1, 2, 2]


def test_a_trial_that_diverged_before_memory_was_full_is_not_trained_again(monkeypatch) -> None:
    """The second of three fails in epoch 1; the others are then trained alone."""
    configs = [config(lr, epochs=4) for lr in (0.01, 1e30, 0.02)]
    whole = trained(make_search(), *configs).finished
    sizes = memory_for(monkeypatch, 1, after=2)
    heard = trained(make_search(), *configs)
    assert [each for each in heard if isinstance(each, Failed)] == [Failed(1, DIVERGED)]
    assert heard.smaller == [(0, 1, 2)]
    assert sizes[-8:] == [1] * 8
    assert len(sizes) == 3 + 8
    for number in (0, 2):
        assert heard.finished[number].outcome.hits == whole[number].outcome.hits


def test_a_trial_that_patience_ended_before_memory_was_full_is_not_trained_again(
    monkeypatch,
) -> None:
    configs = [config(lr, epochs=60, patience=2) for lr in (0.01, 1e-7, 0.02)]
    search = make_search(interval=60)
    whole = trained(search, *configs).finished
    first, second, _ = sorted(whole, key=lambda number: whole[number].outcome.model_epochs)
    assert whole[first].outcome.model_epochs < whole[second].outcome.model_epochs
    heard, full = Heard(), [torch.OutOfMemoryError("CUDA out of memory")]
    advance = cohort.Cohort.advance

    def once(self: cohort.Cohort) -> None:
        if heard.finished and full:
            raise full.pop()
        advance(self)

    monkeypatch.setattr(cohort.Cohort, "advance", once)
    trained(search, *configs, heard=heard)
    assert full == []
    assert [type(each) for each in heard] == [Finished, Smaller, Finished, Finished]
    assert heard.smaller == [(0, 1, 2)]
    for number in range(3):
        found = heard.finished[number].outcome
        assert found.hits == whole[number].outcome.hits
        assert found.members == (3 if number == first else 2)


def test_a_trial_that_was_pruned_before_memory_was_full_is_not_trained_again(
    monkeypatch,
) -> None:
    """Pruned in epoch 1; memory is full in epoch 3."""
    memory_for(monkeypatch, 1, after=2)
    heard = Heard(lambda number, _: number == 1)
    trained(make_search(), *[config(lr, epochs=5) for lr in (0.01, 0.02, 0.03)], heard=heard)
    assert [each.trial for each in heard if isinstance(each, Finished)] == [1, 0, 2]
    assert [heard.finished[number].pruned for number in range(3)] == [False, True, False]
    assert heard.smaller == [(0, 1, 2)]


def test_a_trial_that_does_not_fit_alone_fails_alone(monkeypatch) -> None:
    advance = cohort.Cohort.advance

    def full(self: cohort.Cohort) -> None:
        if any(member.lr == 0.02 for member in self.stack.members):
            raise torch.OutOfMemoryError("CUDA out of memory")
        advance(self)

    monkeypatch.setattr(cohort.Cohort, "advance", full)
    heard = trained(make_search(), *[config(lr) for lr in (0.01, 0.02, 0.03, 0.04)])
    assert heard.failed == {1: OUT_OF_MEMORY}
    assert set(heard.finished) == {0, 2, 3}
    assert heard.smaller == [(0, 1, 2, 3), (0, 1), (1,)]


def test_memory_may_be_full_while_models_are_created(monkeypatch) -> None:
    make = TrialTrainer.cohort

    def full(self: TrialTrainer, configs: list[RunConfig], splits: object) -> cohort.Cohort:
        if len(configs) > 1:
            raise MemoryError
        return make(self, configs, splits)  # type: ignore[arg-type]

    monkeypatch.setattr(TrialTrainer, "cohort", full)
    heard = trained(make_search(), config(0.01), config(0.02))
    assert heard.smaller == [(0, 1)]
    assert set(heard.finished) == {0, 1}


def test_splits_that_do_not_fit_together_are_trained_one_by_one(monkeypatch) -> None:
    search = make_search(inner=3)
    whole = trained(search, config()).finished[0].outcome
    sizes = memory_for(monkeypatch, 1)
    heard = trained(search, config())
    assert sizes == [3] + [1] * 9
    assert heard.smaller == [(0,)]
    assert heard.reports == []
    found = heard.finished[0].outcome
    assert not heard.finished[0].pruned
    assert found.hits == whole.hits
    assert found.loss == pytest.approx(whole.loss, abs=2e-5)


def test_a_trial_none_of_whose_splits_fits_fails(monkeypatch) -> None:
    memory_for(monkeypatch, 0)
    heard = trained(make_search(inner=2), config())
    assert heard.failed == {0: OUT_OF_MEMORY}
    assert heard.finished == {}


@pytest.mark.parametrize("inner", [1, 2])
def test_other_errors_are_not_mistaken_for_full_memory(monkeypatch, inner: int) -> None:
    def broken(_: cohort.Cohort) -> None:
        raise RuntimeError("shapes do not match")

    monkeypatch.setattr(cohort.Cohort, "advance", broken)
    with pytest.raises(RuntimeError, match="shapes"):
        trained(make_search(inner=inner), config())


@pytest.mark.parametrize("inner", [1, 2])
def test_a_trial_that_diverges_fails_and_does_not_change_the_others(inner: int) -> None:
    search = make_search(inner=inner)
    heard = trained(search, config(0.01), config(1e30), config(0.02))
    assert heard.failed == {1: DIVERGED}
    for number, lr in ((0, 0.01), (2, 0.02)):
        alone = trained(search, config(lr)).finished[0].outcome
        assert heard.finished[number].outcome.hits == alone.hits
        assert heard.finished[number].outcome.loss == pytest.approx(alone.loss, abs=2e-5)
    assert all(1 not in report.accuracies for report in heard.reports)


def test_a_trial_that_diverges_alone_fails_without_a_report() -> None:
    heard = trained(make_search(), config(1e30))
    assert list(heard) == [Failed(0, DIVERGED)]


def test_the_graphs_are_kept_for_trials_of_the_same_layers() -> None:
    trainer = TrialTrainer(make_search(), CPU, Heard())
    one = trainer.store(config(0.1))
    assert trainer.store(config(0.2, width=8)) is one
    assert trainer.store(config(layers=2)) is not one


def averaging(inner: int = 1) -> Search:
    search = make_search(inner=inner)
    base = search.config.with_values({"epochs": 3, "snapshots": 2})
    return replace(search, config=base)


def test_with_snapshots_a_trial_is_judged_by_their_mean_prediction(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Class 0 has probability 0.9 at the first snapshot and 0.3 at the second: 0.6 on average."""
    search = averaging(inner=2)
    asked: list[list[list[int]]] = []

    def answer(_model: object, _store: object, graphs: list[np.ndarray]) -> list[np.ndarray]:
        asked.append([each.tolist() for each in graphs])
        likely = (0.9, 0.1) if len(asked) == 1 else (0.3, 0.7)
        return [np.tile(np.log(likely), (len(each), 1)) for each in graphs]

    monkeypatch.setattr(cohort, "predict_each", answer)
    found = trained(search, config(), config(0.001)).finished
    validating = [split.validation for split in search.inner]
    assert asked == [[each.tolist() for each in validating] * 2] * 2  # two trials on two splits
    zeros = [search.dataset.graph_class[each] == 0 for each in validating]
    for number in (0, 1):
        outcome = found[number].outcome
        assert outcome.averaged == tuple(int(each.sum()) for each in zeros)
        assert outcome.accuracy == pytest.approx(np.mean([each.mean() for each in zeros]))
        losses = [-np.log(np.where(each, 0.6, 0.4)).mean() for each in zeros]
        assert outcome.loss == pytest.approx(np.mean(losses))
        assert outcome.best_epochs == (3, 3)
        assert outcome_from_plain(outcome.as_plain()) == outcome


def test_a_trial_that_is_stopped_early_has_no_mean_prediction() -> None:
    heard = Heard(lambda _number, epoch: epoch == 2)
    outcome = trained(averaging(), config(), heard=heard).finished[0].outcome
    assert heard.finished[0].pruned
    assert outcome.averaged == ()
    assert outcome.accuracy == max(outcome.hits[0]) / outcome.graphs[0]
