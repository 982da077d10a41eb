"""`ihgnn reproduce` with next to nothing of a budget, in this process: tables, curves, refusals."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import typer
from worker_threads import use_threads

from ihgnn_cli.cli.app import app
from ihgnn_cli.errors import IhgnnError
from ihgnn_cli.studies import reproduction, workers
from ihgnn_cli.studies.budgets import BUDGETS, BudgetName
from ihgnn_cli.studies.signal import references

DATA = "synthetic:graphs=12,nodes=12,degree=2"
TINY = replace(
    BUDGETS[BudgetName.QUICK],
    epochs=1,
    folds=2,
    lists={"lr": (0.01,), "batch_size": (8,)},
    seeds=2,
    sweep_graphs=12,
    sweep_folds=2,
    sweep_betas=(0.2, 0.8),
)


@pytest.fixture(autouse=True)
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """What the worker has, which is a thread of this process."""
    has = {"bytes": 2**34}
    use_threads(monkeypatch)
    monkeypatch.setattr(workers, "cores", lambda: [0])
    monkeypatch.setattr(workers, "free_memory", lambda _: has["bytes"])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(BUDGETS, BudgetName.QUICK, TINY)
    monkeypatch.setattr(reproduction, "SENSITIVITY_LAYERS", (1, 2))
    monkeypatch.setattr(references, "TREES", 5)
    return has


def reproduced(capsys: pytest.CaptureFixture[str], *args: str) -> dict[str, Any]:
    app(["reproduce", *args, "--out", "out", "--json", "-q"], standalone_mode=False)
    told: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert all(Path(path).is_file() for path in told["files"])
    return told


def test_a_table_is_shown_with_its_budget_and_its_files(capsys) -> None:
    args = ["reproduce", "table1", "--models", "gin,ihgnn", "-d", DATA, "--out", "out"]
    app(args, standalone_mode=False)
    shown, said = capsys.readouterr()
    assert "To train: 8 model-epochs, about " in said
    assert "1 of 2: " in said
    assert "2 of 2: " in said
    for told in ("GIN", "IHGNN", "Budget quick: The same for every method: 2 outer folds"):
        assert told in shown
    # The table is last and alone, below its sentences.
    title, sentences, last = shown[shown.index("Classification accuracy") :].split("\n", 2)
    assert title.startswith("Classification accuracy of IHGNN")
    assert sentences.startswith("Test accuracy in %; below it the paper's")
    assert last.rstrip().splitlines()[-1].strip().startswith("SVM, 1-WL kernel")
    assert "Significance" not in shown
    for name in ("md", "tex", "csv", "html"):
        assert f"out/table1.{name}" in shown
        assert "quick" in Path(f"out/table1.{name}").read_text(encoding="utf-8")


def test_machines_are_told_cells_tables_and_files(capsys) -> None:
    told = reproduced(capsys, "table2", "--models", "ihgnn:no-concat,ihgnn", "-d", DATA)
    assert (told["subject"], told["budget"]) == ("table2", "quick")
    assert [each["model"] for each in told["cells"]] == ["ihgnn:no-concat", "ihgnn"]
    for each in told["cells"]:
        assert each["refused"] is None
        assert each["result"]["models"] == 2 + 2
        variant = each["result"]["job"]["protocol"]["model"]["variant"]
        assert variant == ("full" if each["model"] == "ihgnn" else "no-concat")
    assert [each["name"] for each in told["tables"]] == [
        "table2",
        "table2-significance",
        "table2-auc",
    ]


def test_cells_of_a_table_are_used_by_the_next(capsys) -> None:
    first = reproduced(capsys, "table2", "--models", "ihgnn", "-d", DATA)
    second = reproduced(capsys, "table1", "--models", "ihgnn", "-d", DATA)
    assert first["cells"][0]["result"] == second["cells"][0]["result"]


def test_a_model_that_does_not_fit_is_told_in_its_cell(capsys, memory: dict[str, int]) -> None:
    reproduced(capsys, "table1", "--models", "ihgnn", "-d", DATA)
    memory["bytes"] = 1000
    told = reproduced(capsys, "table1", "--models", "gin", "-d", DATA)
    (cell,) = told["cells"]
    assert cell["result"] is None
    assert cell["refused"].startswith("does not fit: about ")
    assert "does not fit" in Path("out/table1.md").read_text(encoding="utf-8")


def test_a_cell_that_fails_is_told_and_the_command_ends_with_1(capsys, monkeypatch) -> None:
    wild = replace(TINY, lists={"lr": (1e30,), "batch_size": (8,)})
    monkeypatch.setitem(BUDGETS, BudgetName.QUICK, wild)
    args = ["reproduce", "table1", "--models", "gin", "-d", DATA, "--out", "out", "-q"]
    try:
        code = app(args, standalone_mode=False)
    except typer.Exit as ended:
        code = ended.exit_code
    assert code == 1
    assert "failed: All configurations of fold 0 diverged." in " ".join(
        capsys.readouterr().err.split()
    )


def test_curves_by_k_have_a_cell_a_depth(capsys) -> None:
    told = reproduced(capsys, "sensitivity", "-d", DATA)
    assert [each["layers"] for each in told["cells"]] == [1, 2]
    for each in told["cells"]:
        grid = each["result"]["job"]["protocol"]["grid"]
        assert [configuration["layers"] for configuration in grid] == [each["layers"]]
        assert len(each["result"]["runs"]) == 2
    assert "2 final runs per fold" in told["statement"]
    assert Path("out/sensitivity.svg").is_file()


def test_curves_by_homophily_are_of_synthetic_graphs(capsys) -> None:
    told = reproduced(capsys, "homophily-sweep", "--models", "ihgnn")
    assert len(told["cells"]) == 2
    for each, beta in zip(told["cells"], ("0.2", "0.8"), strict=True):
        assert each["dataset"].startswith(f"synthetic:homophily={beta},graphs=12")
        assert len(each["result"]["folds"]) == 2
    text = Path("out/homophily-sweep.md").read_text(encoding="utf-8")
    assert "12 synthetic graphs at each homophily" in text


def test_curves_of_nothing_are_refused(memory: dict[str, int]) -> None:
    memory["bytes"] = 1000
    args = ["reproduce", "homophily-sweep", "--models", "ihgnn", "--out", "out", "-q"]
    with pytest.raises(IhgnnError, match="No run succeeded"):
        app(args, standalone_mode=False)


def test_without_a_list_figure1_has_the_papers_data_sets_that_are_here(capsys) -> None:
    app(["reproduce", "figure1", "--out", "out"], standalone_mode=False)
    shown, said = capsys.readouterr()
    assert "MUTAG" in shown
    told = " ".join(said.split())
    assert "Left out because not on this machine: KKI, DD, COLLAB" in told
    assert "MUTAG" not in told


def test_three_data_sets_with_repeats_are_compared_graph_by_graph_and_ranked(
    capsys: pytest.CaptureFixture[str],
) -> None:
    data = ",".join(f"{DATA},seed={seed}" for seed in (1, 2, 3))
    told = reproduced(
        capsys, "table1", "--datasets", data, "--models", "gin,acm,ihgnn", "--repeats", "2"
    )
    assert "2 partitions of 2 outer folds" in told["statement"]
    for cell in told["cells"]:
        assert [each["seed"] for each in cell["result"]["repeats"]] == [0, 1]
        assert len(cell["result"]["folds"]) == 4
    ranks = told["ranks"]
    assert sum(ranks["average"]) == pytest.approx(1 + 2 + 3)
    assert (len(ranks["datasets"]), ranks["pairs"]) == (3, 3)
    (tests,) = (each for each in told["tables"] if each["name"] == "table1-significance")
    tested = [box for row in tests["rows"] for box in row["boxes"] if box["beside"]]
    assert all(" ± " in box["text"] for box in tested)


def test_fewer_repeats_than_a_finished_cell_has_are_refused(
    capsys: pytest.CaptureFixture[str],
) -> None:
    table = ("table1", "--datasets", DATA, "--models", "ihgnn")
    reproduced(capsys, *table, "--repeats", "2")
    with pytest.raises(IhgnnError, match="has 2 finished partitions, and --repeats 1 would"):
        reproduced(capsys, "table1", "--datasets", DATA, "--models", "gin,ihgnn")
    assert not list(Path("out").glob("cells/*/gin"))  # refused before another cell is trained
    reproduced(capsys, "table1", "--datasets", DATA, "--models", "gin")


def test_every_file_of_a_race_says_that_it_is_another_procedure_than_the_papers(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lists = {"lr": (0.01, 0.001), "batch_size": (8,)}
    race = replace(TINY, name=BudgetName.RACE, lists=lists, race=True, epochs=9)
    monkeypatch.setitem(BUDGETS, BudgetName.RACE, race)
    args = ("--datasets", DATA, "--budget", "race")
    table = reproduced(capsys, "table1", "--models", "ihgnn,gin", *args)
    curve = reproduced(capsys, "sensitivity", "--models", "ihgnn", *args)
    for told in (table, curve):
        assert "a different procedure from the paper's, which trains every" in told["statement"]
        assert "at most 9 epochs per training" in told["statement"]
        for each in told["files"]:
            text = Path(each).read_text(encoding="utf-8")
            assert "race" in text, each
    rows = Path("out/table1.csv").read_text(encoding="utf-8").splitlines()
    assert all("in a race" in row for row in rows[1:])
