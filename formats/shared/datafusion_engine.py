"""What the engines of all formats that DataFusion reads have in common: a session for each call.

DataFusion returns Arrow tables. Its sessions are told to hand out rows in their stored order: partitions are ranges of
the file, and are put together in their order.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from adapters.contract import Native
from adapters.offers import Offers
from adapters.predicate import Kind, Predicate
from formats.shared.projection import ProjectsByOneCall
from formats.shared.sql import quoted

if TYPE_CHECKING:
    import datafusion
    import pyarrow as pa


class DatafusionEngine(ProjectsByOneCall):
    """A format's calls of DataFusion, without what the format adds."""

    engine = "datafusion"
    distributions: ClassVar = ("datafusion", "pyarrow")
    extra = "engines"
    native = Native.ARROW
    lost_names = r"\0"
    offers = Offers(project=True, scan=frozenset(Kind))

    def load_library(self) -> None:
        """Import datafusion, and pyarrow, of whose batches it makes tables."""
        import datafusion
        import pyarrow

        self._datafusion, self._arrow = datafusion, pyarrow

    def session(self, partitions: int | None = None) -> datafusion.SessionContext:
        """A session of its own, with so many partitions; by default one where one thread is the condition, else as
        many as DataFusion takes."""
        # Otherwise batches of a filter come in any order.
        config = self._datafusion.SessionConfig().set("datafusion.optimizer.enable_round_robin_repartition", "false")
        # Otherwise a partition that has nothing left to do takes a range of the file over from another one.
        config = config.set("datafusion.execution.enable_file_stream_work_stealing", "false")
        if (partitions := partitions or self.threads) is not None:
            config = config.with_target_partitions(partitions)
        return self._datafusion.SessionContext(config)

    @abstractmethod
    def frame(self, location: Path) -> datafusion.DataFrame:
        """The file as a lazy frame."""

    def read(self, location: Path) -> pa.Table:
        """Read all columns."""
        return self._collected(self.frame(location))

    def project(self, location: Path, columns: list[str]) -> pa.Table:
        """Read these columns alone."""
        return self._collected(self._selected(self.frame(location), columns))

    def scan(self, location: Path, predicate: Predicate, columns: list[str]) -> pa.Table:
        """Read the rows that meet the condition, by a lazy frame."""
        frame = self.frame(location)
        return self._collected(self._selected(frame.filter(self._condition(predicate, frame.schema())), columns))

    def _selected(self, frame: datafusion.DataFrame, columns: list[str]) -> datafusion.DataFrame:
        # Plain names will not do: DataFusion takes capitals for small letters, and dots for parts of a name.
        return frame.select(*(self._datafusion.col(quoted(name)) for name in columns))

    def _collected(self, frame: datafusion.DataFrame) -> pa.Table:
        batches = [batch for part in frame.collect_partitioned() for batch in part]
        # What the frame says of ordered dictionaries is not what its batches are.
        return self._arrow.Table.from_batches(batches, None if batches else frame.schema())

    def _condition(self, predicate: Predicate, schema: pa.Schema) -> datafusion.Expr:
        """The condition in DataFusion's expressions, to which NaN equals itself and is above all other numbers."""
        functions, literal = self._datafusion.functions, self._datafusion.lit
        column = self._datafusion.col(quoted(predicate.column))
        if predicate.kind is Kind.NULL:
            return column.is_null()
        kind = _plain(schema.field(predicate.column).type)
        values = [literal(self._arrow.scalar(value, kind)) for value in predicate.present if not _is_nan(value)]
        if len(values) < len(predicate.present) and predicate.kind is Kind.RANGE:
            return literal(False)
        if predicate.kind is Kind.PREFIX:
            return functions.starts_with(column, values[0])
        if predicate.kind is Kind.RANGE:
            return (column >= values[0]) & (column < values[1])
        met = literal(False)
        for value in values:
            met = met | (column == value)
        return met


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _plain(kind: pa.DataType) -> pa.DataType:
    """The type of a value of a column: views and dictionaries are layouts of columns."""
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        return _plain(kind.value_type)
    return pa.string() if kind == pa.string_view() else kind
