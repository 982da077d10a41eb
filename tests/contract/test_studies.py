"""Studies, exported models and commands, against the golden files."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from contract import observed
from contract.observed import differences, stored
from contract.selection import GRID, Finished, read, select

from ihgnn_cli import IHGNN, IhgnnError, load, load_dataset, train

Graph = dict[str, Any]
REMAKE = "python tests/contract/make_golden.py commands"


def rewritten(graphs: Sequence[int], folder: Path, change: Callable[[Graph], Graph]) -> Path:
    """`GRAPHS` with other graphs at these positions."""
    lines = observed.GRAPHS.read_text(encoding="utf-8").splitlines()
    found = [json.loads(line) for line in lines]
    for position in graphs:
        found[position] = change(found[position])
    path = folder / observed.GRAPHS.name
    path.write_text("".join(json.dumps(each) + "\n" for each in found), encoding="utf-8")
    return path


def of_the_other_class(graph: Graph) -> Graph:
    return {**graph, "class": "odd" if graph["class"] == "even" else "even"}


def with_large_attributes(graph: Graph) -> Graph:
    return {**graph, "node_attributes": [[100.0, -100.0, 7.0]] * len(graph["node_labels"])}


def test_signal_is_the_same() -> None:
    assert not differences(observed.signal_table(), stored("signal.json"), 1e-6)


def test_a_small_cross_validation_is_the_same() -> None:
    found = observed.crossval(observed.GRAPHS, "--rules", "--no-references")
    assert not differences(found, stored("crossval.json"), 1e-4)


def test_test_graphs_choose_nothing(tmp_path: Path) -> None:
    tested = json.loads(observed.GRAPHS_FOLDS.read_text(encoding="utf-8"))[0]["test"]
    poisoned = rewritten(tested, tmp_path, of_the_other_class)
    options = ("--stack", 1, "-k", "1", "--runs", 1, "--no-references")
    before, after = (
        observed.crossval(data, *options)["folds"][0] for data in (observed.GRAPHS, poisoned)
    )
    for key in ("configuration", "validation_accuracy", "validation_loss"):
        assert before[key] == after[key], key
    for one, other in zip(before["runs"], after["runs"], strict=True):
        assert one["epoch"] == other["epoch"]
        assert one["test_accuracy"] == pytest.approx(1 - other["test_accuracy"])


@pytest.mark.parametrize("snapshots", [0, 2])
def test_test_graphs_change_no_training(tmp_path: Path, snapshots: int) -> None:
    lines = observed.GRAPHS.read_text(encoding="utf-8").splitlines()
    tested = json.loads(observed.GRAPHS_SPLIT.read_text(encoding="utf-8"))[0]["test"]
    graphs = [json.loads(line) for at, line in enumerate(lines) if at not in tested]
    small = {"width": 4, "epochs": 4, "device": "cpu", "progress": False}
    small |= {"features": "attributes", "split": f"{observed.GRAPHS_SPLIT}:0"}
    runs = []
    for change in (dict, of_the_other_class, with_large_attributes):
        data = rewritten(tested, tmp_path, change)
        out = tmp_path / change.__name__
        runs.append(train(data, out=out, snapshots=snapshots, **small))
    first, *others = runs
    for other in others:
        one, two = ((each.folder / "metrics.jsonl").read_bytes() for each in (first, other))
        assert one == two
        assert first.best == other.best
        answers = zip(*(each.predict(graphs) for each in (first, other)), strict=True)
        for ours, theirs in answers:
            assert ours.probabilities == pytest.approx(theirs.probabilities, abs=1e-6)


@cache
def trainings() -> list[Finished]:
    """The trainings of MUTAG's selection."""
    return [each for each in read(observed.TRAININGS_OF_MUTAG) if not each.final]


def test_selection_gives_the_same_numbers_from_the_same_trainings() -> None:
    found = select(trainings(), 10)
    assert not differences(found, stored("selection.json"), 1e-12)
    assert select(trainings()[::-1], 10) == found  # whatever order they come in


def test_the_final_trainings_have_the_configurations_that_are_chosen() -> None:
    final = [each for each in read(observed.TRAININGS_OF_MUTAG) if each.final]
    chosen = stored("selection.json")["chosen"]
    assert all(list(each.configuration) == chosen[each.fold] for each in final)


def test_test_hits_change_no_choice() -> None:
    nothing = [replace(each, test_hits=(0,) * len(each.test_hits)) for each in trainings()]
    found = select(nothing, 10)
    assert found["chosen"] == stored("selection.json")["chosen"]
    assert found["rules"][0][2] == 0  # the rule that is nested has the same choices


def test_a_missing_training_is_refused() -> None:
    with pytest.raises(IhgnnError):
        select(trainings()[1:], 10)


def test_equal_accuracies_and_losses_go_to_the_first_configuration_of_the_grid() -> None:
    fold = [each for each in trainings() if each.fold == 0]
    equal = [replace(fold[0], configuration=each.configuration) for each in fold]
    assert select(equal[::-1], 1)["chosen"] == [[0.01, 32, 3]]
    better = replace(equal[5], best=(*equal[5].best[:3], 1e-9, equal[5].best[4]))
    assert select([*equal[:5], better, *equal[6:]], 1)["chosen"] == [list(better.configuration)]


def test_equal_means_are_equal_whatever_the_order_of_the_sum() -> None:
    # As floats, 0.1 + 0.2 + 0.3 is more than 0.3 + 0.2 + 0.1.
    hits = {GRID[0]: (3, 2, 1), GRID[5]: (1, 2, 3)}
    none = trainings()[0]
    found = [
        replace(
            none,
            fold=fold,
            configuration=configuration,
            best=(1, 0.5, 0.5, 0.5, right / 10),
            validation_graphs=10,
            hits=(right,),
            losses=(0.5,),
            test_hits=(0,),
        )
        for configuration in GRID
        for fold, right in enumerate(hits.get(configuration, (0, 0, 0)))
    ]
    rules = {each[0]: each for each in select(found, 3)["rules"]}
    assert rules["common-validation"][4] == list(GRID[0])


@pytest.mark.parametrize("name", observed.EXPORTS)
def test_exported_models_have_the_same_tensors_and_answers(name: str, tmp_path: Path) -> None:
    with observed.trained(name) as run:
        lines = observed.GRAPHS.read_text(encoding="utf-8").splitlines()[:20]
        graphs = [json.loads(line) for line in lines]
        expected = [each.probabilities for each in run.predict(graphs)]
        for layout in observed.EXPORTS[name]:
            path = tmp_path / f"{layout}.onnx"
            found = observed.tensors(run, layout, path)
            assert not differences(found, stored("exports.json")[f"{name}, {layout}"], 0)
            for one, other in zip(expected, load(path).predict(graphs), strict=True):
                assert other.probabilities == pytest.approx(one, abs=1e-5)
            if name == "ihgnn":
                shares = [list(each.values()) for each in expected]
                assert observed.raw(path, graphs) == pytest.approx(np.array(shares), abs=1e-5)


def test_numbers_that_are_not_finite_are_refused_from_python() -> None:
    lines = observed.GRAPHS.read_text(encoding="utf-8").splitlines()
    graphs = [json.loads(line) for line in lines]
    assert len(load_dataset(graphs)) == 40
    for value in (float("nan"), float("inf"), 1e300):
        graphs[3]["node_attributes"][0][0] = value
        with pytest.raises(IhgnnError):
            load_dataset(graphs)


def test_the_readable_model_of_a_run_gives_the_answers_of_the_run(tmp_path: Path) -> None:
    import torch

    small = {"width": 4, "epochs": 2, "device": "cpu", "progress": False}
    split = f"{observed.GRAPHS_SPLIT}:0"
    run = train(observed.GRAPHS, features="attributes", split=split, out=tmp_path / "run", **small)
    model = IHGNN.from_checkpoint(run.folder)
    for line in observed.GRAPHS.read_text(encoding="utf-8").splitlines()[:8]:
        graph = json.loads(line)
        edges = torch.tensor(graph["edges"], dtype=torch.int64).reshape(-1, 2).T
        both = torch.cat([edges, edges.flip(0)], dim=1)
        with torch.no_grad():
            logits = model(torch.tensor(graph["node_attributes"]), both)
        found = run.predict([graph])[0].probabilities
        assert list(found.values()) == pytest.approx(logits.softmax(1)[0].tolist(), abs=1e-5)


def test_commands_and_options_are_those_of_the_list() -> None:
    changed = changes(observed.commands(), stored("commands.json"))
    assert not changed, f"Keep what was not meant to change; otherwise run: {REMAKE}"


def changes(found: dict[str, dict[str, str]], listed: dict[str, dict[str, str]]) -> dict[str, str]:
    """Each command and option that is new, gone or different."""
    flat = [
        {(command, key): value for command, own in each.items() for key, value in own.items()}
        for each in (found, listed)
    ]
    names = sorted(flat[0].keys() | flat[1].keys())
    return {
        " ".join(name): f"{flat[1].get(name)} -> {flat[0].get(name)}"
        for name in names
        if flat[0].get(name) != flat[1].get(name)
    }
