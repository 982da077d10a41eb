"""A split is chosen by a text."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ihgnn_cli.data.dataset import GraphDataset, LabelSource
from ihgnn_cli.data.kinds import file_readings, is_drawn
from ihgnn_cli.data.splits.folds import Fold, draw_folds, inner_folds, write_fold_file
from ihgnn_cli.data.splits.load import load_split
from ihgnn_cli.data.splits.split import Split, holdout
from ihgnn_cli.errors import InputError


def split(train: Any = (0, 1), validation: Any = (2,), test: Any = (3,)) -> Split:
    return Split(*(np.asarray(part) for part in (train, validation, test)))


def write(path: Path, *splits: Split) -> None:
    """A file of folds with one split each."""
    write_fold_file([Fold((each,)) for each in splits], path)


def dataset(graphs: int = 20) -> GraphDataset:
    """Graphs of a single node, of two classes in turn."""
    return GraphDataset(
        name="DOTS",
        node_ptr=np.arange(graphs + 1),
        neighbor_ptr=np.zeros(graphs + 1, dtype=np.int64),
        neighbors=np.zeros(0, dtype=np.int32),
        node_label=np.zeros(graphs, dtype=np.int32),
        label_values=(0,),
        label_source=LabelSource.LABELS,
        graph_class=np.arange(graphs, dtype=np.int32) % 2,
        class_values=("a", "b"),
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "folds.json"


def test_a_holdout_is_chosen_by_its_name() -> None:
    assert load_split("holdout", dataset(), 3).digest == holdout(dataset().graph_class, 3).digest


@pytest.mark.parametrize("text", ["0.6/0.1/0.3", "60/10/30", ".6/.1/.3"])
def test_shares_are_drawn_like_a_holdout(text: str) -> None:
    found = load_split(text, dataset(20), 3)
    expected = holdout(dataset(20).graph_class, 3, validation_share=0.1, test_share=0.3)
    assert found.digest == expected.digest
    assert (len(found.train), len(found.validation), len(found.test)) == (12, 2, 6)
    assert (
        load_split("0.8/0.1/0.1", dataset(), 3).digest == load_split("holdout", dataset(), 3).digest
    )


@pytest.mark.parametrize(
    "text", ["0.8/0.2", "0.8/0.1/0.2", "0.8/0.2/0", "0.8/0.3/-0.1", "0.7/0.1/0.1/0.1", "8/1/1"]
)
def test_other_shares_are_refused_in_one_line(text: str) -> None:
    with pytest.raises(InputError) as caught:
        load_split(text, dataset(), 0)
    assert str(caught.value) == (
        f"The split {text} must be the shares of train, validation and test, all above 0 and "
        "adding up to 1, such as 0.8/0.1/0.1."
    )


def test_all_graphs_may_train() -> None:
    found = load_split("all", dataset(), 0)
    assert found.train.tolist() == list(range(len(dataset())))
    assert not len(found.validation)
    assert not len(found.test)
    with pytest.raises(InputError, match="none are left for validation"):
        inner_folds(dataset().graph_class, found, 0, 1)


@pytest.mark.parametrize("number", [0, 9])
def test_a_fold_of_the_protocol_is_chosen_by_its_number(number: int) -> None:
    expected = draw_folds(dataset().graph_class, 3)[number]
    assert load_split(f"fold:{number}", dataset(), 3).digest == expected.digest


def test_a_file_of_one_fold_is_chosen_by_its_path(path: Path) -> None:
    write(path, split())
    assert load_split(str(path), dataset(4), 0).digest == split().digest
    assert load_split(f"{path}:0", dataset(4), 0).digest == split().digest


def test_a_fold_of_a_file_is_chosen_by_its_number(path: Path) -> None:
    written = draw_folds(dataset().graph_class, 5)
    write_fold_file(written, path)
    assert load_split(f"{path}:3", dataset(), 0).digest == written[3].digest


@pytest.mark.skipif(os.name == "nt", reason="file names hold no colons there")
@pytest.mark.parametrize("name", ["folds:3", r"C:\folds.json", "fold:3", "holdout"])
def test_a_file_may_be_called_anything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write(Path(name), split())
    assert load_split(f"./{name}", dataset(4), 0).digest == split().digest
    assert load_split(f"./{name}:0", dataset(4), 0).digest == split().digest


@pytest.mark.skipif(os.name == "nt", reason="file names hold no colons there")
def test_a_file_named_like_a_numbered_one_comes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(Path("mine"), split())
    other = split(validation=[3], test=[2])
    write(Path("mine:0"), other)
    assert load_split("mine:0", dataset(4), 0).digest == other.digest


def test_the_home_folder_may_be_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    write(tmp_path / "mine.json", split())
    assert load_split("~/mine.json:0", dataset(4), 0).digest == split().digest


def test_a_file_of_several_folds_needs_a_number(path: Path) -> None:
    write_fold_file(draw_folds(dataset().graph_class, 0), path)
    with pytest.raises(InputError) as caught:
        load_split(str(path), dataset(), 0)
    assert str(caught.value) == f"{path} holds 10 folds. Append :0 to :9 to choose one."


def test_a_number_beyond_the_folds_is_told_with_their_range(path: Path) -> None:
    with pytest.raises(InputError, match=r"^The protocol has no fold 10\. Its folds are 0 to 9\.$"):
        load_split("fold:10", dataset(), 0)
    write(path, split())
    with pytest.raises(InputError, match=r"folds\.json has no fold 1\. Its only fold is 0\.$"):
        load_split(f"{path}:1", dataset(4), 0)
    write_fold_file(draw_folds(dataset().graph_class, 0), path)
    with pytest.raises(InputError, match=r"folds\.json has no fold 12\. Its folds are 0 to 9\.$"):
        load_split(f"{path}:12", dataset(), 0)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Holdout",
        "fold",
        "fold:",
        "fold:x",
        "fold:-1",
        "fold:²",
        "missing.json",
        "missing.json:3",
        "missing.json:3:0",
        r"C:\missing.json",
        ":3",
        pytest.param("x" * 5000, id="long"),
        pytest.param("fold:" + "9" * 5000, id="large"),
    ],
)
def test_a_text_that_is_no_split_is_told_the_forms(text: str) -> None:
    with pytest.raises(InputError) as caught:
        load_split(text, dataset(), 0)
    assert str(caught.value) == (
        f"No split '{text}', and no file of that name. Give holdout, shares such as 0.8/0.1/0.1, "
        "fold:N or fold:N:twins (N from 0 to 9), or a fold file as FILE, FILE:N or FILE:N:I."
    )


def test_a_folder_is_no_split(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"is a folder\. Give a JSON fold file\.$"):
        load_split(str(tmp_path), dataset(), 0)


def test_a_file_of_another_data_set_is_told(path: Path) -> None:
    write(path, split())
    with pytest.raises(InputError, match=r"fold 0 .*The split may belong to another data set\.$"):
        load_split(str(path), dataset(), 0)


# Folds of several splits


ONLY = split([3], [4], [0, 1, 2])
FIRST = split([0, 1], [2], [3, 4])
SECOND = split([2], [0, 1], [3, 4])


@pytest.fixture
def several(path: Path) -> Path:
    """Two folds of five graphs: one of a single split, one of two."""
    write_fold_file([Fold((ONLY,)), Fold((FIRST, SECOND))], path)
    return path


@pytest.mark.parametrize(
    ("numbers", "expected"), [("0", ONLY), ("0:0", ONLY), ("1:0", FIRST), ("1:1", SECOND)]
)
def test_a_split_of_a_fold_is_chosen_by_its_number(
    several: Path, numbers: str, expected: Split
) -> None:
    assert load_split(f"{several}:{numbers}", dataset(5), 0).digest == expected.digest


def test_a_fold_of_several_splits_needs_a_second_number(several: Path) -> None:
    with pytest.raises(InputError) as caught:
        load_split(f"{several}:1", dataset(5), 0)
    assert str(caught.value) == (
        f"Fold 1 of {several} holds 2 splits into train and validation. "
        f"Give {several}:1:I with I from 0 to 1 to choose one."
    )


def test_the_only_fold_of_a_file_needs_numbers_where_it_has_several_splits(path: Path) -> None:
    write_fold_file([Fold((FIRST, SECOND))], path)
    with pytest.raises(InputError, match=r"^Fold 0 of .* holds 2 .*:0:I with I from 0 to 1"):
        load_split(str(path), dataset(5), 0)
    assert load_split(f"{path}:0:1", dataset(5), 0).digest == SECOND.digest


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ("0:1", r"^Fold 0 of .*folds\.json has no split 1\. Its only split is 0\.$"),
        ("1:2", r"^Fold 1 of .*folds\.json has no split 2\. Its splits are 0 to 1\.$"),
        ("2:0", r"folds\.json has no fold 2\. Its folds are 0 to 1\.$"),
    ],
)
def test_a_number_beyond_the_splits_is_told_with_their_range(
    several: Path, numbers: str, expected: str
) -> None:
    with pytest.raises(InputError, match=expected):
        load_split(f"{several}:{numbers}", dataset(5), 0)


@pytest.mark.skipif(os.name == "nt", reason="file names hold no colons there")
def test_the_longest_name_of_a_file_comes_first(
    several: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(several.parent)
    assert load_split("folds.json:1:0", dataset(5), 0).digest == FIRST.digest
    write(Path("folds.json:1"), ONLY)
    assert load_split("folds.json:1:0", dataset(5), 0).digest == ONLY.digest
    write(Path("folds.json:1:0"), SECOND)
    assert load_split("folds.json:1:0", dataset(5), 0).digest == SECOND.digest


# What a text says


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (":3", [(":3", ())]),
        ("a", [("a", ())]),
        ("a:x", [("a:x", ())]),
        ("a:3", [("a:3", ()), ("a", (3,))]),
        ("a:3:0", [("a:3:0", ()), ("a:3", (0,)), ("a", (3, 0))]),
        ("a:1:2:3", [("a:1:2:3", ()), ("a:1:2", (3,)), ("a:1", (2, 3))]),
    ],
)
def test_numbers_after_a_name_are_at_most_two(
    text: str, expected: list[tuple[str, tuple[int, ...]]]
) -> None:
    assert list(file_readings(text)) == expected


@pytest.mark.parametrize(
    ("text", "drawn"),
    [
        ("holdout", True),
        ("fold:3", True),
        ("0.7/0.1/0.2", True),
        ("all", True),
        ("./0.7/0.1/0.2", False),
        ("fold:3:0", False),
        ("./holdout", False),
        ("folds.json:3", False),
    ],
)
def test_a_split_is_drawn_or_read(text: str, drawn: bool) -> None:
    assert is_drawn(text) is drawn
