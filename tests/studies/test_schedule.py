"""The schedule: what is left to do, told by the records of a folder that nobody trained."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ihgnn_cli.data.build import ListedGraphs, build
from ihgnn_cli.data.splits import draw_folds
from ihgnn_cli.errors import IhgnnError, InputError
from ihgnn_cli.jobs.claims import Claims
from ihgnn_cli.studies.grid import Configuration
from ihgnn_cli.studies.plan import Protocol
from ihgnn_cli.studies.schedule import Schedule
from ihgnn_cli.studies.units import Record, Stage, Unit, Validated
from ihgnn_cli.studies.units import Tested as OnTest  # pytest takes Test... for tests
from ihgnn_cli.studies.work import Job
from ihgnn_cli.training.config import RunConfig
from ihgnn_cli.training.epoch import Epoch

A, B = Configuration(0.01, 32, 3), Configuration(0.001, 32, 4)
CHOSEN = {0: A, 1: B}

GRAPHS = build(
    ListedGraphs(
        name="TWELVE",
        sizes=np.ones(12, dtype=np.int64),
        source=np.zeros(0, dtype=np.int32),
        target=np.zeros(0, dtype=np.int32),
        classes=(np.arange(12, dtype=np.int32) % 2, (0, 1)),
    )
)


def job(*, curves: bool = False, final_stack: int | None = None) -> Job:
    """Two configurations of different K, two folds, two final runs."""
    folds = tuple(draw_folds(GRAPHS.graph_class, 0, 2))
    return Job(Protocol(RunConfig(), (A, B), runs=2), GRAPHS, folds, curves, final_stack)


def schedule(folder: Path, *, stack: int = 2, curves: bool = False) -> Schedule:
    return Schedule(job(curves=curves), folder, stack)


def finish(folder: Path, *units: Unit, curves: bool = False, diverged: bool = False) -> None:
    """Write records in which fold 0 is for A and fold 1 for B."""
    for unit in units:
        right = 9 if unit.configuration == CHOSEN[unit.fold] else 8
        hits = () if diverged else (right,)
        tested = None
        if unit.stage is Stage.FINAL or curves:
            tested = OnTest(6, hits=(3,) * len(hits) if curves else ())
        known = Validated(
            unit=unit,
            seed=unit.seed(0),
            split_sha256=job().folds[unit.fold].splits[unit.split].digest,
            epochs=1,
            diverged=diverged,
            best=None if diverged else Epoch(1, 0.5, 0.5, 0.5, right / 10),
            validation_graphs=10,
            hits=hits,
            losses=(0.5,) * len(hits),
            seconds=0.0,
            members=1,
            device="cpu",
        )
        schedule(folder).units.write(Record(known, tested))


def taken(schedule: Schedule, folder: Path) -> str | None:
    """The bundle that a newcomer would take."""
    with Claims(folder / "claims") as claims:
        found = schedule.take(claims)
        return None if found is None else found.name


def test_the_selection_is_taken_first_the_costly_part_of_it_at_the_front(tmp_path: Path) -> None:
    made = schedule(tmp_path)
    with Claims(tmp_path / "claims") as claims:
        bundle = made.take(claims)
        assert bundle is not None
        assert bundle.name == "select-k4-batch32-0"
        assert bundle.units == (Unit(Stage.SELECT, 0, 0, B, 0), Unit(Stage.SELECT, 1, 0, B, 0))
        assert claims.held() == {"select-k4-batch32-0"}


def test_what_others_hold_is_passed_by(tmp_path: Path) -> None:
    made = schedule(tmp_path)
    with Claims(tmp_path / "claims") as one, Claims(tmp_path / "claims") as other:
        made.take(one)
        second = schedule(tmp_path).take(other)
        assert second is not None
        assert second.name == "select-k3-batch32-0"
        assert taken(made, tmp_path) is None  # nothing is left for a third
        assert not made.finished()
        one.release()
        assert taken(made, tmp_path) == "select-k4-batch32-0"


def test_what_is_done_is_passed_by_and_a_bundle_is_done_when_all_of_it_is(tmp_path: Path) -> None:
    made = schedule(tmp_path)
    finish(tmp_path, Unit(Stage.SELECT, 0, 0, B, 0))
    assert taken(made, tmp_path) == "select-k4-batch32-0"
    finish(tmp_path, Unit(Stage.SELECT, 1, 0, B, 0))
    assert taken(made, tmp_path) == "select-k3-batch32-0"


def test_final_runs_appear_when_the_selection_is_complete(tmp_path: Path) -> None:
    made = schedule(tmp_path)
    finish(tmp_path, *made.selection[:-1])
    assert made.final() == []
    with pytest.raises(IhgnnError, match=r"Fold 1 is not complete"):
        made.chosen()
    finish(tmp_path, made.selection[-1])
    assert made.chosen() == CHOSEN
    assert sorted(unit.name for unit in made.final()) == [
        "final-fold0-split0-lr0.01-batch32-k3-run0",
        "final-fold0-split0-lr0.01-batch32-k3-run1",
        "final-fold1-split0-lr0.001-batch32-k4-run0",
        "final-fold1-split0-lr0.001-batch32-k4-run1",
    ]
    assert taken(made, tmp_path) == "final-k4-batch32-0"
    finish(tmp_path, *(unit for unit in made.final() if unit.fold == 1))
    assert taken(made, tmp_path) == "final-k3-batch32-0"


def test_a_job_is_finished_when_every_final_run_is(tmp_path: Path) -> None:
    made = schedule(tmp_path)
    assert not made.finished()
    finish(tmp_path, *made.selection)
    assert not made.finished()
    finish(tmp_path, *made.final()[:-1])
    assert not made.finished()
    finish(tmp_path, made.final()[-1])
    assert made.finished()
    assert taken(made, tmp_path) is None
    assert schedule(tmp_path, stack=1).finished()  # whoever looks


def test_units_are_counted_whoever_has_done_them(tmp_path: Path) -> None:
    made = schedule(tmp_path)
    assert made.total == 2 * 2 + 2 * 2
    assert made.finished_units() == []
    finish(tmp_path, *made.selection[:3])
    assert len(made.finished_units()) == 3
    finish(tmp_path, made.selection[3])
    finish(tmp_path, *made.final()[:2])
    assert len(made.finished_units()) == 6


def test_stacks_are_of_the_size_given(tmp_path: Path) -> None:
    made = schedule(tmp_path, stack=1)
    finish(tmp_path, *made.selection)
    with Claims(tmp_path / "claims") as claims:
        bundle = made.take(claims)
        assert bundle is not None
        assert len(bundle.units) == 1


def test_final_runs_may_be_in_smaller_stacks_and_those_follow_from_what_was_asked(
    tmp_path: Path,
) -> None:
    made = Schedule(job(final_stack=1), tmp_path, 2)
    assert taken(made, tmp_path) == "select-k4-batch32-0"
    finish(tmp_path, *made.selection)
    first, *others = made.final()
    with Claims(tmp_path / "claims") as claims:
        bundle = made.take(claims)
        assert bundle is not None
        assert (bundle.name, bundle.units) == ("final-k4-batch32-0", (first,))
    finish(tmp_path, first)
    again = Schedule(job(final_stack=1), tmp_path, 2)
    assert taken(again, tmp_path) == "final-k4-batch32-1"
    assert again.final() == [first, *others]


def test_with_rules_a_selection_without_curves_is_done_again_and_final_runs_are_not(
    tmp_path: Path,
) -> None:
    before = schedule(tmp_path)
    finish(tmp_path, *before.selection)
    finish(tmp_path, *before.final())
    assert before.finished()
    made = schedule(tmp_path, curves=True)
    assert not made.finished()
    assert taken(made, tmp_path) == "select-k4-batch32-0"
    finish(tmp_path, *made.selection, curves=True)
    assert made.finished()
    assert before.finished()


def test_a_configuration_that_diverged_is_done(tmp_path: Path) -> None:
    made = schedule(tmp_path, curves=True)
    a_units = [unit for unit in made.selection if unit.configuration == A]
    finish(tmp_path, *(unit for unit in made.selection if unit not in a_units), curves=True)
    finish(tmp_path, *a_units, curves=True, diverged=True)
    assert made.chosen() == {0: B, 1: B}
    assert {unit.configuration for unit in made.final()} == {B}


def test_a_fold_where_all_diverged_is_refused(tmp_path: Path) -> None:
    made = schedule(tmp_path)
    finish(tmp_path, *made.selection, diverged=True)
    with pytest.raises(IhgnnError, match="All configurations of fold 0 diverged"):
        taken(made, tmp_path)


@pytest.mark.parametrize("changes", [{"seed": 1}, {"split_sha256": "ab"}])
def test_what_has_another_seed_or_split_is_of_another_job(
    tmp_path: Path, changes: dict[str, Any]
) -> None:
    made = schedule(tmp_path)
    finish(tmp_path, *made.selection)
    (ours,) = made.units.validated(made.selection[:1])
    made.units.write(Record(replace(ours, **changes), None))
    with pytest.raises(InputError, match=r"select-fold0-.*\.json belongs to another job"):
        schedule(tmp_path).finished()
