"""The folder of a job: what is finished, what is open, and what does not belong there."""

from dataclasses import replace
from pathlib import Path

import pytest
from small_job import FAST, SLOW, at, finish, folder_of, invented, small_job

from ihgnn_cli.errors import IhgnnError, InputError
from ihgnn_cli.studies.crossval.job import Data, JobFolder, open_folder
from ihgnn_cli.studies.crossval.protocol import Stage
from ihgnn_cli.studies.crossval.stacks import Sizes

GRID = (at(0.01, layers=1), at(0.001, layers=2))


def names(folder: JobFolder) -> list[str]:
    return [stack.name for stack in folder.open_stacks()]


def write(folder: JobFolder, name: str, right: dict | None = None) -> None:
    (stack,) = (each for each in folder.open_stacks() if each.name == name)
    folder.write(stack, invented(folder.job, stack, right))


def test_stages_follow_each_other_and_a_stack_is_done_when_its_file_is_there(tmp_path) -> None:
    job = small_job(GRID, folds=2)
    folder, other = folder_of(tmp_path, job), folder_of(tmp_path, job)
    assert names(folder) == ["select-k2-batch32-0", "select-k1-batch32-0"]
    write(folder, "select-k1-batch32-0")
    assert names(other) == ["select-k2-batch32-0"]
    with pytest.raises(IhgnnError, match="Fold 0 is not complete"):
        other.chosen()
    write(other, "select-k2-batch32-0", {GRID[1]: 9})
    assert folder.chosen() == {0: GRID[1], 1: GRID[1]} if folder.open_stacks() else False
    assert names(folder) == ["final-k2-batch32-0"]
    assert not folder.finished
    write(folder, "final-k2-batch32-0")
    assert folder.finished
    assert folder_of(tmp_path, job).finished
    assert len(folder.finished_trainings()) == job.protocol.trainings(job.folds) == 8
    assert len((tmp_path / "units" / "final-k2-batch32-0.jsonl").read_text().splitlines()) == 4


def test_a_race_trains_what_is_left_in_the_order_of_the_grid(tmp_path) -> None:
    grid = [at(lr, layers=1) for lr in (0.4, 0.3, 0.2, 0.1)]
    job = small_job(grid, folds=2, runs=1, race=True, epochs=9)
    folder = folder_of(tmp_path, job)
    finish(folder, {grid[1]: 9, grid[3]: 8, grid[0]: 5})
    rungs = {}
    for each in folder.selection():
        training = each.validated.training
        if training.fold == 0:
            rungs.setdefault(training.epochs, []).append(training.configuration)
    assert {epochs: set(left) for epochs, left in rungs.items()} == {
        1: set(grid),
        3: {grid[1], grid[3]},
        None: {grid[1]},
    }
    assert folder.chosen() == dict.fromkeys(range(2), grid[1])
    assert {each.training.epochs for each in folder.last_rung()} == {None}


def test_selection_is_given_nothing_of_the_test_graphs(tmp_path, monkeypatch) -> None:
    job = small_job(curves=True)
    folder, given = folder_of(tmp_path, job), []
    from ihgnn_cli.studies.crossval import job as module

    leading = module.leading

    def watched(found, *others):
        given.extend(found)
        return leading(found, *others)

    monkeypatch.setattr(module, "leading", watched)
    finish(folder)
    assert given
    assert not any(hasattr(each, "tested") or hasattr(each, "validated") for each in given)


def test_curves_are_trained_again_where_they_are_missing_and_only_in_the_selection(
    tmp_path,
) -> None:
    finish(folder_of(tmp_path, small_job()))
    folder = folder_of(tmp_path, small_job(curves=True))
    assert {each.trainings[0].stage for each in folder.open_stacks()} == {Stage.SELECT}
    assert not folder.finished
    finish(folder)
    assert all(each.has_curve for each in folder.selection())


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda _: "", "belongs to another job"),
        (lambda text: text.splitlines()[0] + "\n", "belongs to another job"),
        (lambda text: text.replace('"seed":', '"seed":1'), "belongs to another job"),
        (lambda text: text.replace('"split_sha256":"', '"split_sha256":"x'), "another job"),
        (lambda text: text.replace('"fold":0', '"fold":2'), "belongs to another job"),
        (lambda text: text[:-20], "is damaged. Remove it, and its stack is trained again"),
    ],
)
def test_a_file_that_is_damaged_or_of_another_job_is_refused(tmp_path, change, said) -> None:
    folder = folder_of(tmp_path, small_job())
    stack = folder.open_stacks()[0]
    folder.write(stack, invented(folder.job, stack))
    path = folder.stack_file(stack)
    path.write_text(change(path.read_text()))
    with pytest.raises(InputError, match=said):
        folder.done(stack)


def test_a_folder_keeps_the_sizes_that_the_first_command_gave_it(tmp_path) -> None:
    job = small_job()
    path = tmp_path / "job"
    first, content = open_folder(path, job, lambda: Sizes(4, 2), {"command": "ihgnn crossval"})
    assert content["command"] == "ihgnn crossval"
    assert first.sizes == Sizes(4, 2)
    (path / "splits.json").unlink()
    again, _ = open_folder(path, job, lambda: pytest.fail("not asked for"), {})
    assert again.sizes == Sizes(4, 2)
    assert (path / "splits.json").is_file()
    other = small_job(epochs=5)
    with pytest.raises(InputError, match=r"--epochs was 4, is 5"):
        open_folder(path, other, lambda: Sizes(1), {})
    (path / "crossval.json").write_text('{"identity": {}, "sizes": 3}')
    with pytest.raises(InputError):
        open_folder(path, job, lambda: Sizes(1), {})


def test_the_identity_says_what_determines_the_numbers() -> None:
    plain = small_job().identity
    assert plain == small_job(curves=True).identity
    for other in (small_job(seed=1), small_job((FAST,)), small_job(runs=3), small_job(width=5)):
        assert other.identity != plain
    moved = replace(small_job().dataset, source="/elsewhere/MUTAG")
    assert replace(small_job(), data=Data(moved)).identity == plain


def test_data_that_can_be_read_again_is_not_sent_to_other_processes() -> None:
    import pickle

    dataset = small_job().dataset
    kept = pickle.loads(pickle.dumps(Data(dataset)))
    assert kept.dataset.fingerprint == dataset.fingerprint
    read = pickle.dumps(Data(dataset, _load))
    assert len(read) < 1000
    assert pickle.loads(read).dataset.fingerprint == dataset.fingerprint
    changed = pickle.loads(
        pickle.dumps(Data(replace(dataset, graph_class=1 - dataset.graph_class), _load))
    )
    with pytest.raises(InputError, match="have changed"):
        _ = changed.dataset


def _load():
    return small_job().dataset


def test_without_all_graphs_tested_the_result_is_partial(tmp_path: Path) -> None:
    job = small_job(folds=10)
    assert job.partial is None
    some = replace(job, folds=job.folds[:3])
    assert some.partial is not None
    assert some.partial.startswith(
        "Partial result: the first 3 folds of a split file, which test 57"
    )


def test_equal_results_choose_the_earlier_configuration(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, small_job((SLOW, FAST)))
    finish(folder)
    assert set(folder.chosen().values()) == {SLOW}
