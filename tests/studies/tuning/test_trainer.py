"""What a worker does with trials: stacks, reports, verdicts, and memory that is too small."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from multiprocessing import Pipe
from threading import Thread

import numpy as np
import pytest
import torch

from ihgnn_cli.data import GraphDataset, load_dataset
from ihgnn_cli.data.splits import Split, inner_folds, load_split
from ihgnn_cli.studies.tuning.trainer import (
    DIVERGED,
    OUT_OF_MEMORY,
    Assignment,
    Failed,
    Finished,
    Ready,
    Report,
    Smaller,
    Task,
    Trainer,
    Verdict,
    live,
)
from ihgnn_cli.training import cohort
from ihgnn_cli.training.config import RunConfig, configure
from ihgnn_cli.training.course import Course

CPU = torch.device("cpu")


@cache
def data() -> tuple[GraphDataset, Split]:
    dataset = load_dataset("MUTAG")
    return dataset, load_split("holdout", dataset, 0)


def make_task(*, inner: int = 1, interval: int = 1) -> Task:
    dataset, split = data()
    splits = inner_folds(dataset.graph_class, split, 0, inner)
    return Task(dataset, tuple((each.train, each.validation) for each in splits), interval)


def config(lr: float = 0.01, *, epochs: int = 3, **others: object) -> RunConfig:
    sizes = {"width": 4, "hidden": 8, "layers": 1, "device": "cpu", "batch_size": 64}
    return configure(overrides={**sizes, "lr": lr, "epochs": epochs, **others})


class Heard(list[object]):
    """What a trainer tells; `answer` gives one verdict a report, or fails where none can come."""

    def __init__(self, judge: Callable[[Report], set[int]] = lambda _: set()) -> None:
        super().__init__()
        self.judge = judge
        self.answered: list[int] = []

    def answer(self) -> Verdict:
        report = self.reports[len(self.answered)]
        self.answered.append(report.epoch)
        return Verdict(frozenset(self.judge(report)))

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


def trained(task: Task, *configs: RunConfig, heard: Heard | None = None) -> Heard:
    heard = Heard() if heard is None else heard
    assignment = Assignment(tuple(enumerate(configs)))
    Trainer(task, CPU, heard.append).train(assignment, heard.answer)
    return heard


def memory_for(monkeypatch: pytest.MonkeyPatch, models: int, after: int = 0) -> list[int]:
    """Memory is too small for more models, after so many epochs of them; lists what was tried."""
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
    task = make_task(inner=inner)
    configs = [config(0.01), config(0.001), config(0.01, dropout=0.0), config(0.05, dropout=0.9)]
    losses: list[list[float]] = []
    conclude = Trainer.conclude

    def keep(self: Trainer, trial: int, courses: list[Course], *rest: object, **more: bool) -> None:
        losses.append([each.validation_loss for course in courses for each in course.history])
        conclude(self, trial, courses, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(Trainer, "conclude", keep)
    together = trained(task, *configs).finished
    in_stack, losses = losses, []
    for number, each in enumerate(configs):
        alone = trained(task, each).finished[0].outcome
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
    task = make_task(inner=2)
    outcome = trained(task, config(epochs=4)).finished[0].outcome
    for hits, best in zip(outcome.hits, outcome.best_epochs, strict=True):
        assert hits[best - 1] == max(hits)
    assert outcome.graphs == tuple(len(validation) for _, validation in task.splits)
    assert outcome.model_epochs == 8
    assert outcome.seconds > 0


@pytest.mark.parametrize("inner", [1, 2])
def test_test_graphs_change_nothing(inner: int) -> None:
    dataset, split = data()
    task = make_task(inner=inner)
    poisoned = dataset.graph_class.copy()
    poisoned[split.test] = 1 - poisoned[split.test]
    other = replace(task, dataset=replace(dataset, graph_class=poisoned))
    clean, dirty = trained(task, config(), config(0.001)), trained(other, config(), config(0.001))
    assert clean.reports == dirty.reports
    for number in (0, 1):
        one, two = (each.finished[number].outcome for each in (clean, dirty))
        assert replace(one, seconds=0.0) == replace(two, seconds=0.0)


def test_no_test_graph_is_among_those_a_worker_is_told_of() -> None:
    _, split = data()
    for inner in (1, 3):
        for train, validation in make_task(inner=inner).splits:
            assert not set(split.test) & {*train, *validation}
            assert not set(train) & set(validation)


@pytest.mark.parametrize(
    ("interval", "epochs", "reported"),
    [(1, 4, [1, 2, 3]), (2, 5, [2, 4]), (3, 4, [3]), (4, 4, []), (9, 4, [])],
)
def test_reports_come_at_their_interval_and_not_of_what_is_over(
    interval: int, epochs: int, reported: list[int]
) -> None:
    heard = trained(make_task(interval=interval), config(epochs=epochs), config(epochs=epochs))
    assert [each.epoch for each in heard.reports] == reported
    assert [set(each.accuracies) for each in heard.reports] == [{0, 1}] * len(reported)
    assert heard.answered == reported[:-1]  # the last answer changes nothing any more


def test_a_report_is_the_accuracy_of_the_best_epoch_so_far() -> None:
    heard = trained(make_task(inner=2), config(0.05, epochs=6))
    outcome = heard.finished[0].outcome
    for report in heard.reports:
        best = [max(hits[: report.epoch]) for hits in outcome.hits]
        shares = [hits / graphs for hits, graphs in zip(best, outcome.graphs, strict=True)]
        assert report.accuracies == {0: pytest.approx(sum(shares) / 2)}


def test_without_answers_there_are_no_reports() -> None:
    heard = Heard()
    Trainer(make_task(), CPU, heard.append).train(Assignment(((7, config()),)), None)
    assert [type(each) for each in heard] == [Finished]
    assert set(heard.finished) == {7}


def test_where_nothing_is_pruned_no_verdict_is_waited_for(monkeypatch) -> None:
    """Reports come all the same, for those who look on; also when a stack is halved."""
    memory_for(monkeypatch, 1, after=2)
    heard = Heard(lambda _: {0, 1})
    trained(replace(make_task(), prunes=False), config(), config(0.02), heard=heard)
    assert heard.answered == []
    assert [each.epoch for each in heard.reports] == [1, 2] * 3
    assert [each.pruned for each in heard.finished.values()] == [False, False]


def test_a_verdict_is_obeyed_at_the_next_report() -> None:
    """Given up after the report of epoch 4, and trained until that of epoch 6."""
    heard = Heard(lambda report: {1} if report.epoch == 4 else set())
    trained(make_task(interval=2), *[config(lr, epochs=9) for lr in (0.1, 0.2, 0.3)], heard=heard)
    given_up = heard.finished[1]
    assert given_up.pruned
    assert [len(hits) for hits in given_up.outcome.hits] == [6]
    for number in (0, 2):
        assert not heard.finished[number].pruned
        assert heard.finished[number].outcome.model_epochs == 9
    assert [set(each.accuracies) for each in heard.reports] == [{0, 1, 2}] * 2 + [{0, 2}] * 2


def test_the_others_are_what_they_are_without_one_that_is_given_up() -> None:
    configs = [config(lr, epochs=5) for lr in (0.01, 0.02, 0.03)]
    whole = trained(make_task(), *configs)
    heard = trained(make_task(), *configs, heard=Heard(lambda _: {0}))
    for number in (1, 2):
        found, expected = (each.finished[number].outcome for each in (heard, whole))
        assert found.hits == expected.hits
        assert found.loss == pytest.approx(expected.loss, abs=2e-5)


def test_where_all_are_given_up_the_stack_ends() -> None:
    heard = trained(
        make_task(), *[config(lr, epochs=50) for lr in (0.1, 0.2)], heard=Heard(lambda _: {0, 1})
    )
    assert [each.pruned for each in heard.finished.values()] == [True, True]
    assert {each.outcome.model_epochs for each in heard.finished.values()} == {2}


def test_with_patience_a_trial_is_concluded_when_its_splits_are() -> None:
    heard = trained(
        make_task(inner=2, interval=60), *[config(lr, epochs=60, patience=2) for lr in (0.01, 1e-5)]
    )
    lengths = {n: [len(hits) for hits in each.outcome.hits] for n, each in heard.finished.items()}
    assert set(lengths) == {0, 1}
    for number, each in heard.finished.items():
        best = each.outcome.best_epochs
        assert lengths[number] == [epoch + 2 for epoch in best]
        assert not each.pruned
    order = [each.trial for each in heard if isinstance(each, Finished)]
    assert order == sorted(order, key=lambda number: max(lengths[number]))


def test_a_stack_that_memory_is_too_small_for_is_trained_in_halves(monkeypatch) -> None:
    configs = [config(lr) for lr in (0.01, 0.02, 0.03, 0.04, 0.05)]
    whole = trained(make_task(), *configs).finished
    sizes = memory_for(monkeypatch, 2)
    heard = trained(make_task(), *configs)
    assert heard.smaller == [(0, 1, 2, 3, 4), (0, 1, 2)]
    assert sizes == [5, 3, 2, 2, 2, 1, 1, 1, 2, 2, 2]
    assert heard.failed == {}
    for number in range(5):
        assert heard.finished[number].outcome.hits == whole[number].outcome.hits
    assert [heard.finished[number].outcome.members for number in range(5)] == [2, 2, 1, 2, 2]


def test_verdicts_on_a_stack_that_was_too_large_are_not_taken_for_later_ones(monkeypatch) -> None:
    """Memory is full in epoch 3; what the halves report is answered as soon as without it."""
    memory_for(monkeypatch, 1, after=2)
    heard = Heard(lambda report: {1} if set(report.accuracies) == {1} else set())
    trained(make_task(), config(0.01, epochs=6), config(0.02, epochs=6), heard=heard)
    assert heard.smaller == [(0, 1)]
    assert heard.finished[0].outcome.model_epochs == 6
    assert heard.finished[1].pruned
    assert heard.finished[1].outcome.model_epochs == 2
    assert len(heard.answered) == len(heard.reports)


def test_a_trial_that_diverged_before_memory_was_full_is_not_trained_again(monkeypatch) -> None:
    """Of three the second fails in epoch 1; the others begin anew, and then one by one."""
    configs = [config(lr, epochs=4) for lr in (0.01, 1e30, 0.02)]
    whole = trained(make_task(), *configs).finished
    sizes = memory_for(monkeypatch, 1, after=2)
    heard = trained(make_task(), *configs)
    assert [each for each in heard if isinstance(each, Failed)] == [Failed(1, DIVERGED)]
    assert heard.smaller == [(0, 1, 2), (0, 2)]
    assert sizes[-8:] == [1] * 8
    assert len(sizes) == 3 + 3 + 8
    for number in (0, 2):
        assert heard.finished[number].outcome.hits == whole[number].outcome.hits


def test_a_trial_that_patience_ended_before_memory_was_full_is_not_trained_again(
    monkeypatch,
) -> None:
    configs = [config(lr, epochs=60, patience=2) for lr in (0.01, 1e-7, 0.02)]
    task = make_task(interval=60)
    whole = trained(task, *configs).finished
    first, second, _ = sorted(whole, key=lambda number: whole[number].outcome.model_epochs)
    assert whole[first].outcome.model_epochs < whole[second].outcome.model_epochs
    heard, full = Heard(), [torch.OutOfMemoryError("CUDA out of memory")]
    advance = cohort.Cohort.advance

    def once(self: cohort.Cohort) -> None:
        if heard.finished and full:
            raise full.pop()
        advance(self)

    monkeypatch.setattr(cohort.Cohort, "advance", once)
    trained(task, *configs, heard=heard)
    assert full == []
    assert [type(each) for each in heard] == [Finished, Smaller, Finished, Finished]
    assert heard.smaller == [(0, 1, 2)]
    for number in range(3):
        found = heard.finished[number].outcome
        assert found.hits == whole[number].outcome.hits
        assert found.members == (3 if number == first else 2)


def test_a_trial_that_was_given_up_before_memory_was_full_is_not_trained_again(
    monkeypatch,
) -> None:
    """Told of epoch 1, given up in epoch 2; memory is full in epoch 3."""
    memory_for(monkeypatch, 1, after=2)
    heard = Heard(lambda report: {1} & set(report.accuracies))
    trained(make_task(), *[config(lr, epochs=5) for lr in (0.01, 0.02, 0.03)], heard=heard)
    assert [each.trial for each in heard if isinstance(each, Finished)] == [1, 0, 2]
    assert [heard.finished[number].pruned for number in range(3)] == [False, True, False]
    assert heard.smaller == [(0, 1, 2), (0, 2)]
    assert len(heard.answered) == len(heard.reports) - 1  # the last one's is not waited for


def test_a_trial_that_does_not_fit_alone_fails_alone(monkeypatch) -> None:
    advance = cohort.Cohort.advance

    def full(self: cohort.Cohort) -> None:
        if any(member.lr == 0.02 for member in self.stack.members):
            raise torch.OutOfMemoryError("CUDA out of memory")
        advance(self)

    monkeypatch.setattr(cohort.Cohort, "advance", full)
    heard = trained(make_task(), *[config(lr) for lr in (0.01, 0.02, 0.03, 0.04)])
    assert heard.failed == {1: OUT_OF_MEMORY}
    assert set(heard.finished) == {0, 2, 3}
    assert heard.smaller == [(0, 1, 2, 3), (0, 1), (1,)]


def test_full_memory_while_models_are_made_is_the_same(monkeypatch) -> None:
    make = Trainer.cohort

    def full(self: Trainer, configs: list[RunConfig], splits: object) -> cohort.Cohort:
        if len(configs) > 1:
            raise MemoryError
        return make(self, configs, splits)  # type: ignore[arg-type]

    monkeypatch.setattr(Trainer, "cohort", full)
    heard = trained(make_task(), config(0.01), config(0.02))
    assert heard.smaller == [(0, 1)]
    assert set(heard.finished) == {0, 1}


def test_splits_that_do_not_fit_together_are_trained_one_by_one(monkeypatch) -> None:
    task = make_task(inner=3)
    whole = trained(task, config()).finished[0].outcome
    sizes = memory_for(monkeypatch, 1)
    heard = trained(task, config())
    assert sizes == [3] + [1] * 9
    assert heard.smaller == [(0,)]
    assert heard.reports == []
    found = heard.finished[0].outcome
    assert not heard.finished[0].pruned
    assert found.hits == whole.hits
    assert found.loss == pytest.approx(whole.loss, abs=2e-5)


def test_a_trial_none_of_whose_splits_fits_fails(monkeypatch) -> None:
    memory_for(monkeypatch, 0)
    heard = trained(make_task(inner=2), config())
    assert heard.failed == {0: OUT_OF_MEMORY}
    assert heard.finished == {}


@pytest.mark.parametrize("inner", [1, 2])
def test_other_failures_are_not_taken_for_a_full_memory(monkeypatch, inner: int) -> None:
    def broken(_: cohort.Cohort) -> None:
        raise RuntimeError("shapes do not match")

    monkeypatch.setattr(cohort.Cohort, "advance", broken)
    with pytest.raises(RuntimeError, match="shapes"):
        trained(make_task(inner=inner), config())


@pytest.mark.parametrize("inner", [1, 2])
def test_a_trial_that_diverges_fails_and_disturbs_nobody(inner: int) -> None:
    task = make_task(inner=inner)
    heard = trained(task, config(0.01), config(1e30), config(0.02))
    assert heard.failed == {1: DIVERGED}
    for number, lr in ((0, 0.01), (2, 0.02)):
        alone = trained(task, config(lr)).finished[0].outcome
        assert heard.finished[number].outcome.hits == alone.hits
        assert heard.finished[number].outcome.loss == pytest.approx(alone.loss, abs=2e-5)
    assert all(1 not in report.accuracies for report in heard.reports)


def test_a_trial_that_diverges_alone_fails_without_a_report() -> None:
    heard = trained(make_task(), config(1e30))
    assert list(heard) == [Failed(0, DIVERGED)]


def test_the_graphs_are_kept_for_trials_of_the_same_layers() -> None:
    trainer = Trainer(make_task(), CPU, lambda _: None)
    one = trainer.store(config(0.1))
    assert trainer.store(config(0.2, width=8)) is one
    assert trainer.store(config(layers=2)) is not one


def test_a_worker_of_a_search_without_pruning_hears_nothing_but_assignments() -> None:
    ours, theirs = Pipe()
    worker = Thread(target=live, args=(replace(make_task(), prunes=False), "cpu", theirs))
    worker.start()
    for lr in (0.01, 0.02):
        assert ours.recv() == Ready()
        ours.send(Assignment(((5, config(lr)),)))
        assert [type(ours.recv()) for _ in range(3)] == [Report, Report, Finished]
    assert ours.recv() == Ready()
    ours.close()
    worker.join(10)
    assert not worker.is_alive()


def test_a_worker_lives_until_its_channel_is_closed() -> None:
    """Its last report is answered when it has ended already, and is not taken for work."""
    ours, theirs = Pipe()
    worker = Thread(target=live, args=(make_task(), "cpu", theirs))
    worker.start()
    for lr in (0.01, 0.02):
        heard = []
        assert ours.recv() == Ready()
        ours.send(Assignment(((5, config(lr)),)))
        while not isinstance(message := ours.recv(), Finished):
            heard.append(message)
            ours.send(Verdict(frozenset()))
        assert [each.epoch for each in heard] == [1, 2]
        assert message.outcome.model_epochs == 3
    assert ours.recv() == Ready()
    ours.close()
    worker.join(10)
    assert not worker.is_alive()
