"""Tables of numbers: every way of writing them that is read, and what is said about the rest."""

import io
from collections.abc import Callable
from decimal import Decimal, InvalidOperation

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ihgnn_cli.data.readers import text
from ihgnn_cli.data.readers.problems import MAX_PROBLEMS_PER_FILE, ProblemList
from ihgnn_cli.data.readers.text import Table, read_floats, read_integers
from ihgnn_cli.errors import MAX_LINES, Problem

Reading = tuple[Table, list[Problem]]
any_case = settings(deadline=None, derandomize=True, max_examples=100)


def integers(content: bytes, columns: int | None = None) -> Reading:
    problems = ProblemList("T.txt")
    table = read_integers(io.BytesIO(content), problems, columns)
    return table, problems.all()


def floats(content: bytes) -> Reading:
    problems = ProblemList("T.txt")
    table = read_floats(io.BytesIO(content), problems)
    return table, problems.all()


def in_chunks(size: int, read: Callable[[bytes], Reading], content: bytes) -> Reading:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text, "CHUNK_BYTES", size)
        return read(content)


def line_by_line(read: Callable[[bytes], Reading], content: bytes) -> Reading:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text, "_plain_integers", lambda *_: None)
        patch.setattr(text, "_plain_floats", lambda *_: None)
        return read(content)


ONE_TO_FOUR = {
    "comma and blank": b"1, 2\n3, 4\n",
    "comma alone": b"1,2\n3,4\n",
    "blank before the comma": b"1 ,2\n3 ,4\n",
    "no final newline": b"1, 2\n3, 4",
    "Windows line ends": b"1, 2\r\n3, 4\r\n",
    "Windows line ends without the last": b"1, 2\r\n3, 4",
    "byte order mark": b"\xef\xbb\xbf1, 2\n3, 4\n",
    "blanks for commas": b"1 2\n3   4\n",
    "tabs for commas": b"1\t2\n3\t4\n",
    "some lines with blanks for commas": b"1, 2\n3 4\n",
    "blanks around the line": b"  1, 2  \n\t3, 4\t\n",
    "plus signs": b"+1, 2\n3, +4\n",
    "decimal point": b"1.0, 2\n3, 4.\n",
    "exponent": b"1e0, 2\n3, 40e-1\n",
    "leading zeros": b"01, 002\n3, 0000000000000000000000004\n",
    "trailing blank lines": b"1, 2\n3, 4\n\n \n\r\n\t",
}


@pytest.mark.parametrize("content", ONE_TO_FOUR.values(), ids=ONE_TO_FOUR)
def test_the_same_integers_however_they_are_written(content: bytes) -> None:
    table, problems = integers(content)
    assert (table.tolist(), problems) == ([[1, 2], [3, 4]], [])


@pytest.mark.parametrize("content", ONE_TO_FOUR.values(), ids=ONE_TO_FOUR)
def test_the_same_floats_however_they_are_written(content: bytes) -> None:
    table, problems = floats(content)
    assert (table.tolist(), problems) == ([[1, 2], [3, 4]], [])
    assert table.dtype == np.float32


@pytest.mark.parametrize("content", [b"+1,-1\n-20,+30\n", b"+1 -1\n-20 +30\n"])
def test_signs(content: bytes) -> None:
    assert integers(content)[0].tolist() == [[1, -1], [-20, 30]]


def test_minus_zero_is_zero() -> None:
    assert integers(b"-0\n0\n")[0].tolist() == [[0], [0]]


@pytest.mark.parametrize("content", [b"", b"\xef\xbb\xbf", b"\n", b"\n \r\n"])
def test_a_file_without_numbers_has_no_rows_and_no_problems(content: bytes) -> None:
    assert integers(content)[0].shape == (0, 1)
    assert integers(content, columns=2)[0].shape == (0, 2)
    assert floats(content)[0].shape == (0, 1)
    assert integers(content)[1] == floats(content)[1] == []


def test_progress_is_told_every_byte() -> None:
    told: list[int] = []
    read_integers(io.BytesIO(b"\xef\xbb\xbf1\n2\n"), ProblemList("T.txt"), advance=told.append)
    assert sum(told) == 7


@pytest.mark.parametrize("form", ["{}, {}\n", "{} {}\n"], ids=["fast", "line by line"])
@pytest.mark.parametrize(
    ("number", "dtype"),
    [
        (999_999_999, np.int32),
        (-999_999_999, np.int32),
        (2_147_483_647, np.int64),
        (2_147_483_648, np.int64),
        (-2_147_483_649, np.int64),
        (999_999_999_999_999_999, np.int64),
        (-999_999_999_999_999_999, np.int64),
    ],
)
def test_integers_are_exact_up_to_18_digits(number: int, dtype: type, form: str) -> None:
    table, problems = integers(form.format(number, 7).encode())
    assert (table.tolist(), problems) == ([[number, 7]], [])
    assert table.dtype == dtype


@pytest.mark.parametrize("text", [b"9007199254740993.0\n", b"9007199254740993e0\n"])
def test_a_long_integer_in_decimal_notation_is_exact_or_refused(text: bytes) -> None:
    table, problems = integers(text)
    assert problems or table.tolist() == [[9007199254740993]]


def test_one_long_number_widens_the_whole_table() -> None:
    table, _ = in_chunks(4, integers, b"1\n2\n4000000000\n3\n")
    assert table.tolist() == [[1], [2], [4_000_000_000], [3]]
    assert table.dtype == np.int64


@pytest.mark.parametrize("number", [10**18, -(10**18), 2**63, 10**18 * 10 + 7, 10**60])
@pytest.mark.parametrize("form", ["{}, 7\n", "{} 7\n"], ids=["fast", "line by line"])
def test_an_integer_of_more_than_18_digits_is_refused(number: int, form: str) -> None:
    table, [problem] = integers(f"1, 2\n{form.format(number)}".encode())
    assert problem.line == 2
    assert str(number)[:40] in problem.message
    assert table.tolist() == [[1, 2], [0, 0]]


NOT_WHOLE = [
    "x", "1.5", "nan", "inf", "-inf", "1e400", "1_0", "0x10", "--1", "+-1", "-+1", "1-", "-", "- 1",
    "1 2", "٣", "NaN", "True",
]  # fmt: skip


@pytest.mark.parametrize("field", NOT_WHOLE)
def test_what_is_not_a_whole_number_is_named_with_its_line(field: str) -> None:
    table, problems = integers(f"1, 2\n3, {field}\n5, 6\n".encode())
    assert problems == [
        Problem("T.txt", 2, f"'{field}' is not a whole number of at most 18 digits.", "Correct it.")
    ]
    assert table.tolist() == [[1, 2], [0, 0], [5, 6]]


@pytest.mark.parametrize("field", ["x", "1_0", "1.2.3", "--1", "1 2", "0x10", "1e"])
def test_what_is_not_a_number_is_named_with_its_line(field: str) -> None:
    table, problems = floats(f"1, 2\n3, {field}\n5, 6\n".encode())
    assert problems == [Problem("T.txt", 2, f"'{field}' is not a number.", "Correct it.")]
    assert table.tolist() == [[1, 2], [0, 0], [5, 6]]


def test_bytes_that_are_no_text_are_shown_as_well_as_can_be() -> None:
    assert (
        integers(b"\xff\n")[1][0].message == "'\ufffd' is not a whole number of at most 18 digits."
    )


def test_a_long_mistake_is_shown_in_part() -> None:
    assert (
        integers(b"y" * 1000)[1][0].message
        == f"'{'y' * 40}' is not a whole number of at most 18 digits."
    )


@pytest.mark.parametrize("content", [b"1,2,3\n1,,2\n", b"1,2,3\n1, ,2\n", b"1,2,3\n,1,2\n"])
def test_an_empty_field_is_a_mistake_and_not_a_number(content: bytes) -> None:
    for read, kind in ((integers, "a whole number of at most 18 digits"), (floats, "a number")):
        table, problems = read(content)
        assert problems == [Problem("T.txt", 2, f"'' is not {kind}.", "Correct it.")]
        assert table.tolist() == [[1, 2, 3], [0, 0, 0]]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"1, 2\n3\n5, 6\n", "1 value instead of 2."),
        (b"1, 2\n3, 4, 5\n5, 6\n", "3 values instead of 2."),
        (b"1, 2\n3, 4,\n5, 6\n", "3 values instead of 2."),
        (b"1, 2\n3 4 5\n5, 6\n", "3 values instead of 2."),
    ],
)
def test_a_line_with_more_or_fewer_values_than_the_first(content: bytes, message: str) -> None:
    remedy = "Write 2 values per line, separated by commas."
    for read in (integers, floats):
        table, problems = read(content)
        assert problems == [Problem("T.txt", 2, message, remedy)]
        assert table.tolist() == [[1, 2], [0, 0], [5, 6]]


def test_a_short_and_a_long_line_do_not_make_up_for_each_other() -> None:
    _, problems = integers(b"1, 2\n3\n4, 5, 6\n")
    assert [problem.line for problem in problems] == [2, 3]


def test_columns_that_are_given_hold_for_the_first_line_too() -> None:
    _, problems = integers(b"1\n2, 3\n", columns=2)
    assert [(problem.line, problem.message) for problem in problems] == [
        (1, "1 value instead of 2.")
    ]


def test_empty_lines_before_the_last_number_are_mistakes_and_keep_their_rows() -> None:
    empty = [Problem("T.txt", 1, "the line is empty.", "Remove it or fill it.", 3, (3, 4))]
    for read in (integers, floats):
        table, problems = read(b"\n1, 2\n\n \r\n3, 4\n\n")
        assert problems == empty
        assert table.tolist() == [[0, 0], [1, 2], [0, 0], [0, 0], [3, 4]]


@pytest.mark.parametrize("size", range(1, 12))
def test_empty_lines_are_found_across_chunks(size: int) -> None:
    table, problems = in_chunks(size, integers, b"1, 2\n\n\n3, 4\n\n\n")
    assert [(problem.line, problem.also) for problem in problems] == [(2, (3,))]
    assert table.tolist() == [[1, 2], [0, 0], [0, 0], [3, 4]]


@pytest.mark.parametrize("read", [integers, floats])
def test_an_empty_line_before_a_last_line_without_newline(read: Callable[..., Reading]) -> None:
    table, problems = read(b"\n1, 2")
    assert [problem.line for problem in problems] == [1]
    assert table.tolist() == [[0, 0], [1, 2]]


def test_chunks_of_nothing_but_empty_lines_do_not_set_the_columns() -> None:
    table, problems = in_chunks(2, integers, b"\n\n\n\n1, 2\n3, 4\n")
    assert [(problem.line, problem.also) for problem in problems] == [(1, (2, 3, 4))]
    assert table.tolist() == [[0, 0]] * 4 + [[1, 2], [3, 4]]


@pytest.mark.parametrize("size", range(3, 12))
def test_a_byte_order_mark_is_taken_from_the_first_chunk_only(size: int) -> None:
    table, [problem] = in_chunks(size, integers, b"\xef\xbb\xbf1\n2\n\xef\xbb\xbf3\n")
    assert problem.line == 3
    assert table.tolist() == [[1], [2], [0]]


@pytest.mark.parametrize("value", ["nan", "NaN", "inf", "-inf", "1e300", "-1e39", "1e400"])
@pytest.mark.parametrize("form", ["1, {}\n", "1 {}\n"], ids=["fast", "line by line"])
def test_a_float_that_is_not_finite_in_32_bits_is_a_mistake(value: str, form: str) -> None:
    _, problems = floats(f"1, 2\n{form.format(value)}3, 4\n".encode())
    assert problems == [
        Problem(
            "T.txt",
            2,
            "a value is NaN, infinite or beyond 32-bit floats.",
            "Replace it with a finite number, or drop the attribute or the graph.",
        )
    ]


def test_floats_in_every_notation() -> None:
    table, problems = floats(b"-0.5, .25, 3., 1e-3, 3.4e38, 1e-300\n")
    assert problems == []
    expected = np.array([[-0.5, 0.25, 3, 0.001, 3.4e38, 0]], dtype=np.float32)
    np.testing.assert_array_equal(table, expected)


def test_the_same_mistake_is_told_once_with_its_first_lines_and_a_count() -> None:
    _, problems = integers(b"1\n" + b"x\ny\n" * 500)
    assert [(each.line, each.count, len(each.also)) for each in problems] == [(2, 1000, MAX_LINES)]
    assert problems[0].message.startswith("'x' is not")
    assert problems[0].where == "T.txt, line 2 (likewise 3, 4, 5, 6, 7, 8, 9, 10, 11 and 990 more)"


def test_kinds_of_mistakes_beyond_the_cap_are_counted() -> None:
    problems = ProblemList("T.txt")
    for letter in "abcdefghijklmnopqrstuvwxyz"[: MAX_PROBLEMS_PER_FILE - 1]:
        problems.add(None, f"{letter}.", "Fix it.")
    problems.add_rows(np.array([False] + [True] * 30), "row.", "Fix it.")
    problems.add_rows(np.array([True]), "other.", "Fix it.")
    problems.add(None, "another.", "Fix it.")
    *listed, rest = problems.all()
    assert len(listed) == MAX_PROBLEMS_PER_FILE
    assert listed[-1] == Problem("T.txt", 2, "row.", "Fix it.", 30, tuple(range(3, 12)))
    assert (rest.message, rest.count) == ("2 more problems of other kinds.", 2)


def test_a_row_is_told_of_once() -> None:
    problems = ProblemList("T.txt")
    problems.add(2, "not a number.", "Correct it.")
    problems.add_rows(np.array([True, True]), "out of range.", "Fix it.")
    assert problems.all() == [
        Problem("T.txt", 2, "not a number.", "Correct it."),
        Problem("T.txt", 1, "out of range.", "Fix it."),
    ]


def test_a_list_of_problems_is_true_when_there_are_some() -> None:
    problems = ProblemList("T.txt")
    problems.add_rows(np.array([False, False]), "row.", "Fix it.")
    assert not problems
    problems.add(1, "one.", "Fix it.")
    assert problems


# From here on: any table, any text.


@st.composite
def written(draw: st.DrawFn, numbers: st.SearchStrategy) -> tuple[list[list[float]], bytes]:
    """A table and one of the ways to write it."""
    width = draw(st.integers(1, 4))
    row = st.lists(numbers, min_size=width, max_size=width)
    table = draw(st.lists(row, min_size=1, max_size=8))
    comma = st.sampled_from([",", ", ", " ,", "\t,\t"])
    blank = st.sampled_from([" ", "   ", "\t"])
    lines = []
    for values in table:
        separator = draw(st.sampled_from([comma, blank]))
        line = draw(st.sampled_from(["", " "]))
        for place, value in enumerate(values):
            plus = "+" if value > 0 and draw(st.booleans()) else ""
            line += (draw(separator) if place else "") + plus + repr(value)
        lines.append(line + draw(st.sampled_from(["", " "])))
    ends = [draw(st.sampled_from(["\n", "\r\n"])) for _ in lines]
    ends[-1] = draw(st.sampled_from(["", "\n", "\r\n", "\n\n", "\n \r\n"]))
    return table, "".join(line + end for line, end in zip(lines, ends, strict=True)).encode()


any_integer = st.integers(-(10**18) + 1, 10**18 - 1) | st.integers(-12, 12)
any_float = st.floats(width=32, allow_nan=False, allow_infinity=False)
any_text = st.lists(
    st.sampled_from(["0", "1", "27", "+", "-", ".", ",", ",", " ", "\t", "\n", "\n", "\r\n", "x"]),
    max_size=40,
).map(lambda pieces: "".join(pieces).encode())
any_chunk = st.integers(1, 20)


def reference(content: bytes) -> tuple[list[list[int]], set[int]]:
    """The rows, and the lines with mistakes, by the simplest means."""
    lines = content.split(b"\n")
    while lines and not lines[-1].strip():
        lines.pop()
    rows, wrong, columns = [], set(), 0
    for number, line in enumerate(lines, start=1):
        fields = line.split(b",") if b"," in line else line.split()
        columns = columns or len(fields)
        try:
            values = [Decimal(field.decode().strip()) for field in fields]
        except InvalidOperation:
            values = []
        if (
            fields
            and len(values) == columns
            and all(value == value.to_integral() for value in values)
        ):
            rows.append([int(value) for value in values])
        else:
            wrong.add(number)
            rows.append([])
    return [row or [0] * columns for row in rows], wrong


@any_case
@given(written(any_integer), any_chunk)
def test_any_table_of_integers_is_read_as_written(
    case: tuple[list[list[int]], bytes], size: int
) -> None:
    table, content = case
    for reading in (
        integers(content),
        in_chunks(size, integers, content),
        line_by_line(integers, content),
    ):
        assert (reading[0].tolist(), reading[1]) == (table, [])


@any_case
@given(written(any_float), any_chunk)
def test_any_table_of_floats_is_read_as_written(
    case: tuple[list[list[float]], bytes], size: int
) -> None:
    table, content = case
    for reading in (
        floats(content),
        in_chunks(size, floats, content),
        line_by_line(floats, content),
    ):
        assert (reading[0].tolist(), reading[1]) == (table, [])


@any_case
@given(any_text, any_chunk)
def test_any_text_gives_the_rows_and_the_lines_of_the_reference(content: bytes, size: int) -> None:
    rows, wrong = reference(content)
    table, problems = in_chunks(size, integers, content)
    assert table.tolist() == rows
    assert sum(problem.count for problem in problems) == len(wrong)
    lines = {line for problem in problems for line in (problem.line, *problem.also)}
    assert lines <= wrong
    assert min(lines, default=None) == min(wrong, default=None)


@any_case
@given(any_text)
def test_the_fast_way_and_the_way_line_by_line_agree_on_any_text(content: bytes) -> None:
    for read in (integers, floats):
        fast, slow = read(content), line_by_line(read, content)
        assert fast[0].tolist() == slow[0].tolist()
        assert fast[1] == slow[1]


def test_utf_16_is_named_once() -> None:
    _, problems = integers("1, 2\n3, 4\n".encode("utf-16"))
    assert [problem.remedy for problem in problems] == ["Save it as UTF-8."]
