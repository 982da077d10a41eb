"""The content of `result.json`: the numbers of a finished job and their provenance."""

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from statistics import fmean, median_low, pstdev
from typing import Any

import numpy as np

from ihgnn_cli.jobs.executor import Executor
from ihgnn_cli.jsonable import jsonable
from ihgnn_cli.models.settings import IHGNNSettings
from ihgnn_cli.studies.beside import beside, final_scores, tested_method, tested_share
from ihgnn_cli.studies.choice import CHOSEN_BY, most_chosen, scores
from ihgnn_cli.studies.coverage import study_coverage
from ihgnn_cli.studies.folds import repeat_seed
from ihgnn_cli.studies.grid import with_plain
from ihgnn_cli.studies.paper import paper_accuracy
from ihgnn_cli.studies.plan import Protocol
from ihgnn_cli.studies.rules import rules
from ihgnn_cli.studies.schedule import Schedule
from ihgnn_cli.studies.signal.references import Reference
from ihgnn_cli.studies.statistics import corrected_error
from ihgnn_cli.studies.summary import Summary, ensembles, summarize
from ihgnn_cli.studies.work import Job
from ihgnn_cli.training.provenance import machine_facts
from ihgnn_cli.training.snapshots import snapshot_epochs

_OF_TRAINING = (
    *("seconds", "trained_now", "workers", "model_epochs_per_second"),
    *("finished", "provenance", "made_again"),
)
"""Of the last command that trained; the result of a finished job may be made again later."""


@dataclass(frozen=True)
class Work:
    """What this command did, which may be only part of the job."""

    executor: Executor
    model_epochs: int
    seconds: float
    """From the first ready worker to the last result."""
    command: str


def identity(job: Job) -> dict[str, Any]:
    """The values that two jobs must share for their units to be the same.

    The number of repeats is not among them: more of them continue a job.
    """
    splits = hashlib.sha256("".join(fold.digest for fold in job.first).encode()).hexdigest()
    protocol = job.protocol.as_plain()
    # The same data may have another path on another machine.
    protocol["data"]["dataset"] = job.dataset.name
    if job.holds_out:
        protocol["calibration"] = True
    return {
        "protocol": protocol,
        "data_sha256": job.dataset.fingerprint,
        "splits_sha256": splits,
        "folds": job.folds_each,
        "inner_folds": len(job.folds[0].splits),
    }


def _repeats(job: Job, summary: Summary) -> list[dict[str, Any]]:
    """The result of each partition, over its folds."""
    seed, found = job.protocol.config.training.seed, []
    for repeat in range(job.repeats):
        first = repeat * job.folds_each
        means = [fold.test_mean for fold in summary.folds[first : first + job.folds_each]]
        found.append(
            {
                "seed": repeat_seed(seed, repeat),
                "test_mean": fmean(means),
                "test_std": pstdev(means),
            }
        )
    return found


def _chosen_by(protocol: Protocol) -> str:
    if not protocol.selects:
        return "nothing"
    return f"{CHOSEN_BY}, in a race" if protocol.race_in_words else CHOSEN_BY


def make_result(
    job: Job,
    schedule: Schedule,
    work: Work,
    before: dict[str, Any] | None,
    references: Sequence[Reference] = (),
) -> dict[str, Any]:
    """The result of a job whose units are all finished.

    Args:
        job: the job.
        schedule: its units.
        work: what the current command did.
        before: an earlier result of the same job; what it has of references, conformal sets and
            rules is kept if this command does not ask for them.
        references: classifiers without a network on the same folds.

    Raises:
        IhgnnError: a unit is missing.
    """
    protocol, units = job.protocol, schedule.units
    training = protocol.config.training
    selected = [each for each in map(units.read, schedule.selection) if each is not None]
    final = [each for each in map(units.read, schedule.final()) if each is not None]
    by_fold = scores(units.validated(schedule.last_rung), protocol.grid)
    chosen = schedule.chosen()
    judged, averaged = final, []
    if protocol.selects:
        best, best_folds = most_chosen(chosen, by_fold)
    else:
        best, best_folds = protocol.grid[0], len(chosen)
        tested = {at: job.dataset.graph_class[fold.test] for at, fold in enumerate(job.folds)}
        judged = averaged = ensembles(final, tested)
    summary = summarize(chosen, by_fold, final, protocol.runs, averaged)
    runs = [run for fold in summary.folds if fold.configuration == best for run in fold.runs]
    everything = [each.validated for each in (*selected, *final)]
    classes = np.bincount(job.dataset.graph_class)
    settings = protocol.config.model
    variant = settings.variant if isinstance(settings, IHGNNSettings) else None
    truth = job.dataset.graph_class
    scored = final_scores(judged, job.folds, truth, job.repeats)
    printed = None if variant is None else paper_accuracy(job.dataset.name, variant)
    result: dict[str, Any] = {
        "dataset": job.dataset.name,
        "model": protocol.config.model_name,
        "graphs": len(job.dataset),
        "partial": job.partial,
        "group_twins": job.group_twins,
        "majority_share": float(classes.max() / classes.sum()),
        **{name: value for name, value in asdict(summary).items() if name != "folds"},
        "test_error": corrected_error(
            [fold.test_mean for fold in summary.folds], tested_share(job.folds, len(truth))
        ),
        "repeats": _repeats(job, summary),
        "balanced_accuracy": None if scored is None else scored.balanced_accuracy,
        "roc_auc": None if scored is None else scored.roc_auc,
        "paper": None if printed is None else asdict(printed),
        "folds": [with_plain(asdict(fold)) for fold in summary.folds],
        "graph_accuracies": tested_method(judged, job.folds, truth).graphs,
        "chosen_by": _chosen_by(protocol),
        "snapshots": len(snapshot_epochs(training.epochs, training.snapshots)),
        "race": protocol.race_in_words,
        "best": {
            "configuration": best.as_plain(),
            "folds": best_folds,
            "epochs": median_low(run.epoch for run in runs),
        },
        "models": len(everything),
        "diverged": sum(each.diverged for each in everything),
        "stack": schedule.stack,
        "final_stack": schedule.final_stack,
        "model_epochs": sum(each.epochs for each in everything),
        "worker_seconds": sum(each.seconds for each in everything),
        "trained_now": work.model_epochs,
        "seconds": work.seconds,
        "workers": work.executor.workers,
        "model_epochs_per_second": work.model_epochs / work.seconds if work.seconds else None,
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "job": identity(job),
        "provenance": {
            **machine_facts(work.executor.device),
            "devices": sorted({each.device for each in everything}),
            "command": work.command,
        },
    }
    if before is not None and not work.model_epochs:
        result |= {name: before[name] for name in _OF_TRAINING if name in before}
    if references:
        result["references"] = beside(references, judged, job.folds, job.dataset)
    elif before is not None and "references" in before:
        result["references"] = before["references"]
    if job.conformal is not None:
        result["conformal"] = asdict(study_coverage(job, judged, job.conformal))
    elif before is not None and "conformal" in before:
        result["conformal"] = before["conformal"]
    if job.curves:
        found = rules(selected, protocol.grid, len(job.folds))
        result["rules"] = [with_plain(asdict(rule)) for rule in found]
    elif before is not None and "rules" in before:
        result["rules"] = before["rules"]
    plain: dict[str, Any] = jsonable(result)  # type: ignore[assignment]
    return plain
