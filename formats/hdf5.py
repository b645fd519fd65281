"""HDF5 through pandas' HDFStore, in its two layouts: `fixed` (whole arrays) and `table` (rows, appendable)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from adapters.contract import Calls, Can, Maturity, Native, PartCall, Setting, Stage, Stored, TabularFormat
from adapters.errors import RefusedData, RefusedSetting
from adapters.losses import Cause, Loss, Relation
from adapters.offers import Handle, Offers, Reach
from adapters.relations import nulls
from formats.shared import pandas_losses as shared
from formats.shared import refusals
from formats.shared.projection import ProjectsByOneCall, in_order
from formats.shared.rows import checked
from formats.shared.streams import whole_or_nothing

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    import pyarrow as pa

_KEY = "table"
_LEVELS = range(1, 10)
_BLOSC = tuple(f"blosc:{name}" for name in ("blosclz", "lz4", "lz4hc", "zlib", "zstd"))
_BLOSC2 = tuple(f"blosc2:{name}" for name in ("blosclz", "lz4", "lz4hc", "zlib", "zstd"))

_OTHER_TYPES = (
    "rows whose columns have other types cannot be added; with nulls=numpy, missing values turn a column of integers "
    "into floats"
)
_DOES_NOT_FIT = {
    "Trying to store a string": "text longer than in the first rows cannot be added",
    "cannot match existing table structure": _OTHER_TYPES,
    "because its data contents are not": _OTHER_TYPES,
    "invalid combination of [values_axes]": _OTHER_TYPES,
}
"""Part of pandas' message -> why the rows are refused."""

_OBJECTS_OF_NULLS_AS_TEXT = Loss(
    "columns of objects without any value become text",
    "all values are missing",
    Cause.CALL,
    Relation(nulls.objects_of_nulls_as_text),
    frozenset({"date-null"}),
    strings=frozenset({"str"}),
)

_TEXT_OF_NULLS = Loss(
    "columns of text or objects without any value lose their type",
    "all values are missing",
    Cause.CALL,
    Relation(nulls.objects_of_nulls_as_null),
    frozenset({"string-null"}),
    strings=frozenset({"str"}),
)


def _settings(codecs: tuple[str, ...]) -> dict[str, Setting]:
    return {
        "codec": Setting(("none", *codecs), "none", "codec of all arrays"),
        "level": Setting(_LEVELS, None, "level of the codec; a codec needs one"),
    }


class _HdfPandas(TabularFormat):
    """DataFrame.to_hdf and read_hdf."""

    engine = "pandas"
    distributions = ("tables", "pandas")
    native = Native.PANDAS
    suffix = ".h5"
    takes_masked = False
    codec_names: ClassVar = {"lz4": "blosc:lz4", "zstd": "blosc:zstd"}
    equal: ClassVar = {"codec": "blosc:zstd", "level": "1"}
    layout: ClassVar[str]

    def _check_level(self, values: Mapping[str, str | int | None]) -> None:
        super()._check_level(values)
        if values["codec"] != "none" and values["level"] is None:
            raise RefusedSetting(
                f"{self.format}: codec={values['codec']} needs a level (1 to 9): "
                "without one pandas writes the data uncompressed"
            )

    @property
    def calls(self) -> Calls:
        """The code that a user writes to save and read the data without this adapter."""
        codec = "" if self.values["codec"] == "none" else f', complib="{self.values["codec"]}"'
        level = "" if self.values["level"] is None else f", complevel={self.values['level']}"
        how = f'key="{_KEY}", mode="w", format="{self.layout}", index=False{codec}{level}'
        calls = Calls(
            ("import pandas as pd",), f"{{held}}.to_hdf({{path}}, {how})", f'pd.read_hdf({{path}}, key="{_KEY}")'
        )
        if self.layout == "fixed":
            return calls
        read = f'pd.read_hdf({{path}}, key="{_KEY}"'
        grown = f'key="{_KEY}", mode="a", format="table", append=True, index=False'
        return replace(
            calls,
            project=PartCall(f"{read}, columns=columns)[columns]"),
            take=PartCall(f"{read}, where=rows, columns=columns)[columns]"),
            append=PartCall(f"{{more}}.to_hdf({{path}}, {grown})"),
        )

    def load_library(self) -> None:
        """Import pandas with PyTables; threads=1 limits Blosc to one thread."""
        import pandas
        import pandas.io.pytables
        import tables

        self._pandas = pandas
        self._tables = tables
        if self.threads == 1:
            tables.set_blosc_max_threads(1)

    def save(self, table: pd.DataFrame, location: Path) -> None:
        """Write one file with one key, without an index of the rows."""
        codec = None if self.values["codec"] == "none" else self.values["codec"]
        table.to_hdf(
            location,
            key=_KEY,
            mode="w",
            format=self.layout,  # type: ignore[arg-type]
            index=False,
            complib=codec,  # type: ignore[arg-type]
            complevel=self.values["level"],  # type: ignore[arg-type]
        )

    def read(self, location: Path) -> pd.DataFrame:
        """Read the key."""
        return self._pandas.read_hdf(location, key=_KEY)  # type: ignore[return-value]

    def stored(self, location: Path) -> Stored:
        """Return the filters of all arrays in the file."""
        with self._tables.open_file(location) as file:
            leaves = list(file.walk_nodes("/", "Leaf"))
            codecs = sorted({leaf.filters.complib or "none" for leaf in leaves})
        return Stored("+".join(codecs))


class HdfFixed(_HdfPandas):
    """Each block of columns as one array; text as pickled objects. read_hdf cannot read single columns."""

    @property
    def losses(self) -> tuple[Loss, ...]:
        """Losses from the conversion of an Arrow table to a DataFrame."""
        return (
            _OBJECTS_OF_NULLS_AS_TEXT,
            shared.objects_of_nulls("date-null", strings=("object",)),
            shared.NAN_AS_NULL,
            shared.DECIMAL_PRECISION,
            shared.VECTORS_AS_LISTS,
            shared.INTEGERS_THROUGH_NUMPY,
        )

    format = "hdf5-fixed"
    # HDF5 supports blosc2 only for plain arrays, which text is not.
    settings: ClassVar = _settings(("zlib", "bzip2", *_BLOSC))
    levels: ClassVar = dict.fromkeys(("zlib", "bzip2", *_BLOSC), _LEVELS)
    title = "HDF5 fixed"
    layout = "fixed"
    parts = "readers expect one file; dask has a call for the format hdf5-table only"
    maturity = Maturity(
        Stage.YOUNG,
        "HDF5 is a standard, but this layout in it is pandas' own, with text as pickled objects: only pandas reads it",
    )
    capabilities = frozenset({Can.TYPES, Can.SINGLE_FILE})


class HdfTable(ProjectsByOneCall, _HdfPandas):
    """Rows of one compound type; text as fixed-width bytes."""

    @property
    def losses(self) -> tuple[Loss, ...]:
        """Losses from the conversion of an Arrow table to a DataFrame."""
        return (
            _TEXT_OF_NULLS,
            shared.objects_of_nulls("date-null", strings=("object",)),
            shared.categories_of_nulls_with("double", targets=("pandas", "arrow")),
            shared.NAN_AS_NULL,
            shared.INTEGERS_THROUGH_NUMPY,
        )

    format = "hdf5-table"
    settings: ClassVar = _settings(("zlib", "bzip2", *_BLOSC, *_BLOSC2))
    levels: ClassVar = dict.fromkeys(("zlib", "bzip2", *_BLOSC, *_BLOSC2), _LEVELS)
    title = "HDF5 table"
    layout = "table"
    offers = Offers(project=True, take=Reach.ROWS, append=True, batches=True, save_stream=True)
    maturity = Maturity(
        Stage.YOUNG,
        "HDF5 is a standard, but this layout in it is pandas' own, with names of columns as pickled objects: "
        "only pandas reads it",
    )
    # Uses pickle: PyTables unpickles the attributes in which pandas keeps the names of columns. Programs in other
    # languages find blocks of values, but not which columns they are.
    capabilities = frozenset({Can.PROJECTION, Can.APPEND, Can.TYPES, Can.SINGLE_FILE})

    def refusal(self, schema: pa.Schema, rows: int) -> str | None:
        """Refuse columns of lists, structs or maps."""
        refused = refusals.of_nested(schema, "pandas cannot store nested columns in a table of HDF5")
        return refused or super().refusal(schema, rows)

    def project(self, location: Path, columns: list[str]) -> pd.DataFrame:
        """Read whole rows and keep these columns. Raises KeyError for missing columns, which read_hdf ignores."""
        frame: Any = self._pandas.read_hdf(location, key=_KEY, columns=columns)
        return in_order(frame, columns)

    def batches(self, location: Path, columns: list[str], rows: int) -> Iterator[pd.DataFrame]:
        """Read `rows` whole rows at a time."""
        with self._pandas.HDFStore(str(location), mode="r") as store:
            yield from (in_order(each, columns) for each in store.select(_KEY, columns=columns, chunksize=rows))

    def open_rows(self, location: Path) -> Handle:
        """Open the file."""
        store = self._pandas.HDFStore(str(location), mode="r")
        rows = store.get_storer(_KEY).nrows

        def take(numbers: np.ndarray, columns: Sequence[str]) -> pd.DataFrame:
            # Rows are read whole; the store returns the requested columns in its own order.
            if len(numbers):
                frame: Any = store.select(_KEY, where=checked(numbers, rows), columns=list(columns))
            else:
                # An empty list of numbers would select all rows, and reading no rows would give text as objects.
                frame = store.select(_KEY, start=0, stop=1, columns=list(columns)).iloc[:0]
            return in_order(frame, list(columns))

        return Handle(take=take, close=store.close)

    def append(self, table: pd.DataFrame, location: Path) -> None:
        """Append rows. Raises RefusedData if a text is longer than the first rows' width for texts, or types differ."""
        with _refusing_what_does_not_fit():
            table.to_hdf(location, key=_KEY, mode="a", format="table", append=True, index=False)

    def save_stream(self, schema: pa.Schema, batches: Iterator[pd.DataFrame], location: Path) -> None:
        """Append the rows of each batch. Without batches, no file is written.

        The first batch determines the types and the width of texts. Raises RefusedData for batches of other types or
        with longer texts.
        """
        codec: Any = None if self.values["codec"] == "none" else self.values["codec"]
        level: Any = self.values["level"]
        with (
            whole_or_nothing(location),
            self._pandas.HDFStore(str(location), mode="w", complib=codec, complevel=level) as store,
            _refusing_what_does_not_fit(),
        ):
            for batch in batches:
                store.append(_KEY, batch, format="table", index=False)


@contextmanager
def _refusing_what_does_not_fit() -> Iterator[None]:
    """Turn pandas' errors about rows that do not fit the existing ones into RefusedData."""
    try:
        yield
    except ValueError as error:
        said = str(error).splitlines()[0]
        for part, reason in _DOES_NOT_FIT.items():
            if part in said:
                raise RefusedData(f"{reason} ({said})") from error
        raise


FIXED = (HdfFixed,)
TABLE = (HdfTable,)
