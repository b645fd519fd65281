"""The base class for formats that are read and written by DataFusion.

DataFusion returns Arrow tables. Every call uses a new session. Sessions are configured to return rows in their stored
order: DataFusion's partitions are ranges of the file, and their rows are combined in the order of these ranges.
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
    """Reads files by DataFusion. A subclass for a format adds the calls that open and write files of this format."""

    engine = "datafusion"
    distributions: ClassVar = ("datafusion", "pyarrow")
    extra = "engines"
    native = Native.ARROW
    lost_names = r"\0"
    offers = Offers(project=True, scan=frozenset(Kind))

    def load_library(self) -> None:
        """Import datafusion, and pyarrow, which combines DataFusion's batches into tables."""
        import datafusion
        import pyarrow

        self._datafusion, self._arrow = datafusion, pyarrow

    def session(self, partitions: int | None = None) -> datafusion.SessionContext:
        """Return a new session with this number of partitions.

        If `partitions` is None, the session has `self.threads` partitions, or DataFusion's default number if
        `self.threads` is also None.
        """
        # With DataFusion's default for this setting, the batches of a filtered frame come in any order.
        config = self._datafusion.SessionConfig().set("datafusion.optimizer.enable_round_robin_repartition", "false")
        # With DataFusion's default for this setting, an idle partition takes over ranges of other partitions.
        config = config.set("datafusion.execution.enable_file_stream_work_stealing", "false")
        if (partitions := partitions or self.threads) is not None:
            config = config.with_target_partitions(partitions)
        return self._datafusion.SessionContext(config)

    @abstractmethod
    def frame(self, location: Path) -> datafusion.DataFrame:
        """Return the file as a lazy frame."""

    def read(self, location: Path) -> pa.Table:
        """Read all columns."""
        return self._collected(self.frame(location))

    def project(self, location: Path, columns: list[str]) -> pa.Table:
        """Read only these columns."""
        return self._collected(self._selected(self.frame(location), columns))

    def scan(self, location: Path, predicate: Predicate, columns: list[str]) -> pa.Table:
        """Read the given columns of the rows that match the condition, by a lazy frame."""
        frame = self.frame(location)
        return self._collected(self._selected(frame.filter(self._condition(predicate, frame.schema())), columns))

    def _selected(self, frame: datafusion.DataFrame, columns: list[str]) -> datafusion.DataFrame:
        # Plain names are not used, because DataFusion converts capitals to small letters and splits names at dots.
        return frame.select(*(self._datafusion.col(quoted(name)) for name in columns))

    def _collected(self, frame: datafusion.DataFrame) -> pa.Table:
        batches = [batch for part in frame.collect_partitioned() for batch in part]
        # The schema of the batches is used, because the frame's schema is wrong for ordered dictionaries.
        return self._arrow.Table.from_batches(batches, None if batches else frame.schema())

    def _condition(self, predicate: Predicate, schema: pa.Schema) -> datafusion.Expr:
        """Return the condition as a DataFusion expression.

        A NaN among the values of the condition is left out, because NaN must match nothing. In DataFusion, NaN equals
        itself and is greater than all numbers."""
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
    """Return the type of a single value of a column of type `kind`.

    Views and dictionaries are layouts of whole columns. Their single values are plain text or other plain values."""
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        return _plain(kind.value_type)
    return pa.string() if kind == pa.string_view() else kind
