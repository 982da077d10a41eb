"""A final training uses all graphs, for as many epochs as something before it found best."""

import json
from pathlib import Path

import pytest
import torch
from torch_geometric.loader import DataLoader

from ihgnn_cli.data import load_dataset
from ihgnn_cli.data.features import Features
from ihgnn_cli.data.pyg import to_pyg
from ihgnn_cli.errors import InputError
from ihgnn_cli.inference.evaluation import evaluate
from ihgnn_cli.models.ihgnn import IHGNN
from ihgnn_cli.training import folder as folders
from ihgnn_cli.training import run
from ihgnn_cli.training.checkpoint import load_checkpoint
from ihgnn_cli.training.classifier import load_torch
from ihgnn_cli.training.config import RunConfig, configure, write_config
from ihgnn_cli.training.devices import resolve_device
from ihgnn_cli.training.final import asks_for_final, final_config
from ihgnn_cli.training.in_memory import fit_in_memory

SMALL = {"width": 4, "hidden": 8, "layers": 1, "batch_size": 64, "device": "cpu"}


def trained(folder: Path, epochs: int) -> run.Outcome:
    config = final_config(configure(overrides=SMALL), epochs=epochs)
    return run.fit(run.start(run.prepare(config), folder), folder)


def test_all_graphs_train_and_the_last_epoch_is_kept(tmp_path: Path) -> None:
    outcome = trained(tmp_path / "run", 3)
    assert (outcome.best.epoch, outcome.test) == (3, None)
    assert folders.finished(tmp_path / "run") == outcome.result
    assert outcome.result["train"]["graphs"] == 188
    assert (
        json.loads((tmp_path / "run" / "metrics.jsonl").read_text().splitlines()[0])[
            "validation_loss"
        ]
        is None
    )
    assert [each.epoch for each in folders.read_metrics(tmp_path / "run")] == [1, 2, 3]
    card = load_checkpoint(tmp_path / "run" / "ckpt.pt").card
    assert str(card.snapshot) == "epoch 3, the last one; split all; one run, seed 0"


def test_the_kept_model_has_the_statistics_of_its_training_graphs(tmp_path: Path) -> None:
    config, folder = configure(overrides={**SMALL, "batch_size": 188}), tmp_path / "run"
    run.fit(run.start(run.prepare(final_config(config, epochs=3)), folder), folder)
    kept = load_checkpoint(folder / "ckpt.pt").weights
    in_memory = fit_in_memory(config.with_values({"epochs": 3}), load_dataset("MUTAG")).checkpoint
    assert all(torch.equal(kept[name], value) for name, value in in_memory.weights.items())
    # By hand, in one batch of all graphs.
    model = IHGNN.from_checkpoint(folder / "ckpt.pt")
    norms = [each for each in model.modules() if isinstance(each, torch.nn.BatchNorm1d)]
    statistics = [(each.running_mean.clone(), each.running_var.clone()) for each in norms]
    read: list[torch.Tensor] = []
    for norm in norms:
        norm.register_forward_pre_hook(lambda _, rows: read.append(rows[0]))
    (batch,) = DataLoader(to_pyg(load_dataset("MUTAG"), Features.LABELS), batch_size=188)
    with torch.no_grad():
        model.train()(batch.x, batch.edge_index, batch.batch)
    assert len(read) == len(norms) == 2
    for (mean, variance), rows in zip(statistics, read, strict=True):
        torch.testing.assert_close(mean, rows.mean(0))
        torch.testing.assert_close(variance, rows.var(0))


def test_a_final_training_is_continued_like_another(tmp_path: Path) -> None:
    whole = trained(tmp_path / "whole", 3)
    trained(tmp_path / "parts", 2)
    config = folders.config_of(tmp_path / "parts", epochs=3)
    again = run.fit(run.prepare(config, folder=tmp_path / "parts"), tmp_path / "parts")
    assert [each.train_loss for each in again.history] == [
        each.train_loss for each in whole.history
    ]
    one, other = (load_checkpoint(tmp_path / name / "ckpt.pt") for name in ("whole", "parts"))
    assert all(torch.equal(value, other.weights[name]) for name, value in one.weights.items())


def test_its_training_graphs_are_evaluated_unless_a_part_is_named(tmp_path: Path) -> None:
    trained(tmp_path, 1)
    classifier = load_torch(tmp_path / "ckpt.pt", resolve_device("cpu"))
    dataset = run.prepare(folders.config_of(tmp_path), folder=tmp_path).dataset
    found = evaluate(classifier, dataset)
    assert (found.part, found.trained_on, found.metrics.graphs) == ("all", 188, 188)
    with pytest.raises(InputError, match="has no test graphs: it was trained on all graphs"):
        evaluate(classifier, dataset, "test")


@pytest.mark.parametrize(
    ("name", "result", "expected"),
    [
        ("config.toml", {"best_epoch": 7}, 7),
        ("best.toml", {"test_mean": 0.5}, 350),  # of a cross-validation: the file says it
        ("mine.toml", {"best_epoch": 7}, 350),
        ("mine.toml", None, 350),
        ("config.toml", None, None),  # of an unfinished run
    ],
)
def test_the_number_of_epochs_is_that_of_the_run_or_search_that_wrote_the_file(
    tmp_path: Path, name: str, result: dict[str, object] | None, expected: int | None
) -> None:
    write_config(RunConfig(), tmp_path / name)
    (tmp_path / "splits.json").touch()
    if result is not None:
        (tmp_path / "result.json").write_text(json.dumps(result))
    if expected is None:
        with pytest.raises(InputError, match=r"not finished.*Finish it, or give .*--epochs"):
            final_config(RunConfig(), file=tmp_path / name)
        return
    assert final_config(RunConfig(), file=tmp_path / name).training.epochs == expected
    assert final_config(RunConfig(), epochs=3, file=tmp_path / name).training.epochs == 3


def test_the_best_toml_of_a_tune_needs_the_result_of_its_settings(tmp_path: Path) -> None:
    file = tmp_path / "best.toml"
    write_config(configure(overrides={"lr": 0.1, "layers": 4}), file)
    (tmp_path / "tune.json").write_text('{"command": "ihgnn tune"}')
    with pytest.raises(InputError, match=r"--epochs. Its search .* ihgnn tune$"):
        final_config(RunConfig(), file=file)
    params = {"lr": 0.1, "layers": 4}
    for result in (None, {"best": None}, {"best": {"params": {**params, "lr": 0.2}}}):
        if result is not None:  # the last one is from before more trials
            (tmp_path / "result.json").write_text(
                json.dumps({**result, "final": {"best_epoch": 9}})
            )
        with pytest.raises(
            InputError, match=r"best\.toml belongs to a run or tune that is not fin"
        ):
            final_config(RunConfig(), file=file)
        assert final_config(RunConfig(), epochs=3, file=file).training.epochs == 3
    done = {"best": {"params": params}, "final": {"best_epoch": 9}}
    (tmp_path / "result.json").write_text(json.dumps(done))
    assert final_config(RunConfig(), file=file).training.epochs == 9
    (tmp_path / "result.json").write_text("{")
    with pytest.raises(InputError, match=r"result\.json cannot be read"):
        final_config(RunConfig(), file=file)


def test_patience_of_a_file_is_left_out_and_given_patience_refused() -> None:
    patient = configure(overrides={"patience": 5})
    assert final_config(patient, epochs=2).training.patience == 0
    with pytest.raises(InputError, match="Leave out --patience"):
        asks_for_final({"patience": 5}, final=True)
    with pytest.raises(InputError, match="Leave out --split"):
        asks_for_final({"split": "fold:1"}, final=True)
    with pytest.raises(InputError, match="patience must be 0 if all graphs train"):
        run.prepare(configure(overrides={"split": "all", "patience": 5}))


def test_the_split_all_asks_for_a_final_training() -> None:
    given = {"split": "all", "lr": 0.1}
    assert asks_for_final(given, final=False)
    assert given == {"lr": 0.1}
    assert not asks_for_final({"split": "holdout"}, final=False)
