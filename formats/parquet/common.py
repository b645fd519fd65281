"""The base class of the adapters for Parquet, and known changes to data (losses) that several of them have."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from adapters import parquet_codecs
from adapters.contract import Can, Maturity, Stage, Stored, TabularFormat
from adapters.losses import Cause, Loss, Relation
from adapters.relations import times
from formats.shared import pandas_losses as shared

SECONDS_AS_MS = Loss(
    "timestamps in s become ms",
    "the same points in time",
    Cause.FORMAT,
    Relation(times.timestamps_in(["s"], "ms")),
    frozenset({"timestamp-s", "timestamp-s-zone"}),
)

DICTIONARY_AS_VALUES = replace(shared.DICTIONARY_AS_VALUES, cause=Cause.CALL)

TIMESTAMPS_BY_DUCKDB = Loss(
    "timestamps in s and ms become us, and UTC where they have a zone",
    "the same points in time",
    Cause.CALL,
    Relation(times.timestamps_in(["s", "ms"], "us", "UTC")),
    frozenset({"timestamp-s", "timestamp-ms", *(f"timestamp-{unit}-zone" for unit in ("s", "ms", "us", "ns"))}),
)

MOST_ROWS = range(1, 2**31)
"""Allowed values of settings that are a number of rows, such as the rows of a row group."""
MOST_BYTES = range(1, 2**31)
"""Allowed values of settings that are a number of bytes, such as the size of a page."""


class Parquet(TabularFormat):
    """Base class of the adapters for Parquet. The libraries write files with the same structure."""

    format = "parquet"
    title = "Parquet"
    suffix = ".parquet"
    settings: ClassVar = {"codec": parquet_codecs.CODEC, "level": parquet_codecs.LEVEL}
    levels: ClassVar = parquet_codecs.LEVELS
    plain: ClassVar = {"codec": "none"}
    library_default: ClassVar = {"codec": "snappy"}
    equal: ClassVar = {"codec": "zstd", "level": "1"}
    maturity = Maturity(
        Stage.ESTABLISHED,
        "an Apache specification since 2013; implementations in Java, C++, Rust, Go, C# and DuckDB's own",
    )
    capabilities = frozenset(
        {Can.PROJECTION, Can.TYPES, Can.NESTED, Can.SINGLE_FILE, Can.OTHER_LANGUAGES, Can.NO_PICKLE}
    )

    def stored(self, location: Path) -> Stored:
        """Return the codec and the encodings of all column chunks, as the file's footer states them."""
        # pyarrow reads the footer, because it is always installed, whichever library is measured.
        import pyarrow.parquet

        return parquet_codecs.stored_of(pyarrow.parquet.read_metadata(location))
