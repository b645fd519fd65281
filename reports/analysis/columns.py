"""Define the columns of a table. Each column is one figure that reports compare. A column is identified by its
operation and its role (time, size or memory).

The columns result from the operations that were measured. Code finds a column by operation and role, never by position.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum

from bench_runner.results.information import READ, SAVE, OperationInfo
from bench_runner.variants import OperationName

IN_A_SECTION = ("save-parallel", "read-parallel", "scan-parallel")
"""Operations that have a separate section with all their figures."""


class Role(Enum):
    """The kind of figure that a column shows, in display order."""

    TIME = "wall_ns"
    SIZE = "size_bytes"
    MEMORY = "peak_private_bytes"

    @property
    def figure(self) -> str:
        """The name of the figure in the stored samples."""
        return self.value


@dataclass(frozen=True)
class Column:
    """One figure of one operation. Titles do not count when two columns are compared with `==`."""

    operation: OperationName
    figure: str
    role: Role
    title: str = field(compare=False)

    @property
    def is_memory(self) -> bool:
        """Whether the figure is a memory peak."""
        return self.role is Role.MEMORY


def _column(operation: OperationName, role: Role, title: str) -> Column:
    return Column(operation, role.figure, role, title)


SAVE_TIME = _column(SAVE, Role.TIME, "save time")
READ_TIME = _column(READ, Role.TIME, "read time")
SIZE = _column(SAVE, Role.SIZE, "size")
SAVE_PEAK = _column(SAVE, Role.MEMORY, "save peak memory")
READ_PEAK = _column(READ, Role.MEMORY, "read peak memory")
THESIS_METRICS = (SAVE_TIME, READ_TIME, SIZE, SAVE_PEAK, READ_PEAK)
"""The five metrics of the thesis (its tables 6.3 to 6.7), for reports that cover only save and read. A table may lack
some of these columns."""


@dataclass(frozen=True)
class Columns:
    """The columns of one table or of several tables: all times, then sizes, then memory."""

    shown: tuple[Column, ...]

    def __iter__(self) -> Iterator[Column]:
        return iter(self.shown)

    def __len__(self) -> int:
        return len(self.shown)

    def find(self, operation: OperationName, role: Role) -> Column | None:
        """Return the column of an operation for one role (time, size or memory), or None if there is no such column."""
        return next((column for column in self.shown if (column.operation, column.role) == (operation, role)), None)

    def of(self, operation: OperationName) -> tuple[Column, ...]:
        """Return all columns of an operation."""
        return tuple(column for column in self.shown if column.operation == operation)

    @property
    def times(self) -> tuple[Column, ...]:
        """The time columns, one for each operation."""
        return tuple(column for column in self.shown if column.role is Role.TIME)

    @property
    def operations(self) -> tuple[OperationName, ...]:
        """All operations. Operations that write come first, then reading everything, then the others."""
        return tuple(column.operation for column in self.times)

    @property
    def main(self) -> tuple[OperationName, ...]:
        """The operations that a table shows first: save and read. If the table has neither, its first two
        operations."""
        return tuple(name for name in self.operations if name in (SAVE, READ)) or self.operations[:2]

    @property
    def further(self) -> tuple[OperationName, ...]:
        """All operations that are not in `main`."""
        return tuple(name for name in self.operations if name not in self.main)

    @property
    def listed(self) -> tuple[OperationName, ...]:
        """The operations of `further` that do not have a separate section."""
        return tuple(name for name in self.further if name.name not in IN_A_SECTION)

    def writes(self, operation: OperationName) -> bool:
        """Return whether an operation writes a stored copy."""
        return self.find(operation, Role.SIZE) is not None

    @property
    def leading(self) -> Column | None:
        """The column by which rows are sorted. It is the read time, else the time of another reading operation, else
        any time."""
        times = sorted(self.times, key=lambda time: (time.operation != READ, self.writes(time.operation)))
        return next(iter(times), None)


def columns_of(operations: Mapping[OperationName, OperationInfo]) -> Columns:
    """Return the columns of the measured `operations`. The caller passes the operations in the order in which each was
    first measured."""
    found = []
    for name, about in operations.items():
        title = about.title or name
        found += [_column(name, Role.TIME, f"{title} time"), _column(name, Role.MEMORY, f"{title} peak memory")]
        if about.writes:
            found.append(_column(name, Role.SIZE, "size" if name == SAVE else f"{title} size"))
    return _ordered(found)


def joined(several: Iterable[Columns]) -> Columns:
    """Return every column of these tables, each column once."""
    return _ordered(dict.fromkeys(column for columns in several for column in columns))


def _ordered(columns: Iterable[Column]) -> Columns:
    columns = tuple(columns)
    writing = {column.operation for column in columns if column.role is Role.SIZE}
    roles = tuple(Role)

    def place(column: Column) -> tuple[int, bool, bool, bool]:
        name = column.operation
        return roles.index(column.role), name != SAVE, name not in writing, name != READ

    return Columns(tuple(sorted(columns, key=place)))
