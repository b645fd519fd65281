"""Reading some columns, or rows that meet a condition, for engines whose calls open the file themselves.

It knows the contract's handle and how columns are brought into the order asked; it knows no format and no library.
"""

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
    """A call that takes the file and the columns: nothing stays open between two of them."""

    @property
    def offers(self) -> Offers:
        """Some columns; more is said by who has it."""
        return Offers(project=True)

    @abstractmethod
    def project(self, location: Path, columns: list[str]) -> Any:
        """Return all rows of these columns, in the order asked, as `native_read` names it. Raises whatever the call
        raises for a column that is not there."""

    def scan(self, location: Path, predicate: Predicate, columns: list[str]) -> Any:
        """Return the rows that meet the condition, of these columns. Only where `offers` names such conditions."""
        raise NotImplementedError(f"{self.variant} has no call that tests {predicate.kind.value}")

    def batches(self, location: Path, columns: list[str], rows: int) -> Iterator[Any]:
        """Give all rows of these columns, at most so many at a time. Only where `offers` names it; what is opened is
        closed at the end, or when the iterator is."""
        raise NotImplementedError(f"{self.variant} has no call that reads batch by batch")

    def open(self, location: Path) -> Handle:
        """Keep the place alone."""
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
    """The frame with these columns in this order, for calls that keep the order of the file, or leave out what is not
    there. Raises KeyError for a column that did not come back."""
    return frame if list(frame.columns) == columns else frame[columns]
