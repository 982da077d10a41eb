"""The paper's own accuracies for IHGNN and its four ablations.

From the paper's Tables 1 and 2 (arXiv 2203.07678): mean and standard deviation over ten folds.
"""

from dataclasses import dataclass

from ihgnn_cli.models.settings import Variant


@dataclass(frozen=True)
class PaperAccuracy:
    """Mean and standard deviation over ten folds, as shares of 1 like all accuracies."""

    variant: Variant
    mean: float
    std: float


_COLUMNS = (
    Variant.FULL,
    Variant.NO_INTEGRATION,
    Variant.NO_SEPARATION,
    Variant.NO_ADAPTIVE,
    Variant.NO_CONCAT,
)

# In percent, as printed.
_PRINTED: dict[str, tuple[tuple[float, float], ...]] = {
    "KKI": ((67.8, 18.7), (57.3, 16.0), (59.0, 18.0), (55.0, 18.9), (61.3, 17.0)),
    "DD": ((79.2, 2.5), (78.2, 4.1), (78.7, 2.5), (77.8, 3.4), (75.5, 3.4)),
    "COLLAB": ((79.0, 2.0), (78.6, 1.7), (78.0, 1.4), (78.2, 1.9), (79.2, 1.4)),
    "IMDB-BINARY": ((74.1, 5.4), (73.3, 4.1), (73.4, 4.4), (73.7, 4.6), (73.9, 3.2)),
    "DHFR_MD": ((74.3, 6.0), (69.7, 5.1), (73.5, 4.5), (72.3, 5.2), (68.7, 8.3)),
    "BZR_MD": ((72.2, 7.8), (67.3, 5.1), (71.5, 10.2), (68.0, 9.9), (66.9, 10.5)),
    "MUTAG": ((89.9, 6.0), (88.3, 5.2), (87.7, 6.0), (89.4, 4.1), (86.8, 6.7)),
    "PROTEINS": ((76.2, 2.2), (74.6, 3.0), (75.3, 2.7), (74.8, 2.8), (75.5, 2.1)),
    "IMDB-MULTI": ((51.9, 2.5), (49.5, 2.9), (50.7, 2.8), (49.9, 3.6), (51.2, 2.1)),
}


def paper_accuracy(dataset_name: str, variant: Variant) -> PaperAccuracy | None:
    """What the paper prints for a variant on a data set, if it has that data set."""
    row = _PRINTED.get(dataset_name)
    if row is None:
        return None
    mean, std = row[_COLUMNS.index(variant)]
    return PaperAccuracy(variant, round(mean / 100, 3), round(std / 100, 3))
