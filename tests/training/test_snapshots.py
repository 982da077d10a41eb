"""Ensembles: which epochs are kept, how members are trained, and what survives a kill."""

from pathlib import Path

import numpy as np
import pytest
import torch

from ihgnn_cli.data import load_dataset
from ihgnn_cli.errors import InputError
from ihgnn_cli.models.card import inputs_of
from ihgnn_cli.training import folder as folders
from ihgnn_cli.training import run
from ihgnn_cli.training.checkpoint import load_checkpoint
from ihgnn_cli.training.classifier import load_torch
from ihgnn_cli.training.cohort import Cohort, new_cohort
from ihgnn_cli.training.config import RunConfig, TrainingSettings, configure
from ihgnn_cli.training.epoch import Epoch
from ihgnn_cli.training.final import final_config
from ihgnn_cli.training.in_memory import fit_in_memory
from ihgnn_cli.training.kinds import Recipe
from ihgnn_cli.training.loading import store_for
from ihgnn_cli.training.snapshots import fewer_snapshots, snapshot_epochs
from ihgnn_cli.training.stack import Member, Stack

CPU = torch.device("cpu")
SMALL = {"epochs": 4, "width": 4, "hidden": 8, "layers": 1, "batch_size": 64, "device": "cpu"}
ENSEMBLE = {**SMALL, "ensemble": 2, "snapshots": 2, "equal_batches": True}
NONE = np.empty(0, dtype=np.int64)


def trained(folder: Path, **settings: object) -> run.Outcome:
    prepared = run.prepare(configure(overrides=settings))
    return run.fit(run.start(prepared, folder), folder)


def cohort_of(members: list[Member], **settings: object) -> Cohort:
    config, data = configure(overrides={**SMALL, **settings}), load_dataset("MUTAG")
    store = store_for(config, data, data.max_nodes, CPU)
    return new_cohort(config, inputs_of(data, config.data.features), store, members)


@pytest.mark.parametrize(
    ("epochs", "count", "expected"),
    [
        (100, 10, (11, 21, 31, 41, 51, 60, 70, 80, 90, 100)),
        (20, 4, (3, 9, 14, 20)),
        (4, 10, (1, 2, 3, 4)),
        (100, 1, (100,)),
        (1, 3, (1,)),
        (100, 0, ()),
    ],
)
def test_snapshots_are_spread_over_all_but_the_first_tenth(
    epochs: int, count: int, expected: tuple[int, ...]
) -> None:
    assert snapshot_epochs(epochs, count) == expected


@pytest.mark.parametrize(
    ("graphs", "expected"),
    [(75, 100), (170, 100), (276, 89), (900, 28), (1002, 25), (1060, 24), (4500, 20)],
)
def test_the_robust_recipe_takes_about_800_steps(graphs: int, expected: int) -> None:
    assert configure(Recipe.ROBUST).training.epochs_for(graphs) == expected


def test_given_epochs_replace_the_steps_of_a_recipe() -> None:
    config = configure(Recipe.ROBUST, overrides={"epochs": 7}).with_epochs(1000)
    assert (config.training.epochs, config.training.steps) == (7, 0)
    assert RunConfig().with_epochs(1000) == RunConfig()
    both = RunConfig().with_values({"steps": 9, "epochs": 7}).training
    assert (both.epochs, both.steps) == (7, 9)  # as in a file of all settings


def test_members_have_the_seeds_from_the_given_one_on() -> None:
    training = TrainingSettings(seed=5, ensemble=3, snapshots=4)
    assert training.seeds == (5, 6, 7)
    assert training.members == 12
    for several in ({"ensemble": 2}, {"snapshots": 1}):
        with pytest.raises(InputError, match="patience must be 0"):
            TrainingSettings(**several, patience=3)


def sizes(stack: Stack) -> list[list[int]]:
    """Graphs in each batch of each member."""
    starts, ends = stack._bounds([member.train for member in stack.members])
    return (ends - starts).T.tolist()


def test_equal_batches_differ_by_at_most_one_graph() -> None:
    members = [Member(seed, 0.01, np.arange(size), NONE) for seed, size in ((0, 70), (1, 65))]
    stack = cohort_of(members, batch_size=32, equal_batches=True).stack
    assert sizes(stack) == [[23, 23, 24], [21, 22, 22]]
    stack = cohort_of(members, batch_size=32).stack
    assert sizes(stack) == [[32, 32, 6], [32, 32, 1]]


def test_refreshed_statistics_are_those_of_the_training_graphs() -> None:
    graphs = np.arange(30)
    cohort = cohort_of([Member(0, 0.01, graphs, NONE)], batch_size=30)
    stack = cohort.stack
    stack.train_epoch()
    stack.refresh_statistics()
    model = stack.model
    with torch.no_grad():  # one batch: its statistics are all there are
        model.embed(stack.store.batch([graphs]).rows)
    mean, _ = model.input.norm.seen
    torch.testing.assert_close(model.input.norm.running_mean, mean)


def test_an_ensemble_keeps_every_snapshot_of_every_member(tmp_path: Path) -> None:
    outcome = trained(tmp_path / "run", **ENSEMBLE, lr=0.3)  # validation is best before the end
    checkpoint = load_checkpoint(tmp_path / "run" / "ckpt.pt")
    assert checkpoint.members == 4
    assert checkpoint.card.snapshot.seeds == (0, 1)
    assert "mean of 2 snapshots up to epoch 4, none chosen" in str(checkpoint.card.snapshot)
    assert len(outcome.members_test) == 4
    assert outcome.result["snapshots"] == [1, 4]
    assert outcome.result["chosen_by"].startswith("nothing")
    classifier = load_torch(tmp_path / "run" / "ckpt.pt", CPU)
    data, graphs = load_dataset("MUTAG"), checkpoint.card.split.validation
    answers = classifier.probabilities(data, graphs).argmax(axis=1)
    assert outcome.best.validation_accuracy == np.mean(answers == data.graph_class[graphs])
    again = final_config(configure(), file=tmp_path / "run" / "config.toml")
    assert (outcome.result["best_epoch"], again.training.epochs) == (4, 4)
    assert not (tmp_path / "run" / "snapshots").exists()


def test_a_member_is_trained_as_it_would_be_alone(tmp_path: Path) -> None:
    trained(tmp_path / "both", **ENSEMBLE)
    split = str(tmp_path / "both" / "splits.json")
    trained(tmp_path / "second", **{**ENSEMBLE, "ensemble": 1, "seed": 1, "split": split})
    both, second = (load_checkpoint(tmp_path / name / "ckpt.pt") for name in ("both", "second"))
    for name, weight in second.weights.items():
        torch.testing.assert_close(both.weights[name][1::2], weight, rtol=1e-3, atol=1e-4)


class KilledError(Exception):
    """Stands for a kill."""


@pytest.mark.parametrize("at", [1, 3])
def test_a_killed_ensemble_ends_with_the_same_weights(tmp_path: Path, at: int, monkeypatch) -> None:
    trained(tmp_path / "whole", **ENSEMBLE)
    monkeypatch.setattr(run, "_SAVE_SECONDS", 0.0)

    def kill(epoch: Epoch, _best: Epoch | None) -> None:
        if epoch.epoch == at:
            raise KilledError

    prepared = run.prepare(configure(overrides=ENSEMBLE))
    with pytest.raises(KilledError):
        run.fit(run.start(prepared, tmp_path / "cut"), tmp_path / "cut", kill)
    config = folders.config_of(tmp_path / "cut")
    run.fit(run.prepare(config, folder=tmp_path / "cut"), tmp_path / "cut")
    whole, cut = (load_checkpoint(tmp_path / name / "ckpt.pt") for name in ("whole", "cut"))
    assert all(torch.equal(cut.weights[name], each) for name, each in whole.weights.items())


def test_a_run_with_snapshots_takes_no_more_epochs(tmp_path: Path) -> None:
    trained(tmp_path / "run", **ENSEMBLE)
    with pytest.raises(InputError, match="spaced over its 4 epochs"):
        folders.config_of(tmp_path / "run", epochs=9)


def test_members_without_snapshots_keep_their_own_best_epoch(tmp_path: Path) -> None:
    outcome = trained(tmp_path / "run", **{**ENSEMBLE, "snapshots": 0})
    checkpoint = load_checkpoint(tmp_path / "run" / "ckpt.pt")
    assert checkpoint.members == len(outcome.members_test) == 2
    assert checkpoint.card.snapshot.chosen


def test_training_in_memory_keeps_the_same_members(tmp_path: Path) -> None:
    data = load_dataset("MUTAG")
    fitted = fit_in_memory(configure(overrides={**ENSEMBLE, "inputs": "degree"}), data)
    assert fitted.checkpoint.members == 4
    assert fitted.checkpoint.card.attributes == 2
    assert len(fitted.history) == 4
    trained(tmp_path / "run", **ENSEMBLE, inputs="degree", split="all")
    kept = load_checkpoint(tmp_path / "run" / "ckpt.pt").weights
    assert all(torch.equal(kept[name], each) for name, each in fitted.checkpoint.weights.items())


def test_too_few_epochs_for_the_snapshots_are_told() -> None:
    robust = configure(Recipe.ROBUST, overrides={"epochs": 5}).training
    assert fewer_snapshots(robust) == "10 snapshots do not fit in 5 epochs: 5 are averaged."
    assert fewer_snapshots(configure(Recipe.ROBUST).training) is None
    assert fewer_snapshots(configure().training) is None
