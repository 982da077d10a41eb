"""The same trainings evaluated by other selection rules from the literature, clearly labelled.

All rules use the trainings of the selection, whose test accuracy was recorded in every epoch but
not used for any choice. The main result of the protocol does not depend on them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import pstdev

from ihgnn_cli.errors import IhgnnError
from ihgnn_cli.studies.crossval.protocol import Configuration
from ihgnn_cli.studies.crossval.records import Record, Validated
from ihgnn_cli.studies.crossval.selection import choose, common, scores

Runs = Mapping[int, Mapping[Configuration, Sequence[Record]]]
"""The trainings of each fold and configuration, one per split."""
_SEEN = "the choice used some of a fold's test graphs, as validation graphs of other folds"


@dataclass(frozen=True)
class Rule:
    """A rule and its result over the folds, from 0 to 1."""

    key: str
    title: str
    honest: bool
    """Whether no choice depends on test accuracy."""
    mean: float
    std: float
    configuration: Configuration | None
    """`None` if each fold has its own."""
    epoch: int | None
    """`None` if each training has its own."""
    note: str | None = None
    """How an honest choice still depends on test graphs."""


def rules(records: Sequence[Record], grid: Sequence[Configuration], folds: int) -> list[Rule]:
    """All rules, the honest ones first.

    Raises:
        IhgnnError: trainings are missing, or their test accuracies were not recorded.
    """
    for record in records:
        if not record.has_curve:
            raise IhgnnError(f"{record.validated.training.name} has no test accuracy per epoch.")
    validated = [record.validated for record in records]
    chosen = choose(validated, grid, folds)  # raises if something is missing
    runs = _by_fold(records)
    usable = [each for each in grid if all(_trained(runs[fold][each]) for fold in runs)]
    nested = _rule(
        "nested",
        "A configuration for each fold by its validation; the trainings of the selection",
        [_at(runs[fold][chosen[fold]], _best) for fold in sorted(runs)],
    )
    if not usable:  # nothing is common to all folds
        return [nested]
    by_fold = scores(validated, grid)
    one = common(
        {fold: {each: of_fold[each] for each in usable} for fold, of_fold in by_fold.items()}
    )
    return [
        nested,
        _rule(
            "common-validation",
            "One configuration for all folds by mean validation accuracy",
            [_at(runs[fold][one], _best) for fold in sorted(runs)],
            configuration=one,
            note=_SEEN,
        ),
        _by_test(runs, usable),
        _common_epoch(runs, usable),
    ]


def _by_test(runs: Runs, usable: Sequence[Configuration]) -> Rule:
    """The rule of the authors' published script."""
    found = {each: [_at(runs[fold][each], _lowest) for fold in sorted(runs)] for each in usable}
    best = max(usable, key=lambda each: _mean(found[each]))
    return _rule(
        "authors",
        "The authors' script: epoch by lowest validation loss, configuration by mean TEST accuracy",
        found[best],
        honest=False,
        configuration=best,
    )


def _common_epoch(runs: Runs, usable: Sequence[Configuration]) -> Rule:
    """One epoch for all folds, the best on test; common in the literature since GIN."""
    best: tuple[Fraction, Configuration, int, list[Fraction]] | None = None
    for each in usable:
        curves = [_curve(runs[fold][each]) for fold in sorted(runs)]
        for number, accuracies in enumerate(zip(*curves, strict=False), start=1):  # to the shortest
            mean = _mean(accuracies)
            if best is None or mean > best[0]:
                best = mean, each, number, list(accuracies)
    assert best is not None  # noqa: S101  usable configurations have epochs
    _, configuration, epoch, of_folds = best
    return _rule(
        "common-test-epoch",
        "One configuration and one epoch for all folds, both by mean TEST accuracy",
        of_folds,
        honest=False,
        configuration=configuration,
        epoch=epoch,
    )


def _rule(
    key: str,
    title: str,
    folds: Sequence[Fraction],
    *,
    honest: bool = True,
    configuration: Configuration | None = None,
    epoch: int | None = None,
    note: str | None = None,
) -> Rule:
    mean, std = float(_mean(folds)), pstdev(map(float, folds))
    return Rule(key, title, honest, mean, std, configuration, epoch, note)


def _by_fold(records: Sequence[Record]) -> dict[int, dict[Configuration, list[Record]]]:
    found: dict[int, dict[Configuration, list[Record]]] = {}
    for record in records:
        training = record.validated.training
        found.setdefault(training.fold, {}).setdefault(training.configuration, []).append(record)
    return found


def _trained(records: Sequence[Record]) -> bool:
    return all(record.validated.hits for record in records)


def _best(validated: Validated) -> int:
    return 0 if validated.best is None else validated.best.epoch - 1


def _lowest(validated: Validated) -> int:
    return validated.losses.index(min(validated.losses))


def _at(records: Sequence[Record], epoch: Callable[[Validated], int]) -> Fraction:
    """The mean over a fold's splits of the test accuracy at the chosen epoch of each."""
    return _mean([_accuracies(record)[epoch(record.validated)] for record in records])


def _curve(records: Sequence[Record]) -> list[Fraction]:
    """The mean over a fold's splits per epoch, up to the end of the shortest."""
    return [_mean(each) for each in zip(*map(_accuracies, records), strict=False)]


def _mean(values: Sequence[Fraction]) -> Fraction:
    """The exact mean, so that ties are recognised."""
    return sum(values, Fraction(0)) / len(values)


def _accuracies(record: Record) -> list[Fraction]:
    tested = record.tested
    return [] if tested is None else [Fraction(hits, tested.graphs) for hits in tested.hits]
