"""Warnings about the values of a column. A warning states what was changed or is ambiguous, an example, and what to do.

Readers make a `Note` with the row of the first such value. `remarks` returns the notes as text, with the place of this
value in the file.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from data_generator.imported.refusal import printable

_LONGEST_VALUE = 60

Wheres = Callable[[Sequence[int]], Mapping[int, str]]
"""Function that maps row numbers of the sample to positions in the file, e.g. {7: 'line 9'}. The result omits rows
whose position is unknown."""


@dataclass(frozen=True)
class Note:
    """A warning about a column. `value` is the text of the first value to which the warning applies, and `place` is the
    row of this value in the sample, counted from 0."""

    column: str
    place: int
    value: str
    said: str
    step: str
    changes_values: bool = False
    """Whether reading changed values of the column, for example by removing leading zeros of numbers."""

    def remark(self, where: str) -> str:
        """Return the warning as two lines. `where` is a position in the file, such as 'line 3' or 'cell B3'."""
        shown = printable(self.value)
        shown = shown if len(shown) <= _LONGEST_VALUE else f"{shown[:_LONGEST_VALUE]}.."
        return f"column {printable(self.column)!r}: {self.said} ({where}: {shown!r})\n{self.step}"


def remarks(notes: Iterable[Note], wheres: Wheres) -> list[str]:
    """Return the warnings as texts of two lines.

    `wheres` maps rows of the sample to positions in the file. If the position is unknown, the text names the row of the
    sample.
    """
    listed = list(notes)
    found = wheres(sorted({note.place for note in listed})) if listed else {}
    return [note.remark(found.get(note.place, f"row {note.place + 1:,} of the sample")) for note in listed]


def changed_columns(notes: Iterable[Note]) -> tuple[str, ...]:
    """Return the names of the columns in which reading changed values."""
    return tuple(dict.fromkeys(note.column for note in notes if note.changes_values))


def column_option(column: str, kind: str) -> str:
    """Return the command-line option that makes the reader convert the column to this type, quoted for a shell."""
    return f"--column {shlex.quote(f'{printable(column)}={kind}')}"
