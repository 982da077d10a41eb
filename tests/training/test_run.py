"""Runs: a folder that repeats, continues and never mixes with another."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from ihgnn_cli.data.access import Access
from ihgnn_cli.errors import IhgnnError, InputError
from ihgnn_cli.files import try_lock
from ihgnn_cli.training import folder as folders
from ihgnn_cli.training import run
from ihgnn_cli.training.checkpoint import load_checkpoint
from ihgnn_cli.training.config import configure
from ihgnn_cli.training.epoch import Epoch
from ihgnn_cli.training.stack import Stack

SMALL = {"epochs": 4, "width": 4, "hidden": 8, "layers": 2, "batch_size": 64, "device": "cpu"}


def prepared(**overrides: object) -> run.Prepared:
    return run.prepare(configure(overrides={**SMALL, **overrides}))


def trained(folder: Path, **overrides: object) -> run.Outcome:
    return run.fit(run.start(prepared(**overrides), folder), folder)


def resumed(folder: Path, epochs: int | None = None) -> run.Outcome:
    again = run.prepare(folders.config_of(folder, epochs=epochs), folder=folder)
    return run.fit(again, folder)


def same_weights(one: Path, other: Path) -> bool:
    first, second = load_checkpoint(one), load_checkpoint(other)
    return str(first.epoch) == str(second.epoch) and all(  # without validation it has NaN
        torch.equal(value, second.weights[name]) for name, value in first.weights.items()
    )


def test_a_finished_run_leaves_all_its_files(tmp_path: Path) -> None:
    outcome = trained(tmp_path / "run")
    names = {path.name for path in (tmp_path / "run").iterdir()}
    assert names == {
        "config.toml",
        "splits.json",
        "metrics.jsonl",
        "ckpt.pt",
        "last.pt",
        "result.json",
        ".lock",
    }
    assert outcome.epochs == 4
    assert outcome.stopped == "epochs"
    assert outcome.test.graphs == 19
    result = folders.finished(tmp_path / "run")
    assert result is not None
    assert result["test"]["accuracy"] == outcome.test.accuracy
    assert result["provenance"]["data_sha256"] == prepared().dataset.fingerprint
    assert result["provenance"]["split_sha256"] == prepared().split.digest
    assert [each.epoch for each in folders.read_metrics(tmp_path / "run")] == [1, 2, 3, 4]


def test_the_best_epoch_is_the_most_accurate_then_the_surest_then_the_first() -> None:
    def epoch(number: int, accuracy: float, loss: float) -> Epoch:
        return Epoch(number, 0.0, 0.0, loss, accuracy)

    assert epoch(1, 0.5, 0.9).better_than(None)
    assert epoch(2, 0.6, 0.9).better_than(epoch(1, 0.5, 0.1))
    assert not epoch(2, 0.4, 0.1).better_than(epoch(1, 0.5, 0.9))
    assert epoch(2, 0.5, 0.8).better_than(epoch(1, 0.5, 0.9))
    assert not epoch(2, 0.5, 0.9).better_than(epoch(1, 0.5, 0.9))


def test_the_checkpoint_is_of_the_best_epoch_by_validation_alone(tmp_path: Path) -> None:
    outcome = trained(tmp_path / "run", epochs=12)
    history = folders.read_metrics(tmp_path / "run")
    best = max(history, key=lambda e: (e.validation_accuracy, -e.validation_loss, -e.epoch))
    assert outcome.best == best
    assert load_checkpoint(tmp_path / "run" / "ckpt.pt").epoch == best


def test_a_configuration_repeats_the_run_bit_for_bit(tmp_path: Path) -> None:
    trained(tmp_path / "one")
    config = configure(file=tmp_path / "one" / "config.toml")
    run.fit(run.start(run.prepare(config), tmp_path / "two"), tmp_path / "two")
    for name in ("config.toml", "splits.json", "metrics.jsonl"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    assert same_weights(tmp_path / "one" / "last.pt", tmp_path / "two" / "last.pt")
    assert same_weights(tmp_path / "one" / "ckpt.pt", tmp_path / "two" / "ckpt.pt")


def test_another_seed_is_another_run(tmp_path: Path) -> None:
    trained(tmp_path / "one", seed=1, split="fold:0")
    trained(tmp_path / "two", seed=2, split="fold:0")
    assert not same_weights(tmp_path / "one" / "last.pt", tmp_path / "two" / "last.pt")


def test_the_split_of_a_run_is_accepted_back(tmp_path: Path) -> None:
    trained(tmp_path / "one", seed=5)
    again = prepared(seed=6, split=str(tmp_path / "one" / "splits.json"))
    assert again.split.digest == prepared(seed=5).split.digest
    trained(tmp_path / "two", seed=6, split=str(tmp_path / "one" / "splits.json"))
    config = configure(file=tmp_path / "two" / "config.toml")
    assert run.prepare(config).split.digest == again.split.digest


@pytest.mark.parametrize("split", ["holdout", "all"])
@pytest.mark.parametrize("writes", range(9))
def test_a_run_that_dies_at_any_write_ends_as_one_that_never_did(
    writes: int, split: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "_SAVE_SECONDS", 0)
    trained(tmp_path / "whole", split=split)
    real, left = run.save_checkpoint, [writes]

    def dying(checkpoint, path) -> None:
        if not left[0]:
            raise SystemExit
        left[0] -= 1
        real(checkpoint, path)

    folder = tmp_path / "killed"
    with monkeypatch.context() as patch:
        patch.setattr(run, "save_checkpoint", dying)
        try:
            trained(folder, split=split)
        except SystemExit:
            assert folders.finished(folder) is None
    resumed(folder)
    for name in ("last.pt", "ckpt.pt"):
        assert same_weights(tmp_path / "whole" / name, folder / name)
    for name in ("metrics.jsonl", "config.toml", "splits.json"):
        assert (tmp_path / "whole" / name).read_bytes() == (folder / name).read_bytes()
    whole, after = folders.finished(tmp_path / "whole"), folders.finished(folder)
    assert whole is not None
    assert after is not None
    assert whole["test"] == after["test"]


def test_what_a_kill_left_half_written_is_gone_when_the_run_is_resumed(tmp_path: Path) -> None:
    ready = run.start(prepared(), tmp_path / "run")
    (tmp_path / "run" / ".ckpt-1-0a.part.pt").write_bytes(b"half")
    run.fit(ready, tmp_path / "run")
    assert not list((tmp_path / "run").glob(".*.part*"))


def test_more_epochs_make_of_a_finished_run_what_it_would_have_been(tmp_path: Path) -> None:
    trained(tmp_path / "short", epochs=2)
    resumed(tmp_path / "short", epochs=5)
    trained(tmp_path / "long", epochs=5)
    assert same_weights(tmp_path / "short" / "last.pt", tmp_path / "long" / "last.pt")
    with pytest.raises(InputError, match="more epochs, not fewer"):
        folders.config_of(tmp_path / "short", epochs=3)


def test_a_refused_continuation_changes_nothing(tmp_path: Path) -> None:
    trained(tmp_path / "run")
    before = {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()}
    config = folders.config_of(tmp_path / "run", epochs=9).with_values({"device": "abacus"})
    with pytest.raises(InputError, match="device"):
        run.prepare(config, folder=tmp_path / "run")
    assert before == {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()}


def test_settings_cannot_change_in_the_middle_of_a_run(tmp_path: Path) -> None:
    trained(tmp_path / "run")
    path = tmp_path / "run" / "config.toml"
    path.write_text(path.read_text().replace("lr = 0.001", "lr = 0.5"))
    with pytest.raises(InputError, match="were changed after the run had started"):
        resumed(tmp_path / "run", epochs=9)


def test_a_run_goes_on_without_the_file_of_its_best_model(tmp_path: Path) -> None:
    trained(tmp_path / "whole", epochs=6)
    trained(tmp_path / "run", epochs=3)
    (tmp_path / "run" / "ckpt.pt").unlink()
    resumed(tmp_path / "run", epochs=6)
    assert same_weights(tmp_path / "whole" / "ckpt.pt", tmp_path / "run" / "ckpt.pt")


def test_more_patience_lets_a_run_go_on(tmp_path: Path) -> None:
    first = trained(tmp_path / "run", epochs=60, patience=2)
    config = folders.config_of(tmp_path / "run", patience=0)
    again = run.fit(run.prepare(config, folder=tmp_path / "run"), tmp_path / "run")
    assert first.stopped == "patience"
    assert again.stopped == "epochs"
    trained(tmp_path / "whole", epochs=60)
    assert same_weights(tmp_path / "whole" / "last.pt", tmp_path / "run" / "last.pt")


def test_patience_stops_a_run_that_gets_no_better(tmp_path: Path) -> None:
    outcome = trained(tmp_path / "run", epochs=200, patience=3)
    assert outcome.stopped == "patience"
    assert outcome.epochs == outcome.best.epoch + 3


def test_a_folder_in_use_is_left_alone(tmp_path: Path) -> None:
    trained(tmp_path / "run")
    before = {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()}
    with pytest.raises(InputError, match="already holds a run"):
        run.start(prepared(), tmp_path / "run")
    assert before == {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()}
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("text")
    with pytest.raises(InputError, match="is not empty"):
        run.start(prepared(), tmp_path / "mine")
    (tmp_path / "file").write_text("text")
    with pytest.raises(InputError, match="is not a folder"):
        run.start(prepared(), tmp_path / "file")


def test_an_empty_folder_is_taken(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    run.start(prepared(), tmp_path / "empty")
    assert {path.name for path in tmp_path.iterdir()} == {"empty"}


def test_a_run_tells_where_its_split_came_from(tmp_path: Path) -> None:
    trained(tmp_path / "one", epochs=1)
    source = str(tmp_path / "one" / "splits.json")
    trained(tmp_path / "two", split=source, epochs=1)
    resumed(tmp_path / "two", epochs=2)
    result = folders.finished(tmp_path / "two")
    assert result is not None
    assert result["split"] == source
    snapshot = load_checkpoint(tmp_path / "two" / "ckpt.pt").card.snapshot
    assert snapshot is not None
    assert snapshot.split == source


def test_a_damaged_state_can_be_given_up(tmp_path: Path) -> None:
    trained(tmp_path / "run")
    last = tmp_path / "run" / "last.pt"
    last.write_bytes(last.read_bytes()[:500])
    with pytest.raises(InputError, match=r"Remove it, and 'ihgnn train --resume .*' starts again"):
        resumed(tmp_path / "run", epochs=5)
    last.unlink()
    resumed(tmp_path / "run", epochs=5)
    trained(tmp_path / "whole", epochs=5)
    assert same_weights(tmp_path / "whole" / "last.pt", last)


def test_folders_are_numbered(tmp_path: Path) -> None:
    assert folders.free_folder(tmp_path, "MUTAG").name == "MUTAG-1"
    (tmp_path / "MUTAG-1").mkdir()
    assert folders.free_folder(tmp_path, "MUTAG").name == "MUTAG-2"


def test_two_processes_do_not_train_in_one_folder(tmp_path: Path) -> None:
    ready = run.start(prepared(), tmp_path / "run")
    with (
        try_lock(tmp_path / "run" / ".lock"),
        pytest.raises(InputError, match="Another process is using"),
    ):
        run.fit(ready, tmp_path / "run")
    run.fit(ready, tmp_path / "run")


def test_a_folder_without_a_run_cannot_be_continued(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no run"):
        folders.config_of(tmp_path)


def test_other_data_is_not_trained_on_in_an_old_run(tmp_path: Path) -> None:
    graphs = [
        {"node_labels": ["C", "O"] if odd else ["C", "C"], "edges": [[0, 1]], "class": int(odd)}
        for odd in [True, False] * 6
    ]
    data = tmp_path / "graphs.jsonl"
    data.write_text("".join(json.dumps(each) + "\n" for each in graphs))
    trained(tmp_path / "run", dataset=str(data), epochs=1)
    data.write_text("".join(json.dumps(each) + "\n" for each in reversed(graphs)))
    with pytest.raises(InputError, match="is not the data"):
        resumed(tmp_path / "run", epochs=2)


def test_a_loss_that_is_no_number_stops_the_run(tmp_path: Path) -> None:
    with pytest.raises(IhgnnError, match=r"diverged at lr 1e\+30"):
        trained(tmp_path / "run", lr=1e30)
    assert folders.finished(tmp_path / "run") is None


def test_a_late_divergence_keeps_the_best_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Stack.train_epoch

    def diverging(stack: Stack) -> list[Epoch]:
        (epoch,) = real(stack)
        return [epoch if epoch.epoch < 3 else replace(epoch, train_loss=float("nan"))]

    monkeypatch.setattr(Stack, "train_epoch", diverging)
    with pytest.raises(IhgnnError, match=r"epoch 3 .* best model so far \(epoch \d\) is .*ckpt.pt"):
        trained(tmp_path / "run")
    best = load_checkpoint(tmp_path / "run" / "ckpt.pt").epoch
    assert best in folders.read_metrics(tmp_path / "run")


def test_numbered_folders_are_never_shared(tmp_path: Path, monkeypatch) -> None:
    real = folders.free_folder
    taken = iter([tmp_path / "MUTAG-1"])
    run.start(prepared(), tmp_path / "MUTAG-1")
    # Another process was faster, after the number was found to be free.
    monkeypatch.setattr(folders, "free_folder", lambda *a: next(taken, None) or real(*a))
    _, folder = run.start_numbered(prepared(), tmp_path, "MUTAG")
    assert folder == tmp_path / "MUTAG-2"


def test_a_full_memory_is_told_with_a_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ready = run.start(prepared(), tmp_path / "run")
    for error in (
        torch.OutOfMemoryError("CUDA out of memory"),
        RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 1 bytes"),
    ):

        def full(*_: object, error: Exception = error) -> None:
            raise error

        with monkeypatch.context() as patch:
            patch.setattr(Stack, "train_epoch", full)
            with pytest.raises(IhgnnError, match="smaller --batch-size"):
                run.fit(ready, tmp_path / "run")


def test_attributes_are_asked_for_where_there_are_none() -> None:
    with pytest.raises(InputError, match="no node attributes"):
        prepared(features="both")


@pytest.mark.parametrize("features", ["attributes", "both"])
def test_attributes_are_learned_from(features: str, tmp_path: Path, real_data: Path) -> None:
    config = configure(
        overrides={**SMALL, "dataset": "PROTEINS", "features": features, "epochs": 2}
    )
    ready = run.start(run.prepare(config, where=Access(real_data)), tmp_path / "run")
    run.fit(ready, tmp_path / "run")
    assert load_checkpoint(tmp_path / "run" / "ckpt.pt").card.attributes == 1
    first, second = folders.read_metrics(tmp_path / "run")
    assert second.train_loss < first.train_loss
