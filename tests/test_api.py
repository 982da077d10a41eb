"""The Python API: the names, what they return, what they refuse, and what they show."""

import json
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import optuna
import pytest
import torch
from torch_geometric.data import Data

import ihgnn_cli as ihgnn
from ihgnn_cli.api.crossval import begin
from ihgnn_cli.api.settings import searchable
from ihgnn_cli.data.dataset import GraphDataset
from ihgnn_cli.data.pyg import to_pyg
from ihgnn_cli.errors import InputError
from ihgnn_cli.studies.signal import references
from ihgnn_cli.studies.tuning.space import kinds_of
from ihgnn_cli.training.config import RunConfig, configure, write_config

SMALL: dict[str, Any] = {"epochs": 3, "width": 8, "hidden": 16, "device": "cpu"}
PROPANE = {"node_labels": [0, 0, 0], "edges": [[0, 1], [1, 2]]}


@pytest.fixture(scope="module")
def mutag() -> GraphDataset:
    return ihgnn.load_dataset("MUTAG")


@pytest.fixture(scope="module")
def run(mutag: GraphDataset, tmp_path_factory: pytest.TempPathFactory) -> ihgnn.Run:
    return ihgnn.train(mutag, out=tmp_path_factory.mktemp("api") / "run", **SMALL)


def molecules(count: int = 20) -> list["nx.Graph[str]"]:
    """Rings and stars of atoms C and O, with the class as an attribute of the graph."""
    made = []
    for number in range(count):
        ring = number % 2
        graph = nx.cycle_graph(4 + number % 3) if ring else nx.star_graph(3 + number % 3)
        graph = nx.relabel_nodes(graph, {node: f"atom {node}" for node in graph})
        for place, node in enumerate(graph):
            graph.nodes[node]["label"] = "C" if place % 3 else "O"
        graph.graph["class"] = "ring" if ring else "star"
        made.append(graph)
    return made


def test_importing_the_package_imports_nothing_heavy() -> None:
    code = (
        "import sys, ihgnn_cli\n"
        "assert {'train', 'IHGNNClassifier', '__version__'} <= set(dir(ihgnn_cli))\n"
        "heavy = {'torch', 'numpy', 'optuna', 'rich', 'sklearn', 'typer'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_every_public_name_is_there_and_no_other() -> None:
    assert all(getattr(ihgnn, name) is not None for name in ihgnn.__all__)
    assert set(ihgnn._MODULES) == set(ihgnn.__all__)
    with pytest.raises(AttributeError, match="no attribute 'trian'"):
        _ = ihgnn.trian  # type: ignore[attr-defined]


def test_only_public_names_are_listed() -> None:
    assert dir(ihgnn) == sorted([*ihgnn.__all__, "__version__"])


def test_a_run_holds_what_its_folder_holds(run: ihgnn.Run) -> None:
    stored = json.loads((run.folder / "result.json").read_text())
    assert run.result == stored
    assert run.test.accuracy == stored["test"]["accuracy"]
    assert run.best_epoch == run.best.epoch == stored["best_epoch"]
    assert [each.epoch for each in run.history] == [1, 2, 3]
    assert run.checkpoint.is_file()
    assert (run.folder / "curves.png").is_file()
    assert run.config.training.epochs == 3
    assert run.config.data.dataset == "MUTAG"


def test_a_run_evaluates_predicts_and_exports(run: ihgnn.Run, tmp_path: Path) -> None:
    assert run.evaluate().metrics == run.test
    assert run.evaluate(part="train").trained_on == len(run.evaluate(part="train").graphs) == 150
    exported = run.export(tmp_path / "model.onnx", layout="sparse")
    assert exported.parity is not None
    (checked,) = run.predict([PROPANE])
    (answered,) = ihgnn.load(exported.path, device="cpu").predict([PROPANE])
    assert answered.probabilities == pytest.approx(checked.probabilities, abs=1e-5)
    assert ihgnn.evaluate(exported.path, part="all", device="cpu").metrics.graphs == 188
    with pytest.raises(InputError, match="already exists"):
        ihgnn.export(run.folder, str(exported.path))
    with pytest.raises(InputError, match="part must be one of all, train"):
        run.evaluate(part="tests")


def test_an_evaluation_is_short_to_look_at(run: ihgnn.Run) -> None:
    shown = repr(run.evaluate())
    assert "accuracy=" in shown
    assert "array" not in shown
    assert len(shown) < 600


def test_messages_name_arguments_and_commands_stay_as_they_are(
    run: ihgnn.Run, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=r"^dataset is .*, which verify=False skips\. Drop one\.$"):
        ihgnn.export(run.folder, tmp_path / "x.onnx", dataset="MUTAG", verify=False)
    with pytest.raises(InputError, match=r"'ihgnn train --resume .*', or choose another out\.$"):
        ihgnn.train(out=run.folder)
    (tmp_path / "best.toml").touch()
    with pytest.raises(InputError, match=r": ihgnn train --final --config .*best\.toml$"):
        ihgnn.evaluate(tmp_path)
    with pytest.raises(InputError, match=r"foldz\. Did you mean folds\?"):
        ihgnn.crossval(foldz=2)
    with pytest.raises(InputError, match=r"trial\. Did you mean trials\?"):
        ihgnn.tune(trial=2)


def test_prediction_sets_are_calibrated_on_graphs_of_a_program_with_edge_labels(
    mutag: GraphDataset, tmp_path: Path
) -> None:
    graphs = replace(mutag, source="")  # cannot be read again
    made = {"epochs": 1, "layers": 1, "width": 4, "hidden": 4, "edge_labels": True}
    trained = ihgnn.train(graphs, out=tmp_path / "run", **made)
    found = ihgnn.evaluate(trained.folder, graphs, conformal=0.2).coverage
    assert found is not None
    path = ihgnn.export(trained.folder, dataset=graphs, conformal=0.2).path
    exported = ihgnn.load(path).card.conformal
    assert exported is not None
    assert exported.threshold == pytest.approx(found.threshold.threshold, abs=1e-5)


def test_a_final_model_is_trained_on_all_graphs(run: ihgnn.Run, tmp_path: Path) -> None:
    final = ihgnn.train(final=True, config=run.folder / "config.toml", out=tmp_path / "final")
    assert final.test is None
    assert len(final.history) == run.best_epoch
    assert final.evaluate().trained_on == 188
    again = ihgnn.train(final=True, config=final.config, out=tmp_path / "again", split="all")
    assert len(again.history) == run.best_epoch


def test_a_model_is_exported_beside_its_checkpoint(mutag: GraphDataset, tmp_path: Path) -> None:
    made = ihgnn.train(mutag, model="Ihgnn", split="0.6/0.2/0.2", out=tmp_path, **SMALL)
    assert made.result["split"] == "0.6/0.2/0.2"
    assert made.result["validation"]["graphs"] == 38
    assert made.export(verify=False).path == tmp_path / "model.onnx"


def test_a_stored_model_is_evaluated_by_its_path(run: ihgnn.Run, mutag: GraphDataset) -> None:
    assert ihgnn.evaluate(run.folder, device="cpu").metrics == run.test
    some = ihgnn.evaluate(run.checkpoint, mutag.select(range(9)), device="cpu")
    assert (some.metrics.graphs, some.part) == (9, "all")


def test_without_out_runs_are_numbered_like_those_of_the_command(
    mutag: GraphDataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folders = [ihgnn.train(mutag, **{**SMALL, "epochs": 1}).folder for _ in range(2)]
    assert folders == [Path("runs/MUTAG-1"), Path("runs/MUTAG-2")]


def test_a_configuration_is_taken_again_and_changed(run: ihgnn.Run, tmp_path: Path) -> None:
    again = ihgnn.train("MUTAG", out=tmp_path / "run", config=run.config)
    assert again.history == run.history
    from_file = ihgnn.train(
        "MUTAG", out=tmp_path / "other", config=run.folder / "config.toml", epochs=1, seed=4
    )
    assert from_file.config.model == run.config.model
    assert (from_file.config.training.seed, len(from_file.history)) == (4, 1)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"epoch": 3}, r"The model ihgnn has no setting epoch. Did you mean epochs\?"),
        ({"learning_rate": 0.1}, r"no setting learning_rate. Did you mean lr\?"),
        ({"split_from": "x"}, "no setting split_from"),
        ({"modle": "gin"}, r"no setting modle. Did you mean model\?"),
        ({"split": "0.5/0.6"}, "The split 0.5/0.6 must be the shares"),
        ({"batch_size": 0}, "^batch_size must be at least 1"),
        ({"final": True}, "Give its number with epochs, or .* with config"),
        ({"final": True, "epochs": 1, "patience": 2}, "Leave out patience"),
        ({"lr": -1.0}, "lr must be a finite number above 0"),
        ({"variant": "ful"}, "variant must be one of full"),
        ({"recipe": "chef"}, "recipe must be one of paper, authors"),
        ({"model": "gim"}, "gim"),
        ({"out": ""}, "needs the name of a folder"),
    ],
)
def test_a_mistake_in_a_setting_is_refused_before_anything_is_written(
    settings: dict[str, Any],
    said: str,
    mutag: GraphDataset,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=said):
        ihgnn.train(mutag, **settings)
    assert not list(tmp_path.iterdir())


def test_other_models_take_their_own_settings(mutag: GraphDataset, tmp_path: Path) -> None:
    small = {"epochs": 1, "width": 8, "layers": 2, "device": "cpu"}
    done = ihgnn.train(mutag, out=tmp_path / "run", model="gin", **small)
    assert done.config.model_name == "gin"
    with pytest.raises(InputError, match="variant is a setting of ihgnn, not of gin"):
        ihgnn.train(mutag, model="gin", variant="full")


def test_graphs_of_networkx_are_trained_on_and_predicted(tmp_path: Path) -> None:
    graphs = molecules()
    done = ihgnn.train(graphs, out=tmp_path / "run", **SMALL)
    assert done.dataset.label_values == ("C", "O")
    assert done.dataset.class_values == ("ring", "star")
    found = [list(each.probabilities.values()) for each in done.predict(graphs)]
    np.testing.assert_allclose(found, done.evaluate(part="all").probabilities, atol=1e-6)
    graphs[0].nodes["atom 0"]["label"] = "N"
    assert done.predict(graphs)[0].unknown_nodes == 1
    with pytest.raises(InputError, match="trained on"):
        ihgnn.evaluate(done.folder)
    with pytest.raises(InputError, match=r"stores no path of its data \(graphs\)"):
        ihgnn.export(done.folder, tmp_path / "model.onnx")


def test_a_model_that_knows_none_of_the_labels_does_not_answer(tmp_path: Path) -> None:
    """The model knows C and O; 0 and 1 are their positions."""
    done = ihgnn.train(molecules(), out=tmp_path / "run", **SMALL)
    done.export(tmp_path / "model.onnx", verify=False, dataset=None)
    other = [{**PROPANE, "class": "ring"}, {**PROPANE, "class": "star"}]
    for model in (done, ihgnn.load(done.folder, "cpu"), ihgnn.load(tmp_path / "model.onnx")):
        with pytest.raises(InputError, match=r"(?s)3 of 3 nodes .* not positions"):
            model.predict([PROPANE])
        with pytest.warns(ihgnn.UnknownLabelsWarning, match="3 of 3 nodes"):
            assert model.predict([PROPANE], allow_unknown=True)[0].unknown_nodes == 3
    stream = ihgnn.load(done.folder, "cpu").stream
    with pytest.raises(InputError, match="3 of 3 nodes"):
        next(stream([PROPANE]))
    with pytest.warns(ihgnn.UnknownLabelsWarning):
        assert len(list(stream([PROPANE] * 3, 1, allow_unknown=True))) == 3
    for evaluate in (done.evaluate, partial(ihgnn.evaluate, done.folder)):
        with pytest.raises(InputError, match="6 of 6 nodes in 2 graphs") as caught:
            evaluate(other, device="cpu")
        assert str(caught.value).endswith("or insist with allow_unknown=True.")
        with pytest.warns(ihgnn.UnknownLabelsWarning):
            assert evaluate(other, device="cpu", allow_unknown=True).unknown_nodes == 6


def test_what_is_not_a_model_is_told_with_what_would_be(tmp_path: Path) -> None:
    give = "Give a run folder, its ckpt.pt, or a .onnx file"
    with pytest.raises(InputError, match=f"nope does not exist. {give}"):
        ihgnn.evaluate(tmp_path / "runs" / "nope")
    with pytest.raises(InputError, match=f"MUTAG is a data set, not a model. {give}"):
        ihgnn.load("MUTAG")
    with pytest.raises(InputError, match=f"x.jsonl is a data set, not a model. {give}"):
        ihgnn.load("x.jsonl")


def test_a_run_on_graphs_of_a_program_is_not_resumed_by_the_command(tmp_path: Path) -> None:
    from ihgnn_cli.training import run as runs
    from ihgnn_cli.training.folder import config_of

    ihgnn.train(molecules(), out=tmp_path / "run", **SMALL)
    with pytest.raises(InputError, match="made by a Python program"):
        runs.prepare(config_of(tmp_path / "run", epochs=9), folder=tmp_path / "run")


def test_dicts_make_a_data_set_and_a_bad_one_is_named(caplog: pytest.LogCaptureFixture) -> None:
    one = {**PROPANE, "class": 0}
    assert len(ihgnn.load_dataset([one, {**one, "class": 1}])) == 2
    assert len(ihgnn.load_dataset([{**one, "weight": 1}])) == 1
    assert caplog.messages == ["graphs: ignoring 'weight', not part of the format (docs/data.md)."]
    with pytest.raises(InputError, match="graph 1: no class"):
        ihgnn.load_dataset([one, PROPANE])
    with pytest.raises(InputError, match="graph 0: str is not a graph"):
        ihgnn.load_dataset(iter(["MUTAG"]))
    with pytest.raises(InputError, match="no graphs in the list"):
        ihgnn.load_dataset([])
    half = nx.path_graph(2)
    half.nodes[0]["label"] = 1
    with pytest.raises(InputError, match="graph 0: 1 of 2 nodes have no 'label'"):
        ihgnn.load_dataset([half])
    with pytest.raises(InputError, match=r"Graph 0 is .* Data, and graph 1 is dict"):
        ihgnn.load_dataset([*to_pyg(ihgnn.load_dataset([one])), one])


@pytest.mark.parametrize("name", ["runs", "folds", "inner_folds", "repeats", "workers", "stack"])
def test_a_number_that_is_not_whole_is_refused_by_name(name: str) -> None:
    with pytest.raises(InputError, match=f"^{name} must be a whole number, not 2.5"):
        ihgnn.crossval(**{name: 2.5})
    if name in ("inner_folds", "workers"):
        with pytest.raises(InputError, match=f"^{name} must be a whole number, not True"):
            ihgnn.tune(**{name: True})


def test_graphs_of_pyg_are_answered_as_their_dicts_are(run: ihgnn.Run, mutag: GraphDataset) -> None:
    graphs = to_pyg(mutag)[:5]
    predictor = run.load("cpu")
    wanted = predictor.classifier.probabilities(mutag, np.arange(5))
    found = [list(each.probabilities.values()) for each in predictor.predict(graphs)]
    np.testing.assert_allclose(found, wanted, atol=1e-6)
    numbers = [
        Data(x=each.x.argmax(1), edge_index=each.edge_index, num_nodes=each.num_nodes)
        for each in graphs
    ]
    assert predictor.predict(numbers) == predictor.predict(graphs)
    strange = graphs[0].clone()
    strange.x[0] = 0
    assert predictor.predict([strange])[0].unknown_nodes == 1
    strange.x = torch.rand(strange.num_nodes, 3)
    with pytest.raises(InputError, match="graph 0: x is neither one-hot nor a single integer"):
        predictor.predict([strange])


def test_one_hot_columns_stand_for_the_labels_that_the_model_knows(tmp_path: Path) -> None:
    """A data set with labels 3 and 7 has two columns in torch-geometric."""
    low, high = ({"node_labels": [each, each], "edges": [[0, 1]]} for each in (3, 7))
    graphs = [{**low, "class": 0}, {**high, "class": 1}] * 10
    done = ihgnn.train(graphs, out=tmp_path / "run", **SMALL)
    rows = torch.eye(2)[[1, 1]]
    data = Data(x=rows, edge_index=torch.tensor([[0, 1], [1, 0]]))
    assert done.predict([data]) == done.predict([high])


def test_attributes_of_pyg_are_read_where_the_model_reads_them(tmp_path: Path) -> None:
    drawn = torch.Generator().manual_seed(0)
    edges = torch.tensor([[0, 1], [1, 0]])
    graphs = [
        Data(x=torch.rand(2, 3, generator=drawn), edge_index=edges, y=torch.tensor([number % 2]))
        for number in range(20)
    ]
    done = ihgnn.train(graphs, out=tmp_path / "run", features="attributes", **SMALL)
    wanted = done.evaluate(part="all").probabilities
    found = [list(each.probabilities.values()) for each in done.predict(graphs)]
    np.testing.assert_allclose(found, wanted, atol=1e-6)


def test_signal_measures_graphs_in_memory_and_needs_two_classes(monkeypatch) -> None:
    monkeypatch.setattr(references, "TREES", 10)
    path = [{"node_labels": [0, 0], "edges": [[0, 1]], "class": 0}]
    cycle = [{"node_labels": [0, 0, 1], "edges": [[0, 1], [1, 2], [2, 0]], "class": 1}]
    found = ihgnn.signal(path * 12 + cycle * 12, folds=3, permutations=0)
    assert found.best_reference.scores.accuracy == found.ceiling.rounds[-1] == 1
    assert found.majority_share == 0.5
    with pytest.raises(ihgnn.IhgnnError, match="have the same class"):
        ihgnn.signal(path * 12)
    with pytest.raises(ihgnn.IhgnnError, match=r"has no edge labels\. Leave out edge_labels"):
        ihgnn.signal(path * 12 + cycle * 12, edge_labels=True)


@pytest.mark.usefixtures("thread_workers")
def test_crossval_lets_lists_compete_and_continues_the_same_call(
    mutag: GraphDataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    asked: dict[str, Any] = {**SMALL, "folds": 2, "runs": 1, "workers": 1, "progress": False}
    grid = {"lr": [0.01, 0.001], "batch_size": 64, "layers": 2}
    done = ihgnn.crossval(mutag, **asked, **grid)
    assert done.folder.parent == Path("runs")
    assert done.result.models == 2 * 2 + 2
    assert done.test_mean == np.mean([fold.test_mean for fold in done.result.folds])
    again = ihgnn.crossval("MUTAG", **asked, **grid)
    assert (again.folder, again.result) == (done.folder, done.result)
    with pytest.raises(InputError, match="epochs is a setting of training and takes one value"):
        ihgnn.crossval(mutag, epochs=[1, 2])


def test_crossval_takes_the_configuration_of_a_final_training(
    mutag: GraphDataset, tmp_path: Path
) -> None:
    write_config(configure(overrides={"split": "all"}), tmp_path / "config.toml")
    chosen = configure(file=tmp_path / "config.toml", overrides={"patience": 5, "device": "cpu"})
    begun = begin(chosen, {}, mutag, out=tmp_path / "job", workers=1, stack=1)
    config = begun.job.protocol.config  # its best.toml has the same split
    assert (config.data.split, config.training.patience) == ("holdout", 5)


@pytest.mark.usefixtures("thread_workers")
def test_tune_searches_lists_and_gives_the_best_settings(
    mutag: GraphDataset, tmp_path: Path
) -> None:
    verbosity = optuna.logging.get_verbosity()
    done = ihgnn.tune(
        mutag,
        trials=2,
        layers=[1, 2],
        lr="0.001:0.01",
        batch_size=64,
        sampler="random",
        workers=1,
        out=tmp_path / "search",
        **SMALL,
    )
    assert optuna.logging.get_verbosity() == verbosity
    assert set(done.best) == {"lr", "layers"}
    assert done.config.training.lr == done.best["lr"]
    assert done.config.training.batch_size == 64
    assert done.test["graphs"] == 19
    assert done.checkpoint.is_file()
    assert (tmp_path / "search" / "report.html").is_file()
    with pytest.raises(InputError, match="sampler must be one of tpe"):
        ihgnn.tune(mutag, sampler="best")


def test_progress_is_off_outside_of_terminals_and_on_where_it_is_asked_for(
    mutag: GraphDataset, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    ihgnn.train(mutag, out=tmp_path / "one", **SMALL)
    assert capfd.readouterr() == ("", "")
    ihgnn.train(mutag, out=tmp_path / "two", progress=True, **SMALL)
    out, err = capfd.readouterr()
    assert out == ""
    assert [line.split(":")[0] for line in err.splitlines()] == [
        "1 of 3 epochs",
        "2 of 3 epochs",
        "3 of 3 epochs",
    ]


def test_progress_is_a_bar_in_a_terminal_unless_it_is_switched_off(
    mutag: GraphDataset,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich takes this for a terminal
    monkeypatch.setenv("TERM", "xterm")
    ihgnn.train(mutag, out=tmp_path / "one", progress=False, **SMALL)
    assert capfd.readouterr().err == ""
    ihgnn.train(mutag, out=tmp_path / "two", **SMALL)
    assert "3/3" in capfd.readouterr().err


def test_what_the_command_searches_the_function_searches_too() -> None:
    config = RunConfig()
    assert set(searchable(config)) == set(kinds_of(config))


@pytest.mark.parametrize("graphs", [5, {"node_labels": [0], "edges": []}])
def test_one_graph_or_no_graph_is_not_a_list_of_graphs(run: ihgnn.Run, graphs: Any) -> None:
    with pytest.raises(InputError, match="is not a list of graphs"):
        ihgnn.load_dataset(graphs)
    with pytest.raises(InputError, match="Give \\[graph\\]"):
        run.predict(graphs)
