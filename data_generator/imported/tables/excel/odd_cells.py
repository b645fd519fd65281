"""Find cells of an .xlsx or .xlsm sheet that the library calamine reads incompletely.

calamine returns errors, and formulas without a computed value, as empty cells. It also shortens values with many
digits. Such cells are found in the sheet's XML. The XML is parsed only if it has formulas, errors or long integers.
This module does not need the values and types that calamine returns.
"""

from __future__ import annotations

import math
import re
import zipfile
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import IO, Any
from xml.etree import ElementTree
from xml.parsers import expat

ERROR, FORMULA, STALE = "error", "formula without a value", "formula to be computed again"
DIGITS, HUGE = "integer with more digits", "beyond float64"
FINE, EARLY, LEAP = "fraction of a millisecond", "before 1900", "29 February 1900"

_AT_ONCE_BYTES = 1 << 20
_MAY_BE_ODD = re.compile(rb"""<(?:\w+:)?f[\s/>]|\bt=["']e["']|<(?:\w+:)?v>-?(?:[0-9]{16}|[0-9.]+[eE]\+?[0-9]{3})""")
_INTEGER = re.compile("-?[0-9]{1,400}")
_HUGE = re.compile(r"-?(?:[0-9]{300,}|[0-9.]+[eE]\+?[0-9]{3,})")
_OVERLAP_BYTES = 64
_LONGEST_ROW_BYTES = 16 << 20
_MS_PER_DAY = 86_400_000
_ROUNDING_MS = 0.002
"""Tolerance in ms for fractions of a millisecond in times. A sheet stores times as days with 16 digits, which are not
exact."""
_REFERENCE = re.compile(r"([A-Z]{1,3})([0-9]{1,7})")
_RELATION = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
_STRICT_RELATION = "{http://purl.oclc.org/ooxml/officeDocument/relationships}id"


@dataclass
class OddCells:
    """Cells of one column with the same problem. `count` is the number of these cells.

    `row` (counted from 0) and `text` are those of the first cell.
    """

    count: int
    row: int
    text: str


@dataclass(frozen=True)
class Moments:
    """`columns` are the numbers of the columns with dates or times. `dates` are the numbers of those columns whose
    values have a date: dates and timestamps, but not times of day."""

    columns: Sequence[int]
    dates: Sequence[int]


Found = dict[tuple[int, str], OddCells]
"""(Number of a column, counted from 0; kind of problem) -> the cells of this column with this problem."""


def letters(column: int) -> str:
    """Return the letters of a column in Excel, such as 'AA' for 26. `column` is counted from 0."""
    return (letters(column // 26 - 1) if column >= 26 else "") + chr(ord("A") + column % 26)


def found(stream: IO[bytes], sheet: str, first_row: int, moments: Moments, rows: int) -> Generator[int, None, Found]:
    """Return the cells of a sheet that are read incompletely, from the row `first_row` (counted from 0) on.

    A file without the layout of .xlsx has no such cells. `rows` is yielded repeatedly, because a process that sends no
    messages is ended.
    """
    odd: Found = {}
    stream.seek(0)
    if not zipfile.is_zipfile(stream):
        return odd
    with zipfile.ZipFile(stream) as archive:
        workbook = _workbook(archive)
        part = _part(archive, workbook, sheet)
        if workbook is None or part is None:
            return odd
        fine = _Fine(first_row, moments, _has(workbook, "workbookPr", "date1904"), odd)
        may_be_odd, rest = False, b""
        for chunk in _chunks(archive, part):
            may_be_odd = may_be_odd or _MAY_BE_ODD.search(rest + chunk) is not None
            rest = chunk[-_OVERLAP_BYTES:]
            fine.add(chunk)
            yield rows
        scan = _Scan(first_row, _has(workbook, "calcPr", "fullCalcOnLoad"), odd)
        for chunk in _chunks(archive, part) if may_be_odd else ():
            scan.parser.Parse(chunk, False)
            yield rows
    return odd


def _chunks(archive: zipfile.ZipFile, part: str) -> Iterator[bytes]:
    with archive.open(part) as content:
        while chunk := content.read(_AT_ONCE_BYTES):
            yield chunk


class _Fine:
    """Finds times with fractions of a millisecond, dates before 1900, and the date 29 February 1900.

    The file stores dates and times as numbers of days. Day 60 is 29 February 1900, a day that never existed.
    """

    def __init__(self, first_row: int, moments: Moments, is_1904: bool, odd: Found) -> None:
        self._first_row, self._odd = first_row, odd
        self._columns = {letters(column).encode(): column for column in moments.columns}
        self._dates = frozenset() if is_1904 else frozenset(moments.dates)
        names = b"|".join(self._columns)
        number = rb"-\d[\d.]*|60(?:\.\d+)?|\d+\.\d{6,}"
        self._cell = re.compile(rb'<c r="(%s)(\d{1,7})"(?:(?! t="s")[^>])*><v>(%s)</v>' % (names, number))
        self._rest = b""

    def add(self, chunk: bytes) -> None:
        """Scan the rows that end in `chunk`, the next part of the XML."""
        if not self._columns:
            return
        text = self._rest + chunk
        end = text.rfind(b"</row>")
        self._rest = text[max(end, 0) :][-_LONGEST_ROW_BYTES:]
        for match in self._cell.finditer(text, 0, max(end, 0)):
            column, row = self._columns[match[1]], int(match[2]) - 1
            what = self._oddness(float(match[3]), column)
            if row >= self._first_row and what is not None:
                self._odd.setdefault((column, what), OddCells(0, row, match[3].decode())).count += 1

    def _oddness(self, days: float, column: int) -> str | None:
        if days < 0:
            return EARLY
        if 60 <= days < 61 and column in self._dates:
            return LEAP
        milliseconds = days * _MS_PER_DAY
        return FINE if abs(milliseconds - round(milliseconds)) > _ROUNDING_MS else None


def _workbook(archive: zipfile.ZipFile) -> ElementTree.Element | None:
    try:
        return ElementTree.fromstring(archive.read("xl/workbook.xml"))
    except (KeyError, ElementTree.ParseError):
        return None


def _has(workbook: ElementTree.Element, tag: str, attribute: str) -> bool:
    """Return whether an element `tag` of the workbook has the attribute with the value true."""
    elements = (element for element in workbook.iter() if _local(element.tag) == tag)
    return any(element.get(attribute) in ("1", "true") for element in elements)


def _part(archive: zipfile.ZipFile, workbook: ElementTree.Element | None, sheet: str) -> str | None:
    """Return the name of the file in the archive that contains the sheet; None if there is no such file."""
    try:
        relations = ElementTree.fromstring(archive.read("xl/_rels/workbook.xml.rels"))
    except (KeyError, ElementTree.ParseError):
        return None
    targets = {relation.get("Id"): relation.get("Target", "") for relation in relations}
    for element in workbook.iter() if workbook is not None else ():
        if _local(element.tag) == "sheet" and element.get("name") == sheet:
            target = targets.get(element.get(_RELATION) or element.get(_STRICT_RELATION), "")
            name = target.removeprefix("/") if target.startswith("/") else f"xl/{target}"
            return name if name in archive.namelist() else None
    return None


def _local(tag: Any) -> str:
    return str(tag).rpartition("}")[2]


class _Scan:
    """Handlers for the parser of a sheet's XML. They are called for each cell, so they do as little as possible."""

    def __init__(self, first_row: int, is_to_compute: bool, odd: Found) -> None:
        self._first_row, self._is_to_compute, self._odd = first_row, is_to_compute, odd
        self._row, self._column = -1, -1
        self._reference: str | None = None
        self._kind = ""
        self._has_formula = self._has_value = False
        self._text: list[str] = []
        self._starts = {"c": self._start_cell, "f": self._start_formula, "v": self._start_value, "row": self._start_row}
        self._ends = {"c": self._end_cell, "v": self._end_value}
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        handler = self._starts.get(tag) or self._starts.get(tag.rpartition(":")[2])
        if handler is not None:
            handler(attributes)

    def _end(self, tag: str) -> None:
        handler = self._ends.get(tag) or self._ends.get(tag.rpartition(":")[2])
        if handler is not None:
            handler()

    def _start_row(self, attributes: dict[str, str]) -> None:
        self._row = int(attributes["r"]) - 1 if attributes.get("r", "").isdecimal() else self._row + 1
        self._column, self._reference = -1, None

    def _start_cell(self, attributes: dict[str, str]) -> None:
        reference = attributes.get("r")
        if reference is None:
            # A cell without a reference is next to the previous cell.
            self._column = self._place() + 1
        self._reference = reference
        self._kind = attributes.get("t", "n")
        self._has_formula = self._has_value = False
        self._text.clear()

    def _place(self) -> int:
        """Return the column number of the cell, counted from 0."""
        match = _REFERENCE.fullmatch(self._reference or "")
        if match is None:
            return self._column
        column = -1
        for letter in match[1]:
            column = (column + 1) * 26 + ord(letter) - ord("A")
        return column

    def _start_formula(self, attributes: dict[str, str]) -> None:
        self._has_formula = True

    def _start_value(self, attributes: dict[str, str]) -> None:
        self._has_value = True
        self.parser.CharacterDataHandler = self._text.append

    def _end_value(self) -> None:
        self.parser.CharacterDataHandler = None

    def _end_cell(self) -> None:
        if self._row < self._first_row:
            return
        text = "".join(self._text)
        what = self._oddness(text)
        if what is not None:
            self._odd.setdefault((self._place(), what), OddCells(0, self._row, text)).count += 1

    def _oddness(self, text: str) -> str | None:
        if self._kind == "e":
            return ERROR
        if self._has_formula:
            # An empty text is the value of a formula that returns "".
            is_empty_text = self._kind == "str" and self._has_value
            if not text and not is_empty_text:
                return FORMULA
            return STALE if self._is_to_compute else None
        if self._kind == "n" and _HUGE.fullmatch(text) and math.isinf(float(text)):
            return HUGE
        is_rounded = self._kind == "n" and len(text) > 15 and _INTEGER.fullmatch(text) and int(text) != float(text)
        return DIGITS if is_rounded else None
