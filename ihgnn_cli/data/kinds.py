"""Names of features and splits; imports without NumPy, to refuse wrong options at once."""

import math
import re
from collections.abc import Iterator
from enum import StrEnum

from ihgnn_cli.errors import InputError, SettingError

HOLDOUT = "holdout"
"""The split into 80, 10 and 10 %."""
ALL = "all"
"""Every graph trains: for a final model, of which nothing can be measured."""
FOLD = re.compile(r"fold:([0-9]{1,9})(:twins)?")
_SHARE = r"[-+]?(?:[0-9]+[.]?[0-9]*|[.][0-9]+)"
_SHARES = re.compile(rf"{_SHARE}(?:/{_SHARE})+")
_NUMBERED = re.compile(r"(.+):([0-9]{1,9})", re.DOTALL)


class Features(StrEnum):
    """The columns of a node's feature vector."""

    AUTO = "auto"
    """Labels where there are any, else attributes, else degrees."""
    LABELS = "labels"
    ATTRIBUTES = "attributes"
    BOTH = "both"


def is_drawn(text: str) -> bool:
    """Whether a text names a split that is drawn from the seed rather than a file."""
    fixed = text in (HOLDOUT, ALL) or FOLD.fullmatch(text) is not None
    return fixed or _SHARES.fullmatch(text) is not None


def split_shares(text: str) -> tuple[float, float, float] | None:
    """The shares of train, validation and test that a text names; `None` if it is no such text.

    Raises:
        InputError: the numbers are not three shares that add up to 1, or to 100 percent.
    """
    if not _SHARES.fullmatch(text):
        return None
    shares = [float(part) for part in text.split("/")]
    whole = next((each for each in (1, 100) if math.isclose(sum(shares), each)), None)
    if len(shares) != 3 or min(shares) <= 0 or whole is None:
        raise InputError(
            f"The split {text} must be the shares of train, validation and test, all above 0 and "
            "adding up to 1, such as 0.8/0.1/0.1."
        )
    train, validation, test = (share / whole for share in shares)
    return train, validation, test


def file_readings(text: str) -> Iterator[tuple[str, tuple[int, ...]]]:
    """The ways to read a text as a file name and numbers, longest name first."""
    numbers: tuple[int, ...] = ()
    while text:
        yield text, numbers
        match = _NUMBERED.fullmatch(text) if len(numbers) < 2 else None
        if match is None:
            return
        text, numbers = match[1], (int(match[2]), *numbers)


def check_edge_bins(count: int) -> None:
    """Check the number of bins of the edge attribute; 0 stands for none.

    Raises:
        SettingError: it is out of range.
    """
    if count and not 2 <= count <= 64:
        raise SettingError("edge_bins", f"must be from 2 to 64, not {count}.")


class NodeInputs(StrEnum):
    """Node inputs that can be computed from a graph, in addition to its labels and attributes."""

    DEGREE = "degree"
    HOMOPHILY = "homophily"
    TRIANGLES = "triangles"
    RANDOM_WALK = "random-walk"


def node_inputs(text: str) -> tuple[NodeInputs, ...]:
    """The inputs that a comma-separated list names, in the order of `NodeInputs`.

    Raises:
        InputError: a name is unknown.
    """
    known = [each.value for each in NodeInputs]
    asked = [part.strip().lower() for part in text.split(",")] if text else []
    for each in asked:
        if each not in known:
            raise InputError(
                f"No node input '{each}'. Give one or more of {', '.join(known)}, separated by "
                "commas."
            )
    return tuple(each for each in NodeInputs if each in asked)
