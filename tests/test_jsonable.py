"""Values as JSON knows them."""

import json
from enum import StrEnum
from pathlib import Path

from ihgnn_cli.jsonable import jsonable


class Colour(StrEnum):
    RED = "red"


def test_what_json_does_not_know_becomes_what_it_knows() -> None:
    value = {1: (float("nan"), float("inf"), 0.5), "p": Path("a"), "c": Colour.RED, "n": [None]}
    plain = jsonable(value)
    assert plain == {"1": [None, None, 0.5], "p": "a", "c": "red", "n": [None]}
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain
