"""The paper's accuracies are those of its tables."""

import pytest

from ihgnn_cli.homophily.paper import PAPER
from ihgnn_cli.models.settings import Variant
from ihgnn_cli.selection.paper import PaperAccuracy, paper_accuracy


@pytest.mark.parametrize(
    ("variant", "mean", "std"),
    [
        (Variant.FULL, 0.678, 0.187),
        (Variant.NO_INTEGRATION, 0.573, 0.16),
        (Variant.NO_SEPARATION, 0.59, 0.18),
        (Variant.NO_ADAPTIVE, 0.55, 0.189),
        (Variant.NO_CONCAT, 0.613, 0.17),
    ],
)
def test_each_variant_has_its_own_column(variant: Variant, mean: float, std: float) -> None:
    assert paper_accuracy("KKI", variant) == PaperAccuracy(variant, mean, std)


def test_the_paper_has_all_variants_of_each_of_its_data_sets() -> None:
    missing = [
        (name, variant)
        for name in PAPER
        for variant in Variant
        if paper_accuracy(name, variant) is None
    ]
    assert not missing


def test_only_on_collab_an_ablation_is_ahead() -> None:
    """Without the concatenation: 79.2 against 79.0."""
    ahead = []
    for name in PAPER:
        found = {variant: paper_accuracy(name, variant) for variant in Variant}
        means = {variant: each.mean for variant, each in found.items() if each is not None}
        ahead += [(name, each) for each, mean in means.items() if mean > means[Variant.FULL]]
    assert ahead == [("COLLAB", Variant.NO_CONCAT)]


def test_other_data_sets_have_no_accuracy() -> None:
    assert paper_accuracy("NCI1", Variant.FULL) is None
