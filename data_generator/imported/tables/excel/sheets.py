"""Choose the sheet of a workbook that is read, and leave out the empty cells around its content."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import python_calamine
from python_calamine import CalamineWorkbook, SheetMetadata, SheetTypeEnum, SheetVisibleEnum

from data_generator.imported.refusal import Refused, printable
from data_generator.imported.tables.table_reading import TableFile

Cells = list[list[Any]]

_ENCRYPTED = "EncryptedPackage".encode("utf-16-le")
_AT_ONCE_BYTES = 1 << 20


@dataclass(frozen=True)
class Area:
    """The content of a sheet without the empty cells around it.

    The content begins at `row` and `column`, counted from 0. `merged` has the first and the last row of each range of
    merged cells.
    """

    cells: Cells
    row: int
    column: int
    merged: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Sheet:
    """The sheet to read. `others` are the names of other sheets with rows. If the user named a sheet, `others` is
    empty."""

    name: str
    number: int
    of_sheets: int
    others: tuple[str, ...]
    area: Area

    def shown(self) -> str:
        """Return a description of the sheet for the user, such as "'Data' (2 of 3)"."""
        return f"{printable(self.name)!r} ({self.number} of {self.of_sheets})"

    def remarks(self) -> list[str]:
        """Return a remark on other sheets with rows; [] if there are none."""
        if not self.others:
            return []
        few = ", ".join(repr(printable(name)) for name in self.others[:3]) + (", .." if len(self.others) > 3 else "")
        return [
            f"sheet {self.shown()} is read; other sheets with rows: {few}\n"
            "--sheet names another; to measure all, put their rows into one sheet"
        ]


def opened(source: TableFile) -> CalamineWorkbook:
    """Return the workbook. Raises Refused if it needs a password."""
    source.stream.seek(0)
    try:
        return CalamineWorkbook.from_filelike(source.stream)
    except python_calamine.CalamineError:
        if not _is_encrypted(source):
            raise
        step = "Save a copy without the password (in Excel: File, Info, Protect Workbook, Encrypt with Password)."
        raise Refused("is protected by a password", step, source.path) from None


def _is_encrypted(source: TableFile) -> bool:
    """Return whether the file contains the marker of an encrypted workbook."""
    source.stream.seek(0)
    rest = b""
    while part := source.stream.read(_AT_ONCE_BYTES):
        if _ENCRYPTED in rest + part:
            return True
        rest = part[-len(_ENCRYPTED) :]
    return False


def chosen(workbook: CalamineWorkbook, source: TableFile) -> Generator[int, None, Sheet]:
    """Return the sheet to read. 0 is yielded for each sheet that is examined.

    The user may name the sheet. Otherwise, it is the first visible work sheet with enough rows (a header and a row, or
    one row without a header). If no visible sheet has enough rows, it is the first hidden sheet that does. Raises
    Refused if no sheet has enough rows.
    """
    sheets = list(workbook.sheets_metadata)
    work = [place for place, sheet in enumerate(sheets) if sheet.typ == SheetTypeEnum.WorkSheet]
    named = _named(sheets, source)
    if named is not None and named not in work:
        raise Refused(
            f"sheet {printable(sheets[named].name)!r} is not a work sheet, but a chart or macros",
            f"Set `sheet` to one of {_listed(sheets[place].name for place in work)}." if work else "Name another file.",
            source.path,
        )
    least, where = (2, " below the header") if source.options.header else (1, "")
    if named is not None:
        area = _area(workbook, named)
        if len(area.cells) < least:
            reason = f"sheet {printable(sheets[named].name)!r} has no rows{where}"
            raise Refused(reason, "Set `sheet` to another sheet.", source.path)
        return Sheet(sheets[named].name, named + 1, len(sheets), (), area)
    work.sort(key=lambda place: sheets[place].visible != SheetVisibleEnum.Visible)
    for place in work:
        yield 0
        area = _area(workbook, place)
        if len(area.cells) >= least:
            break
    else:
        names = _listed(sheet.name for sheet in sheets)
        raise Refused(f"has no sheet with rows{where} (sheets: {names})", "Name a file with a table.", source.path)
    others = []
    for other in sorted(work[work.index(place) + 1 :]):
        yield 0
        others += [sheets[other].name] if _holds_rows(workbook, other, least) else []
    return Sheet(sheets[place].name, place + 1, len(sheets), tuple(others), area)


def _named(sheets: Sequence[SheetMetadata], source: TableFile) -> int | None:
    wanted = source.options.sheet
    if wanted is None:
        return None
    for place, sheet in enumerate(sheets):
        if sheet.name == wanted:
            return place
    if wanted.isdecimal() and 1 <= int(wanted) <= len(sheets):
        return int(wanted) - 1
    names = _listed(sheet.name for sheet in sheets)
    raise Refused(f"has no sheet {printable(wanted)!r}, the value of `sheet`", f"Its sheets are {names}.", source.path)


def _listed(names: Iterable[str]) -> str:
    quoted = [repr(printable(name)) for name in names]
    return ", ".join(quoted[:12]) + (", .." if len(quoted) > 12 else "") if quoted else "none"


def _holds_rows(workbook: CalamineWorkbook, place: int, least: int) -> bool:
    rows = 0
    sheet = workbook.get_sheet_by_index(place)
    if sheet.height == 0:
        return False
    for row in sheet.iter_rows():
        rows += any(cell != "" for cell in row)
        if rows >= least:
            return True
    return False


def _area(workbook: CalamineWorkbook, place: int) -> Area:
    sheet = workbook.get_sheet_by_index(place)
    if sheet.height == 0:
        return Area([], 0, 0, ())
    rows = sheet.to_python(skip_empty_area=False)
    while rows and _is_empty(rows[-1]):
        rows.pop()
    first = next((number for number, row in enumerate(rows) if not _is_empty(row)), 0)
    rows = rows[first:]
    width = max((at for row in rows for at, cell in enumerate(row, start=1) if cell != ""), default=0)
    left = min((next(at for at, cell in enumerate(row) if cell != "") for row in rows if not _is_empty(row)), default=0)
    merged = tuple((begin[0], end[0]) for begin, end in sheet.merged_cell_ranges or ())
    return Area([row[left:width] for row in rows], first, left, merged)


def _is_empty(row: Sequence[Any]) -> bool:
    return all(cell == "" for cell in row)
