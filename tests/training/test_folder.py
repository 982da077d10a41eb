"""The folder of a run: what is wrong with it is told in words."""

from pathlib import Path

import pytest

from ihgnn_cli.data import load_dataset
from ihgnn_cli.data.splits import holdout
from ihgnn_cli.errors import IhgnnError, InputError
from ihgnn_cli.training import folder as folders
from ihgnn_cli.training.config import RunConfig


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folders.make(RunConfig(), holdout(load_dataset("MUTAG").graph_class, 0), tmp_path / "run")
    return tmp_path / "run"


def test_a_run_begins_with_its_configuration_and_its_split(run: Path) -> None:
    assert {each.name for each in run.iterdir()} == {"config.toml", "splits.json"}
    assert folders.config_of(run) == RunConfig()
    assert [each.name for each in run.parent.iterdir()] == ["run"]


def test_a_run_without_its_split_is_not_whole(run: Path) -> None:
    (run / "splits.json").unlink()
    with pytest.raises(InputError, match=r"not a complete run \(splits.json is missing\)"):
        folders.config_of(run)


def test_a_run_that_saved_nothing_is_discarded_and_any_other_kept(run: Path) -> None:
    (run / "last.pt").touch()
    folders.discard_unbegun(run)
    assert run.exists()
    (run / "last.pt").unlink()
    folders.discard_unbegun(run)
    assert not run.exists()


def test_settling_changes_the_configuration_and_takes_back_the_result(run: Path) -> None:
    (run / "result.json").write_text("{}")
    config = folders.config_of(run, epochs=400, patience=7)
    assert folders.config_of(run).training.epochs == 350  # asking has changed nothing
    folders.settle(config, run)
    assert folders.config_of(run) == config
    assert not (run / "result.json").exists()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"test": 3}', '{"test": {"accuracy": "x"}}'])
def test_a_damaged_result_is_refused_with_a_remedy(run: Path, text: str) -> None:
    (run / "result.json").write_text(text)
    with pytest.raises(InputError, match=r"Remove it, and 'ihgnn train --resume .*' finishes"):
        folders.finished(run)


@pytest.mark.parametrize(
    ("text", "said"), [(None, "Cannot read"), ("{}\n", "damaged"), ("x", "dam")]
)
def test_metrics_that_cannot_be_read_are_told(run: Path, text: str | None, said: str) -> None:
    if text is not None:
        (run / "metrics.jsonl").write_text(text)
    with pytest.raises(InputError, match=said):
        folders.read_metrics(run)


def test_a_place_that_cannot_hold_a_run_is_a_failure(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    split = holdout(load_dataset("MUTAG").graph_class, 0)
    with pytest.raises(IhgnnError, match="Cannot write"):
        folders.make(RunConfig(), split, tmp_path / "file" / "run")


@pytest.mark.parametrize("name", ["ckpt.pt", "last.pt", "config.toml", "../run/result.json"])
def test_no_output_replaces_a_file_of_the_model(tmp_path: Path, name: str) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / "ckpt.pt").touch()
    for model in (run, run / "ckpt.pt"):
        with pytest.raises(InputError, match="belongs to the model"):
            folders.refuse_own([run / name], model)
    folders.refuse_own([run / "answers.csv", tmp_path / "ckpt.pt"], run)
    with pytest.raises(InputError, match="belongs to the model"):
        folders.refuse_own([tmp_path / "model.json"], tmp_path / "model.onnx")
