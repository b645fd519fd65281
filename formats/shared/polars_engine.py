"""What the engines of all formats that polars writes and reads have in common.

Polars takes and returns its own DataFrame; the harness makes it of what the user holds, through Arrow, and back.
Its pool of threads starts with the first call, with as many as POLARS_MAX_THREADS says when it is loaded: nothing here
may call it while it is being loaded, because threads do not survive a fork.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from adapters.contract import Calls, Native, Offers, PartCall
from adapters.errors import RefusedData
from adapters.losses import Cause, Loss, Relation
from adapters.predicate import Kind, Predicate
from adapters.relations import texts, times
from formats.shared.conditions import POLARS_TEXTS, polars_expression
from formats.shared.projection import ProjectsByOneCall

if TYPE_CHECKING:
    import polars as pl

POLARS_CODECS = {"none": "uncompressed"}
"""What polars calls a codec that the settings call otherwise."""


POLARS_LOSSES = (
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

    offers = Offers(project=True, scan=frozenset(Kind))

    def project(self, location: Path, columns: list[str]) -> pl.DataFrame:
        """Read these columns alone. Plain names will not do: polars takes '*' and '^..$' for patterns."""
        return self.lazy(location).select(self._polars.selectors.by_name(*columns)).collect()

    def scan(self, location: Path, predicate: Predicate, columns: list[str]) -> pl.DataFrame:
        """Read the rows that meet the condition, by a lazy frame."""
        met = self.lazy(location).filter(polars_expression(predicate, self._polars))
        return met.select(self._polars.selectors.by_name(*columns)).collect()

    @abstractmethod
    def lazy(self, location: Path) -> pl.LazyFrame:
        """The file as a lazy frame."""
