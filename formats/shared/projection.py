"""A base class for libraries that read some columns, or filter rows, by one call that takes the file's path."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adapters.contract import TabularFormat
from adapters.offers import Handle, Offers
from adapters.predicate import Predicate

if TYPE_CHECKING:
    import pandas as pd


class ProjectsByOneCall(TabularFormat):
    """An adapter for a library whose call takes the file and the columns, so that no file stays open between calls.

    A handle of such an adapter therefore only remembers the location."""

    @property
    def offers(self) -> Offers:
        """Reading some columns is offered. Subclasses that support more operations override this property."""
        return Offers(project=True)

    @abstractmethod
    def project(self, location: Path, columns: list[str]) -> Any:
        """Return all rows of the given columns, in the given order. For a missing column, this method raises the error
        of the library's call."""

    def scan(self, location: Path, predicate: Predicate, columns: list[str]) -> Any:
        """Return the given columns of the rows that match the condition. Only called if `offers.scan` has the kind of
        condition."""
        raise NotImplementedError(f"{self.variant} has no call that tests {predicate.kind.value}")

    def batches(self, location: Path, columns: list[str], rows: int) -> Iterator[Any]:
        """Yield all rows of the given columns, in batches of at most `rows` rows. Only called if `offers.batches` is
        True.

        Files that this method opens are closed after the last batch, or when the iterator is closed.
        """
        raise NotImplementedError(f"{self.variant} has no call that reads batch by batch")

    def open(self, location: Path) -> Handle:
        """Return a handle that only remembers the location."""
        scan = partial(self._scan, location) if self.offers.scan else None
        batches = partial(self._batches, location) if self.offers.batches else None
        return Handle(project=partial(self._project, location), scan=scan, batches=batches)

    def _scan(self, location: Path, predicate: Predicate, columns: Sequence[str]) -> Any:
        return self.scan(location, predicate, list(columns))

    def _batches(self, location: Path, columns: Sequence[str], rows: int) -> Iterator[Any]:
        return self.batches(location, list(columns), rows)

    def _project(self, location: Path, columns: Sequence[str]) -> Any:
        return self.project(location, list(columns))


def in_order(frame: pd.DataFrame, columns: list[str]) -> pd.DataFrame:
    """Return the frame with the given columns in the given order. Raises KeyError for a missing column.

    Use this function after calls that return columns in the order of the file, or that ignore missing columns.
    """
    return frame if list(frame.columns) == columns else frame[columns]
