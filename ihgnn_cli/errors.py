"""Errors that a user can cause and fix.

Every message says what is wrong and what to do. The command line shows it in one or two lines and
exits with `exit_code`; the library only raises.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ihgnn_cli.words import counted

MAX_LINES = 9
"""How many further lines with the same mistake are listed."""
_PARTICULARS = re.compile(r"""'[^']*'|"[^"]*"|\[.*\]|\{.*\}|-?\d[\d.e+-]*""")


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
    count: int = 1
    """Number of mistakes that this entry represents."""
    also: tuple[int, ...] = ()
    """The next lines (or graphs) with the same mistake, at most `MAX_LINES` of them."""

    @property
    def where(self) -> str:
        """`FILE`, `FILE, line N`, or `FILE, line N (likewise M and 7 more)`."""
        first = self.file if self.line is None else f"{self.file}, line {self.line}"
        if not self.also:
            return first
        rest = self.count - 1 - len(self.also)
        others = ", ".join(map(str, self.also)) + (f" and {rest:,} more" if rest else "")
        return f"{first} (likewise {others})"

    @property
    def kind(self) -> str:
        """The mistake without its numbers and quoted values: equal for the same mistake."""
        return _PARTICULARS.sub("", f"{self.message} {self.remedy}")

    def followed_by(self, *numbers: int, count: int = 1) -> "Problem":
        """This mistake, which another `count` lines have as well; only the first are named."""
        also = (*self.also, *numbers)[:MAX_LINES]
        return replace(self, count=self.count + count, also=also)

    def __str__(self) -> str:
        return f"{self.where}: {self.message} {self.remedy}".rstrip()


class DataError(InputError):
    """The files of a data set are wrong; `problems` holds every mistake found (at least one)."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        first = str(self.problems[0])
        more = self.count - self.problems[0].count
        if more:
            first += f" ({counted(more, 'more problem')}: 'ihgnn datasets check' shows them.)"
        super().__init__(first)

    @property
    def count(self) -> int:
        """Number of mistakes, including those that are not listed individually."""
        return sum(problem.count for problem in self.problems)
