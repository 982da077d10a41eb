"""Predictions as lines of JSON and rows of CSV, to the letter."""

import io
import json
from pathlib import Path

import pytest

from ihgnn_cli.inference.prediction import Prediction
from ihgnn_cli.report.predictions import csv_file, csv_rows, id_text, json_line

PLAIN = Prediction(0, 1, {-1: 0.1, 1: 0.9})
FULL = Prediction(
    7, "ä", {"ä": 2 / 3, "b": 1 / 3}, id={"made": "by me"}, unknown_nodes=2, larger_than_m=True
)


def test_an_ordinary_graph_is_a_line_of_three_keys() -> None:
    line = '{"graph": 0, "class": "1", "probabilities": {"-1": 0.1, "1": 0.9}}'
    assert json_line(PLAIN) == line


def test_what_there_is_to_say_is_said_behind_them_in_ascii() -> None:
    assert json_line(FULL).isascii()
    assert json.loads(json_line(FULL)) == {
        "graph": 7,
        "class": "ä",
        "probabilities": {"ä": 0.6666667, "b": 0.3333333},
        "id": {"made": "by me"},
        "unknown_nodes": 2,
        "larger_than_m": True,
    }


def test_small_probabilities_stay_above_zero() -> None:
    told = json.loads(json_line(Prediction(0, 1, {0: 1.23456789e-12, 1: 1.0})))
    assert told["probabilities"] == {"0": 1.234568e-12, "1": 1.0}


def test_rows_of_csv_have_one_form_for_all() -> None:
    stream = io.StringIO()
    write = csv_rows(stream, ("ä", "b"), line_end="\n")
    write([FULL])
    write([Prediction(8, "b", {"ä": 0.0, "b": 1.0}, id='say "x"')])
    assert stream.getvalue().splitlines() == [
        "graph,id,class,p(ä),p(b),unknown_nodes,larger_than_m",
        '7,"{""made"": ""by me""}",ä,0.6666667,0.3333333,2,true',
        '8,"say ""x""",b,0,1,0,false',
    ]


def test_a_file_is_whole_or_not_there(tmp_path: Path) -> None:
    target = tmp_path / "p.csv"

    def interrupted() -> None:
        with csv_file(target, (-1, 1)) as write:
            write([PLAIN])
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert list(tmp_path.iterdir()) == []
    with csv_file(target, (-1, 1)) as write:
        write([PLAIN])
    assert target.read_bytes().splitlines()[1] == b"0,,1,0.1,0.9,0,false"


def test_half_a_character_in_an_id_is_told_by_its_number(tmp_path: Path) -> None:
    half = Prediction(0, 1, {-1: 0.1, 1: 0.9}, id="\ud800x")
    with csv_file(tmp_path / "p.csv", (-1, 1)) as write:
        write([half])
    assert (tmp_path / "p.csv").read_bytes().splitlines()[1] == rb"0,\ud800x,1,0.1,0.9,0,false"
    assert json.loads(json_line(half))["id"] == "\ud800x"


def test_an_id_is_told_as_it_was_given() -> None:
    assert [id_text(each) for each in (None, "a b", 5, [1, "x"])] == ["", "a b", "5", '[1, "x"]']
