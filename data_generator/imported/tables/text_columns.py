"""From columns of text to columns of the type that all of their values have; and what is said of those that have none.

This module knows neither files nor blocks; where a value stands it is told.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NoReturn

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.types as pt

from data_generator.imported.refusal import Refused, printable

MISSING = (
    *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A", "NA"),
    *("NULL", "NaN", "None", "n/a", "nan", "null"),
)
"""Text that means that a value is missing, as pandas reads it."""

_NUMBER = r"^\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*$"
_DATE = r"^\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}.*)?$"
_MIXED_SHARE = 0.5
"""A text column of which at least so many values are numbers, or dates, is mixed."""


def inferred(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    """The values of a column of text in the type that all of them have; text where they have none. Times are in
    microseconds, but where that would lose digits."""
    written = pa.BufferOutputStream()
    options = pyarrow.csv.WriteOptions(include_header=False, quoting_style="all_valid")
    pyarrow.csv.write_csv(pa.table({"values": texts}), written, options)
    buffer = written.getvalue()
    table = pyarrow.csv.read_csv(
        pa.BufferReader(buffer),
        pyarrow.csv.ReadOptions(
            use_threads=False, column_names=["values"], block_size=min(max(buffer.size, 1 << 20), 1 << 30)
        ),
        pyarrow.csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
        pyarrow.csv.ConvertOptions(null_values=list(MISSING), strings_can_be_null=True),
    )
    values = table.column(0)
    return in_microseconds(values) if pt.is_timestamp(values.type) else values


def in_microseconds(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Timestamps in microseconds, or as they are where that would lose digits or go beyond the range."""
    try:
        return values.cast(pa.timestamp("us", values.type.tz))
    except pa.ArrowInvalid:
        return values


@dataclass(frozen=True)
class Misfit:
    """The first value of a column that keeps it from being of the type of most others; `place` counts from 0 in the
    sample."""

    column: str
    place: int
    value: str
    other: str


def first_misfit(name: str, texts: pa.ChunkedArray) -> Misfit | None:
    """What keeps a column of text from being numbers, or dates; None where it is just text."""
    missing = pc.is_in(texts, value_set=pa.array(MISSING))
    present = len(texts) - (pc.sum(missing).as_py() or 0)
    for pattern, other in ((_NUMBER, "number"), (_DATE, "date")):
        fits = pc.or_(missing, pc.match_substring_regex(texts, pattern))
        fitting = (pc.sum(fits).as_py() or 0) - (len(texts) - present)
        if _MIXED_SHARE * present <= fitting < present:
            place = pc.index(fits, False).as_py()
            return Misfit(name, place, texts[place].as_py(), other)
    return None


def misfit_remarks(
    misfits: Sequence[Misfit], lines: Callable[[Sequence[int]], dict[int, int]], line: str = "line"
) -> list[str]:
    """The remarks on mixed columns; `lines` finds for places in the sample the lines of the file."""
    found = lines([misfit.place for misfit in misfits]) if misfits else {}
    return [
        f"column {misfit.column!r} is mixed and stays text: {_where(line, found.get(misfit.place))} holds "
        f"{printable(misfit.value)[:60]!r}, which is no {misfit.other}\n"
        "repair the file, or take the figures as those of text"
        for misfit in misfits
    ]


def _where(line: str, number: int | None) -> str:
    return "one" if number is None else f"{line} {number:,}"


def refuse_encoding(where: str, byte: int) -> NoReturn:
    """Raises Refused for a byte that is no UTF-8."""
    raise Refused(f"byte 0x{byte:02x} is no UTF-8", as_utf8("latin1"), where)


def as_utf8(encoding: str) -> str:
    """The next step for a file in another encoding."""
    return f"write it again as UTF-8: iconv -f {encoding} -t utf-8 FILE > NEW"
