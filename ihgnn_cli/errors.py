"""What can go wrong for a user, one type per kind of mistake.

Every message says what was wrong and what to do. The command line shows it in
one or two lines and leaves with `exit_code`; the library only raises.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ihgnn_cli.words import counted


class IhgnnError(Exception):
    """Something failed for a reason that the user can understand and act on."""

    exit_code = 1


class InputError(IhgnnError):
    """The user asked for something that cannot be: a name, a path, an option, a file's content."""

    exit_code = 2


class InUseError(InputError):
    """What was asked for belongs to another process at the moment."""


class DownloadError(IhgnnError):
    """A data set could not be fetched from the network."""


class NotOnServerError(DownloadError):
    """The server has no data set of that name."""


def retold(error: IhgnnError, text: str) -> IhgnnError:
    """An error with the same exit code and another text."""
    return InputError(text) if isinstance(error, InputError) else IhgnnError(text)


@dataclass(frozen=True)
class Problem:
    """One mistake in a data file: where it is, what it is, and how to mend it."""

    file: str
    line: int | None
    message: str
    remedy: str
    count: int = 1
    """How many mistakes this stands for."""

    @property
    def where(self) -> str:
        """`FILE` or `FILE, line N`."""
        return self.file if self.line is None else f"{self.file}, line {self.line}"

    def __str__(self) -> str:
        return f"{self.where}: {self.message} {self.remedy}".rstrip()


class DataError(InputError):
    """A data set's files are wrong; `problems` holds every mistake that was found, never none."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        first = str(self.problems[0])
        more = self.count - 1
        if more:
            first += f" ({counted(more, 'more problem')}: 'ihgnn datasets check' shows them.)"
        super().__init__(first)

    @property
    def count(self) -> int:
        """How many mistakes there are, also those that are not told one by one."""
        return sum(problem.count for problem in self.problems)
