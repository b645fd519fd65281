"""Read some columns, or rows that match a condition, by engines whose calls open the file themselves."""

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
    """An engine whose call takes the file and the columns, so that nothing stays open between calls."""

    @property
    def offers(self) -> Offers:
        """Projection; engines that support more override it."""
        return Offers(project=True)

    @abstractmethod
    def project(self, location: Path, columns: list[str]) -> Any:
        """Return all rows of these columns, in this order. Raises the call's own error for a missing column."""

    def scan(self, location: Path, predicate: Predicate, columns: list[str]) -> Any:
        """Return these columns of the rows that match the condition. Called only if `offers` includes them."""
        raise NotImplementedError(f"{self.variant} has no call that tests {predicate.kind.value}")

    def batches(self, location: Path, columns: list[str], rows: int) -> Iterator[Any]:
        """Yield all rows of these columns, at most `rows` at a time. Called only if `offers` includes it.

        Whatever is opened is closed at the end, or when the iterator is closed.
        """
        raise NotImplementedError(f"{self.variant} has no call that reads batch by batch")

    def open(self, location: Path) -> Handle:
        """Keep the location."""
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
    """Return the frame with these columns in this order. Raises KeyError for a missing column.

    For calls that keep the order of the file or ignore missing columns.
    """
    return frame if list(frame.columns) == columns else frame[columns]
