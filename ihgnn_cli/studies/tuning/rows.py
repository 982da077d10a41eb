"""The trials of a search as rows for tables and figures, and what mattered."""

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from optuna.trial import TrialState

from ihgnn_cli.studies.tuning.slots import Outcome, Slot

if TYPE_CHECKING:
    from optuna import Study

_WORDS = {
    TrialState.COMPLETE: "complete",
    TrialState.PRUNED: "pruned",
    TrialState.FAIL: "failed",
    TrialState.RUNNING: "running",
    TrialState.WAITING: "waiting",
}
# Fewer finished trials say nothing of what mattered.
_FEWEST = 5


def trial_rows(slots: Sequence[Slot]) -> list[dict[str, Any]]:
    """A row for each trial that was asked for, in the order of their numbers.

    The columns are the fields of `report.tuning.TrialRow`.
    """
    return [_row(slot) for slot in slots]


def importances(study: "Study", slots: Sequence[Slot]) -> dict[str, float]:
    """The share of each setting in what made trials good or bad (fANOVA); empty for too few."""
    import optuna  # noqa: PLC0415

    complete = [slot.last for slot in slots if slot.last.state is TrialState.COMPLETE]
    values = {each.value for each in complete}
    if len(complete) < _FEWEST or len(values) < 2:
        return {}
    # Of these trials alone, and with a fixed seed, so that the same trials give the same answer.
    apart = optuna.create_study(direction=study.direction)
    apart.add_trials(complete)
    evaluator = optuna.importance.FanovaImportanceEvaluator(seed=0)
    found = optuna.importance.get_param_importances(apart, evaluator=evaluator)
    return {name: float(share) for name, share in found.items()}


def _row(slot: Slot) -> dict[str, Any]:
    outcome = slot.outcome
    row: dict[str, Any] = {
        "number": slot.number,
        "state": _WORDS[slot.state],
        "params": slot.params,
        "tries": len(slot.tries),
        "failure": slot.failure,
    }
    if outcome is None:
        nothing = dict.fromkeys(("accuracy", "loss", "best_epoch", "seconds"))
        return row | nothing | {"curve": ()}
    return row | {
        "accuracy": outcome.accuracy,
        "loss": outcome.loss,
        "best_epoch": sum(outcome.best_epochs) / len(outcome.best_epochs),
        "seconds": outcome.seconds,
        "curve": _curve(outcome),
    }


def _curve(outcome: Outcome) -> tuple[float, ...]:
    """Accuracy epoch by epoch, the mean over the splits that got as far."""
    longest = max(map(len, outcome.hits))
    means = []
    for epoch in range(longest):
        shares = [
            Fraction(hits[epoch], graphs)
            for hits, graphs in zip(outcome.hits, outcome.graphs, strict=True)
            if epoch < len(hits)
        ]
        means.append(float(sum(shares) / len(shares)))
    return tuple(means)
