"""Messages that say where, what and how to mend it."""

import pytest

from ihgnn_cli.errors import DataError, DownloadError, IhgnnError, InputError, Problem, retold

FIRST = Problem("A.txt", 3, "'x' is not a number.", "Correct it.")
SECOND = Problem("A.txt", None, "the file is empty.", "Fill it.")


def test_a_problem_says_where_what_and_how_to_mend_it() -> None:
    assert str(FIRST) == "A.txt, line 3: 'x' is not a number. Correct it."


def test_a_problem_of_a_whole_file_has_no_line() -> None:
    assert SECOND.where == "A.txt"
    assert str(SECOND) == "A.txt: the file is empty. Fill it."


def test_a_data_error_with_one_problem_is_that_problem() -> None:
    assert str(DataError([FIRST])) == str(FIRST)


@pytest.mark.parametrize(
    ("others", "more"), [([SECOND], "1 more problem:"), ([SECOND] * 4, "4 more problems:")]
)
def test_a_data_error_shows_the_first_problem_and_counts_the_others(
    others: list[Problem], more: str
) -> None:
    error = DataError([FIRST, *others])
    assert error.problems == (FIRST, *others)
    assert str(error) == f"{FIRST} ({more} 'ihgnn datasets check' shows them.)"


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (IhgnnError("it failed"), 1),
        (DownloadError("no network"), 1),
        (InputError("no such name"), 2),
        (DataError([FIRST]), 2),
    ],
)
def test_mistakes_of_the_input_leave_with_2_and_other_failures_with_1(
    error: IhgnnError, code: int
) -> None:
    assert error.exit_code == code


@pytest.mark.parametrize(
    ("error", "code"), [(DataError([FIRST]), 2), (InputError("x"), 2), (DownloadError("x"), 1)]
)
def test_an_error_told_in_other_words_keeps_its_exit_code(error: IhgnnError, code: int) -> None:
    again = retold(error, "other words")
    assert (str(again), again.exit_code) == ("other words", code)
