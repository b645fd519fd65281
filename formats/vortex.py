"""Vortex: a file in which columns are encoded by several light-weight encodings in turn.

The writer chooses these encodings by samples of the values.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from adapters.contract import Calls, Can, Maturity, Native, PartCall, Setting, Stage, Stored, TabularFormat
from adapters.errors import RefusedData
from adapters.offers import Handle, Offers, Reach, Sharing
from adapters.predicate import Kind, Predicate
from formats.shared import pandas_losses as shared
from formats.shared.conditions import minus_zero
from formats.shared.rows import ascending, checked
from formats.shared.streams import tables, whole_or_nothing

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

_DENSE = {"vortex.pco", "vortex.zstd", "vortex.zstd_buffers"}
"""Encodings that the writer uses only with codec=compact."""

_COLUMN = "vortex.expr.column(column)"
_CONDITIONS: Mapping[Kind, str] = {
    Kind.RANGE: f"vortex.expr.and_({_COLUMN} >= low, {_COLUMN} < high)",
    Kind.EQUAL: f"{_COLUMN} == value",
    Kind.IN: f"vortex.expr.or_collect([{_COLUMN} == value for value in values])",
    Kind.NULL: f"vortex.expr.is_null({_COLUMN})",
    Kind.PREFIX: f'vortex.expr.like({_COLUMN}, prefix + "%")',
}
"""The code of filters as a user writes it."""


class VortexData(TabularFormat):
    """Vortex by the package vortex-data. With codec=compact, the writer uses its compact strategy, otherwise its
    default."""

    format = "vortex"
    engine = "vortex-data"
    title = "Vortex"
    distributions = ("vortex-data",)
    native = Native.ARROW
    lost_names = r"\0"
    suffix = ".vortex"
    settings: ClassVar = {
        "codec": Setting(
            ("auto", "compact"), "auto", "compact: also use zstd and pco, which make smaller files that read slower"
        ),
        "library_cache": Setting(
            ("on", "off"),
            "on",
            "whether segments that were read stay in memory while a file is open, within Vortex's limit",
        ),
    }
    maturity = Maturity(
        Stage.YOUNG,
        "files stay readable since 2025, but every few months new encodings appear that older versions cannot read; "
        "nearly all software reads it by one implementation, in Rust",
    )
    capabilities = frozenset(
        {Can.PROJECTION, Can.TYPES, Can.NESTED, Can.SINGLE_FILE, Can.OTHER_LANGUAGES, Can.NO_PICKLE}
    )
    offers = Offers(
        project=True,
        take=Reach.ROWS,
        scan=frozenset(Kind),
        keeps_columns=True,
        batches=True,
        save_stream=True,
        sharing=Sharing.ONE,
    )
    losses = (shared.CATEGORIES_OF_NULLS, shared.DICTIONARY_AS_VALUES)
    """Known changes to dictionary columns. In Vortex, a dictionary is an encoding and not a type."""

    @property
    def calls(self) -> Calls:
        """The code that a user writes to save and read the data without this adapter."""
        write = "io.VortexWriteOptions.compact().write" if self.values["codec"] == "compact" else "io.write"
        opened = f"vortex.open({{path}}{self._spelled_cache()}).to_arrow"
        plain = "from formats.vortex import without_views_in_lists"
        plain_rows = ("from formats.vortex import plain_views", "import numpy as np", "import pyarrow as pa")
        taken = f"{opened}(columns, indices=vortex.array(pa.array(unique))).read_all()"
        return Calls(
            ("import vortex", "import vortex.io", plain),
            f"vortex.{write}({{held}}, {{path}})",
            f"without_views_in_lists({opened}().read_all())",
            project=PartCall(f"without_views_in_lists({opened}(columns).read_all())"),
            take=PartCall(
                f"plain_views({taken}).take(place)",
                ("unique, place = np.unique(rows, return_inverse=True)",),
                plain_rows,
            ),
            scan={
                kind: PartCall(
                    f"without_views_in_lists({opened}(columns, expr={met}).read_all())", (), ("import vortex.expr",)
                )
                for kind, met in _CONDITIONS.items()
            },
        )

    def load_library(self) -> None:
        """Import vortex. With threads=1, vortex's pool has no worker threads, so only the calling thread works."""
        import pyarrow
        import pyarrow.types  # used to distinguish the types of columns
        import vortex
        import vortex.expr
        import vortex.io

        self._arrow, self._vortex = pyarrow, vortex
        if self.threads == 1:
            vortex.set_worker_threads(0)

    def save(self, table: pa.Table, location: Path) -> None:
        """Write the whole table as one file."""
        self._write(table, location)

    def save_stream(self, schema: pa.Schema, batches: Iterator[pa.RecordBatch], location: Path) -> None:
        """Write a stream of batches as one file."""
        with whole_or_nothing(location):
            self._write(self._arrow.RecordBatchReader.from_batches(schema, batches), location)

    def _write(self, data: pa.Table | pa.RecordBatchReader, location: Path) -> None:
        if self.values["codec"] == "compact":
            self._vortex.io.VortexWriteOptions.compact().write(data, str(location))
        else:
            self._vortex.io.write(data, str(location))

    def read(self, location: Path) -> pa.Table:
        """Read all columns of the file. Lists of string views or binary views become lists of plain text or bytes."""
        return without_views_in_lists(self._file(location).to_arrow().read_all())

    def _file(self, location: Path) -> Any:
        return self._vortex.open(str(location), without_segment_cache=self.values["library_cache"] == "off")

    def _spelled_cache(self) -> str:
        return ", without_segment_cache=True" if self.values["library_cache"] == "off" else ""

    def open(self, location: Path) -> Handle:
        """Return a handle that keeps the file open. Vortex has no call that closes a file, but closes it when no Python
        object references it."""
        opened = [self._file(location)]
        rows = len(opened[0])

        def project(columns: Sequence[str]) -> pa.Table:
            (file,) = opened
            return without_views_in_lists(file.to_arrow(list(columns)).read_all())

        def take(numbers: np.ndarray, columns: Sequence[str]) -> pa.Table:
            (file,) = opened
            # The numbers are checked first, because Vortex ends the process if a number is too large.
            unique, places = ascending(checked(numbers, rows))
            asked = self._vortex.array(self._arrow.array(unique))
            read = file.to_arrow(list(columns), indices=asked).read_all()
            read = without_views_in_lists(read)
            return read if places is None else plain_views(read).take(places)

        def scan(predicate: Predicate, columns: Sequence[str]) -> pa.Table:
            (file,) = opened
            return without_views_in_lists(file.to_arrow(list(columns), expr=self._condition(predicate)).read_all())

        def batches(columns: Sequence[str], rows: int) -> Iterator[pa.Table]:
            (file,) = opened
            for table in tables(file.to_arrow(list(columns), batch_size=rows), columns, rows):
                yield without_views_in_lists(table)

        return Handle(project=project, take=take, scan=scan, batches=batches, close=opened.clear)

    def _condition(self, predicate: Predicate) -> Any:
        expr = self._vortex.expr
        column = expr.column(predicate.column)
        if predicate.kind is Kind.NULL:
            return expr.is_null(column)
        if predicate.kind is Kind.PREFIX:
            return expr.like(column, re.sub(r"([\\%_])", r"\\\1", predicate.values[0]) + "%")
        values = [value for value in predicate.present if value == value]
        if predicate.kind is Kind.RANGE and len(values) == 2:
            # For Vortex, -0.0 is less than 0.0.
            return expr.and_(column >= minus_zero(values[0]), column < minus_zero(values[1]))
        if predicate.kind is Kind.RANGE or not values:
            return expr.and_(expr.is_null(column), expr.not_(expr.is_null(column)))
        return expr.or_collect([_equal(expr, column, value) for value in values])

    def stored(self, location: Path) -> Stored:
        """Return the setting `codec`, and the encodings of the file's first chunk.

        A file does not record with which `codec` it was written. Raises RefusedData if codec=compact has no effect,
        i.e. if the file has none of the encodings that the writer uses only with codec=compact. This happens with
        integers and booleans.
        """
        chunk = next(iter(self._vortex.open(str(location)).scan()))
        encodings = set(re.findall(r"^\s*\w+: ([a-z]+\.[a-z0-9_.]+)\(", chunk.display_tree(), re.MULTILINE))
        if self.values["codec"] == "compact" and not encodings & _DENSE:
            used = ", ".join(sorted(encodings))
            raise RefusedData(f"codec=compact uses neither zstd nor pco for this data (encodings: {used})")
        return Stored(str(self.values["codec"]), tuple(sorted(encodings)))


def without_views_in_lists(table: pa.Table) -> pa.Table:
    """Return the table with plain text and bytes in place of string views and binary views inside lists.

    pyarrow cannot convert lists of views to pandas. Tables without such lists are returned unchanged. The columns are
    cast after reading, because this is faster than requesting other types from Vortex.
    """
    for position, field in enumerate(table.schema):
        if field.type.num_fields and _has_lists_of_views(field.type):
            plain = _plain(field)
            table = table.set_column(position, plain, table.column(position).cast(plain.type))
    return table


def _equal(expr: Any, column: Any, value: Any) -> Any:
    if isinstance(value, float) and value == 0:
        return expr.and_(column >= -0.0, column <= 0.0)
    return column == value


def plain_views(table: pa.Table) -> pa.Table:
    """Return the table with plain text and bytes in place of all string views and binary views.

    pyarrow's `take` does not support views."""
    import pyarrow as pa

    return table.cast(pa.schema([_plain(field) for field in table.schema]))


def _has_lists_of_views(kind: pa.DataType) -> bool:
    """Return whether this type is, or contains at any depth, a list of string views or binary views."""
    import pyarrow.types as of

    inside = [kind.field(place).type for place in range(kind.num_fields)]
    if (of.is_list(kind) or of.is_large_list(kind) or of.is_fixed_size_list(kind)) and _is_view(inside[0]):
        return True
    return any(map(_has_lists_of_views, inside))


def _is_view(kind: pa.DataType) -> bool:
    import pyarrow.types as of

    return bool(of.is_string_view(kind) or of.is_binary_view(kind))


def _plain(field: pa.Field) -> pa.Field:
    """Return the field with plain text and bytes in place of string views and binary views, at any depth."""
    import pyarrow as pa
    import pyarrow.types as of

    kind = field.type
    if _is_view(kind):
        return field.with_type(pa.string() if of.is_string_view(kind) else pa.binary())
    inside = [_plain(kind.field(place)) for place in range(kind.num_fields)]
    if of.is_struct(kind):
        return field.with_type(pa.struct(inside))
    if of.is_map(kind):
        (entries,) = inside
        return field.with_type(pa.map_(entries.type.field(0), entries.type.field(1), keys_sorted=kind.keys_sorted))
    if of.is_fixed_size_list(kind):
        return field.with_type(pa.list_(inside[0], kind.list_size))
    if of.is_large_list(kind):
        return field.with_type(pa.large_list(inside[0]))
    return field.with_type(pa.list_(inside[0])) if of.is_list(kind) else field


ENGINES = (VortexData,)
