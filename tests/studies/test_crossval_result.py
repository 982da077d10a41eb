"""The result: hand-computed numbers, what is refused, and the file that is read again."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from statistics import fmean, pstdev

import numpy as np
import pytest
from small_job import FAST, SLOW, finish, folder_of, small_job

from ihgnn_cli.data.splits import Fold, Split
from ihgnn_cli.errors import IhgnnError, InputError
from ihgnn_cli.studies.crossval import summary
from ihgnn_cli.studies.crossval.protocol import Stage
from ihgnn_cli.studies.crossval.records import Tested as OnTest  # pytest takes Test... for tests
from ihgnn_cli.studies.crossval.result import CrossvalResult, Work, make_result
from ihgnn_cli.studies.crossval.study import best_config, jobs_of, open_study, result_of
from ihgnn_cli.studies.crossval.summary import graph_accuracies, mean_prediction, method_of
from ihgnn_cli.studies.fold_scores import Scores, fold_scores
from ihgnn_cli.studies.signal.references import Reference
from ihgnn_cli.studies.workers import local_workers

NOTHING = Work(0, 0.0, 1, {})
HERE = local_workers("cpu", 1)


def fold(*test: int) -> Fold:
    rest = [graph for graph in range(4) if graph not in test]
    return Fold((Split(*map(np.array, ([rest[0]], [rest[1]], list(test)))),))


FOLDS = (fold(0, 1), fold(2, 3))
TRUTH = np.array([0, 1, 0, 1])


def said(*predictions: int) -> OnTest:
    return OnTest(2, None, predictions)


def test_the_accuracy_of_a_graph_is_its_mean_over_runs_and_partitions() -> None:
    # Graphs 0 and 1 are tested twice: 0 right twice, 1 once; of 2 and 3 only 2 is right.
    predictions = [(0, (0, 1)), (0, (0, 0)), (1, (0, 0))]
    assert graph_accuracies(predictions, FOLDS, TRUTH) == (1.0, 0.5, 1.0, 0.0)
    assert graph_accuracies(predictions[:2], FOLDS, TRUTH) == (1.0, 0.5, None, None)
    method = method_of({0: [said(0, 1), said(0, 0)], 1: [said(0, 0)]}, FOLDS, TRUTH)
    assert method.folds == (0.75, 0.5)
    assert method.graphs == (1.0, 0.5, 1.0, 0.0)
    assert summary.tested_share(FOLDS, 4) == 1.0


def test_a_mean_prediction_is_that_of_the_mean_probabilities() -> None:
    one = OnTest(2, probabilities=((0.9, 0.1), (0.4, 0.6)))
    other = OnTest(2, probabilities=((0.2, 0.8), (0.7, 0.3)))
    mean = mean_prediction([one, other], np.array([0, 1]))
    assert (mean.predictions, mean.accuracy) == ((0, 0), 0.5)
    np.testing.assert_allclose(mean.probabilities, [[0.55, 0.45], [0.55, 0.45]])


def test_scores_are_means_over_folds_and_those_of_partitions_are_joined() -> None:
    sure = [np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([[0.0, 1.0], [0.0, 1.0]])]
    found = fold_scores(sure, [np.array([0, 1]), np.array([0, 1])])
    assert (found.accuracy, found.accuracy_std, found.roc_auc) == (0.75, 0.25, 0.75)
    assert found.balanced_accuracy == 0.75
    other = replace(found, accuracy=0.5, roc_auc=float("nan"), folds=(0.5, 0.5))
    joined = Scores.joined([found, other])
    assert joined.folds == (1.0, 0.5, 0.5, 0.5)
    assert joined.accuracy == 0.625
    assert joined.roc_auc == 0.75  # of the one that has it


def test_the_result_is_the_mean_over_folds_of_the_final_runs(tmp_path: Path) -> None:
    job = small_job((SLOW, FAST))
    folder = folder_of(tmp_path, job)
    finish(folder, {FAST: 9})
    result = make_result([folder], Work(36, 2.0, 2, {"command": "ihgnn crossval"}))
    truth = job.dataset.graph_class
    means = [
        float(np.mean(np.arange(len(each.test)) % 2 == truth[each.test])) for each in job.folds
    ]
    assert [each.test_mean for each in result.folds] == pytest.approx(means)
    assert result.test_mean == pytest.approx(fmean(means))
    assert result.test_std == pytest.approx(pstdev(means))
    assert result.runs == pytest.approx((fmean(means), fmean(means)))
    assert (result.models, result.model_epochs, result.diverged) == (12, 12, 0)
    assert result.best.configuration == FAST.as_plain()
    assert (result.best.folds, result.best.epochs) == (3, 1)
    assert [each.validation_accuracy for each in result.folds] == [0.9] * 3
    assert result.model_epochs_per_second == 18
    assert result.paper is not None
    assert result.paper.mean == 0.899
    assert (result.variant, result.rules) == ("full", None)
    hits = [each for each in result.graph_accuracies if each is not None]
    assert fmean(hits) == pytest.approx(np.average(means, weights=[len(f.test) for f in job.folds]))


def test_no_mean_over_some_of_the_runs(tmp_path: Path) -> None:
    job = small_job()
    folder = folder_of(tmp_path, job, most=3)
    finish(folder)
    (last,) = [s for s in folder._stages[-1] if s.trainings[-1].fold == 2]
    folder.stack_file(last).unlink()
    again = folder_of(tmp_path, job, most=3)
    assert not again.finished
    with pytest.raises(IhgnnError, match=r"Run \d of fold \d is missing, and a mean over the oth"):
        make_result([again], NOTHING)


def test_a_result_is_read_as_it_was_written(tmp_path: Path) -> None:
    job = small_job(curves=True)
    folder = folder_of(tmp_path, job)
    finish(folder)
    guess = tuple(tuple(0 for _ in each.test) for each in job.folds)
    scores = Scores(0.665, 0.01, 0.5, float("nan"), (0.66, 0.67, 0.665))
    result = make_result([folder], NOTHING, None, [Reference("majority", "maj", scores, guess)])
    assert result.references is not None
    assert result.references.best_method.roc_auc is None
    assert result.rules is not None
    result.write(tmp_path)
    assert CrossvalResult.read(tmp_path) == result
    # What a later command does not ask for is kept; what it trained is that of the last one.
    plain = folder_of(tmp_path, replace(job, curves=False))
    later = make_result([plain], Work(0, 0.0, 7, {}), result)
    assert later == result


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is damaged. Remove it, and the same command makes it again"),
        ("[]", "was made by another version of ihgnn"),
        ('{"format": 99}', "was made by another version of ihgnn"),
        ('{"format": 1}', r"is damaged \(dataset: Field required\)"),
    ],
)
def test_another_file_is_refused(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "result.json").write_text(text)
    with pytest.raises(InputError, match=said):
        CrossvalResult.read(tmp_path)


def test_reading_needs_no_torch() -> None:
    code = "import sys, ihgnn_cli.studies.crossval.result\nassert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.usefixtures("thread_workers")
def test_repeats_are_what_jobs_with_their_seeds_compute_alone(tmp_path: Path) -> None:
    first, second = small_job(), small_job(seed=1)
    folds = (*first.folds, *second.folds)
    both = jobs_of(first.protocol, first.data, folds, 2)
    together = open_study(tmp_path / "both", both, HERE).run().result
    alone = [
        open_study(tmp_path / f"alone{number}", [job], HERE).run().result
        for number, job in enumerate((first, second))
    ]
    assert [each.seed for each in together.repeats] == [0, 1]
    assert [each.test_mean for each in together.repeats] == [each.test_mean for each in alone]
    own = [replace(each, fold=each.fold + 3) for each in alone[1].folds]
    assert together.folds == (*alone[0].folds, *own)
    assert together.test_mean == pytest.approx(fmean(each.test_mean for each in alone))
    # A folder with one continues with two, and trains nothing again.
    more = open_study(tmp_path / "alone0", both, HERE)
    assert more.before == alone[0]
    assert more.run().trained == 48
    grown = result_of(tmp_path / "alone0", first)
    assert grown is not None
    assert grown.folds == together.folds


@pytest.mark.usefixtures("thread_workers")
def test_a_finished_folder_has_a_configuration_to_train_with_and_no_leftovers(tmp_path) -> None:
    path = tmp_path / "job"
    job = small_job()
    study = open_study(path, [job], HERE, stack=2, command="ihgnn crossval")
    (path / "units").mkdir()
    (path / "units" / ".select-1234.part.jsonl").touch()
    done = study.run()
    assert done.trained == done.result.model_epochs == 48
    assert done.result.stack == 2
    assert sorted(each.name for each in path.iterdir()) == [
        ".lock",
        "best.toml",
        "crossval.json",
        "result.json",
        "splits.json",
        "units",
    ]
    assert not list((path / "units").glob(".*"))
    stages = {each.validated.training.stage for each in study.folders[0].final()}
    assert stages == {Stage.FINAL}
    again = open_study(path, [job], HERE)
    assert again.folders[0].sizes.most == 2
    before = (path / "result.json").stat().st_mtime_ns
    assert again.run().trained is None
    assert (path / "result.json").stat().st_mtime_ns == before
    text = (path / "best.toml").read_text()
    assert text.startswith("# The configuration that most folds chose: ")
    assert done.result.best.epochs < 20
    assert f"final runs ({done.result.best.epochs}), but at least 20, for" in text
    assert "epochs = 20\n" in text  # the fewest for a final training
    assert best_config(job.protocol, done.result).training.epochs == 20
    content = json.loads((path / "crossval.json").read_text())
    content["packages"]["torch"] = "1.0"
    (path / "crossval.json").write_text(json.dumps(content))
    changed = open_study(path, [job], HERE).changed
    assert changed is not None
    assert changed.startswith("torch 1.0, now 2.")
