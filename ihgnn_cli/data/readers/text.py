"""Read text files of comma-separated numbers, one row per line.

Chunks of one megabyte are parsed with array operations that accept only the plain form. A chunk
that is not in that form is read again line by line, which accepts more (`1.0` for 1, blanks instead
of commas) and knows the line of each mistake.
"""

from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from ihgnn_cli.data.readers.problems import ProblemList
from ihgnn_cli.progress import Advance, silent
from ihgnn_cli.words import counted

CHUNK_BYTES = 1 << 20
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
NOT_TEXT = "not plain text (perhaps UTF-16 or a binary file)."
SAVE_AS_TEXT = "Save it as UTF-8."
CORRECT_IT = "Correct it."
_INT32_DIGITS = 9
_INT64_DIGITS = 18
_EXACT_FLOAT = 2**53  # larger integers are not exact as floats

Table = NDArray[Any]
"""A 2-D array of numbers."""


def read_integers(
    stream: BinaryIO,
    problems: ProblemList,
    columns: int | None = None,
    advance: Advance = silent,
    *,
    remedy: str = CORRECT_IT,
) -> Table:
    """Read [rows, columns] as int32, or as int64 if a number needs it.

    Without `columns`, the first line sets their number. Mistakes go to `problems`; their rows are
    filled with zeros, so that the other rows keep their positions. `remedy` is the advice for
    anything that is not a number.
    """
    reader = _Reader(
        problems,
        columns,
        _plain_integers,
        _integer,
        f"a whole number of at most {_INT64_DIGITS} digits",
        remedy=remedy,
    )
    return reader.read(stream, advance, np.int32)


def read_floats(stream: BinaryIO, problems: ProblemList, advance: Advance = silent) -> Table:
    """Read [rows, columns] as float32; NaN and numbers out of range are mistakes."""
    reader = _Reader(problems, None, _plain_floats, _float, "a number")
    with np.errstate(over="ignore"):
        table = reader.read(stream, advance, np.float32)
    problems.add_rows(
        np.asarray(~np.isfinite(table).all(axis=1)),
        "a value is NaN, infinite or beyond 32-bit floats.",
        "Replace it with a finite number, or drop the attribute or the graph.",
    )
    return table


class _Reader:
    """The loop over chunks, shared by integers and floats."""

    def __init__(
        self,
        problems: ProblemList,
        columns: int | None,
        plain: Callable[[bytes, int], Table | None],
        single: Callable[[bytes], float],
        kind: str,
        *,
        remedy: str = CORRECT_IT,
    ) -> None:
        self.problems = problems
        self.columns = columns
        self.plain = plain
        self.single = single
        self.kind = kind
        self.remedy = remedy
        self.line = 0
        self.blank_lines: list[int] = []

    def read(self, stream: BinaryIO, advance: Advance, dtype: type[np.generic]) -> Table:
        parts: list[Table] = []
        for chunk in _whole_lines(stream, advance):
            if not parts and b"\0" in chunk:
                self.problems.add(None, NOT_TEXT, SAVE_AS_TEXT)
                break
            if self.columns is None:
                self.columns = count_fields(chunk)
            part = None if self.blank_lines else self.plain(chunk, self.columns or 1)
            if part is None:
                part = self._line_by_line(chunk, dtype)
            else:
                self.line += len(part)
            if len(part):
                parts.append(part)
        return np.concatenate(parts) if parts else np.zeros((0, self.columns or 1), dtype)

    def _line_by_line(self, chunk: bytes, dtype: type[np.generic]) -> Table:
        rows: list[list[float]] = []
        for raw in chunk.split(b"\n")[:-1]:
            self.line += 1
            content = raw.strip()
            if not content:
                self.blank_lines.append(self.line)
                continue
            for blank in self.blank_lines:
                self.problems.add(blank, "the line is empty.", "Remove it or fill it.")
                rows.append([0] * (self.columns or 1))
            self.blank_lines.clear()
            rows.append(self._row(content))
        largest = max((abs(value) for row in rows for value in row), default=0)
        if dtype is np.int32 and largest >= 10**_INT32_DIGITS:
            dtype = np.int64
        return np.array(rows, dtype=dtype).reshape(len(rows), self.columns or 1)

    def _row(self, content: bytes) -> list[float]:
        fields = _fields(content)
        columns = self.columns = self.columns or len(fields)
        if len(fields) != columns:
            self.problems.add(
                self.line,
                f"{counted(len(fields), 'value')} instead of {columns}.",
                f"Write {counted(columns, 'value')} per line, separated by commas.",
            )
            return [0] * columns
        row = []
        for each in fields:
            try:
                row.append(self.single(each))
            except ValueError:
                shown = each.decode(errors="replace").strip()[:40]
                self.problems.add(self.line, f"'{shown}' is not {self.kind}.", self.remedy)
                return [0] * columns
        return row


def _whole_lines(stream: BinaryIO, advance: Advance) -> Iterator[bytes]:
    """Yield chunks of whole lines; add a newline to the last line if it has none."""
    rest = b""
    first = True
    while block := stream.read(CHUNK_BYTES):
        advance(len(block))
        if first:
            block = block.removeprefix(_BYTE_ORDER_MARK)
            first = False
        cut = block.rfind(b"\n") + 1
        if cut:
            yield rest + block[:cut]
            rest = block[cut:]
        else:
            rest += block
    if rest:
        yield rest + b"\n"


def _fields(content: bytes) -> list[bytes]:
    return content.split(b",") if b"," in content else content.split()


def count_fields(chunk: bytes) -> int | None:
    """Count the values in the first non-empty line; `None` if there is no such line."""
    content = chunk.lstrip().split(b"\n", 1)[0]
    return len(_fields(content)) or None


def _integer(text: bytes) -> int:
    if b"_" in text:
        raise ValueError
    try:
        number = int(text)
    except ValueError:
        decimal = float(text)
        if not decimal.is_integer() or abs(decimal) >= _EXACT_FLOAT:
            raise
        number = int(decimal)
    if abs(number) >= 10**_INT64_DIGITS:
        raise ValueError
    return number


def _float(text: bytes) -> float:
    if b"_" in text:
        raise ValueError
    return float(text)


def _field_ends(text: NDArray[np.uint8], columns: int) -> NDArray[np.int64] | None:
    """[rows, columns] position of the comma or newline after each field; `None` if lines differ."""
    newline = text == ord("\n")
    separators = np.flatnonzero(newline | (text == ord(",")))
    rows = np.count_nonzero(newline)
    if len(separators) != rows * columns:
        return None
    ends = separators.reshape(rows, columns)
    return ends if newline[ends[:, -1]].all() else None


def _plain_integers(chunk: bytes, columns: int) -> Table | None:
    """Parse fields of digits with an optional sign; `None` if the chunk has another form."""
    text = np.frombuffer(chunk, dtype=np.uint8)
    fields = _field_ends(text, columns)
    if fields is None:
        return None
    digit = text - np.uint8(ord("0"))
    is_digit = digit < 10
    signs = np.flatnonzero((text == ord("-")) | (text == ord("+")))
    blanks = sum(np.count_nonzero(text == blank) for blank in b" \r\t")
    if np.count_nonzero(is_digit) + fields.size + len(signs) + blanks != len(text):
        return None
    # Each field must hold exactly one number.
    last = np.flatnonzero(is_digit[:-1] > is_digit[1:])
    ends = fields.ravel()
    if len(last) != len(ends) or (last > ends).any() or (last[1:] < ends[:-1]).any():
        return None
    value = _digits_to_numbers(digit, last)
    if value is None or not len(signs):
        return None if value is None else value.reshape(fields.shape)
    # A sign must come before a digit, and not after a digit or another sign.
    before = text[signs - 1]  # before the first byte, -1 wraps to the newline at the end
    if (
        not is_digit[signs + 1].all()
        or is_digit[signs - 1].any()
        or np.isin(before, list(b"-+")).any()
    ):
        return None
    value[np.searchsorted(last, signs[text[signs] == ord("-")])] *= -1
    return value.reshape(fields.shape)


def _digits_to_numbers(digit: NDArray[np.uint8], last: NDArray[np.int64]) -> Table | None:
    """Return the unsigned numbers whose last digits are at `last`; `None` if one is too long."""
    value = digit[last].astype(np.int32)
    inside = np.ones(len(last), dtype=np.uint8)
    position = last.copy()
    for power in range(1, _INT64_DIGITS + 1):
        position -= 1
        earlier = digit.take(position, mode="wrap")  # -1 wraps to the newline at the end
        inside &= earlier < 10
        if not inside.any():
            return value
        if power == _INT32_DIGITS:
            value = value.astype(np.int64)
        earlier *= inside
        value += earlier.astype(value.dtype) * value.dtype.type(10**power)
    return None


def _plain_floats(chunk: bytes, columns: int) -> Table | None:
    """Parse decimal numbers; `None` if the chunk has another form.

    (`np.fromstring` is twice as fast, but reads an empty field as -1.)
    """
    fields = _field_ends(np.frombuffer(chunk, dtype=np.uint8), columns)
    if fields is None or b"_" in chunk:
        return None
    texts = chunk.replace(b"\n", b",").split(b",")[:-1]
    try:
        values = np.fromiter(map(float, texts), dtype=np.float64, count=fields.size)
    except ValueError:
        return None
    return values.astype(np.float32).reshape(fields.shape)
