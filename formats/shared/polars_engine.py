"""What the engines of all formats that polars writes and reads have in common.

Polars takes and returns its own DataFrame; the harness makes it of what the user holds, through Arrow, and back.
Its pool of threads starts with the first call, with as many as POLARS_MAX_THREADS says when it is loaded: nothing here
may call it while it is being loaded, because threads do not survive a fork.
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
"""What polars calls a codec that the settings call otherwise."""


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
"""What a visit to polars changes, in a format that loses nothing itself."""


class PolarsEngine(ProjectsByOneCall):
    """A format's calls of polars, without what the format adds."""

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
        """Turn what polars says of data that a call does not take into RefusedData."""
        try:
            yield
        except self._polars.exceptions.ComputeError as error:
            raise RefusedData(f"polars does not take this data ({str(error).splitlines()[0]})") from error


def lazy_calls(save: str, read: str, scan: str) -> Calls:
    """As a user writes them, of a format that `scan` reads lazily."""
    asked = "select(pl.selectors.by_name(*columns)).collect()"
    return Calls(
        ("import polars as pl",),
        save,
        read,
        project=PartCall(f"{scan}.{asked}"),
        scan={kind: PartCall(f"{scan}.filter({met}).{asked}") for kind, met in POLARS_TEXTS.items()},
    )


class LazyPolarsEngine(PolarsEngine):
    """A format that polars reads lazily: of a frame that is asked for less, it reads less."""

    offers = Offers(project=True, scan=frozenset(Kind), batches=True, save_stream=True)

    def load_library(self) -> None:
        """Import polars, and what makes a lazy frame of batches that come."""
        super().load_library()
        self._sources = import_module("polars.io.plugins")

    def project(self, location: Path, columns: list[str]) -> pl.DataFrame:
        """Read these columns alone. Plain names will not do: polars takes '*' and '^..$' for patterns."""
        return self.lazy(location).select(self._polars.selectors.by_name(*columns)).collect()

    def scan(self, location: Path, predicate: Predicate, columns: list[str]) -> pl.DataFrame:
        """Read the rows that meet the condition, by a lazy frame."""
        met = self.lazy(location).filter(polars_expression(predicate, self._polars))
        return met.select(self._polars.selectors.by_name(*columns)).collect()

    def batches(self, location: Path, columns: list[str], rows: int) -> Iterator[pl.DataFrame]:
        """Collect a lazy frame batch by batch; where groups of rows end, so do batches."""
        chosen = self.lazy(location).select(self._polars.selectors.by_name(*columns))
        for batch in chosen.collect_batches(chunk_size=rows, maintain_order=True):
            yield from batch.iter_slices(rows) if batch.height else ()

    def save_stream(self, schema: pa.Schema, batches: Iterator[pl.DataFrame], location: Path) -> None:
        """Sink a lazy frame of what comes."""

        def source(*_: object) -> Iterator[pl.DataFrame]:
            # Nothing is selected or filtered, so nothing is asked of the source but all.
            return batches

        kinds: Any = self._polars.from_arrow(schema.empty_table())
        with apart_until_whole(location) as begun, self.refusing():
            self.sink(self._sources.register_io_source(source, schema=kinds.schema), begun)

    @abstractmethod
    def sink(self, frame: pl.LazyFrame, location: Path) -> None:
        """Write one file of what a lazy frame gives, as `save` writes it."""

    @abstractmethod
    def lazy(self, location: Path) -> pl.LazyFrame:
        """The file as a lazy frame."""
