"""Base classes for formats that are read and written by polars.

polars takes and returns its own DataFrame. The harness, which is the code that measures, converts the user's object to
and from this DataFrame through Arrow. polars starts its thread pool with the first call, with as many threads as the
environment variable POLARS_MAX_THREADS states when polars is imported. `load_library` must not call polars: the process
is forked afterwards, and polars' threads would not survive the fork.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from adapters.contract import Calls, Native, PartCall
from adapters.errors import RefusedData
from adapters.losses import Cause, Loss, Relation
from adapters.offers import Offers
from adapters.predicate import Kind, Predicate
from adapters.relations import times
from formats.shared.conditions import POLARS_TEXTS, polars_expression
from formats.shared.pandas_losses import DICTIONARY_OF_NUMBERS_AS_VALUES, ORDER_OF_CATEGORIES
from formats.shared.projection import ProjectsByOneCall
from formats.shared.streams import apart_until_whole

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa

POLARS_CODECS = {"none": "uncompressed"}
"""Maps the value of the setting `codec` to polars' name of this codec, if the names differ."""


POLARS_LOSSES = (
    DICTIONARY_OF_NUMBERS_AS_VALUES,
    Loss(
        "timestamps in s become ms",
        "the same points in time",
        Cause.CALL,
        Relation(times.timestamps_in(["s"], "ms")),
        frozenset({"timestamp-s", "timestamp-s-zone"}),
    ),
    Loss(
        "times of day become ns",
        "the same times",
        Cause.CALL,
        Relation(times.times_in_ns),
        frozenset({"time"}),
        targets=frozenset({"arrow"}),
    ),
    ORDER_OF_CATEGORIES,
)
"""Changes to data by the conversion to and from polars' DataFrame. Formats that change nothing themselves have only
these losses."""


class PolarsEngine(ProjectsByOneCall):
    """Base class of adapters that save and read by polars. A subclass for a format adds the calls for this format."""

    engine = "polars"
    distributions: ClassVar = ("polars",)
    extra = "engines"
    native = Native.POLARS
    lost_names = r"\A\Z|\0"

    def load_library(self) -> None:
        """Import polars."""
        import polars

        self._polars = polars

    @contextmanager
    def refusing(self) -> Iterator[None]:
        """Return a context manager that raises RefusedData for polars' errors about data that it cannot write."""
        try:
            yield
        except self._polars.exceptions.ComputeError as error:
            raise RefusedData(f"polars refuses this data ({str(error).splitlines()[0]})") from error


def lazy_calls(save: str, read: str, scan: str) -> Calls:
    """Return the code that a user writes without an adapter, for a format that polars reads lazily.

    All arguments are code: `save` and `read` for whole tables, and `scan` for the lazy frame of the file."""
    asked = "select(pl.selectors.by_name(*columns)).collect()"
    return Calls(
        ("import polars as pl",),
        save,
        read,
        project=PartCall(f"{scan}.{asked}"),
        scan={kind: PartCall(f"{scan}.filter({met}).{asked}") for kind, met in POLARS_TEXTS.items()},
    )


class LazyPolarsEngine(PolarsEngine):
    """Base class for formats that polars reads lazily: polars then reads only the data that a query needs."""

    offers = Offers(project=True, scan=frozenset(Kind), batches=True, save_stream=True)

    def load_library(self) -> None:
        """Import polars, and its module that makes a lazy frame from a stream of batches."""
        super().load_library()
        self._sources = import_module("polars.io.plugins")

    def project(self, location: Path, columns: list[str]) -> pl.DataFrame:
        """Read only these columns. They are selected by `by_name`, because otherwise polars would interpret names such
        as '*' or '^..$' as patterns."""
        return self.lazy(location).select(self._polars.selectors.by_name(*columns)).collect()

    def scan(self, location: Path, predicate: Predicate, columns: list[str]) -> pl.DataFrame:
        """Read the given columns of the rows that match the condition, by a lazy frame."""
        met = self.lazy(location).filter(polars_expression(predicate, self._polars))
        return met.select(self._polars.selectors.by_name(*columns)).collect()

    def batches(self, location: Path, columns: list[str], rows: int) -> Iterator[pl.DataFrame]:
        """Yield the rows of a lazy frame in batches of at most `rows` rows. A batch has rows of only one row group."""
        chosen = self.lazy(location).select(self._polars.selectors.by_name(*columns))
        for batch in chosen.collect_batches(chunk_size=rows, maintain_order=True):
            yield from batch.iter_slices(rows) if batch.height else ()

    def save_stream(self, schema: pa.Schema, batches: Iterator[pl.DataFrame], location: Path) -> None:
        """Write a stream of batches as one file, by a lazy frame that polars writes as the batches arrive."""

        def source(*_: object) -> Iterator[pl.DataFrame]:
            # The arguments, such as requested columns and filters, are ignored, because polars requests all rows and
            # columns of a frame without a selection or a filter.
            return batches

        kinds: Any = self._polars.from_arrow(schema.empty_table())
        with apart_until_whole(location) as begun, self.refusing():
            self.sink(self._sources.register_io_source(source, schema=kinds.schema), begun)

    @abstractmethod
    def sink(self, frame: pl.LazyFrame, location: Path) -> None:
        """Write a lazy frame as one file, in the same way as `save`."""

    @abstractmethod
    def lazy(self, location: Path) -> pl.LazyFrame:
        """Return the file as a lazy frame."""
