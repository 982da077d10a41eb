"""Messages of the library name options of the command line; Python users know arguments."""

import re
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from ihgnn_cli.errors import IhgnnError

# An option in a message, unless it is part of a command line.
_COMMAND = r"'(?:ihgnn|ray) [^']*'|: ihgnn .*|ray start [^)]*"
_OPTION = re.compile(rf"{_COMMAND}|(?<![\w-])--([a-z][a-z-]*)(?: \((\w+=\w+) in Python\))?")
_NEGATED = {"no_verify": "verify=False"}
_Given = ParamSpec("_Given")
_Made = TypeVar("_Made")


def in_python(call: Callable[_Given, _Made]) -> Callable[_Given, _Made]:
    """Make the errors of a function name arguments (`batch_size`) and not options."""

    def argument(match: re.Match[str]) -> str:
        name = (match[1] or "").replace("-", "_")
        return match[2] or _NEGATED.get(name, name) or match[0]

    @wraps(call)
    def called(*args: _Given.args, **kwargs: _Given.kwargs) -> _Made:
        try:
            return call(*args, **kwargs)
        except IhgnnError as error:
            error.args = (_OPTION.sub(argument, str(error)),)
            raise

    return called
