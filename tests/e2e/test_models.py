"""Models other than IHGNN from the shell: listed, trained, resumed, used, compared, searched."""

import json
import shutil
import tomllib
from pathlib import Path

import pytest
import torch
from refusals import assert_refused
from tuned import rows

SMALL = ("--model", "gin", "--layers", "1", "--width", "8", "--device", "cpu", "-q")


def test_one_model_is_described_and_an_unknown_one_refused(ihgnn) -> None:
    assert json.loads(ihgnn("models", "--json").stdout)["broken"] == {}
    result = ihgnn("models", "gin")
    assert result.returncode == 0, result.stderr
    for token in ("GIN", "2019", "learn_eps", "16, 32, 64"):
        assert token in result.stdout
    assert_refused(ihgnn("models", "gim"), 2, "'gim'", "gin")


def trained(folder: Path, epochs: int) -> Path:
    """GIN-eps of MUTAG."""
    from ihgnn_cli.cli.app import app

    args = ["--set", "learn_eps=true", "--epochs", str(epochs), "--out", str(folder)]
    app(["train", *SMALL, *args], standalone_mode=False)
    return folder


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """After two epochs."""
    return trained(tmp_path_factory.mktemp("gin") / "run", 2)


def test_a_training_is_resumed_to_what_it_would_have_been(ihgnn, tmp_path, run: Path) -> None:
    folder = shutil.copytree(run, tmp_path / "run")
    config = tomllib.loads((folder / "config.toml").read_text(encoding="utf-8"))
    assert config["model"]["name"] == "gin"
    assert config["model"]["learn_eps"] is True
    resumed = ihgnn("train", "--resume", folder, "--epochs", "4", "--json", "-q")
    assert resumed.returncode == 0, resumed.stderr
    whole = trained(tmp_path / "whole", 4) / "result.json"
    ours, theirs = json.loads(resumed.stdout), json.loads(whole.read_text(encoding="utf-8"))
    for key in ("best_epoch", "epochs", "validation", "test"):
        assert ours[key] == theirs[key]
    weights = [
        torch.load(each / "ckpt.pt", weights_only=True)["weights"]
        for each in (folder, tmp_path / "whole")
    ]
    assert all(torch.equal(each, weights[1][name]) for name, each in weights[0].items())


def test_its_checkpoint_is_evaluated_and_predicts(ihgnn, tmp_path, run: Path) -> None:
    told = json.loads((run / "result.json").read_text(encoding="utf-8"))
    evaluated = json.loads(ihgnn("evaluate", run / "ckpt.pt", "--model", "gin", "--json").stdout)
    assert evaluated["model_name"] == "gin"
    other = ihgnn("evaluate", run / "ckpt.pt", "--model", "pgcn")
    assert_refused(other, 2, "gin", "pgcn")
    assert evaluated["accuracy"] == pytest.approx(told["test"]["accuracy"])
    predicted = ihgnn("predict", run / "ckpt.pt", "MUTAG", "--json")
    assert predicted.returncode == 0, predicted.stderr
    answers = [json.loads(line) for line in predicted.stdout.splitlines()]
    assert [each["graph"] for each in answers] == list(range(188))
    assert {each["class"] for each in answers} == {"-1", "1"}
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("thread_workers")
def test_a_model_is_cross_validated_over_lists_of_its_own_settings(ihgnn) -> None:
    result = ihgnn(
        *("crossval", "--model", "pgcn", "--lr", "0.01", "--batch-size", "64", "--layers", "1"),
        *("--set", "width=4", "--set", "operator=adjacency", "--folds", "2"),
        *("--set", "readout=funnel,restricted-funnel"),
        *("--runs", "1", "--epochs", "2", "--workers", "1", "--device", "cpu", "--json", "-q"),
    )
    assert result.returncode == 0, result.stderr
    told = json.loads(result.stdout)
    assert told["model"] == "pgcn"
    assert told["models"] == 2 * 2 + 2
    for fold in told["folds"]:
        assert fold["configuration"]["readout"] in {"funnel", "restricted-funnel"}
        assert fold["configuration"]["width"] == 4


@pytest.mark.usefixtures("thread_workers")
def test_a_model_is_searched_and_its_best_settings_train_it(ihgnn, tmp_path) -> None:
    result = ihgnn(
        *("tune", "--model", "gin", "--trials", "2", "--epochs", "2", "--width", "4,8"),
        *("--set", "learn_eps=true,false", "--layers", "1", "--inner-folds", "2", "--workers", "1"),
        *("--device", "cpu", "--out", "search", "--json", "-q"),
    )
    assert result.returncode == 0, result.stderr
    assert "Warning" not in result.stderr
    told = json.loads(result.stdout)
    assert {"width", "learn_eps", "dropout", "batch_size", "lr"} == set(told["best"]["params"])
    assert len(rows(tmp_path / "search")) == 2
    best = tomllib.loads((tmp_path / "search" / "best.toml").read_text(encoding="utf-8"))
    assert best["model"]["name"] == "gin"
    assert best["model"]["layers"] == 1
    assert best["model"]["learn_eps"] is told["best"]["params"]["learn_eps"]
