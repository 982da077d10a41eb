"""The list of data sets on the TU server."""

import pytest

from ihgnn_cli.data.sources.catalogue import CatalogueEntry, catalogue, close_names

PAPER = {
    "BZR_MD",
    "COLLAB",
    "DD",
    "DHFR_MD",
    "IMDB-BINARY",
    "IMDB-MULTI",
    "KKI",
    "MUTAG",
    "PROTEINS",
}


def test_an_entry_holds_what_the_web_page_says() -> None:
    assert catalogue()["BZR_MD"] == CatalogueEntry(
        name="BZR_MD",
        graphs=306,
        classes=2,
        mean_nodes=21.30,
        mean_edges=225.06,
        node_labels=True,
        edge_labels=True,
        node_attributes=0,
        edge_attributes=1,
    )


def test_the_paper_s_data_sets_are_listed() -> None:
    assert catalogue().keys() >= PAPER


def test_every_entry_is_a_classification_of_several_graphs() -> None:
    for name, entry in catalogue().items():
        assert entry.name == name
        assert entry.graphs > 1, name
        assert entry.classes > 1, name
        assert entry.mean_nodes > 0, name
        assert entry.mean_edges > 0, name
        assert entry.node_attributes >= 0, name
        assert entry.edge_attributes >= 0, name


def test_names_are_listed_once_and_can_stand_in_an_address() -> None:
    assert len(catalogue()) == len({name.lower() for name in catalogue()})
    assert [name for name in catalogue() if not name.replace("-", "").isidentifier()] == []


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("mutag", "MUTAG"),
        ("MUTAGS", "MUTAG"),
        ("Protein", "PROTEINS"),
        ("imdb_multi", "IMDB-MULTI"),
        ("collab", "COLLAB"),
    ],
)
def test_the_likeliest_close_name_comes_first(given: str, meant: str) -> None:
    assert close_names(given)[0] == meant


def test_a_name_like_no_other_has_no_close_names() -> None:
    assert close_names("QQQQ") == []


def test_close_names_are_at_most_three() -> None:
    assert len(close_names("Tox21_training")) <= 3
