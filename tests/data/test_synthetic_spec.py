"""The text of a synthetic data set: what is read, how it is written, what is refused."""

import pytest

from ihgnn_cli.data.sources import Origin, Source, locate, locate_by_name, locate_file
from ihgnn_cli.data.synthetic_spec import SyntheticSpec, edge_share, parse_synthetic
from ihgnn_cli.errors import InputError
from ihgnn_cli.paths import file_name

WHOLE = "nodes=20,labels=3,classes=3,degree=2.5,signal=0.1,noise=0.05,seed=7"


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("synthetic:", "synthetic:homophily=0.5"),
        ("synthetic:homophily=.30", "synthetic:homophily=0.3"),
        ("synthetic:homophily=1.0,seed=007", "synthetic:homophily=1,seed=7"),
        ("synthetic:seed=3,graphs=60", "synthetic:homophily=0.5,graphs=60,seed=3"),
        ("synthetic:graphs=1000,degree=4.0,nodes=40..60", "synthetic:homophily=0.5"),
        ("synthetic:homophily=0.2..0.8,nodes=44..44", "synthetic:homophily=0.2..0.8,nodes=44"),
        (f"synthetic:{WHOLE},homophily=0..1", f"synthetic:homophily=0..1,{WHOLE}"),
        ("synthetic: homophily = 1e-1 ", "synthetic:homophily=0.1"),
    ],
)
def test_equal_data_sets_have_one_name_which_is_read_back(given: str, name: str) -> None:
    spec = parse_synthetic(given)
    assert str(spec) == name
    assert parse_synthetic(name) == spec


def test_fields_are_what_they_say() -> None:
    assert parse_synthetic(f"synthetic:homophily=0.2..0.4,graphs=30,{WHOLE}") == SyntheticSpec(
        homophily=(0.2, 0.4),
        graphs=30,
        nodes=(20, 20),
        labels=3,
        classes=3,
        degree=2.5,
        signal=0.1,
        noise=0.05,
        seed=7,
    )


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ("homphily=0.3", "no field 'homphily'. Did you mean homophily? Example: synthetic:h"),
        ("size=3", "There are homophily, graphs, nodes"),
        ("graphs=10,", "no field ''"),
        ("graphs", "graphs has no value. Example:"),
        ("graphs=", "graphs has no value"),
        ("graphs=10,graphs=20", "graphs is given twice"),
        ("graphs=1e3", "graphs is a whole number, not '1e3'"),
        ("graphs=-5", "graphs is a whole number, not '-5'"),
        ("graphs=1..5", "graphs is a whole number, not '1..5'"),
        ("graphs=٣", "graphs is a whole number"),
        ("homophily=nan", "homophily is a number, not 'nan'"),
        ("homophily=0.2-0.8", "homophily is a number, not '0.2-0.8'"),
        ("homophily=0.2..", "homophily is a number, not ''"),
        ("homophily=1.2", "homophily must be a number from 0 to 1"),
        ("homophily=0.8..0.2", "a range such as 0.2..0.8, not 0.8..0.2"),
        ("labels=1", "labels must be from 2 to 100, not 1"),
        ("labels=101,nodes=300", "labels must be from 2 to 100, not 101"),
        ("nodes=3", "nodes must be at least 8, two of each of 4 labels, not 3"),
        ("nodes=60..40", "a range from less to more such as 40..60, not 60..40"),
        ("classes=1", "classes must be at least 2, not 1"),
        ("classes=3,graphs=2", "graphs must be at least one for each of the 3 classes, not 2"),
        ("classes=4", "4 labels make patterns for 3 classes, not 4. Use labels=5 or more"),
        ("classes=3,labels=2", "Use labels=3 or more"),
        ("degree=40", "degree=40 does not fit into 40 nodes"),
        ("degree=1e999", "degree=inf does not fit"),
        ("degree=1", "degree=1 would leave nodes without neighbours"),
        ("degree=2,signal=0.5", "Use a degree from 2.5."),
        ("signal=0", "signal must be above 0 and at most 0.5, not 0"),
        ("signal=0.6", "signal must be above 0 and at most 0.5, not 0.6"),
        ("noise=1.5", "noise must be from 0 to 1, not 1.5"),
        ("seed=9223372036854775808", "seed must be from 0 to 2^63 - 1"),
        ("labels=2,homophily=0.05", "Use labels=3 or more, or a homophily from 0.1."),
        ("graphs=10000000", "10,000,000 graphs of 60 nodes take too long"),
        ("nodes=1000000", "1,000 graphs of 1,000,000 nodes take too long"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line_with_a_remedy(fields: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_synthetic(f"synthetic:{fields}")
    told = str(caught.value)
    assert told.startswith("synthetic: ")
    assert said in told
    assert "\n" not in told


def test_the_refused_degree_names_one_that_is_taken() -> None:
    with pytest.raises(InputError, match=r"at most 6\.2"):
        parse_synthetic("synthetic:degree=9,homophily=1")
    parse_synthetic("synthetic:degree=6.2,homophily=1")
    parse_synthetic("synthetic:degree=2.5,signal=0.5")


def test_the_share_of_homophilic_edges_makes_up_for_the_favoured_label() -> None:
    """Two labels, p = 3/4 and 1/4, q = 1/2: h = 2/5 gives (1/2 + 1/4) / 2 = 3/8."""
    spec = parse_synthetic("synthetic:labels=2,signal=0.5")
    assert edge_share(spec, 3 / 8) == pytest.approx(2 / 5)
    assert (edge_share(spec, 0), edge_share(spec, 1)) == (0, 1)


def test_every_command_finds_it_under_its_one_name() -> None:
    for find in (locate, locate_by_name, locate_file):
        found = find("synthetic:graphs=40,homophily=0.30")
        assert isinstance(found, Source)
        assert found.name == "synthetic:homophily=0.3,graphs=40"
        assert found.origin is Origin.SYNTHETIC
        assert str(found) == "generated"


def test_its_name_makes_a_file_name_on_every_system() -> None:
    name = str(parse_synthetic(f"synthetic:homophily=0.2..0.8,{WHOLE}"))
    assert not set(file_name(name)) & set('<>:"/\\|?*,= ')
