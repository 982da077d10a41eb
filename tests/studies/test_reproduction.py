"""Cells of a reproduction: in which order, of which models, where they lie, how they end."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from small_job import at
from worker_threads import use_threads

from ihgnn_cli.data import load_dataset
from ihgnn_cli.data.access import Access
from ihgnn_cli.data.splits import draw_folds, write_fold_file
from ihgnn_cli.errors import InputError
from ihgnn_cli.models.settings import Variant
from ihgnn_cli.studies import workers
from ihgnn_cli.studies.budgets import BUDGETS, BudgetName
from ihgnn_cli.studies.crossval.protocol import own_grid
from ihgnn_cli.studies.paper import check_models, model_config
from ihgnn_cli.studies.reproduction import (
    Cell,
    Estimate,
    Outcome,
    Setup,
    Watcher,
    cells,
    run_cells,
)
from ihgnn_cli.training.config import configure

DATA = "synthetic:graphs=12,nodes=12..14,degree=2"
TINY = replace(
    BUDGETS[BudgetName.QUICK], epochs=2, folds=2, lists={"lr": (0.01,), "batch_size": (8,)}
)


def setup(root: Path, **changes: Any) -> Setup:
    plain = Setup(budget=TINY, root=root, where=Access(offline=True), device="cpu", workers=2)
    return replace(plain, **changes)


@pytest.fixture(autouse=True)
def threads(monkeypatch: pytest.MonkeyPatch) -> None:
    use_threads(monkeypatch)


def run(root: Path, *given: Cell, watcher: Watcher | None = None, **changes: Any) -> list[Outcome]:
    return run_cells(given, setup(root, **changes), watcher or Watcher())


def test_a_table_grows_data_set_by_data_set() -> None:
    assert cells(["A", "B"], ["gin", "ihgnn"], [1, 2])[:5] == [
        Cell("A", "gin", 1),
        Cell("A", "gin", 2),
        Cell("A", "ihgnn", 1),
        Cell("A", "ihgnn", 2),
        Cell("B", "gin", 1),
    ]
    assert str(Cell("A", "ihgnn:no-concat", 4)) == "IHGNN no-concat on A, K = 4"
    with pytest.raises(InputError, match="h2gcn: layers must be from 0 to 10, not 16"):
        cells(["A"], ["h2gcn"], [16])


def test_a_key_is_a_model_or_an_ablation() -> None:
    assert model_config("gin") == configure(model="gin")
    assert model_config("ihgnn:no-concat").model.variant is Variant.NO_CONCAT
    assert check_models(["gin", "ihgnn", "gin"]) == ("gin", "ihgnn")
    for key in ("gin:no-concat", "ihgnn:", "ihgnn:half"):
        with pytest.raises(InputError, match=f"No model '{key}'. Ablations are ihgnn:no-integ"):
            model_config(key)


def test_budgets_are_the_same_for_every_model_and_say_so() -> None:
    quick, paper = BUDGETS[BudgetName.QUICK], BUDGETS[BudgetName.PAPER]
    for model in ("gin", "ihgnn"):
        config = model_config(model)
        assert [(each["lr"], each["batch_size"]) for each in quick.grid(config)] == [
            (0.01, 32),
            (0.001, 32),
        ]
        assert paper.grid(config) == own_grid(config)
    assert "learning rate 0.01 or 0.001 and batch size 32 compete" in quick.statement()
    assert "10 outer folds" in paper.statement()
    assert "2 partitions of 3 outer folds" in paper.statement(folds=3, repeats=2)
    race = BUDGETS[BudgetName.RACE]
    assert "a different procedure from the paper's" in race.statement()
    assert race.epochs == paper.epochs


def test_all_cells_are_trained_by_one_set_of_workers_with_what_is_left_announced(
    tmp_path: Path,
) -> None:
    estimates: list[Estimate] = []
    ended: list[Outcome] = []
    watcher = Watcher(estimated=estimates.append, finished=ended.append)
    given = cells([DATA], ["ihgnn", "gin"])
    found = run(tmp_path, *given, watcher=watcher, references=True, command="ihgnn reproduce")
    assert [each.cell for each in found] == given
    assert {each.cell for each in ended} == set(given)
    assert estimates[0].model_epochs == 2 * 2 * (2 + 2)
    assert estimates[0].seconds > 0
    for outcome, name in zip(found, ("ihgnn", "gin"), strict=True):
        assert outcome.result is not None
        assert outcome.result.trained_now == 8
        assert outcome.result.references is not None
        (path,) = tmp_path.glob(f"*/{name}/result.json")
        assert json.loads(path.read_text())["test_mean"] == outcome.result.test_mean
        job = json.loads((path.parent / "crossval.json").read_text())
        assert job["command"] == "ihgnn reproduce"
    digests = {each.result.job["splits_sha256"] for each in found if each.result}
    assert len(digests) == 1  # the same folds for all models
    estimates.clear()
    again = run(tmp_path, *given, watcher=watcher, references=True)
    assert [each.result for each in again] == [each.result for each in found]
    assert not estimates  # nothing is left


def test_a_depth_is_the_only_one_and_has_a_folder_of_its_own(tmp_path: Path) -> None:
    one, two = run(tmp_path, *cells([DATA], ["ihgnn"], [1, 2]), runs=2)
    for outcome, depth in ((one, 1), (two, 2)):
        assert outcome.result is not None
        grid = outcome.result.job["protocol"]["grid"]
        assert grid == [at(0.01, 8, depth).as_plain()]
        assert len(outcome.result.runs) == 2
    assert sorted(path.parent.name for path in tmp_path.glob("*/*/result.json")) == [
        "ihgnn-k1-runs2",
        "ihgnn-k2-runs2",
    ]


def test_a_model_without_room_and_one_that_diverges_leave_the_others_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wild = replace(TINY, lists={"lr": (1e30,), "batch_size": (8,)})
    for _ in range(2):  # the second finds the trainings of the first
        (failed,) = run(tmp_path / "wild", Cell(DATA, "ihgnn"), budget=wild)
        assert failed.failed
        assert failed.refused is not None
        assert failed.refused.startswith("failed: All configurations of fold 0 diverged")
    (before,) = run(tmp_path / "out", Cell(DATA, "ihgnn"))
    monkeypatch.setattr(workers, "free_memory", lambda _: 1000)
    finished, refused = run(tmp_path / "out", Cell(DATA, "ihgnn"), Cell(DATA, "gin"))
    assert finished.result == before.result
    assert refused.refused is not None
    assert refused.refused.startswith("does not fit: about ")
    assert not refused.failed


def test_published_folds_are_used_where_there_are_any(tmp_path: Path) -> None:
    dataset = load_dataset("MUTAG")
    folds = draw_folds(dataset.graph_class, 5, 3)
    write_fold_file(folds, tmp_path / "splits" / "MUTAG.json")
    small = replace(TINY, epochs=1, lists={"lr": (0.01,), "batch_size": (128,)})
    (published,) = run(
        tmp_path / "out", Cell("MUTAG", "ihgnn"), splits=tmp_path / "splits", budget=small
    )
    assert published.result is not None
    assert len(published.result.folds) == 3
    (drawn,) = run(tmp_path / "out", Cell(DATA, "ihgnn"), splits=tmp_path / "splits")
    assert drawn.result is not None
    assert len(drawn.result.folds) == 2


def test_fewer_repeats_than_there_are_finished_are_refused_before_anything_is_trained(
    tmp_path: Path,
) -> None:
    (two,) = run(tmp_path, Cell(DATA, "ihgnn"), repeats=2)
    assert two.result is not None
    assert [each.seed for each in two.result.repeats] == [0, 1]
    with pytest.raises(InputError, match=r"has 2 finished partitions, and --repeats 1 would"):
        run(tmp_path, Cell(DATA, "gin"), Cell(DATA, "ihgnn"))
    assert not list(tmp_path.glob("*/gin"))
    with pytest.raises(InputError, match=r"--seed was 0, is 1"):
        run(tmp_path, Cell(DATA, "ihgnn"), seed=1)
