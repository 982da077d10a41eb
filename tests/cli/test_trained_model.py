"""What commands say about a trained model: an unfinished run, and what its validation chose."""

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ihgnn_cli.cli.app import app
from ihgnn_cli.errors import InputError

SETS = ("--conformal", "0.1")


def call(*args: object) -> tuple[str, str]:
    """Standard output and standard error, each on one line."""
    done = CliRunner().invoke(app, [*map(str, args)])
    assert done.exit_code == 0, done.output
    return " ".join(done.stdout.split()), " ".join(done.stderr.split())


@pytest.fixture
def run(mutag_model, tmp_path: Path) -> Path:
    return Path(shutil.copytree(mutag_model.run, tmp_path / "run"))


def test_an_unfinished_run_is_named_with_the_command_that_finishes_it(run: Path) -> None:
    assert "not finished" not in call("evaluate", run)[1]
    (run / "result.json").unlink()
    said = call("evaluate", run)[1]
    assert "not finished, and this is its best model so far. Finish it with: ihgnn train" in said
    assert f"--resume {run}" in said
    (run / "ckpt.pt").unlink()
    with pytest.raises(InputError, match=f"not finished: ihgnn train --resume {run}"):
        app(["evaluate", str(run)], standalone_mode=False)


@pytest.mark.parametrize("args", [["evaluate"], ["export"], ["predict", "MUTAG"]])
def test_an_unfinished_search_is_named_with_the_command_that_continues_it(
    tmp_path: Path, args: list[str]
) -> None:
    (tmp_path / "tune.json").write_text(json.dumps({"command": "ihgnn tune MUTAG"}))
    command, *data = args
    with pytest.raises(InputError, match=r"search is not finished.*: ihgnn tune MUTAG$"):
        app([command, str(tmp_path), *data], standalone_mode=False)


def test_a_resumed_training_says_where_it_continues(run: Path) -> None:
    _, said = call("train", "--resume", run, "--epochs", "6")
    assert "Continuing after epoch 5." in said
    (run / "result.json").unlink()
    (run / "last.pt").unlink()
    _, said = call("train", "--resume", run)
    assert "training graphs" in said
    assert "Continuing" not in said


def test_every_calibration_names_what_the_same_graphs_chose(run: Path, tmp_path: Path) -> None:
    search = tmp_path / "search"
    trial = Path(shutil.copytree(run, search / "trial-7"))
    (search / "tune.json").write_text("{}")
    for model, chosen in ((run, "the epoch"), (trial, "the settings and the epoch")):
        caution = f"The same graphs chose {chosen}, so coverage can be below"
        assert caution in call("evaluate", model, *SETS)[0]
        assert caution in call("predict", model, "MUTAG", *SETS)[1]
        target = tmp_path / f"{model.name}.onnx"
        assert caution in call("export", model, target, *SETS, "--no-verify")[0]
        told = json.loads(call("evaluate", model, *SETS, "--json")[0])
        assert told["conformal"]["also_chosen"] == chosen
    done = call("export", run, tmp_path / "b.onnx", *SETS, "--no-verify", "--json")[0]
    assert json.loads(done)["also_chosen"] == "the epoch"


def test_the_screen_of_a_training_has_balanced_accuracy_and_roc_auc(run: Path) -> None:
    test = json.loads((run / "result.json").read_text())["test"]
    shown, _ = call("train", "--resume", run)  # finished: it is shown again
    assert f"ROC-AUC {test['roc_auc']:.3f}" in shown
    assert f"balanced accuracy {test['balanced_accuracy']:.1%}" in shown


def test_an_export_says_at_once_what_takes_long(run: Path, tmp_path: Path) -> None:
    assert "Exporting IHGNN ..." in call("export", run, tmp_path / "a.onnx", "--no-verify")[1]
