"""One study, one search: found again as what it was, and refused as anything else."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import optuna
import pytest
from optuna.samplers import RandomSampler
from optuna.storages import InMemoryStorage
from optuna.trial import TrialState

from ihgnn_cli.data import load_dataset
from ihgnn_cli.errors import InputError
from ihgnn_cli.studies.tuning import study as studies
from ihgnn_cli.studies.tuning.kinds import PrunerName, SamplerName
from ihgnn_cli.studies.tuning.samplers import TrialSampler
from ihgnn_cli.studies.tuning.search import Search, prepare
from ihgnn_cli.studies.tuning.space import Choice, SearchSpace, make_space
from ihgnn_cli.studies.tuning.storage import Address, address
from ihgnn_cli.studies.tuning.study import find_study, open_study, open_trials
from ihgnn_cli.training.config import configure

WHERE = Address("sqlite:///in-memory")


@pytest.fixture
def storage(monkeypatch: pytest.MonkeyPatch) -> InMemoryStorage:
    """What every address leads to."""
    made = InMemoryStorage()
    monkeypatch.setattr(studies, "open_storage", lambda *_: made)
    monkeypatch.setattr(studies, "_CREATION_SECONDS", 0.0)
    return made


pytestmark = pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")


def make_search(**changes: Any) -> Search:
    """A search of MUTAG; changes of the configuration, of its texts, or of what it is."""
    own = {"sampler", "pruner", "inner", "interval"}
    texts = {"lr", "layers", "dropout"}
    config = configure(
        overrides={"epochs": 9, **{k: v for k, v in changes.items() if k not in own | texts}}
    )
    grid = changes.get("sampler") is SamplerName.GRID
    given = {key: changes[key] for key in texts if key in changes}
    space, config = make_space(config, given, grid=grid)
    settings = {key: changes[key] for key in own if key in changes}
    return prepare(config, space, load_dataset("MUTAG"), **settings)


def opened(search: Search, name: str = "one") -> optuna.Study:
    return open_study(search, WHERE, Path(), name)


def waiting(study: optuna.Study) -> list[Any]:
    return [
        each.system_attrs["fixed_params"]
        for each in study.trials
        if each.state is TrialState.WAITING
    ]


def test_a_new_study_begins_with_the_configurations_own_values(storage: InMemoryStorage) -> None:
    study = opened(make_search())
    assert waiting(study) == [{"lr": 0.001, "batch_size": 32, "layers": 3}]
    assert study.direction is optuna.study.StudyDirection.MAXIMIZE
    assert isinstance(study.sampler, TrialSampler)


def test_values_that_lie_outside_are_not_tried(storage: InMemoryStorage) -> None:
    assert waiting(opened(make_search(layers="4,5"))) == []


def test_a_grid_begins_with_its_first_point(storage: InMemoryStorage) -> None:
    assert waiting(opened(make_search(sampler=SamplerName.GRID))) == []


def test_the_same_search_finds_its_study_and_queues_nothing_twice(
    storage: InMemoryStorage,
) -> None:
    first = opened(make_search())
    first.ask({})
    again = opened(make_search())
    assert again.study_name == first.study_name
    assert [each.state for each in again.trials] == [TrialState.RUNNING]
    assert len(open_trials(again, WHERE, 5)) == 1


@pytest.mark.parametrize("kind", ["sqlite", "journal"])
def test_a_search_is_the_same_after_a_file(tmp_path: Path, kind: str) -> None:
    """What a database makes of its identity is equal to what it was."""
    where = Address(f"journal:{tmp_path}/j.log")
    if kind == "sqlite":
        where = Address(f"sqlite:///{tmp_path}/s.db", tmp_path / "s.db")
    search = make_search(dropout="0:0.7", inner=2)
    for _ in range(2):
        study = open_study(search, where, tmp_path, "one")
    assert len(study.trials) == 1


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        (
            {"lr": "0.001:0.01"},
            "--lr was 0.0001 to 0.01, log scale, is 0.001 to 0.01, log scale",
        ),
        ({"layers": "3,4"}, "--layers was 3,4,5, is 3,4"),
        ({"dropout": "0:0.5"}, "dropout was 0.5, is 0.0 to 0.5"),
        ({"layers": "3"}, "--layers was 3,4,5, is 3"),
        ({"epochs": 10}, "--epochs was 9, is 10"),
        ({"seed": 1}, "--seed was 0, is 1"),
        ({"width": 8}, "width was 32, is 8"),
        ({"features": "both"}, "--features was labels, is both"),
        ({"split": "fold:0"}, "the splits differ"),
        ({"inner": 2}, "--inner-folds was 1, is 2"),
        ({"sampler": SamplerName.RANDOM}, "--sampler was tpe, is random"),
        ({"pruner": PrunerName.NONE}, "--pruner was median, is none"),
        ({"interval": 3}, "--report-every was 1, is 3"),
    ],
)
def test_another_search_of_the_same_name_is_refused_with_what_differs(
    storage: InMemoryStorage, changes: dict[str, Any], told: str
) -> None:
    before = opened(make_search()).trials
    with pytest.raises(InputError) as caught:
        opened(make_search(**changes))
    assert str(caught.value) == (
        f"The study 'one' is another search ({told}). Choose another name with --study."
    )
    again = opened(make_search())  # and nothing was done to it
    assert len(again.trials) == len(before) == 1
    assert opened(make_search(**changes), "two").study_name == "two"


def test_other_data_of_the_same_name_is_refused(storage: InMemoryStorage) -> None:
    search = make_search()
    opened(search)
    data = search.dataset
    other = replace(search, dataset=replace(data, graph_class=1 - data.graph_class))
    with pytest.raises(InputError, match="the content of the data set differs"):
        opened(other)


@pytest.mark.parametrize("changes", [{"device": "cpu"}, {"sampler": SamplerName.TPE}])
def test_what_changes_no_result_makes_no_other_search(
    storage: InMemoryStorage, changes: dict[str, Any]
) -> None:
    opened(make_search())
    opened(make_search(**changes))
    assert make_search(**changes).digest == make_search().digest


def test_settings_that_are_searched_have_no_value_of_their_own() -> None:
    """The configuration's is the first that is tried, and no more."""
    assert make_search(batch_size=64).digest == make_search().digest


def test_a_space_in_another_order_is_the_same_search() -> None:
    search = make_search(dropout="0:0.7")
    other = replace(search, space=SearchSpace(dict(reversed(search.space.parts.items()))))
    assert other.digest == search.digest
    assert replace(
        search, space=SearchSpace({**search.space.parts, "layers": Choice((5, 4, 3))})
    ).digest != (search.digest)


def foreign_with_a_trial(study: optuna.Study) -> None:
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=1)


@pytest.mark.parametrize(
    ("make", "direction"),
    [(foreign_with_a_trial, "maximize"), (lambda _: None, "minimize")],
)
def test_a_study_of_others_is_refused_and_left_alone(
    storage: InMemoryStorage, make: Callable[[optuna.Study], None], direction: str
) -> None:
    foreign = optuna.create_study(
        storage=storage, study_name="one", direction=direction, sampler=RandomSampler(0)
    )
    make(foreign)
    before = foreign.trials
    with pytest.raises(InputError, match=r"'one' was not made by ihgnn. .* --study"):
        opened(make_search())
    assert foreign.trials == before
    assert foreign.user_attrs == {}


def test_a_study_whose_maker_died_at_once_is_made_to_its_end(storage: InMemoryStorage) -> None:
    optuna.create_study(storage=storage, study_name="one", direction="maximize")
    study = opened(make_search())
    assert len(waiting(study)) == 1
    with pytest.raises(InputError, match="another search"):
        opened(make_search(epochs=10))


def test_a_study_whose_maker_died_before_it_said_what_it_is_about_is_made_to_its_end(
    storage: InMemoryStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(optuna.Study, "set_user_attr", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            opened(make_search())
    study = opened(make_search())
    assert waiting(study) == [{"lr": 0.001, "batch_size": 32, "layers": 3}]  # once


def test_one_waits_for_who_is_just_making_the_study(
    storage: InMemoryStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(studies, "_CREATION_SECONDS", 60.0)
    search = make_search()
    made = optuna.create_study(storage=storage, study_name="one", direction="maximize")
    pauses = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 3:
            made.set_user_attr("ihgnn", search.identity)

    monkeypatch.setattr(studies.time, "sleep", pause)
    assert waiting(opened(search)) == []
    assert len(pauses) == 3


def test_beyond_the_requested_number_only_finished_trials_are_shown(
    storage: InMemoryStorage,
) -> None:
    study = opened(make_search())
    for _ in range(4):
        study.ask({})
    assert [trial.number for trial in open_trials(study, WHERE, 2)] == [0, 1]
    study.tell(3, 0.5)
    assert [trial.number for trial in open_trials(study, WHERE, 2)] == [0, 1, 3]


ADDRESSES = ["sqlite:///{}/made/x.db", "sqlite:///{}/x.db?timeout=5", "journal:{}/made/x.log"]


@pytest.mark.parametrize("given", ADDRESSES)
def test_a_study_that_is_looked_for_where_nothing_is_is_not_made(
    tmp_path: Path, given: str
) -> None:
    where = address(given.format(tmp_path), tmp_path)
    with pytest.raises(InputError) as caught:
        find_study(where, "one")
    assert str(caught.value) == (
        f"There is no study 'one' in {where.masked} yet. Search first, without --dashboard."
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("given", ADDRESSES)
def test_a_study_is_found_by_its_name_and_another_is_not_made(tmp_path: Path, given: str) -> None:
    where = address(given.format(tmp_path), tmp_path)
    (tmp_path / "run").mkdir()
    made = open_study(make_search(), where, tmp_path / "run", "one")
    before = sorted(path for path in tmp_path.rglob("*"))
    found = find_study(where, "one")
    assert found.user_attrs == made.user_attrs
    with pytest.raises(InputError, match="There is no study 'two'"):
        find_study(where, "two")
    assert optuna.get_all_study_names(found._storage) == ["one"]
    assert sorted(path for path in tmp_path.rglob("*")) == before
