"""Commands with models that cannot be: told before anything is written."""

from pathlib import Path

import pytest

from ihgnn_cli.cli.app import app
from ihgnn_cli.errors import IhgnnError


def refused(*args: str) -> tuple[str, int]:
    """What a command says, and its exit code."""
    with pytest.raises(IhgnnError) as caught:
        app([*args], standalone_mode=False)
    return str(caught.value), caught.value.exit_code


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where commands are started."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--set", "learn_eps=2"], "learn_eps must be true or false, not '2'"),
        (["--set", "learn_eps"], "--set takes NAME=VALUE, not 'learn_eps'"),
        (["--variant", "full"], "--variant is a setting of ihgnn, not of gin"),
        (["--recipe", "authors"], "The model gin has no recipe authors"),
        (["--weight-decay", "-1"], "--weight-decay must be a finite number from 0, not -1"),
        (["--resume", "run"], "--model"),
    ],
)
def test_what_a_model_cannot_have_is_no_training(folder: Path, args: list[str], said: str) -> None:
    told, code = refused("train", "--model", "gin", *args)
    assert said in told
    assert code == 2
    assert not list(folder.iterdir())


@pytest.mark.parametrize("command", ["train", "crossval", "tune"])
def test_a_model_that_does_not_fit_in_memory_is_not_begun(folder: Path, command: str) -> None:
    told, code = refused(command, "--model", "gin", "--set", "width=2000000", "--device", "cpu")
    assert told.startswith("GIN does not fit in memory: on MUTAG (up to 28 nodes per graph, ")
    assert code == 1
    assert not list(folder.iterdir())


@pytest.mark.parametrize("command", ["train", "crossval", "tune"])
def test_a_model_that_is_not_there_is_refused_with_a_hint(folder: Path, command: str) -> None:
    assert refused(command, "--model", "gim") == ("No model 'gim'. Did you mean gin?", 2)
    assert not list(folder.iterdir())


@pytest.mark.parametrize(
    ("command", "text", "said"),
    [
        ("crossval", "learn_eps=maybe", "learn_eps must be true or false, not 'maybe'"),
        ("crossval", "width=8,8", "width names 8 twice"),
        ("crossval", "variant=full", "variant is a setting of ihgnn, not of gin"),
        ("tune", "learn_eps", "--set takes NAME=SPACE"),
        ("tune", "learn_eps=maybe", "learn_eps must be a list, each true or false"),
        ("tune", "variant=full", "The model gin has no setting variant"),
    ],
)
def test_lists_that_a_model_cannot_have_are_refused(
    folder: Path, command: str, text: str, said: str
) -> None:
    told, code = refused(command, "--model", "gin", "--set", text)
    assert said in told
    assert code == 2
    assert not list(folder.iterdir())


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["table2", "--models", "gin:no-concat"], "Ablations are ihgnn:no-integration"),
        (["table1", "--models", "gim"], "No model 'gim'. Did you mean gin?"),
        (["table1", "--models", "ihgnn", "-d", "MUTAG,MUTAGG"], "Did you mean MUTAG"),
        (["table1", "--models", "ihgnn", "-d", "synthetic:graphs=x"], "graphs"),
        (["figure1", "--models", "gin"], "figure1 shows data sets only"),
        (["figure1", "-d", "MUTAGG"], "Did you mean MUTAG"),
        (["homophily-sweep", "-d", "MUTAG"], "generates its own data sets"),
        (["table1", "-d", ","], "--datasets is empty"),
        (["table1", "--models", ""], "--models is empty"),
        (["table1", "--models", "ihgnn", "-d", "MUTAG", "--device", "tpu"], "Use auto, cpu, cuda"),
        (["table1", "--models", "ihgnn", "-d", "MUTAG", "--seed", "-1"], "seed must be from 0"),
    ],
)
def test_reproductions_that_cannot_be_are_told_before_anything_is_trained(
    folder: Path, args: list[str], said: str
) -> None:
    told, code = refused("reproduce", *args)
    assert said in told
    assert code == 2
    assert not list(folder.iterdir())
