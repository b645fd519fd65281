"""Pickle: Python's own serialisation of the DataFrame.

Reading a pickle runs whatever its writer put in. This adapter reads the locations that the harness hands out, so only
what the same run has written; do not point it at files of others.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from adapters.contract import Can, Native, Stored, TabularFormat
from adapters.losses import Loss
from formats import pandas_losses as shared

if TYPE_CHECKING:
    import pandas as pd


class PicklePandas(TabularFormat):
    """pandas.to_pickle and read_pickle, without compression."""

    format = "pickle"
    engine = "pandas"
    title = "Pickle"
    distributions = ("pandas",)
    native = Native.PANDAS
    suffix = ".pkl"
    capabilities = frozenset({Can.TYPES, Can.NESTED, Can.SINGLE_FILE})

    @property
    def losses(self) -> tuple[Loss, ...]:
        """Pickle keeps a DataFrame as it is; an Arrow table has to become one first."""
        return (shared.NAN_AS_NULL, shared.DECIMAL_PRECISION)

    def load_library(self) -> None:
        """Import pandas."""
        import pandas

        self._pandas = pandas

    def save(self, table: pd.DataFrame, location: Path) -> None:
        """Write one file."""
        table.to_pickle(location)

    def read(self, location: Path) -> pd.DataFrame:
        """Read the DataFrame."""
        return self._pandas.read_pickle(location)

    def stored(self, location: Path) -> Stored:
        """The protocol: the second byte of the file, after the PROTO opcode."""
        with location.open("rb") as file:
            _, protocol = file.read(2)
        return Stored(None, (), {"protocol": str(protocol)})


ENGINES = (PicklePandas,)
