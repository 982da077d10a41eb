"""A small cross-validation, and records of trainings that nobody trained."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ihgnn_cli.data import load_dataset
from ihgnn_cli.data.splits import draw_folds
from ihgnn_cli.studies.crossval.job import UNITS, Data, Job, JobFolder
from ihgnn_cli.studies.crossval.protocol import Configuration, Protocol, Setting, Stage, Training
from ihgnn_cli.studies.crossval.records import Record, Validated
from ihgnn_cli.studies.crossval.records import Tested as OnTest  # pytest takes Test... for tests
from ihgnn_cli.studies.crossval.stacks import Sizes, Stack
from ihgnn_cli.training.config import configure
from ihgnn_cli.training.epoch import Epoch


def at(lr: float, batch_size: int = 32, layers: int = 3, **others: Setting) -> Configuration:
    """A point of a grid."""
    common = {"lr": lr, "batch_size": batch_size, "layers": layers}
    return Configuration(tuple({**common, **others}.items()))


FAST, SLOW = at(0.01, layers=1), at(0.001, layers=1)


def small_job(
    grid: Sequence[Configuration] = (FAST, SLOW),
    *,
    folds: int = 3,
    inner: int = 1,
    runs: int = 2,
    race: bool = False,
    curves: bool = False,
    seed: int = 0,
    **settings: Any,
) -> Job:
    """A job on MUTAG with tiny models."""
    small = {"width": 4, "hidden": 8, "epochs": 4, "device": "cpu", "seed": seed}
    small["features"] = "labels"
    config = configure(overrides={**small, **settings})
    dataset = load_dataset("MUTAG")
    drawn = tuple(draw_folds(dataset.graph_class, seed, folds, inner))
    return Job(Protocol(config, tuple(grid), runs, race), Data(dataset), drawn, curves)


def with_classes(job: Job, classes: Any) -> Job:
    """The job with other classes of the graphs, and the same folds."""
    return replace(job, data=Data(replace(job.dataset, graph_class=classes)))


def folder_of(path: Path, job: Job, most: int = 15, workers: int = 1) -> JobFolder:
    """The job in a folder that has nothing but an empty folder for results."""
    (path / UNITS).mkdir(parents=True, exist_ok=True)
    return JobFolder(path, job, Sizes(most, workers))


def trained(
    training: Training,
    hits: Sequence[int],
    losses: Sequence[float] | None = None,
    *,
    test: Sequence[int] | None = None,
    graphs: int = 10,
) -> Record:
    """A training with these curves on 10 validation graphs; diverged at once without any."""
    losses = [0.5] * len(hits) if losses is None else losses
    best: Epoch | None = None
    for number, (right, loss) in enumerate(zip(hits, losses, strict=True), 1):
        epoch = Epoch(number, 0.5, 0.5, loss, right / graphs)
        best = epoch if epoch.better_than(best) else best
    known = Validated(
        training=training,
        seed=1,
        split_sha256="",
        epochs=len(hits) or 1,
        diverged=not hits,
        best=best,
        validation_graphs=graphs,
        hits=tuple(hits),
        losses=tuple(losses),
        seconds=0.0,
        members=1,
        device="cpu",
    )
    return Record(known, None if test is None else OnTest(graphs, hits=tuple(test)))


def invented(job: Job, stack: Stack, right: dict[Configuration, int] | None = None) -> list[Record]:
    """Records of a stack; on test each class is predicted for every second graph.

    Args:
        job: the job.
        stack: one of its stacks.
        right: how many of 10 validation graphs a configuration has right; by default 5.
    """
    records = []
    for training in stack.trainings:
        hits = (right or {}).get(training.configuration, 5)
        record = trained(training, [hits], test=[3] if job.curves else None)
        split = job.split(training)
        known = replace(
            record.validated, seed=job.config(training).training.seed, split_sha256=split.digest
        )
        tested = record.tested
        if training.stage == Stage.FINAL:
            truth = job.dataset.graph_class[split.test]
            predicted = np.arange(len(truth)) % 2
            likely = tuple((0.75, 0.25) if each == 0 else (0.25, 0.75) for each in predicted)
            accuracy = float(np.mean(predicted == truth))
            tested = OnTest(len(truth), accuracy, tuple(predicted.tolist()), (), likely)
        records.append(Record(known, tested))
    return records


def finish(folder: JobFolder, right: dict[Configuration, int] | None = None) -> None:
    """Write invented records for every stack of a job."""
    while stacks := folder.open_stacks():
        for stack in stacks:
            folder.write(stack, invented(folder.job, stack, right))
