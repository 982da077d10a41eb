"""Distillation: what a student learns from, and that its run is like any other."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import ihgnn_cli
from ihgnn_cli.api.distill import student_config
from ihgnn_cli.data import load_dataset
from ihgnn_cli.data.splits.split import Split
from ihgnn_cli.errors import InputError
from ihgnn_cli.training import run as runs
from ihgnn_cli.training.classifier import load_torch
from ihgnn_cli.training.config import RunConfig, configure, read_config, refuse_teacher
from ihgnn_cli.training.teacher import Teacher, read_teacher

SMALL = {"width": 4, "hidden": 8, "layers": 1, "epochs": 4, "device": "cpu"}
CPU = torch.device("cpu")


def graphs(*places: int) -> np.ndarray:
    return np.array(places, dtype=np.int64)


def test_targets_are_the_teacher_s_probabilities_mixed_with_the_labels() -> None:
    split = Split(graphs(0, 2), graphs(1), graphs(3))
    teacher = Teacher("t", 2, np.array([[0.8, 0.2], [0.5, 0.5]]), np.array([[0.1, 0.9]]))
    truth = np.array([1, 0, 0, 1])
    expected = [[0.8, 0.2], [0, 0], [0.5, 0.5], [0, 0]]  # none for graphs that do not train
    np.testing.assert_allclose(teacher.targets(truth, split, 0.0), expected, rtol=1e-6)
    mixed = [[0.6, 0.4], [0, 0], [0.625, 0.375], [0, 0]]
    np.testing.assert_allclose(teacher.targets(truth, split, 0.25), mixed, rtol=1e-6)
    taught = teacher.beside(np.array([[0.7, 0.3]]), np.array([1]))
    assert (taught.teacher_accuracy, taught.agreement) == (1, 0)


@pytest.fixture(scope="module")
def ensemble(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "ensemble"
    asked = {**SMALL, "ensemble": 2, "snapshots": 2, "label_smoothing": 0.1, "seed": 5}
    ihgnn_cli.train("MUTAG", out=folder, progress=False, **asked)
    return folder


def test_a_student_has_the_graphs_of_the_ensemble_and_learns_its_probabilities(
    ensemble: Path, tmp_path: Path
) -> None:
    student = ihgnn_cli.distill(ensemble, seed=9, epochs=150, out=tmp_path / "s", progress=False)
    teacher, learned = (load_torch(each / "ckpt.pt", CPU) for each in (ensemble, student.folder))
    assert learned.members == 1
    assert learned.card.split.digest == teacher.card.split.digest  # although the seed differs
    train, data = teacher.card.split.train, load_dataset("MUTAG")
    theirs, ours = (each.probabilities(data, train)[:, 1] for each in (teacher, learned))
    # Four epochs left the ensemble unsure; a student of the classes would be far from it.
    assert np.abs(theirs - data.graph_class[train]).mean() > 0.2
    assert np.abs(theirs - ours).mean() < 0.1
    told = student.result["teacher"]
    test = teacher.card.split.test
    right = teacher.probabilities(data, test).argmax(1) == data.graph_class[test]
    assert (told["members"], told["teacher_accuracy"]) == (4, pytest.approx(right.mean()))
    assert 0 <= told["agreement"] <= 1
    assert student.result["chosen_by"] == "nothing: the last epoch"


def test_an_interrupted_student_ends_with_the_same_weights_without_its_teacher(
    ensemble: Path, tmp_path: Path
) -> None:
    whole = ihgnn_cli.distill(ensemble, out=tmp_path / "whole", progress=False)

    class StopError(Exception):
        pass

    def stop(epoch: object, _best: object) -> None:
        if epoch.epoch == 2:  # type: ignore[attr-defined]
            raise StopError

    config = read_config(whole.folder / "config.toml")
    split = load_torch(whole.checkpoint, CPU).card.split
    part, folder = runs.prepare(config, split=split), tmp_path / "part"
    part = runs.start(part, folder)
    with pytest.raises(StopError):
        runs.fit(part, folder, stop)
    gone = read_config(folder / "config.toml")
    gone = replace(gone, training=replace(gone.training, teacher=str(tmp_path / "gone.pt")))
    with pytest.raises(InputError, match="does not exist"):
        runs.prepare(gone, split=split)
    again = runs.prepare(read_config(folder / "config.toml"), folder=folder)
    assert again.teacher is not None
    np.testing.assert_array_equal(again.teacher.train, read_teacher(folder, split).train)  # type: ignore[union-attr]
    runs.fit(again, folder)
    ours, theirs = (load_torch(each / "ckpt.pt", CPU) for each in (folder, whole.folder))
    for name, weight in theirs.checkpoint.weights.items():
        assert torch.equal(ours.checkpoint.weights[name], weight), name


def test_a_single_model_other_graphs_and_studies_are_refused(
    ensemble: Path, tmp_path: Path
) -> None:
    student = ihgnn_cli.distill(ensemble, epochs=1, out=tmp_path / "s", progress=False)
    with pytest.raises(InputError, match="holds a single model"):
        ihgnn_cli.distill(student.folder)
    other = student_config(configure(overrides=SMALL), ensemble / "ckpt.pt")
    with pytest.raises(InputError, match="was trained on other graphs"):
        runs.prepare(other)  # the split of another seed
    for study in (ihgnn_cli.crossval, ihgnn_cli.tune):
        with pytest.raises(InputError, match="Remove teacher and label_share"):
            study("MUTAG", config=student.config, out=tmp_path / "study", progress=False)
    with pytest.raises(InputError, match="Remove teacher and label_share"):
        refuse_teacher(other)
    refuse_teacher(RunConfig())
    with pytest.raises(InputError, match="label_smoothing must be"):
        replace(other.training, label_smoothing=0.1)
    with pytest.raises(InputError, match="label_share must be 0 without a teacher"):
        configure(overrides={"label_share": 0.5})


def test_a_damaged_file_of_the_teacher_is_refused(tmp_path: Path) -> None:
    split = Split(graphs(2, 0), graphs(1), graphs(3))
    assert read_teacher(tmp_path, split) is None
    for text in ("{", "{}", '{"checkpoint": "t", "members": 2, "train": [[1]], "test": [[1]]}'):
        (tmp_path / "teacher.json").write_text(text)
        with pytest.raises(InputError, match="istill again"):
            read_teacher(tmp_path, split)
