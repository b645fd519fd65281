"""Detect the layout of a CSV file: lines before its header, delimiter, and column names. Check its quotation marks.

The layout is detected from the beginning of the file. If several layouts are possible, the one that fits most lines is
chosen and a remark is added. This module does not read values.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from data_generator.imported.read_options import ReadOptions
from data_generator.imported.refusal import Refused

DELIMITERS = (",", ";", "\t", "|")
_NAMES = {",": "comma", ";": "semicolon", "\t": "tab", "|": "'|'", " ": "space"}
_UNUSUAL = ("::", "||", "^", "~", "\x01", "\x1f", ":", " ")
"""Delimiters that are considered if no usual delimiter fits."""

_RECORDS = 100
_MARK = b'"'
_SEP = re.compile(r'"?sep=(.)"?\r?\n', re.IGNORECASE)


@dataclass(frozen=True)
class Layout:
    """The layout of one file. `skipped` lines precede the header; `remarks` are warnings of two lines."""

    delimiter: str
    skipped: int
    has_header: bool
    remarks: tuple[str, ...]

    def understood(self, record: Sequence[str]) -> dict[str, str]:
        """Return a description of the layout for the user, as subject -> text. `record` has the fields of the first
        record."""
        header = f"line {self.skipped + 1}" if self.has_header else "none: columns are called '0', '1', .."
        if self.has_header and (empty := sum(not name for name in record)):
            header += f"; {empty} without a name" + ", named 'Unnamed: ' and their number"
        skipped = {"skipped": f"{self.skipped} lines before the header"} if self.skipped else {}
        return {"delimiter": delimiter_name(self.delimiter), "header": header, **skipped}


def delimiter_name(delimiter: str) -> str:
    """Return the name of a delimiter in messages, such as 'comma' for ','."""
    return _NAMES.get(delimiter, repr(delimiter))


def found_layout(beginning: str, options: ReadOptions, *, is_by_tabs: bool, longest: int) -> Layout:
    """Return the layout of a file with this beginning.

    `options` take precedence over what is detected. `is_by_tabs` is whether tabs are the delimiter according to the
    file's suffix. `longest` is the maximum number of characters in a field. Raises Refused if the delimiter has more
    than one character.
    """
    csv.field_size_limit(longest)
    remarks: list[str] = []
    skipped = 0
    named = options.delimiter or ("\t" if is_by_tabs else None)
    if match := _SEP.match(beginning):
        beginning, skipped = beginning[match.end() :], 1
        named = options.delimiter or match[1]
    comments = _comments(beginning, named)
    if comments:
        skipped += len(comments)
        beginning = beginning[sum(map(len, comments)) :]
        remarks.append(
            f"{len(comments)} lines before the header begin with '#' and are skipped: {comments[0].strip()!r}\n"
            "remove '#' from the last of them if it has the column names"
        )
    delimiter = named or _delimiter(beginning, remarks)
    _refuse_doubled(beginning, delimiter)
    return Layout(delimiter, skipped, options.header, tuple(remarks))


def _comments(beginning: str, named: str | None) -> list[str]:
    """Return the lines with '#' before the header. If the last line with '#' has as many fields as the first line
    without '#', this last line is the header and is not returned."""
    lines = beginning.splitlines(keepends=True)
    count = next((number for number, line in enumerate(lines) if not line.startswith("#")), 0)
    if not count:
        return []
    delimiters = [named] if named else [*DELIMITERS]
    last, after = lines[count - 1], lines[count]
    counts = [(last.count(delimiter), after.count(delimiter)) for delimiter in delimiters]
    is_header = any(0 < found == behind for found, behind in counts) or not any(map(sum, counts))
    return lines[: count - 1] if is_header else lines[:count]


def _delimiter(beginning: str, remarks: list[str]) -> str:
    """Return the delimiter that divides all lines into the same number of fields. If there is none, return the
    delimiter that divides the header into the most fields."""
    widths = {delimiter: _widths(beginning, delimiter) for delimiter in DELIMITERS}
    alike = [delimiter for delimiter, found in widths.items() if len(set(found)) == 1 and found[0] > 1]
    if len(alike) > 1:
        chosen = max(alike, key=lambda delimiter: widths[delimiter][0])
        others = " and ".join(delimiter_name(other) for other in alike if other != chosen)
        remarks.append(
            f"every line can be divided by {delimiter_name(chosen)}, which is used, and by {others}\n"
            "--delimiter names another"
        )
        return chosen
    if alike:
        return alike[0]
    in_header = {delimiter: found[0] if found else 1 for delimiter, found in widths.items()}
    chosen = max(DELIMITERS, key=in_header.__getitem__)
    if in_header[chosen] == 1:
        _remark_unusual(beginning, remarks)
    return chosen


def _widths(beginning: str, delimiter: str) -> list[int]:
    """Return the number of fields of each of the first records. The last record is left out if it may be cut off."""
    found = []
    try:
        for number, fields in enumerate(csv.reader(beginning.splitlines(keepends=True), delimiter=delimiter)):
            if number > _RECORDS:
                break
            found.append(len(fields))
    except csv.Error:
        return found
    whole = found if len(found) <= 1 or len(found) > _RECORDS or beginning.endswith("\n") else found[:-1]
    return [width for width in whole if width]


def _remark_unusual(beginning: str, remarks: list[str]) -> None:
    lines = beginning.splitlines()[:_RECORDS]
    for delimiter in _UNUSUAL:
        counts = {line.count(delimiter) for line in (lines[:-1] if len(lines) > 1 else lines)}
        if len(counts) == 1 and counts != {0}:
            step = f"--delimiter {delimiter!r} divides them" if len(delimiter) == 1 else _replaced(delimiter)
            remarks.append(
                f"the file is read as one column, but every line has {delimiter!r} {counts.pop()} times\n{step}"
            )
            return


def _refuse_doubled(beginning: str, delimiter: str) -> None:
    """Raise Refused if the file's delimiter is this character twice: then every second field of each record is
    empty."""
    records = list(csv.reader(beginning.splitlines(keepends=True)[:_RECORDS], delimiter=delimiter))
    records = [record for record in records[: max(1, len(records) - 1)] if record]
    if records and all(len(record) > 2 and len(record) % 2 and not any(record[1::2]) for record in records):
        raise Refused(
            f"has the delimiter {delimiter * 2!r}, but a delimiter must be one character", _replaced(delimiter * 2)
        )


def _replaced(delimiter: str) -> str:
    return f"Replace the delimiter first: sed 's/{re.escape(delimiter)}/\\t/g' FILE > NEW.tsv"


class QuoteCheck:
    """Finds out whether every quotation mark of a file is where RFC 4180 allows it.

    A mark opens a quoted value after a delimiter or line break, closes it before a delimiter or line break, or is one
    of two adjacent marks within it. A value without quotes may contain marks, which this check also reports as
    irregular.
    """

    def __init__(self, delimiter: str) -> None:
        """`delimiter` is the ASCII character between the fields."""
        self._may_adjoin = np.zeros(256, bool)
        self._may_adjoin[list(f'{delimiter}"\r\n'.encode())] = True
        # A mark is examined together with the bytes before and after it, so two bytes are kept for the next block.
        self._kept = b"\n"
        self._is_open = False
        self.is_irregular = False
        self.has_backslashes = False
        """Whether a mark follows a backslash, at least in the blocks until an irregular mark."""

    def see(self, block: bytes) -> None:
        """Examine the next block of the file."""
        if not block or self.is_irregular:
            return
        if _MARK in block or self._kept.endswith(_MARK):
            content = self._kept + block
            codes = np.frombuffer(content, np.uint8)
            marks = np.flatnonzero(codes[1:-1] == _MARK[0]) + 1
            first_opening = int(self._is_open)
            before, after = marks[first_opening::2] - 1, marks[1 - first_opening :: 2] + 1
            self._is_open ^= len(marks) % 2 == 1
            self.is_irregular = not (self._may_adjoin[codes[before]].all() and self._may_adjoin[codes[after]].all())
            self.has_backslashes = self.has_backslashes or b'\\"' in content
        self._kept = (self._kept + block[-2:])[-2:]

    def end(self) -> None:
        """Examine the end of the file. A quoted value that is not closed is irregular."""
        self.see(b"\n")
        self.is_irregular = self.is_irregular or self._is_open
