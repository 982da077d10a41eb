"""A search: its space, its storage, the trials that processes share, and what a trial trains."""

import copy
import pickle
import traceback
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import optuna
import pytest
import sqlalchemy
import torch
from optuna.trial import TrialState
from tuned import fast_sqlite

from ihgnn_cli.data import load_dataset
from ihgnn_cli.errors import IhgnnError, InputError
from ihgnn_cli.masking import masked
from ihgnn_cli.studies.tuning import objective as objectives
from ihgnn_cli.studies.tuning import storage, worker
from ihgnn_cli.studies.tuning.job import plan_search
from ihgnn_cli.studies.tuning.names import SamplerName
from ihgnn_cli.studies.tuning.objective import CannotTrainError, Objective
from ihgnn_cli.studies.tuning.rows import trial_rows
from ihgnn_cli.studies.tuning.search import Search, make_search
from ihgnn_cli.studies.tuning.space import SearchSpace, make_space
from ihgnn_cli.studies.tuning.storage import Address, address, database_errors, quiet_optuna
from ihgnn_cli.studies.tuning.trials import (
    FAILURE,
    WORKER,
    EnoughTrialsError,
    Outcome,
    Study,
    best_trials,
    failure,
    outcome_of,
    set_outcome,
)
from ihgnn_cli.studies.tuning.worker import Patience
from ihgnn_cli.training.cohort import Cohort
from ihgnn_cli.training.config import RunConfig, configure

pytestmark = pytest.mark.filterwarnings("ignore:Heartbeat of storage")

SMALL = {"width": 4, "hidden": 8, "layers": 1, "epochs": 3, "batch_size": 64, "device": "cpu"}


@pytest.fixture(autouse=True)
def _fast():  # type: ignore[no-untyped-def]
    with fast_sqlite(), quiet_optuna():
        yield


def space_of(*, grid: bool = False, model: str | None = None, **texts: str) -> SearchSpace:
    return make_space(configure(model=model), texts, grid=grid)[0]


@cache
def search(sampler: str = "random", inner: int = 1, **settings: Any) -> Search:
    """One that varies the learning rate only."""
    texts = {"batch_size": "64", "layers": "1"}
    texts["lr"] = "0.01,0.02,0.03,0.04" if sampler == "grid" else "0.001:0.01"
    base = configure(overrides={**SMALL, **settings})
    space, config = make_space(base, texts, grid=sampler == "grid")
    data = load_dataset("MUTAG")
    return make_search(config, space, data, sampler=SamplerName(sampler), inner=inner)


def study_of(folder: Path, total: int = 4, sampler: str = "random", **identity: Any) -> Study:
    asked = search(sampler)
    found = Study(asked, {**asked.identity, **identity}, address(None, folder), "mine", total)
    found.worker = "worker 1 "
    return found


def finish(study: Study, trial: optuna.Trial, accuracy: float = 0.5, loss: float = 1.0) -> None:
    set_outcome(trial, Outcome(loss, (1,), 1, 0.1, accuracy))
    study.tell(trial, accuracy)


def numbers(study: Study) -> list[tuple[int, str]]:
    return [(each.number, each.state.name) for each in study.requested()]


# The space


def test_the_default_space_is_that_of_the_models_paper() -> None:
    assert str(space_of()) == (
        "lr 0.0001 to 0.01, log scale; batch_size 32, 64, 128; layers 3, 4, 5"
    )
    assert space_of(grid=True).size() == 27
    assert "width" in str(space_of(model="gin", width="16,32"))


@pytest.mark.parametrize(
    ("name", "text", "plain"),
    [
        ("lr", "0.001:0.1", {"low": 0.001, "high": 0.1, "log": True}),
        ("lr", "0.01:0.1:linear", {"low": 0.01, "high": 0.1, "log": False}),
        ("width", "8:64", {"low": 8, "high": 64, "log": False}),
        ("width", " 8 : 64 : log ", {"low": 8, "high": 64, "log": True}),
        ("dropout", "0, 0.5", {"values": [0.0, 0.5]}),
        ("variant", "full,no-concat", {"values": ["full", "no-concat"]}),
        ("class_weights", "none,balanced", {"values": ["none", "balanced"]}),
    ],
)
def test_a_text_is_a_range_or_a_list(name: str, text: str, plain: dict[str, Any]) -> None:
    assert space_of(**{name: text}).as_plain()[name] == plain


def test_a_single_value_is_fixed_and_the_order_is_always_the_same() -> None:
    space, config = make_space(configure(), {"lr": "0.5", "width": "8,16"}, grid=False)
    assert (config.training.lr, list(space.parts)) == (0.5, ["batch_size", "layers", "width"])
    assert list(space_of(dropout="0,0.1", width="4,8").parts) == list(
        space_of(width="4,8", dropout="0,0.1").parts
    )


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        ({"lr": "fast"}, "lr must be a range as 0.0001:0.01 or a list as 0.01,0.001, not 'fast'."),
        ({"lr": "1:2:3"}, "lr must be a range"),
        ({"lr": "1:2:log:log"}, "lr must be a range"),
        ({"lr": "nan,1"}, "lr must be a range"),
        ({"lr": "0.1:inf"}, "lr must be a range"),
        ({"lr": "0.01:0.001"}, "lr must go from a smaller to a larger number, not 0.01 to 0.001."),
        ({"lr": "0:1"}, "lr must start above 0 on a log scale, not at 0."),
        ({"lr": "0.001:0.01", "grid": "yes"}, "lr is a range (0.001 to 0.01, log scale), and a"),
        ({"layers": "3,3"}, "layers names 3 twice. Name it once."),
        ({"layers": "-1,3"}, "layers must be at least 0"),
        ({"layers": "3.5"}, "layers must be a range as 8:64 or a list as 32,64, not '3.5'."),
        ({"width": "1,99999999999999999999"}, "width must be a range"),
        ({"dropout": "0:2"}, "dropout must be at least 0 and below 1"),
        ({"variant": "full:best"}, "variant must be a list, each one of full,"),
        ({"speed": "1,2"}, "The model ihgnn has no setting speed. There are lr, batch_size,"),
        ({"lr": "1", "layers": "3", "batch_size": "32"}, "Nothing is left to search"),
    ],
)
def test_what_cannot_be_searched_is_refused(texts: dict[str, str], said: str) -> None:
    with pytest.raises(InputError) as caught:
        space_of(grid=bool(texts.pop("grid", "")), **texts)
    assert said in str(caught.value).replace("--", "")


def test_the_defaults_are_a_point_if_they_are_inside() -> None:
    assert space_of().defaults(RunConfig()) == {"lr": 0.001, "batch_size": 32, "layers": 3}
    assert space_of(layers="4,5").defaults(RunConfig()) is None
    assert space_of(lr="0.001:0.002").defaults(RunConfig()) is not None


def test_the_largest_and_the_smallest_configuration_limit_the_memory() -> None:
    space = space_of(width="8:64", variant="full,no-concat")
    large = space.largest(RunConfig())
    assert {(each.model.width, each.model.layers) for each in large} == {(64, 5)}
    assert [str(each.model.variant) for each in large] == ["full", "no-concat"]
    small = space.smallest(RunConfig())
    assert (small.model.width, small.training.batch_size) == (8, 32)


# The storage

PASSWORDS = ("hunter2", "s3cret@p/ss", "a:b@c?d#e%f", "p w+d")


@pytest.mark.parametrize("password", PASSWORDS)
def test_no_form_of_an_address_shows_its_password(password: str) -> None:
    where = Address(f"postgresql://me:{quote(password, safe='')}@host:5432/db?sslpassword=ter2")
    shown = [where.masked, repr(where), f"{where}", repr([where]), masked(f"--storage={where.url}")]
    shown += [repr(copy.copy(where)), repr(pickle.loads(pickle.dumps(where)))]
    for form in (password, quote(password), quote(password, safe="")):
        shown.append(where.without_secrets(f"no entry\n for <{form}>"))
    for text in shown:
        assert not any(each in text for each in (password, quote(password, safe=""), "ter2")), text
        assert "***" in text
        assert "\n" not in text


@pytest.mark.parametrize("password", PASSWORDS)
def test_an_error_of_the_database_leads_to_no_password(password: str) -> None:
    where = Address(f"postgresql://me:{quote(password, safe='')}@host/db")

    def fail() -> None:
        with database_errors(where):
            try:
                raise sqlalchemy.exc.OperationalError("SELECT 1", None, Exception(where.url))
            finally:
                said = f"connection failed: password={password}\nfor {where.url}" + "x" * 999
                raise sqlalchemy.exc.OperationalError("SELECT 2", None, Exception(said))

    with pytest.raises(IhgnnError) as caught:
        fail()
    told = "".join(traceback.format_exception(caught.value))
    assert str(caught.value).startswith(f"The study's storage failed ({where.masked}): connection")
    assert password not in told
    assert quote(password, safe="") not in told
    assert "the same command continues" in told
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("redis://x", "--storage is postgresql://... or sqlite:///FILE, not 'redis://x'."),
        ("me:hunter2@host/db", "not 'me...'"),
        ("postgresql://me:hunter2@host:port/db", "not a valid address (postgresql://me:***@"),
        ("postgresql://me:hun@ter2@host/db", "not a valid address (postgresql://me:***@"),
        ("journal:study.log", "--storage is postgresql://... or sqlite:///FILE"),
        ("sqlite://", "--storage is"),
        ("sqlite:///", "needs the name of a file"),
        ("sqlite:///:memory:", "needs the name of a file"),
    ],
)
def test_what_is_no_address_is_refused_without_its_password(
    tmp_path: Path, given: str, said: str
) -> None:
    with pytest.raises(InputError) as caught:
        address(given, tmp_path)
    assert said in str(caught.value)
    assert "hunter2" not in str(caught.value)
    assert "ter2" not in str(caught.value)


def test_a_study_is_kept_in_a_folder_of_any_name(tmp_path: Path) -> None:
    folder = tmp_path / "50% of {it} #1?"
    folder.mkdir()
    assert numbers(study_of(folder)) == [(0, "WAITING")]  # the configuration's own values
    assert address(None, folder).seen_from(folder) == "study.db"
    shared = address(f"sqlite:///{folder / 'other.db'}", tmp_path)
    assert shared.seen_from(tmp_path).endswith("other.db")


def test_files_that_are_no_study_are_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "study.db").write_text("not a database, but long enough to be read as one" * 9)
    with (
        pytest.raises(IhgnnError, match="not a database"),
        database_errors(address(None, tmp_path)),
    ):
        study_of(tmp_path)
    assert (tmp_path / "study.db").read_text().startswith("not a database")


def test_a_study_of_another_search_or_of_somebody_else_is_refused(tmp_path: Path) -> None:
    study_of(tmp_path)
    with pytest.raises(InputError, match=r"'mine' is another search .*epochs was 3, is 5"):
        study_of(tmp_path, training={"epochs": 5})
    foreign = optuna.create_study(storage=address(None, tmp_path).open(), study_name="foreign")
    foreign.add_trial(optuna.create_trial(value=1.0))
    asked = search()
    with pytest.raises(InputError, match="'foreign' was not made by ihgnn"):
        Study(asked, asked.identity, address(None, tmp_path), "foreign", 1)


# The trials


def test_exactly_as_many_trials_as_requested_are_given_out(tmp_path: Path) -> None:
    one, two = study_of(tmp_path, 2), study_of(tmp_path, 2)
    first, second = one.ask(), two.ask()
    with pytest.raises(EnoughTrialsError) as enough:
        two.ask()
    assert not enough.value.finished  # one of them may die
    finish(one, first)
    finish(two, second)
    with pytest.raises(EnoughTrialsError) as enough:
        one.ask()
    assert enough.value.finished
    more = study_of(tmp_path, 3)
    assert more.ask().number == 2


def test_a_trial_of_a_dead_process_is_retried_twice_and_counts_once(tmp_path: Path) -> None:
    study = study_of(tmp_path, 1)
    rates = []
    for death in range(3):
        trial = study.ask()
        assert trial.number == death
        rates.append(trial.suggest_float("lr", 0.001, 0.01, log=True))
        assert study.fail_of("worker 2 ") == 0
        assert study.fail_of("worker 1 ") == 1
    assert len(set(rates)) == 1  # with the same settings
    with pytest.raises(EnoughTrialsError) as enough:
        study.ask()
    assert enough.value.finished
    (row,) = trial_rows(study.requested())
    assert (row.state, row.tries, row.failure) == ("failed", 3, "its process died 3 times")


def test_an_interrupted_trial_waits_with_its_number_and_settings(tmp_path: Path) -> None:
    study = study_of(tmp_path, 2)
    trial = study.ask()
    rate = trial.suggest_float("lr", 0.001, 0.01, log=True)
    study.give_back("worker ")
    assert numbers(study) == [(0, "WAITING")]
    again = study_of(tmp_path, 2).ask()
    assert again.number == 0
    assert again.suggest_float("lr", 0.001, 0.01, log=True) == rate
    assert numbers(study) == [(0, "RUNNING")]
    assert trial_rows(study.requested())[0].tries == 1


def test_a_trial_without_heartbeat_is_retried_and_its_late_result_is_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage, "STALE_SECONDS", 1)
    asleep, awake = study_of(tmp_path, 1), study_of(tmp_path, 1)
    trial = asleep.ask()
    with sqlalchemy.create_engine(f"sqlite:///{tmp_path / 'study.db'}").begin() as connection:
        old = "update trial_heartbeats set heartbeat = '2020-01-01 00:00:00'"
        connection.execute(sqlalchemy.text(old))
    done = []
    awake.optimize(lambda each: done.append(each.number) or 0.7, n_trials=1)
    assert done == [1]
    with pytest.raises(ValueError, match="Cannot tell a FAIL trial"):
        asleep.tell(trial, 0.9)
    assert [(each.number, each.value) for each in awake.requested()] == [(1, 0.7)]


def test_a_trial_whose_process_died_before_it_had_an_owner_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = study_of(tmp_path, 1)
    optuna.Study.ask(study)  # killed here
    with pytest.raises(EnoughTrialsError):
        study.ask()  # notices it
    monkeypatch.setattr(storage, "STALE_SECONDS", -1)
    assert study.ask().number == 1


def test_a_grid_has_every_point_once_also_if_some_are_lost(tmp_path: Path) -> None:
    study = study_of(tmp_path, 4, "grid")
    rates = []
    for at in range(6):
        trial = study.ask()
        rate = trial.suggest_categorical("lr", (0.01, 0.02, 0.03, 0.04))
        if at == 1:
            study.give_back("worker ")
        elif at == 3:
            study.fail_of("worker ")
        else:
            rates.append(rate)
            finish(study, trial)
    assert sorted(rates) == [0.01, 0.02, 0.03, 0.04]
    assert len(study.requested()) == 4


def test_draws_follow_from_the_seed_and_the_number_of_the_trial(tmp_path: Path) -> None:
    def rates(folder: str, commands: int) -> list[float]:
        (tmp_path / folder).mkdir()
        found = []
        for _ in range(commands):
            study = study_of(tmp_path / folder)
            for _ in range(4 // commands):
                trial = study.ask()
                found.append(trial.suggest_float("lr", 0.001, 0.01, log=True))
                finish(study, trial)
        return found

    assert rates("one", 1) == rates("two", 4)
    assert len(set(rates("three", 1))) == 4


def test_the_best_trial_has_the_highest_accuracy_then_the_lowest_loss_then_is_the_earlier(
    tmp_path: Path,
) -> None:
    study = study_of(tmp_path, 5)
    for accuracy, loss in ((0.8, 0.5), (0.9, 0.7), (0.9, 0.6), (0.9, 0.6), (0.7, 0.1)):
        finish(study, study.ask(), accuracy, loss)
    assert [each.number for each in best_trials(study.requested())] == [2, 3, 1, 0, 4]


# The training of a trial


def optimized(asked: Search, folder: Path, trials: int = 1) -> list[optuna.trial.FrozenTrial]:
    study = Study(asked, asked.identity, address(None, folder), "mine", trials)
    study.optimize(
        Objective(asked, torch.device("cpu")), n_trials=trials, catch=(CannotTrainError,)
    )
    return study.requested()


@pytest.mark.parametrize("settings", [{}, {"snapshots": 2, "epochs": 6}])
@pytest.mark.parametrize("inner", [1, 2])
def test_test_graphs_change_nothing(tmp_path: Path, inner: int, settings: dict[str, Any]) -> None:
    asked = search(inner=inner, **settings)
    (tmp_path / "blank").mkdir()
    plain = optimized(asked, tmp_path)[0]
    blank = optimized(asked.without_test_classes(), tmp_path / "blank")[0]
    for each in (plain, blank):
        outcome = outcome_of(each)
        assert outcome is not None
        assert len(outcome.best_epochs) == inner
        each.user_attrs["outcome"]["seconds"] = 0
    assert plain.user_attrs["outcome"] == blank.user_attrs["outcome"]
    assert plain.intermediate_values == blank.intermediate_values


def test_workers_get_no_class_of_a_test_graph(tmp_path: Path) -> None:
    config = configure(overrides=SMALL)
    data = load_dataset("MUTAG")
    job = plan_search(config, {}, data, trials=2, inner_folds=3, out=tmp_path / "x", workers=1)
    sent = pickle.loads(pickle.dumps(job._plan(None)))
    test = job.search.split.test
    assert set(data.graph_class[test]) == {0, 1}
    assert set(sent.search.dataset.graph_class[test]) == {0}
    rest = np.setdiff1d(np.arange(len(data)), test)
    assert (sent.search.dataset.graph_class[rest] == data.graph_class[rest]).all()
    for split in sent.search.inner:
        assert not {*split.train, *split.validation} & set(test)


def test_unpromising_trials_are_stopped_and_have_no_place_among_the_best(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(optuna.Trial, "should_prune", lambda self: self.number > 0)
    first, second = optimized(search(), tmp_path, 2)
    assert (first.state, second.state) == (TrialState.COMPLETE, TrialState.PRUNED)
    outcome = outcome_of(second)
    assert outcome is not None
    assert outcome.model_epochs == 1
    assert best_trials([first, second]) == [first]


def test_settings_that_cannot_be_trained_fail_for_good(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_self: Cohort) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    with monkeypatch.context() as patched:
        patched.setattr(Cohort, "advance", full)
        (trial,) = optimized(search(), tmp_path)
    assert failure(trial) == "out of memory"
    asked = search(lr=0.001)
    broken = Search(
        asked.config,
        space_of(lr="1e30,2e30", layers="1", batch_size="64"),
        *(asked.dataset, asked.split, asked.inner),
    )
    (tmp_path / "broken").mkdir()
    (trial,) = optimized(broken, tmp_path / "broken")
    assert failure(trial) == objectives.DIVERGED


def test_a_database_may_be_away_for_as_long_as_others_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [0.0]
    monkeypatch.setattr(worker.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(worker.time, "sleep", lambda seconds: now.__setitem__(0, now[0] + seconds))
    patience, error = Patience(), RuntimeError("away")
    for _ in range(50):
        patience.bear(error)
    patience.end()
    for _ in range(61):
        patience.bear(error)
    with pytest.raises(RuntimeError, match="away"):
        patience.bear(error)


def test_the_attributes_of_a_trial_have_fixed_names() -> None:
    """Studies on a server are shared by machines with different versions."""
    assert (WORKER, FAILURE) == ("worker", "failure")
