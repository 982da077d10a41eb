"""The tables of `ihgnn reproduce` that are shipped follow from the results that are shipped."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from ihgnn_cli.data import load_dataset
from ihgnn_cli.data.splits.folds import read_fold_file
from ihgnn_cli.report.comparison import accuracy_table, significance_table, write_cells
from ihgnn_cli.report.layout_files import markdown
from ihgnn_cli.studies.budgets import BUDGETS, BudgetName
from ihgnn_cli.studies.comparison import Comparison, cell_of, compare
from ihgnn_cli.studies.paper import model_title, table1_models, table2_models

QUICK = Path(__file__).parent.parent / "results" / "reproduce" / "quick"
DATASETS = ("MUTAG", "BZR_MD", "IMDB-BINARY", "PROTEINS", "KKI", "DHFR_MD")
TABLES = {"table1": table1_models(), "table2": table2_models()}
BUDGET = BUDGETS[BudgetName.QUICK]


def result(dataset: str, cell: str) -> dict[str, Any]:
    path = QUICK / "cells" / dataset / cell / "result.json"
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def comparison(table: str) -> Comparison:
    cells = [
        cell_of(result(dataset, model.replace(":", "-")), model)
        for dataset in DATASETS
        for model in TABLES[table]
    ]
    return compare(cells, datasets=DATASETS, models=TABLES[table])


@pytest.mark.parametrize("table", TABLES)
def test_the_numbers_are_those_of_the_results(table: str, tmp_path: Path) -> None:
    write_cells(tmp_path / "cells.csv", comparison(table), budget=BUDGET.name)
    made, shipped = (
        list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))
        for path in (tmp_path / "cells.csv", QUICK / f"{table}.csv")
    )
    assert len(made) == len(DATASETS) * len(TABLES[table])
    assert made == shipped


@pytest.mark.parametrize("table", TABLES)
def test_the_tables_are_those_of_the_results_and_of_the_budget(table: str) -> None:
    shipped = (QUICK / f"{table}.md").read_text(encoding="utf-8")
    page = (QUICK.parent / "README.md").read_text(encoding="utf-8")
    tests = significance_table(comparison(table), f"{table}-tests")
    numbers = accuracy_table(comparison(table), table, "")
    for made, places in ((numbers, (shipped, page)), (tests, (shipped,))):
        rows = [line for line in markdown(made).splitlines() if line.startswith("|")]
        assert len(rows) > 2 + len(TABLES[table]) - 2
        for place in places:
            assert "\n".join(rows) in place
    assert BUDGET.statement() in shipped


@pytest.mark.parametrize("dataset", DATASETS)
@pytest.mark.parametrize("model", table1_models())
def test_every_method_had_the_budget_and_the_same_folds(dataset: str, model: str) -> None:
    told = result(dataset, model)
    job = told["job"]
    assert told["models"] == BUDGET.folds * (2 + BUDGET.runs)
    assert job["protocol"]["training"]["epochs"] == BUDGET.epochs
    assert job["protocol"]["runs"] == BUDGET.runs
    assert {each["lr"] for each in job["protocol"]["grid"]} == {0.01, 0.001}
    assert job["splits_sha256"] == result(dataset, "ihgnn")["job"]["splits_sha256"]
    assert told["provenance"]["packages"]["torch"]


def test_the_folds_are_shipped() -> None:
    folds = read_fold_file(QUICK / "cells" / "MUTAG" / "splits.json", len(load_dataset("MUTAG")))
    for told in result("MUTAG", "gin")["folds"]:
        for run in told["runs"]:
            assert folds[told["fold"]].splits[0].digest == run["split_sha256"]


def test_the_curve_of_k_is_that_of_the_results() -> None:
    rows = list(
        csv.DictReader((QUICK / "sensitivity.csv").read_text(encoding="utf-8").splitlines())
    )
    assert [float(row["K"]) for row in rows] == [1, 2, 4, 8, 16, 32, 64]
    for row in rows:
        runs = result("MUTAG", f"ihgnn-k{float(row['K']):.0f}-runs3")["runs"]
        assert float(row["mean"]) == pytest.approx(100 * sum(runs) / 3, abs=1e-4)


def test_the_sweep_over_homophily_is_that_of_the_results() -> None:
    text = (QUICK / "homophily-sweep.csv").read_text(encoding="utf-8")
    rows = list(csv.DictReader(text.splitlines()))
    models = ("ihgnn", "ihgnn:no-separation", "gin", "h2gcn", "gprgnn", "acm")
    titles = {model_title(model): model for model in models}
    assert len(rows) == len(models) * len(BUDGET.sweep_betas)
    for row in rows:
        beta, model = float(row["mean_node_homophily_β"]), titles[row["model"]]
        data = f"synthetic_homophily_{beta:g}_graphs_{BUDGET.sweep_graphs}"
        told = result(data, model.replace(":", "-"))
        assert float(row["mean"]) == pytest.approx(100 * told["test_mean"], abs=1e-4)
