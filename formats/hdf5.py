"""HDF5 through pandas' HDFStore, in its two layouts: `fixed` (whole arrays) and `table` (rows, appendable)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from adapters.contract import Can, Native, Stored, TabularFormat
from adapters.losses import Loss
from formats import pandas_losses as shared

if TYPE_CHECKING:
    import pandas as pd

_KEY = "table"


class _HdfPandas(TabularFormat):
    """DataFrame.to_hdf and read_hdf."""

    engine = "pandas"
    distributions = ("tables", "pandas")
    native = Native.PANDAS
    suffix = ".h5"
    takes_masked = False
    layout: ClassVar[str]

    def load_library(self) -> None:
        """Import pandas with PyTables; with threads=1 Blosc is held to one."""
        import pandas
        import pandas.io.pytables
        import tables

        self._pandas = pandas
        self._tables = tables
        if self.threads == 1:
            tables.set_blosc_max_threads(1)

    def save(self, table: pd.DataFrame, location: Path) -> None:
        """Write one file with one key, without an index over the rows."""
        table.to_hdf(location, key=_KEY, mode="w", format=self.layout, index=False)  # type: ignore[arg-type]

    def read(self, location: Path) -> pd.DataFrame:
        """Read the key."""
        return self._pandas.read_hdf(location, key=_KEY)  # type: ignore[return-value]

    def stored(self, location: Path) -> Stored:
        """The filters of all arrays in the file."""
        with self._tables.open_file(location) as file:
            leaves = list(file.walk_nodes("/", "Leaf"))
            codecs = sorted({leaf.filters.complib or "none" for leaf in leaves})
        return Stored("+".join(codecs))


class HdfFixed(_HdfPandas):
    """Each block of columns as one array; text as pickled objects."""

    @property
    def losses(self) -> tuple[Loss, ...]:
        """An Arrow table has to become a DataFrame first."""
        return (shared.NAN_AS_NULL, shared.DECIMAL_PRECISION, shared.INTEGERS_THROUGH_NUMPY)

    format = "hdf5-fixed"
    title = "HDF5 fixed"
    layout = "fixed"
    capabilities = frozenset({Can.TYPES, Can.SINGLE_FILE})


class HdfTable(_HdfPandas):
    """Rows of one compound type; text as fixed-width bytes."""

    @property
    def losses(self) -> tuple[Loss, ...]:
        """An Arrow table has to become a DataFrame first."""
        return (shared.NAN_AS_NULL, shared.INTEGERS_THROUGH_NUMPY)

    format = "hdf5-table"
    title = "HDF5 table"
    layout = "table"
    capabilities = frozenset(
        {Can.PROJECTION, Can.APPEND, Can.TYPES, Can.SINGLE_FILE, Can.OTHER_LANGUAGES, Can.NO_PICKLE}
    )


FIXED = (HdfFixed,)
TABLE = (HdfTable,)
