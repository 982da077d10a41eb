"""The result of a cross-validation: computed, written as `result.json`, and read again.

Reading needs no torch.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean, median_low, pstdev
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import TypeAdapter, ValidationError

from ihgnn_cli.errors import InputError
from ihgnn_cli.files import write_json
from ihgnn_cli.models.settings import IHGNNSettings
from ihgnn_cli.studies.crossval.protocol import Configuration, Protocol, Setting
from ihgnn_cli.studies.crossval.records import Record, Tested
from ihgnn_cli.studies.crossval.rules import rules
from ihgnn_cli.studies.crossval.selection import CHOSEN_BY, most_chosen, scores
from ihgnn_cli.studies.crossval.summary import (
    FoldResult,
    by_fold,
    fold_results,
    graph_accuracies,
    mean_prediction,
    method_of,
    tested_share,
)
from ihgnn_cli.studies.fold_scores import Scores, fold_scores
from ihgnn_cli.studies.paper import PaperAccuracy, paper_accuracy
from ihgnn_cli.studies.signal.references import Reference, best_reference, left_out_note
from ihgnn_cli.studies.statistics import Method, corrected_error, family, paired

if TYPE_CHECKING:
    from ihgnn_cli.studies.crossval.job import JobFolder

RESULT = "result.json"
FORMAT = 1


@dataclass(frozen=True)
class RepeatResult:
    """The result of one partition."""

    seed: int
    test_mean: float
    test_std: float
    """Over its folds."""


@dataclass(frozen=True)
class BestConfiguration:
    """The configuration that most folds chose."""

    configuration: Mapping[str, Setting]
    folds: int
    """How many chose it."""
    epochs: int
    """The median of the best epochs of its final runs."""


@dataclass(frozen=True)
class RuleResult:
    """The result under another selection rule (`rules.Rule`)."""

    key: str
    title: str
    honest: bool
    mean: float
    std: float
    configuration: Mapping[str, Setting] | None
    epoch: int | None
    note: str | None


@dataclass(frozen=True)
class ReferenceResult:
    """A classifier without a network on the same folds, and the result minus its accuracy."""

    key: str
    title: str
    accuracy: float
    accuracy_std: float
    balanced_accuracy: float
    roc_auc: float | None
    difference: float
    error: float | None
    p: float | None
    p_holm: float | None
    significant: bool


@dataclass(frozen=True)
class ReferenceResults:
    """The comparison with the references."""

    methods: tuple[ReferenceResult, ...]
    best: str
    """The key of the best one that reads what networks read."""
    comparisons: int
    """How many p-values are corrected together."""
    sentence: str
    note: str | None

    @property
    def best_method(self) -> ReferenceResult:
        """The best reference."""
        return next(each for each in self.methods if each.key == self.best)

    @property
    def above(self) -> bool:
        """Whether the result is significantly better than the best reference."""
        return self.best_method.significant and self.best_method.difference > 0


@dataclass(frozen=True)
class CrossvalResult:
    """A finished cross-validation, over one partition or several. Accuracies are from 0 to 1."""

    dataset: str
    model: str
    """The name of the model."""
    variant: str | None
    """Of IHGNN; `None` for other models."""
    graphs: int
    majority_share: float
    partial: str | None
    """A warning if the folds do not test every graph."""
    group_twins: bool
    folds: tuple[FoldResult, ...]
    """Those of all repeats."""
    repeats: tuple[RepeatResult, ...]
    test_mean: float
    """The mean over the folds."""
    test_std: float
    """Over the fold means; divides by n like all standard deviations here."""
    test_error: float | None
    """The standard error of `test_mean`, corrected for folds that share training graphs."""
    runs: tuple[float, ...]
    """The mean over the folds for run 0, run 1, ..."""
    runs_std: float
    """Over `runs`: the variation from seeds alone."""
    balanced_accuracy: float
    roc_auc: float | None
    """`None` if no fold tests two classes."""
    graph_accuracies: tuple[float | None, ...]
    """Of each graph over runs and repeats; `None` if it is not tested."""
    chosen_by: str
    snapshots: int
    """Epochs whose predictions are averaged; 0: the best epoch is chosen."""
    race: str | None
    """The steps of a race in words."""
    best: BestConfiguration
    paper: PaperAccuracy | None
    references: ReferenceResults | None
    rules: tuple[RuleResult, ...] | None
    job: Mapping[str, Any]
    """The identity of the first partition's job: `protocol`, `data_sha256`, `splits_sha256`,
    `folds` and `inner_folds`."""
    models: int
    """The number of trainings."""
    diverged: int
    stack: int
    """The size of the largest stack."""
    model_epochs: int
    worker_seconds: float
    trained_now: int
    """Model-epochs trained by the last command that trained any. What follows belongs to it."""
    seconds: float
    workers: int
    finished: str
    """When, in ISO 8601."""
    provenance: Mapping[str, Any]
    """Versions, machine, devices and command."""
    format: int = FORMAT

    def __post_init__(self) -> None:
        if len(self.graph_accuracies) != self.graphs:
            raise ValueError(f"{len(self.graph_accuracies)} accuracies of {self.graphs} graphs")

    @property
    def method(self) -> Method:
        """Its accuracies, for comparisons."""
        return Method(tuple(fold.test_mean for fold in self.folds), self.graph_accuracies)

    @property
    def model_epochs_per_second(self) -> float | None:
        """Of the last command that trained."""
        return self.trained_now / self.seconds if self.seconds else None

    def as_plain(self) -> dict[str, Any]:
        """The content of the file."""
        return asdict(self)

    def write(self, folder: Path) -> None:
        """Write `result.json`.

        Raises:
            IhgnnError: it cannot be written.
        """
        write_json(folder / RESULT, self.as_plain())

    @classmethod
    def read(cls, folder: Path) -> "CrossvalResult":
        """Read `result.json`.

        Raises:
            InputError: it is missing, damaged, or of another version.
        """
        path = folder / RESULT
        again = "Remove it, and the same command makes it again."
        try:
            plain = json.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise InputError(f"Cannot read {path}: {error.strerror or error}.") from error
        except (ValueError, RecursionError) as error:
            raise InputError(f"{path} is damaged. {again}") from error
        return cls.parsed(plain, path)

    @classmethod
    def parsed(cls, plain: Any, path: Path = Path(RESULT)) -> "CrossvalResult":
        """The result from the content of a file.

        Raises:
            InputError: it is damaged, or of another version.
        """
        if not isinstance(plain, dict) or plain.get("format") != FORMAT:
            raise InputError(
                f"{path} was made by another version of ihgnn. Remove it, and the same command "
                "makes it again."
            )
        try:
            return TypeAdapter(cls).validate_python(plain)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"]))
            raise InputError(
                f"{path} is damaged ({where}: {first['msg']}). Remove it, and the same command "
                "makes it again."
            ) from error


@dataclass(frozen=True)
class Work:
    """What a command did, which may be only part of the job."""

    model_epochs: int
    seconds: float
    """From the first ready worker to the last trained epoch."""
    workers: int
    facts: Mapping[str, Any]
    """Versions, machine and command."""


def make_result(
    folders: "Sequence[JobFolder]",
    work: Work,
    before: CrossvalResult | None = None,
    references: Sequence[Reference] = (),
) -> CrossvalResult:
    """The result of jobs whose stacks are all finished.

    Args:
        folders: the jobs, one per partition.
        work: what the current command did.
        before: an earlier result of the same jobs; what it has of references and rules is kept if
            this command does not ask for them.
        references: classifiers without a network on the folds of all partitions.

    Raises:
        IhgnnError: a training is missing.
    """
    from ihgnn_cli.training.snapshots import snapshot_epochs

    job = folders[0].job
    protocol, dataset = job.protocol, job.dataset
    truth, training = dataset.graph_class, protocol.config.training
    parts = [_Part(each, at * len(job.folds)) for at, each in enumerate(folders)]
    folds = [fold for part in parts for fold in part.results]
    every_fold = [fold for each in folders for fold in each.job.folds]
    judged = {part.first + fold: runs for part in parts for fold, runs in part.judged.items()}
    means = [fold.test_mean for fold in folds]
    runs = tuple(
        fmean(fold.runs[run].test_accuracy for fold in folds) for run in range(protocol.runs)
    )
    records = [each for part in parts for each in (*part.selection, *part.final)]
    validated = [each.validated for each in records]
    found = Scores.joined([part.scores(truth) for part in parts])
    method = method_of(judged, every_fold, truth)
    share = tested_share(every_fold, len(truth))
    classes = np.bincount(truth)
    settings = protocol.config.model
    variant = settings.variant if isinstance(settings, IHGNNSettings) else None
    result = CrossvalResult(
        dataset=dataset.name,
        model=protocol.config.model_name,
        variant=None if variant is None else str(variant),
        graphs=len(dataset),
        majority_share=float(classes.max() / classes.sum()),
        partial=job.partial,
        group_twins=job.group_twins,
        folds=tuple(folds),
        repeats=tuple(part.result for part in parts),
        test_mean=fmean(means),
        test_std=pstdev(means),
        test_error=corrected_error(means, share),
        runs=runs,
        runs_std=pstdev(runs),
        balanced_accuracy=found.balanced_accuracy,
        roc_auc=None if math.isnan(found.roc_auc) else found.roc_auc,
        graph_accuracies=method.graphs,
        chosen_by=_chosen_by(protocol),
        snapshots=len(snapshot_epochs(training.epochs, training.snapshots)),
        race=protocol.race_in_words,
        best=_best(parts, folds, protocol),
        paper=None if variant is None else paper_accuracy(dataset.name, variant),
        references=_beside(references, method, folders, share) if references else None,
        rules=_rules(parts, protocol) if job.curves else None,
        job=job.identity,
        models=len(records),
        diverged=sum(each.diverged for each in validated),
        stack=max(each.members for each in validated),
        model_epochs=sum(each.epochs for each in validated),
        worker_seconds=sum(each.seconds for each in validated),
        trained_now=work.model_epochs,
        seconds=work.seconds,
        workers=work.workers,
        finished=datetime.now(UTC).isoformat(timespec="seconds"),
        provenance={**work.facts, "devices": sorted({each.device for each in validated})},
    )
    if before is None:
        return result
    if not work.model_epochs:
        names = ("trained_now", "seconds", "workers", "finished", "provenance")
        result = replace(result, **{name: getattr(before, name) for name in names})
    same = len(before.folds) == len(result.folds)
    return replace(
        result,
        references=result.references or (before.references if same else None),
        rules=result.rules or (before.rules if same else None),
    )


class _Part:
    """The records of one partition, and what follows from them."""

    def __init__(self, folder: "JobFolder", first: int) -> None:
        self.job, self.first = folder.job, first
        protocol = self.job.protocol
        self.selection, self.final = folder.selection(), folder.final()
        self.chosen = folder.chosen()
        self.validation = scores(folder.last_rung(), protocol.grid)
        truth = self.job.dataset.graph_class
        self.judged: dict[int, list[Tested]] = by_fold(self.final)
        averaged = {}
        if not protocol.selects:
            for fold, runs in self.judged.items():
                test = self.job.folds[fold].test
                averaged[fold] = mean_prediction(runs, truth[test])
            self.judged = {fold: [mean] for fold, mean in averaged.items()}
        numbered = fold_results(self.chosen, self.validation, self.final, protocol.runs, averaged)
        self.results = [replace(each, fold=first + each.fold) for each in numbered]

    @property
    def result(self) -> RepeatResult:
        means = [fold.test_mean for fold in self.results]
        return RepeatResult(self.job.protocol.config.training.seed, fmean(means), pstdev(means))

    def scores(self, truth: Any) -> Scores:
        """The scores of the judged runs, averaged over runs."""
        pairs = [
            (np.array(run.probabilities), truth[self.job.folds[fold].test])
            for fold, runs in sorted(self.judged.items())
            for run in runs
        ]
        return fold_scores(*zip(*pairs, strict=True))


def _best(
    parts: Sequence[_Part], folds: Sequence[FoldResult], protocol: Protocol
) -> BestConfiguration:
    best, count = protocol.grid[0], len(folds)
    if protocol.selects:
        chosen = {part.first + fold: of for part in parts for fold, of in part.chosen.items()}
        by_score = {part.first + at: of for part in parts for at, of in part.validation.items()}
        best, count = most_chosen(chosen, by_score)
    plain = best.as_plain()
    epochs = [run.epoch for fold in folds if fold.configuration == plain for run in fold.runs]
    return BestConfiguration(plain, count, median_low(epochs))


def _chosen_by(protocol: Protocol) -> str:
    if not protocol.selects:
        return "nothing"
    return f"{CHOSEN_BY}, in a race" if protocol.race_in_words else CHOSEN_BY


def _rules(parts: Sequence[_Part], protocol: Protocol) -> tuple[RuleResult, ...]:
    """The rules over the folds of all partitions."""
    records: list[Record] = []
    for part in parts:
        for each in part.selection:
            training = each.validated.training
            moved = replace(training, fold=part.first + training.fold)
            records.append(replace(each, validated=replace(each.validated, training=moved)))
    found = rules(records, protocol.grid, sum(len(part.job.folds) for part in parts))
    return tuple(
        RuleResult(**{**vars(each), "configuration": _plain(each.configuration)}) for each in found
    )


def _plain(configuration: Configuration | None) -> Mapping[str, Setting] | None:
    return None if configuration is None else configuration.as_plain()


def _beside(
    references: Sequence[Reference], own: Method, folders: "Sequence[JobFolder]", share: float
) -> ReferenceResults:
    """The references, and the paired difference of the final runs from each of them."""
    dataset = folders[0].job.dataset
    folds = [fold for each in folders for fold in each.job.folds]
    gaps = family(
        [
            paired(
                own,
                Method(
                    each.scores.folds,
                    graph_accuracies(list(enumerate(each.predictions)), folds, dataset.graph_class),
                ),
                share,
            )
            for each in references
        ]
    )
    best = best_reference(references, dataset)
    gap = gaps[references.index(best)]
    methods = tuple(
        ReferenceResult(
            key=each.key,
            title=each.title,
            accuracy=each.scores.accuracy,
            accuracy_std=each.scores.accuracy_std,
            balanced_accuracy=each.scores.balanced_accuracy,
            roc_auc=None if math.isnan(each.scores.roc_auc) else each.scores.roc_auc,
            difference=of.difference,
            error=of.error,
            p=of.p,
            p_holm=of.p_holm,
            significant=of.significant,
        )
        for each, of in zip(references, gaps, strict=True)
    )
    sentence = f"{gap.verdict} the best reference, {best.title}: {gap.told}."
    return ReferenceResults(methods, best.key, gap.comparisons, sentence, left_out_note(dataset))
