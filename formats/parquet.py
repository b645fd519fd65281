"""Parquet: one file, the writer's own row groups and encodings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from adapters import parquet_codecs, relations
from adapters.contract import Calls, Can, Native, Stored, TabularFormat
from adapters.losses import Cause, Loss, Relation

if TYPE_CHECKING:
    import pyarrow as pa

_SECONDS_AS_MS = Loss(
    "timestamps in s become ms",
    "the same points in time",
    Cause.FORMAT,
    Relation(relations.timestamps_in(["s"], "ms")),
    frozenset({"timestamp-s", "timestamp-s-zone"}),
)


class ParquetPyarrow(TabularFormat):
    """pyarrow.parquet, the engine that pandas.to_parquet uses."""

    format = "parquet"
    engine = "pyarrow"
    title = "Parquet"
    distributions = ("pyarrow",)
    native = Native.ARROW
    suffix = ".parquet"
    settings: ClassVar = {"codec": parquet_codecs.CODEC, "level": parquet_codecs.LEVEL}
    levels: ClassVar = parquet_codecs.LEVELS
    plain: ClassVar = {"codec": "none"}
    bare_call: ClassVar = {"codec": "snappy"}
    equal: ClassVar = {"codec": "zstd", "level": "1"}
    capabilities = frozenset(
        {Can.PROJECTION, Can.TYPES, Can.NESTED, Can.SINGLE_FILE, Can.OTHER_LANGUAGES, Can.NO_PICKLE}
    )

    @property
    def losses(self) -> tuple[Loss, ...]:
        """Parquet has no seconds."""
        return (_SECONDS_AS_MS,)

    @property
    def calls(self) -> Calls:
        """As a user writes them."""
        level = "" if self.values["level"] is None else f", compression_level={self.values['level']}"
        return Calls(
            ("import pyarrow.parquet as pq",),
            f'pq.write_table({{held}}, {{path}}, compression="{self.values["codec"]}"{level})',
            "pq.read_table({path})",
        )

    def load_library(self) -> None:
        """Import pyarrow.parquet, and the data sets that its read call goes through."""
        import pyarrow.dataset
        import pyarrow.parquet

        self._parquet = pyarrow.parquet

    def save(self, table: pa.Table, location: Path) -> None:
        """Write one file."""
        self._parquet.write_table(
            table, location, compression=self.values["codec"], compression_level=self.values["level"]
        )

    def read(self, location: Path) -> pa.Table:
        """Read all columns of the file."""
        return self._parquet.read_table(location, use_threads=self.threads is None)

    def stored(self, location: Path) -> Stored:
        """Codec and encodings of all column chunks, from the footer."""
        return parquet_codecs.stored_of(self._parquet.read_metadata(location))


ENGINES = (ParquetPyarrow,)
