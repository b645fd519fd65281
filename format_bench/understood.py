"""Describe how a user's file was read. `inspect` prints these lines, and a run prints them before it measures."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path

from data_generator.dataset import Dataset, columns_of

_MOST = 12
_WIDTH = 100
_INDENT = 18


def understood_lines(dataset: Dataset, *, whole: bool = False, title: str | None = None) -> list[str]:
    """Return lines of text with rows, properties such as the delimiter, columns with their types, and warnings.

    At most 12 columns and 12 warnings are shown, unless `whole` is set. `title` is the name of a table in memory; None
    for a file.
    """
    about = dict(dataset.understood)
    kind = about.pop("kind", dataset.source["kind"])
    input_rows = int(dataset.source.get("input_rows", dataset.rows))
    counted = _counted(input_rows, "row")
    if input_rows > dataset.rows:
        counted += f", of which a sample of {dataset.rows:,} is taken"
    columns = columns_of(dataset)
    named = f"{Path(dataset.source['path']).name}: {kind}" if title is None else title
    lines = [f"{named}, {counted}, {_counted(len(columns), 'column')}"]
    for subject, text in about.items():
        lines += _wrapped(subject, text)
    shown = list(columns.items())[: None if whole else _MOST]
    more = f", .. and {len(columns) - len(shown):,} more" if len(shown) < len(columns) else ""
    lines += _wrapped("columns", ", ".join(f"{_plain(name)} {kind}" for name, kind in shown) + more)
    remarks = dataset.remarks if whole else dataset.remarks[:_MOST]
    lines += [line for remark in remarks for line in warned(remark)]
    hidden = len(dataset.remarks) - len(remarks)
    return [*lines, f"  and {_counted(hidden, 'more warning')}: 'inspect' shows all"] if hidden else lines


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _plain(name: str) -> str:
    """Return the name of a column, in quotes if a reader could not see otherwise where the name ends."""
    return name if name.isprintable() and name == name.strip() and name and not set(name) & set(", '\"") else repr(name)


def _wrapped(subject: str, text: str) -> Iterator[str]:
    first, *rest = textwrap.wrap(text, _WIDTH - _INDENT, break_on_hyphens=False) or [""]
    yield f"  {subject:<{_INDENT - 2}}{first}"
    yield from (" " * _INDENT + line for line in rest)


def warned(remark: str) -> Iterator[str]:
    """Yield the lines of a warning."""
    said, _, remedy = remark.partition("\n")
    yield from textwrap.wrap(f"warning: {said}", _WIDTH, initial_indent="  ", subsequent_indent=" " * 11)
    yield from textwrap.wrap(remedy, _WIDTH, initial_indent=" " * 11, subsequent_indent=" " * 11)
