"""Cells of a reproduction: in which order, of which models, where they lie, how they end."""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import torch

from ihgnn_cli.data import load_dataset
from ihgnn_cli.data.splits import draw_folds, write_fold_file
from ihgnn_cli.errors import IhgnnError, InputError
from ihgnn_cli.jobs.executor import Executor
from ihgnn_cli.jobs.local import work
from ihgnn_cli.jobs.queue import Callback, Queue
from ihgnn_cli.models.settings import Variant
from ihgnn_cli.studies.budgets import BUDGETS, Budget, BudgetName
from ihgnn_cli.studies.grid import Configuration
from ihgnn_cli.studies.memory import worker_bytes
from ihgnn_cli.studies.paper import check_models, model_config
from ihgnn_cli.studies.reproduction import (
    CellPlan,
    Done,
    Means,
    cells,
    folder_of,
    job_of,
    results,
    run_cell,
)
from ihgnn_cli.training.config import configure
from ihgnn_cli.training.loading import load_data

CPU = torch.device("cpu")
DATA = "synthetic:graphs=12,nodes=12..14,degree=2"
TINY = replace(
    BUDGETS[BudgetName.QUICK],
    epochs=2,
    folds=2,
    lists={"lr": (0.01,), "batch_size": (8,)},
)


def here(queue: Queue, callback: Callback) -> None:
    work(queue, "cpu", callback)


def unwatched(*_: object) -> None:
    pass


def executor(
    most: int | None,
    run: Callable[..., None] = here,
    memory: int | None = 2**34,
) -> Executor:
    return Executor(1 if most is None else most, CPU, memory, run)


def means(root: Path, budget: Budget = TINY, **changes: object) -> Means:
    plain = Means(budget=budget, root=root, load=load_data, executor=executor, device="cpu")
    return replace(plain, **changes)  # type: ignore[arg-type]


# Which cells


def test_a_table_grows_data_set_by_data_set() -> None:
    assert cells(["A", "B"], ["gin", "ihgnn"]) == [
        CellPlan("A", "gin"),
        CellPlan("A", "ihgnn"),
        CellPlan("B", "gin"),
        CellPlan("B", "ihgnn"),
    ]
    # Iterators will do.
    assert cells(iter(["A", "B"]), iter(["gin"]), iter([1, 2])) == [
        CellPlan("A", "gin", 1),
        CellPlan("A", "gin", 2),
        CellPlan("B", "gin", 1),
        CellPlan("B", "gin", 2),
    ]


def test_a_cell_is_told_by_its_model() -> None:
    assert CellPlan("A", "gin").title == "GIN"
    assert CellPlan("A", "ihgnn:no-concat").title == "IHGNN no-concat"


def test_a_key_is_a_model_or_an_ablation() -> None:
    assert model_config("gin") == configure(model="gin")
    assert model_config("ihgnn") == configure()
    found = model_config("ihgnn:no-concat")
    assert found.model.variant is Variant.NO_CONCAT
    assert found == configure(overrides={"variant": "no-concat"})


@pytest.mark.parametrize("key", ["gin:no-concat", "ihgnn:", "ihgnn:half", "ihgnn:no-concat:x"])
def test_what_is_no_ablation_is_refused_with_those_that_there_are(key: str) -> None:
    with pytest.raises(InputError) as caught:
        model_config(key)
    assert str(caught.value) == (
        f"No model '{key}'. Ablations are ihgnn:no-integration, ihgnn:no-separation, "
        "ihgnn:no-adaptive, ihgnn:no-concat."
    )


def test_models_are_checked_before_anything_is_run_and_counted_once() -> None:
    assert check_models(["gin", "ihgnn", "gin"]) == ("gin", "ihgnn")
    with pytest.raises(InputError, match="No model 'gim'"):
        check_models(["ihgnn", "gim"])


# What a cell is


def test_the_job_of_a_cell_is_of_the_budget(tmp_path: Path) -> None:
    job = job_of(CellPlan(DATA, "gin"), means(tmp_path, seed=3))
    assert job.protocol.grid == (Configuration(0.01, 8, 4),)
    config = job.protocol.config
    assert config.model_name == "gin"
    assert (config.training.epochs, config.training.seed) == (2, 3)
    assert (len(job.folds), job.protocol.runs) == (2, 1)
    drawn = draw_folds(job.dataset.graph_class, 3, 2)
    assert [each.digest for each in job.folds] == [each.digest for each in drawn]


def test_models_of_a_data_set_have_the_same_folds_and_seed(tmp_path: Path) -> None:
    ours, theirs = (job_of(CellPlan(DATA, key), means(tmp_path)) for key in ("ihgnn", "gin"))
    assert [each.digest for each in ours.folds] == [each.digest for each in theirs.folds]
    assert ours.protocol.config.training.seed == theirs.protocol.config.training.seed


def test_folds_and_runs_may_be_others_than_the_budget_s(tmp_path: Path) -> None:
    job = job_of(CellPlan(DATA, "gin"), means(tmp_path, folds=3, runs=4))
    assert (len(job.folds), job.protocol.runs) == (3, 4)


def test_where_k_is_given_it_is_the_only_one(tmp_path: Path) -> None:
    grid = {"lr": (0.01,), "batch_size": (8,), "layers": (3, 4, 5)}
    budget = replace(TINY, lists=grid)
    assert len(job_of(CellPlan(DATA, "ihgnn"), means(tmp_path, budget)).protocol.grid) == 3
    job = job_of(CellPlan(DATA, "ihgnn", 7), means(tmp_path, budget))
    assert job.protocol.grid == (Configuration(0.01, 8, 7),)
    assert job.protocol.config.model.layers == 7


def test_published_folds_are_used_where_there_are_some(tmp_path: Path) -> None:
    mutag = load_dataset("MUTAG")
    published = draw_folds(mutag.graph_class, seed=99, folds=4)
    write_fold_file(published, tmp_path / "MUTAG.json")
    given = means(tmp_path / "root", splits=tmp_path)
    job = job_of(CellPlan("MUTAG", "gin"), given)
    assert [each.digest for each in job.folds] == [each.digest for each in published]
    assert len(job_of(CellPlan(DATA, "gin"), given).folds) == 2  # drawn


# Where a cell lies


def test_a_folder_is_a_cell_s_own_and_the_same_again(tmp_path: Path) -> None:
    def found(model: str, layers: int | None = None, **changes: object) -> Path:
        plan = CellPlan(DATA, model, layers)
        job = job_of(plan, means(tmp_path, **changes))
        return folder_of(tmp_path, job.dataset.name, plan, job)

    made = [
        found("gin"),
        found("ihgnn"),
        found("ihgnn:no-concat"),
        found("ihgnn", 3),
        found("ihgnn", 3, runs=3),
        found("ihgnn", 4, runs=3),
    ]
    assert len(set(made)) == len(made)
    assert found("ihgnn:no-concat") == made[2]
    for path in made:
        assert path.parent.parent == tmp_path
        parts = path.relative_to(tmp_path).parts
        assert all(
            each.replace("-", "").replace("_", "").replace(".", "").isalnum() for each in parts
        )


@pytest.mark.parametrize("name", ["..", "../../etc", "a/b:c*", "C:\\data"])
def test_no_name_of_a_data_set_leads_elsewhere(tmp_path: Path, name: str) -> None:
    plan = CellPlan(DATA, "gin")
    path = folder_of(tmp_path, name, plan, job_of(plan, means(tmp_path)))
    assert len(path.relative_to(tmp_path).parts) == 2
    assert not set("/\\:*") & set(path.parent.name)
    assert path.resolve().is_relative_to(tmp_path.resolve())


# How a cell ends


@pytest.mark.parametrize("model", ["gin", "ihgnn"])
def test_a_cell_is_trained_once_and_its_result_is_kept(tmp_path: Path, model: str) -> None:
    plan = CellPlan(DATA, model)
    done = run_cell(plan, means(tmp_path, command="ihgnn reproduce"), unwatched)
    assert done.refused is None
    assert done.failed is False
    assert done.result is not None
    assert done.result["model"] == model
    assert done.result["models"] == 2 + 2  # one configuration and one run a fold
    assert done.result["provenance"]["command"] == "ihgnn reproduce"
    (file,) = tmp_path.glob("*/*/result.json")
    assert json.loads(file.read_text()) == done.result

    def refuse(*_: object) -> None:
        raise AssertionError("there is nothing left to do")

    again = means(tmp_path, executor=partial(executor, run=refuse))
    assert run_cell(plan, again, unwatched).result == done.result


def test_a_cell_hears_of_its_progress(tmp_path: Path) -> None:
    heard = []
    run_cell(CellPlan(DATA, "gin"), means(tmp_path), lambda progress, _step: heard.append(progress))
    assert heard[-1].models == heard[-1].of_models == 4
    assert heard[-1].epochs == heard[-1].of_epochs == 8


def test_a_cell_that_does_not_fit_is_told_and_leaves_nothing(tmp_path: Path) -> None:
    small = means(tmp_path / "cells", executor=partial(executor, memory=1000))
    done = run_cell(CellPlan(DATA, "gin"), small, unwatched)
    assert done.result is None
    assert done.failed is False
    assert done.refused is not None
    assert done.refused.startswith("does not fit: about ")
    assert done.refused.endswith(("kB", "MB"))
    assert not list(tmp_path.rglob("*.json"))


def test_a_cell_that_fails_is_told_and_the_others_go_on(tmp_path: Path) -> None:
    def fail(*_: object) -> None:
        raise IhgnnError("A worker was killed.")

    broken = means(tmp_path, executor=partial(executor, run=fail))
    done = run_cell(CellPlan(DATA, "gin"), broken, unwatched)
    assert (done.result, done.failed) == (None, True)
    assert done.refused == "failed: A worker was killed."
    assert run_cell(CellPlan(DATA, "gin"), means(tmp_path), unwatched).result is not None


def test_what_the_user_asked_wrongly_is_no_cell_that_failed(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="MUTAGG"):
        run_cell(CellPlan("MUTAGG", "gin"), means(tmp_path), unwatched)
    run_cell(CellPlan(DATA, "gin"), means(tmp_path), unwatched)
    with pytest.raises(InputError, match="seed"):  # the folder is of another seed
        run_cell(CellPlan(DATA, "gin"), means(tmp_path, seed=1), unwatched)


def test_there_are_no_more_workers_than_work(tmp_path: Path) -> None:
    asked: list[int | None] = []

    def made(most: int | None) -> Executor:
        asked.append(most)
        return replace(executor(most), workers=most or 500)

    run_cell(CellPlan(DATA, "gin"), means(tmp_path, executor=made), unwatched)
    assert asked == [None, 2]


def test_results_are_those_that_there_are() -> None:
    plan = CellPlan("A", "gin")
    done = [Done(plan, "A", {"n": 1}), Done(plan, "A", refused="no"), Done(plan, "A", {"n": 2})]
    assert list(results(done)) == [{"n": 1}, {"n": 2}]


def test_what_a_worker_takes_itself_is_not_for_the_model(tmp_path: Path) -> None:
    job = job_of(CellPlan(DATA, "gin"), means(tmp_path))
    barely = means(tmp_path, executor=partial(executor, memory=worker_bytes(job.dataset)))
    done = run_cell(CellPlan(DATA, "gin"), barely, unwatched)
    assert done.refused is not None
