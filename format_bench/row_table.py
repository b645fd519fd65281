"""Print rows of an Arrow table for people, as a table of limited width in which long values are shortened."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa
    from rich.console import Console

MOST_COLUMNS = 12
_LONGEST = 24


def show_rows(rows: pa.Table, page: Console) -> None:
    """Print all rows, but at most MOST_COLUMNS columns."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    names = rows.column_names[:MOST_COLUMNS]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in names:
        table.add_column(Text(_shortened(name)))
    for values in zip(*(rows.column(place).to_pylist() for place in range(len(names))), strict=True):
        table.add_row(*(Text("-", style="dim") if value is None else Text(_shortened(value)) for value in values))
    page.print(table)


def _shortened(value: object) -> str:
    from data_generator.imported.refusal import printable

    if isinstance(value, bytes):
        return f"{len(value):,} bytes"
    text = printable(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 2]}.."
