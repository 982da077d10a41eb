"""The folder of a search: begun once, the best settings as a configuration, and no secrets."""

import json
import shutil
from pathlib import Path
from typing import Any

import optuna
import pytest
import torch
from optuna.trial import TrialState

from ihgnn_cli.data import load_dataset
from ihgnn_cli.data.splits import load_split
from ihgnn_cli.errors import InputError
from ihgnn_cli.studies.tuning.search import Search, prepare
from ihgnn_cli.studies.tuning.space import make_space
from ihgnn_cli.studies.tuning.storage import DATABASE, LOCK, Address, address, masked
from ihgnn_cli.studies.tuning.trials import Outcome, RequestedTrial, TrialsRun
from ihgnn_cli.studies.tuning.tune_folder import (
    BEST,
    JOB,
    RESULT,
    SPLITS,
    begin,
    best_config,
    discard_new,
    make_result,
    write_best,
    write_result,
)
from ihgnn_cli.training.config import configure, read_config

PARAMS = {"lr": 0.005, "batch_size": 64, "layers": 4}


def make_search(**changes: Any) -> Search:
    config = configure(overrides={"epochs": 9, **changes})
    space, config = make_space(config, {}, grid=False)
    return prepare(config, space, load_dataset("MUTAG"))


def trial(number: int, state: TrialState = TrialState.COMPLETE, hits: int = 15) -> RequestedTrial:
    outcome = Outcome(0.25, (2,), ((1, hits),), (20,), 1.5, 3)
    distributions = make_search().space.distributions()
    trial = optuna.create_trial(
        state=state,
        value=outcome.accuracy if state is TrialState.COMPLETE else None,
        params=PARAMS,
        distributions=distributions,
        user_attrs={} if state is TrialState.FAIL else {"outcome": outcome.as_plain()},
    )
    trial.number = number
    return RequestedTrial((trial,))


def test_a_search_begins_in_a_new_folder_and_finds_it_again(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "run"
    search = make_search()
    kept = {"study": "one", "storage": "postgresql://me:***@host/db"}
    assert begin(search, folder, **kept, command="ihgnn tune") is True
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert set(before) == {JOB, SPLITS}
    assert json.loads(before[JOB]) == {
        "identity": search.identity,
        **kept,
        "command": "ihgnn tune",
    }
    assert begin(make_search(), folder, **kept, command="ihgnn tune --trials 9") is False
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_the_split_of_the_final_run_lies_in_the_folder(tmp_path: Path) -> None:
    search = make_search(split="fold:3")
    begin(search, tmp_path)
    found = load_split(str(tmp_path / SPLITS), search.dataset, 0)
    assert found.digest == search.split.digest


def test_another_search_is_refused_with_what_differs(tmp_path: Path) -> None:
    begin(make_search(), tmp_path)
    before = (tmp_path / SPLITS).read_bytes()
    with pytest.raises(InputError, match=r"another search \(--epochs was 9, is 8\).*--out"):
        begin(make_search(epochs=8), tmp_path)
    with pytest.raises(InputError, match=r"another search \(the splits differ\).*--out"):
        begin(make_search(split="fold:3"), tmp_path)
    assert (tmp_path / SPLITS).read_bytes() == before


@pytest.mark.parametrize(
    ("study", "storage"), [("two", "sqlite:////x.db"), ("one", "sqlite:////y.db")]
)
def test_the_same_search_as_another_study_or_elsewhere_is_refused(
    tmp_path: Path, study: str, storage: str
) -> None:
    """Its trials have other settings, and the same numbers."""
    begin(make_search(), tmp_path, study="one", storage="sqlite:////x.db")
    before = (tmp_path / JOB).read_bytes()
    with pytest.raises(InputError) as caught:
        begin(make_search(), tmp_path, study=study, storage=storage)
    assert str(caught.value) == (
        f"{tmp_path} holds the results of the study 'one' in sqlite:////x.db. Choose another "
        "--out for another study or storage."
    )
    assert (tmp_path / JOB).read_bytes() == before


def test_the_study_in_the_folder_itself_is_the_same_wherever_the_folder_is(tmp_path: Path) -> None:
    """Its path is recorded relative to the folder; earlier versions recorded the absolute one."""
    before, after = tmp_path / "before", tmp_path / "after"
    own = address(None, before).seen_from(before)
    assert own == address(f"sqlite:///{before}/study.db", before).seen_from(before) == "study.db"
    for storage in (own, f"sqlite:///{before}/study.db"):
        begin(make_search(), before, study="one", storage=own)
        job = json.loads((before / JOB).read_text())
        (before / JOB).write_text(json.dumps({**job, "storage": storage}))
        assert begin(make_search(), before, study="one", storage=own) is False
        (before / DATABASE).touch()
        before.rename(after)
        moved = address(None, after).seen_from(after)
        assert begin(make_search(), after, study="one", storage=moved) is False
        shutil.rmtree(after)


def test_a_study_beside_the_folder_is_not_its_own(tmp_path: Path) -> None:
    shared = address(f"sqlite:///{tmp_path}/study.db", tmp_path / "run").seen_from(tmp_path / "run")
    assert shared == f"sqlite:///{tmp_path}/study.db"
    begin(make_search(), tmp_path / "run", study="one", storage=shared)
    with pytest.raises(InputError, match="Choose another --out for another study or storage"):
        begin(make_search(), tmp_path / "run", study="one", storage=DATABASE)


def test_a_new_folder_whose_study_could_not_be_opened_leaves_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    begin(make_search(), folder)
    (folder / LOCK).touch()
    discard_new(folder)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["study.db", "trials.csv", "notes.txt"])
def test_a_folder_that_holds_more_is_not_discarded(tmp_path: Path, name: str) -> None:
    begin(make_search(), tmp_path)
    (tmp_path / name).touch()
    discard_new(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {JOB, SPLITS, name}


@pytest.mark.parametrize("name", ["notes.txt", "config.toml", "crossval.json", "study.db"])
def test_a_folder_with_something_else_is_refused_and_left_alone(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("mine")
    with pytest.raises(InputError, match=r"is not empty and holds no search. Choose another --out"):
        begin(make_search(), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("mine")
    with pytest.raises(InputError, match=r"is not a folder. Choose another --out"):
        begin(make_search(), tmp_path / "run")
    assert (tmp_path / "run").read_text() == "mine"


@pytest.mark.parametrize(
    "left", [[SPLITS], [SPLITS, ".splits-12-ab.part.json"], [".tune-1.part.json"]]
)
def test_a_folder_that_is_just_being_begun_is_no_other(tmp_path: Path, left: list[str]) -> None:
    """By a process that is at it, or one that was killed before it was done."""
    search = make_search()
    for name in left:
        (tmp_path / name).touch()
    begin(search, tmp_path)
    assert json.loads((tmp_path / JOB).read_text())["identity"] == search.identity
    assert load_split(str(tmp_path / SPLITS), search.dataset, 0).digest == search.split.digest


@pytest.mark.parametrize("content", ["", "[]", "{}", "nonsense", "[" * 100_000, "\x00"])
def test_a_damaged_folder_is_told(tmp_path: Path, content: str) -> None:
    begin(make_search(), tmp_path)
    (tmp_path / JOB).write_text(content)
    with pytest.raises(InputError, match=r"tune.json is damaged. Choose another --out"):
        begin(make_search(), tmp_path)


def test_the_best_settings_are_a_configuration_that_trains_them(tmp_path: Path) -> None:
    search = make_search()
    begin(search, tmp_path)
    config = best_config(search, [trial(0, hits=3), trial(1), trial(2, TrialState.FAIL)])
    assert config is not None
    assert config == search.config.with_values(PARAMS)
    path = write_best(config, tmp_path)
    assert path == tmp_path / BEST
    assert configure(file=path) == config


def test_a_split_that_is_drawn_is_drawn_again_from_its_name(tmp_path: Path) -> None:
    search = make_search(split="fold:3", seed=5)
    begin(search, tmp_path)
    again = configure(file=write_best(search.config, tmp_path))
    assert again == search.config
    found = load_split(again.data.split, search.dataset, again.training.seed)
    assert found.digest == search.split.digest


def test_a_split_of_a_file_goes_with_the_folder(tmp_path: Path) -> None:
    begin(make_search(split="fold:3"), tmp_path / "source")
    given = tmp_path / "source" / SPLITS
    search = make_search(split=str(given))
    begin(search, tmp_path / "run")
    path = write_best(search.config, tmp_path / "run")
    assert read_config(path).data.split == SPLITS
    (tmp_path / "run").rename(tmp_path / "moved")
    given.unlink()
    again = configure(file=tmp_path / "moved" / BEST)
    assert again.data.split == str(tmp_path / "moved" / SPLITS)
    assert again.data.split_from == str(given)
    assert load_split(again.data.split, search.dataset, 0).digest == search.split.digest
    assert (again.model, again.training) == (search.config.model, search.config.training)


def test_there_is_no_best_where_nothing_was_trained_to_its_end() -> None:
    search = make_search()
    assert best_config(search, []) is None
    assert best_config(search, [trial(0, TrialState.FAIL), trial(1, TrialState.PRUNED)]) is None


def result_of(
    trials: tuple[RequestedTrial, ...], url: str = "sqlite:///x", total: int = 4
) -> dict[str, Any]:
    return make_result(
        make_search(),
        TrialsRun(trials, total, 20, 2.0),
        torch.device("cpu"),
        study="one",
        storage=Address(url).masked,
        command=f"ihgnn tune --storage {masked(url)}",
    )


def test_a_result_counts_trials_and_has_no_secret(tmp_path: Path) -> None:
    trials = (trial(0, hits=10), trial(1), trial(2, TrialState.PRUNED), trial(3, TrialState.FAIL))
    lost = RequestedTrial((*trial(0, TrialState.FAIL).attempts, *trials[0].attempts))
    result = result_of((lost, *trials[1:]), "postgresql://me:hunter2@host/db?sslpassword=hunter3")
    assert result["best"] == {
        "trial": 1,
        "params": PARAMS,
        "validation_accuracy": 0.75,
        "validation_loss": 0.25,
        "best_epochs": [2],
    }
    counts = result["trials"]
    # The one without a reason has been tried once, and will be again.
    assert counts == {
        "asked": 4,
        "complete": 2,
        "pruned": 1,
        "failed": 0,
        "left": 1,
        "retried": 1,
    }
    assert (result["model_epochs"], result["worker_seconds"]) == (6, 4.5)
    assert "hunter" not in json.dumps(result)
    assert result["storage"] == "postgresql://me:***@host/db?sslpassword=***"
    write_result(tmp_path, result)
    assert json.loads((tmp_path / RESULT).read_text()) == result


def test_a_result_without_a_best_trial_says_so() -> None:
    result = result_of(())
    assert result["best"] is None
    assert (result["trials"]["asked"], result["trials"]["left"]) == (4, 4)


@pytest.mark.parametrize(
    ("states", "total", "left"),
    [
        ([TrialState.COMPLETE] * 3, 3, 0),
        ([TrialState.COMPLETE] * 3, 5, 2),
        ([TrialState.COMPLETE, TrialState.FAIL, TrialState.RUNNING], 5, 4),
        ([TrialState.COMPLETE] * 4, 2, 0),
        ([TrialState.COMPLETE, TrialState.RUNNING, TrialState.COMPLETE], 2, 1),
    ],
)
def test_what_is_left_is_never_less_than_nothing(
    states: list[TrialState], total: int, left: int
) -> None:
    """Also where there are more trials than a smaller --trials asks for."""
    trials = tuple(trial(number, state) for number, state in enumerate(states))
    result = result_of(trials, total=total)
    assert result["trials"]["left"] == left
    assert TrialsRun(trials, total, 0, 0.0).finished is (left == 0)
