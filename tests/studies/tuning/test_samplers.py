"""Which settings trials try: the same for the same seed and number, and every point of a grid."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import optuna
import pytest
from optuna.pruners import HyperbandPruner, MedianPruner, NopPruner
from optuna.trial import TrialState

from ihgnn_cli.studies.tuning.kinds import PrunerName, SamplerName
from ihgnn_cli.studies.tuning.samplers import TrialSampler, make_pruner, make_sampler
from ihgnn_cli.studies.tuning.space import Choice, Range, SearchSpace
from ihgnn_cli.studies.tuning.trial_queue import TrialQueue
from ihgnn_cli.studies.tuning.trials import Outcome, rank

pytestmark = pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")

SPACE = SearchSpace(
    {
        "lr": Range(1e-4, 1e-2, log=True),
        "batch_size": Choice((32, 64, 128)),
        "layers": Choice((3, 4, 5)),
    }
)
GRID = SearchSpace(
    {"lr": Choice((0.1, 0.2)), "batch_size": Choice((32, 64)), "layers": Choice((3, 4))}
)
POINTS = [tuple(point.values()) for point in GRID.points()]


def study_of(
    name: SamplerName,
    seed: int = 0,
    storage: Any = None,
    space: SearchSpace = SPACE,
    pruner: PrunerName = PrunerName.NONE,
) -> optuna.Study:
    """A study as the process that opens it sees it."""
    study = optuna.create_study(
        storage=storage, study_name="one", direction="maximize", load_if_exists=True
    )
    study.sampler = make_sampler(name, space, seed, partial(rank, study))
    study.pruner = make_pruner(pruner, 9, 1)
    return study


def queue_of(study: optuna.Study, total: int, space: SearchSpace = SPACE) -> TrialQueue:
    return TrialQueue(study, space.distributions(), total)


def asked(study: optuna.Study, count: int, fixed: Mapping[str, Any] | None = None) -> list[Any]:
    """So many trials one after the other, each of which comes to a value of its own."""
    found = []
    queue = queue_of(study, 10**6)
    for _ in range(count):
        trial = queue.take(fixed)
        assert trial is not None
        found.append(dict(trial.params))
        accuracy = round(100 * trial.params["lr"]) + trial.params["layers"]
        queue.finish(trial.number, outcome(accuracy), pruned=False)
    return found


def outcome(hits: int) -> Outcome:
    return Outcome(0.5, (1,), ((hits,),), (100,), 1.0, 1)


@pytest.mark.parametrize(
    ("name", "trials"), [(SamplerName.RANDOM, 14), (SamplerName.TPE, 14), (SamplerName.GP, 12)]
)
def test_a_seed_gives_the_same_trials_also_with_a_break_and_another_seed_others(
    name: SamplerName, trials: int
) -> None:
    whole = asked(study_of(name), trials)
    storage = optuna.storages.InMemoryStorage()
    parts = [*asked(study_of(name, storage=storage), 5)]
    parts += asked(study_of(name, storage=storage), trials - 5)  # by another process
    assert parts == whole
    if name is not SamplerName.GP:  # which may well come back to the end of a range
        assert len({point["lr"] for point in whole}) == trials  # nothing is drawn again
    assert asked(study_of(name, seed=1), 2) != whole[:2]


def test_the_draws_of_a_trial_do_not_depend_on_which_process_made_the_earlier_ones() -> None:
    one, other = study_of(SamplerName.RANDOM), study_of(SamplerName.RANDOM)
    asked(one, 3)
    for _ in range(3):
        other.enqueue_trial({"lr": 0.001, "batch_size": 32, "layers": 3})
    asked(other, 3)
    assert asked(one, 2) == asked(other, 2)


@pytest.mark.parametrize("name", [SamplerName.TPE, SamplerName.GP, SamplerName.RANDOM])
def test_what_is_fixed_is_obeyed_and_the_rest_is_drawn(name: SamplerName) -> None:
    study = study_of(name)
    asked(study, 11)
    fixed = {"batch_size": 128, "layers": 5}
    found = asked(study, 3, fixed)
    assert [{key: each[key] for key in fixed} for each in found] == [fixed] * 3
    if name is not SamplerName.GP:
        assert len({each["lr"] for each in found}) == 3
    free = asked(study, 8)
    assert any(each["batch_size"] != 128 or each["layers"] != 5 for each in free)


def test_one_that_waits_has_its_own_settings_whatever_is_fixed() -> None:
    study = study_of(SamplerName.TPE)
    own = {"lr": 0.005, "batch_size": 32, "layers": 3}
    study.enqueue_trial(own)
    assert asked(study, 1, {"batch_size": 128}) == [own]


@pytest.mark.parametrize("pruner", list(PrunerName))
def test_a_grid_visits_every_point_once_in_its_order(pruner: PrunerName) -> None:
    """Hyperband shows a sampler only the trials of one of its brackets."""
    study = study_of(SamplerName.GRID, space=GRID, pruner=pruner)
    queue = queue_of(study, len(POINTS), GRID)
    found = []
    while (trial := queue.take()) is not None:
        found.append(tuple(trial.params.values()))
        queue.report(trial.number, 1, 0.5)
        queue.finish(trial.number, outcome(50), pruned=False)
    assert found == POINTS
    assert queue.finished()


@pytest.mark.parametrize("pruner", [PrunerName.NONE, PrunerName.HYPERBAND])
def test_a_grid_visits_every_point_once_with_retries_in_between(pruner: PrunerName) -> None:
    study = study_of(SamplerName.GRID, space=GRID, pruner=pruner)
    queue = queue_of(study, len(POINTS), GRID)
    finished = []
    for step in range(30):
        trial = queue.take()
        if trial is None:
            break
        if step in (1, 2, 5, 6):
            study.tell(trial, state=TrialState.FAIL)  # as if its process had died
            queue._taken.clear()
            queue.retry_dead()
        else:
            finished.append(tuple(trial.params.values()))
            queue.finish(trial.number, outcome(50), pruned=False)
    assert sorted(finished) == sorted(POINTS)
    assert queue.finished()


def test_a_grid_visits_every_point_once_with_two_processes_and_one_trial_too_many() -> None:
    storage = optuna.storages.InMemoryStorage()
    studies = [study_of(SamplerName.GRID, storage=storage, space=GRID) for _ in range(2)]
    few = queue_of(studies[0], 3, GRID)
    first = [few.take() for _ in range(3)]
    # As when two ask at the same moment: the later one is one too many.
    extra = studies[1].ask(GRID.distributions())
    extra.set_user_attr("superfluous", True)
    studies[1].tell(extra, state=TrialState.FAIL)
    more = queue_of(studies[1], len(POINTS), GRID)
    rest = []
    while (trial := more.take()) is not None:
        rest.append(trial)
    found = [tuple(each.params.values()) for each in (*first, *rest) if each]
    assert found == POINTS


def test_a_point_whose_process_died_while_it_took_it_is_visited_whole() -> None:
    """It had its first setting only; its retry has the others of the same point."""
    study = study_of(SamplerName.GRID, space=GRID)
    queue = queue_of(study, len(POINTS), GRID)
    dying = study.ask({"lr": GRID.distributions()["lr"]})
    for _ in range(4):
        taken = queue.take()
        assert taken is not None
        queue.finish(taken.number, outcome(50), pruned=False)
    study.tell(dying, state=TrialState.FAIL)
    queue.retry_dead()
    again = queue.take()
    assert again is not None
    assert tuple(again.params[name] for name in GRID.parts) == POINTS[0]


def test_a_trial_never_mixes_two_points_of_the_grid() -> None:
    """Though what others do meanwhile may move the place of a trial."""
    places = iter([0, 7, 7, 7, 7])
    sampler = make_sampler(SamplerName.GRID, GRID, 0, lambda _: next(places))
    study = optuna.create_study(sampler=sampler)
    params = study.ask(GRID.distributions()).params
    assert tuple(params[name] for name in GRID.parts) == POINTS[0]


def test_pruners() -> None:
    assert isinstance(make_pruner(PrunerName.NONE, 100, 1), NopPruner)
    assert isinstance(make_pruner(PrunerName.MEDIAN, 100, 1), MedianPruner)
    assert isinstance(make_pruner(PrunerName.HYPERBAND, 100, 1), HyperbandPruner)


@pytest.mark.parametrize("name", list(PrunerName))
@pytest.mark.parametrize(("epochs", "interval"), [(1, 1), (2, 1), (5, 5), (350, 7)])
def test_every_pruner_takes_every_length_of_a_training(
    name: PrunerName, epochs: int, interval: int
) -> None:
    study = optuna.create_study(direction="maximize", pruner=make_pruner(name, epochs, interval))
    pruned = []
    for _ in range(4):
        trial = study.ask()
        for epoch in range(interval, epochs + 1, interval):
            trial.report(0.5, epoch)
            pruned.append(trial.should_prune())
        study.tell(trial, 0.5)
    assert pruned
    assert not any(pruned)  # all are alike


def test_the_median_pruner_stops_bad_trials_but_not_early_and_not_the_first_ones() -> None:
    """Of 100 epochs the first 10 tell nothing; of fewer than five trials there is no median."""
    study = optuna.create_study(direction="maximize", pruner=make_pruner(PrunerName.MEDIAN, 100, 5))
    for _ in range(5):
        trial = study.ask()
        for epoch in range(5, 101, 5):
            trial.report(0.8, epoch)
            assert not trial.should_prune()
        study.tell(trial, 0.8)
    poor = study.ask()
    pruned = {}
    for epoch in range(5, 21, 5):
        poor.report(0.3, epoch)
        pruned[epoch] = poor.should_prune()
    assert pruned == {5: False, 10: True, 15: True, 20: True}


def test_settings_can_be_fixed_in_every_sampler() -> None:
    for name in SamplerName:
        assert isinstance(make_sampler(name, GRID, 0, lambda number: number), TrialSampler)
