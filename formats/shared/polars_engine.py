"""The common parts of polars' engines.

polars takes and returns its own DataFrame, which the harness converts through Arrow from and to the user's. Its thread
pool starts with the first call, with POLARS_MAX_THREADS threads as set when it is loaded. No code here may call polars
while it is being loaded, because threads do not survive a fork.
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
from adapters.relations import texts, times
from formats.shared.conditions import POLARS_TEXTS, polars_expression
from formats.shared.pandas_losses import DICTIONARY_OF_NUMBERS_AS_VALUES
from formats.shared.projection import ProjectsByOneCall
from formats.shared.streams import apart_until_whole

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa

POLARS_CODECS = {"none": "uncompressed"}
"""Codecs that polars names differently from the settings."""


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
    Loss(
        "ordered categories lose their order",
        "the same values",
        Cause.CALL,
        Relation(texts.dictionary_without_order),
        frozenset({"categorical-ordered"}),
    ),
)
"""Losses from the conversion to polars, in a format that loses nothing itself."""


class PolarsEngine(ProjectsByOneCall):
    """A format's calls of polars, to which the format adds its own."""

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
        """Turn polars' errors about data that a call refuses into RefusedData."""
        try:
            yield
        except self._polars.exceptions.ComputeError as error:
            raise RefusedData(f"polars refuses this data ({str(error).splitlines()[0]})") from error


def lazy_calls(save: str, read: str, scan: str) -> Calls:
    """Return the calls as a user writes them, for a format that `scan` reads lazily."""
    asked = "select(pl.selectors.by_name(*columns)).collect()"
    return Calls(
        ("import polars as pl",),
        save,
        read,
        project=PartCall(f"{scan}.{asked}"),
        scan={kind: PartCall(f"{scan}.filter({met}).{asked}") for kind, met in POLARS_TEXTS.items()},
    )


class LazyPolarsEngine(PolarsEngine):
    """A format that polars reads lazily, so that it reads only what a query needs."""

    offers = Offers(project=True, scan=frozenset(Kind), batches=True, save_stream=True)

    def load_library(self) -> None:
        """Import polars, and the module that makes a lazy frame from a stream of batches."""
        super().load_library()
        self._sources = import_module("polars.io.plugins")

    def project(self, location: Path, columns: list[str]) -> pl.DataFrame:
        """Read only these columns. Plain names are not used, because polars takes '*' and '^..$' as patterns."""
        return self.lazy(location).select(self._polars.selectors.by_name(*columns)).collect()

    def scan(self, location: Path, predicate: Predicate, columns: list[str]) -> pl.DataFrame:
        """Read the rows that match the condition, by a lazy frame."""
        met = self.lazy(location).filter(polars_expression(predicate, self._polars))
        return met.select(self._polars.selectors.by_name(*columns)).collect()

    def batches(self, location: Path, columns: list[str], rows: int) -> Iterator[pl.DataFrame]:
        """Collect a lazy frame batch by batch. Batches also end where row groups end."""
        chosen = self.lazy(location).select(self._polars.selectors.by_name(*columns))
        for batch in chosen.collect_batches(chunk_size=rows, maintain_order=True):
            yield from batch.iter_slices(rows) if batch.height else ()

    def save_stream(self, schema: pa.Schema, batches: Iterator[pl.DataFrame], location: Path) -> None:
        """Sink a lazy frame of a stream of batches."""

        def source(*_: object) -> Iterator[pl.DataFrame]:
            # Without selections or filters, polars always requests everything.
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
