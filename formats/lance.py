"""Lance: a folder of data files, a manifest and a transaction, made for random access."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from adapters.contract import Can, Native, Stored, TabularFormat
from adapters.losses import Cause, Loss, Relation

if TYPE_CHECKING:
    import pyarrow as pa


def _without_order(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    import pyarrow as pa

    if not pa.types.is_dictionary(column.type) or not column.type.ordered:
        return None
    return column.cast(pa.dictionary(column.type.index_type, column.type.value_type))


_CATEGORIES_WITHOUT_ORDER = Loss(
    "ordered categoricals lose their order",
    "the same values",
    Cause.FORMAT,
    Relation(_without_order),
    frozenset({"categorical-ordered"}),
)


class LancePylance(TabularFormat):
    """pylance, written straight from the table."""

    format = "lance"
    engine = "pylance"
    title = "Lance"
    distributions = ("pylance",)
    native = Native.ARROW
    suffix = ".lance"
    capabilities = frozenset({Can.PROJECTION, Can.APPEND, Can.TYPES, Can.NESTED, Can.OTHER_LANGUAGES, Can.NO_PICKLE})

    @property
    def losses(self) -> tuple[Loss, ...]:
        """Lance has dictionaries, but its writer knows of no order in them."""
        return (_CATEGORIES_WITHOUT_ORDER,)

    def load_library(self) -> None:
        """Import lance."""
        import lance

        self._lance = lance

    def save(self, table: pa.Table, location: Path) -> None:
        """Write a data set of one version."""
        self._lance.write_dataset(table, str(location))

    def read(self, location: Path) -> pa.Table:
        """Read all columns of the last version."""
        return self._lance.dataset(str(location)).to_table()

    def stored(self, location: Path) -> Stored:
        """The version of the file format; Lance chooses encodings by itself, page by page."""
        version = self._lance.dataset(str(location)).data_storage_version
        return Stored(None, (), {"file format": version})


ENGINES = (LancePylance,)
