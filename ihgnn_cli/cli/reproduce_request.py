"""What `ihgnn reproduce` is asked for, checked before torch is imported."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ihgnn_cli.cli import console
from ihgnn_cli.data.access import Access
from ihgnn_cli.errors import InputError
from ihgnn_cli.models.registry import IHGNN
from ihgnn_cli.paths import data_root as default_data_root
from ihgnn_cli.studies.budgets import Budget
from ihgnn_cli.studies.paper import check_models, paper_datasets, table1_models, table2_models
from ihgnn_cli.studies.subjects import Subject

_SWEEP_MODELS = (IHGNN, "ihgnn:no-separation", "gin", "h2gcn", "gprgnn", "acm")
"""By default: models that separate ego and neighbours, mix them, or use several channels."""


@dataclass(frozen=True)
class Request:
    """The options of the command."""

    subject: Subject
    datasets: tuple[str, ...]
    """Names or paths; empty if the subject makes its own."""
    models: tuple[str, ...]
    """Keys such as gin and ihgnn:no-concat; empty if nothing is trained."""
    budget: Budget
    folder: Path
    seed: int
    repeats: int
    splits: Path | None
    device: str | None
    workers: int | None
    where: Access
    command: str


def chosen_models(subject: Subject, given: Sequence[str] | None) -> tuple[str, ...]:
    """The models asked for, or those of the subject.

    Raises:
        InputError: a model is not known, or the subject has none.
    """
    match subject:
        case Subject.FIGURE1:
            if given is not None:
                raise InputError("figure1 shows data sets only. Leave out --models.")
            own: tuple[str, ...] = ()
        case Subject.TABLE1:
            own = table1_models()
        case Subject.TABLE2:
            own = table2_models()
        case Subject.SENSITIVITY:
            own = (IHGNN,)
        case Subject.SWEEP:
            own = _SWEEP_MODELS
    return check_models(given or own)


def chosen_datasets(
    subject: Subject,
    given: Sequence[str] | None,
    budget: Budget,
    where: Access,
) -> tuple[str, ...]:
    """The data sets asked for, or those of the budget that are on this machine.

    Raises:
        InputError: a data set is not available, or two have the same name.
    """
    from ihgnn_cli.data.listing import list_local
    from ihgnn_cli.data.sources import locate

    if subject == Subject.SWEEP:
        if given is not None:
            raise InputError(
                "homophily-sweep generates its own data sets. Leave out --datasets, or use table1 "
                "with --datasets synthetic:homophily=0.3,..."
            )
        return ()
    if given is not None:
        # Report unavailable data sets and equal names before any training.
        sources: dict[str, str] = {}
        for each in given:
            name = locate(each, where).name
            if name in sources:
                raise InputError(
                    f"{sources[name]} and {each} are both named {name} and could not be "
                    "distinguished in a table. Rename one of the files."
                )
            sources[name] = each
        return tuple(given)
    here = {each.name for each in list_local(default_data_root(where.data_root))}
    own = paper_datasets() if subject == Subject.FIGURE1 else budget.datasets
    left = [each for each in own if each not in here]
    if left:
        console.note(
            f"Left out because not on this machine: {', '.join(left)}. Download them with "
            "'ihgnn datasets fetch NAME', or choose others with --datasets."
        )
    return tuple(each for each in own if each in here)
