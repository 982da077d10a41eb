"""Small results of methods beside each other, for tests of what is made of them."""

from dataclasses import replace
from statistics import fmean, pstdev
from typing import Any

from ihgnn_cli.studies.comparison import Cell
from ihgnn_cli.studies.paper import model_title, printed


def cell(model: str, *accuracies: float, **changes: Any) -> Cell:
    """A method on MUTAG whose folds have ten test graphs each."""
    count = len(accuracies)
    dataset = changes.get("dataset", "MUTAG")
    plain = Cell(
        dataset=dataset,
        model=model,
        title=model_title(model),
        paper=printed(dataset, model),
        mean=fmean(accuracies),
        std=pstdev(accuracies),
        accuracies=accuracies,
        folds=tuple(range(count)),
        test_graphs=(10,) * count,
        graphs=10 * count,
        runs=1,
        epochs=5,
        majority_share=0.6,
        chosen_by="validation accuracy",
        data_sha256="data",
        splits_sha256="splits",
    )
    return replace(plain, **changes)


OURS = cell("ihgnn", 0.80, 0.90, 0.85, 0.75, 0.90)
GIN = cell("gin", 0.78, 0.84, 0.85, 0.77, 0.86)
WORSE = cell("acm", 0.60, 0.62, 0.61, 0.55, 0.60)
