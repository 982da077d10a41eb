"""Errors that a user can cause and fix.

Every message says what is wrong and what to do. The command line shows it in one or two lines and
exits with `exit_code`; the library only raises.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ihgnn_cli.words import counted


class IhgnnError(Exception):
    """Base class: something failed for a reason that the user can act on."""

    exit_code = 1


class InputError(IhgnnError):
    """The input is wrong: a name, a path, an option, or the content of a file."""

    exit_code = 2


class SettingError(InputError):
    """The value of a setting is wrong.

    Args:
        setting: its name.
        problem: the rest of the message, such as "must be at least 1, not 0."
    """

    def __init__(self, setting: str, problem: str) -> None:
        super().__init__(f"{setting} {problem}")
        self.setting, self.problem = setting, problem


class InUseError(InputError):
    """Another process is using the resource."""


class NoLocksError(IhgnnError):
    """The file system has no locks."""


class DownloadError(IhgnnError):
    """A data set could not be downloaded."""


class NotOnServerError(DownloadError):
    """The server has no data set of that name."""


def retold(error: IhgnnError, text: str) -> IhgnnError:
    """An error with the same exit code and a new text."""
    return InputError(text) if isinstance(error, InputError) else IhgnnError(text)


@dataclass(frozen=True)
class Problem:
    """One mistake in a data file: where it is, what it is, and how to fix it."""

    file: str
    line: int | None
    message: str
    remedy: str

    @property
    def where(self) -> str:
        """`FILE`, or `FILE, line N`."""
        return self.file if self.line is None else f"{self.file}, line {self.line}"

    def __str__(self) -> str:
        return f"{self.where}: {self.message} {self.remedy}".rstrip()


class DataError(InputError):
    """The files of a data set are wrong; `problems` holds the first mistakes (at least one)."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        first, more = str(self.problems[0]), len(self.problems) - 1
        if more:
            first += f" ({counted(more, 'more problem')}: 'ihgnn datasets check' shows them.)"
        super().__init__(first)
