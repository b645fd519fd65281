"""HDF5 by pandas' HDFStore, in its layouts `fixed` and `table`.

The layout `fixed` stores arrays of whole columns. The layout `table` stores rows, to which rows can be appended.
"""

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
from formats.shared.dask_engine import NOT_OFFERED, DaskEngine, number
from formats.shared.projection import ProjectsByOneCall, in_order
from formats.shared.rows import checked
from formats.shared.streams import whole_or_nothing

if TYPE_CHECKING:
    import dask.dataframe as dd
    import numpy as np
    import pandas as pd
    import pyarrow as pa

_KEY = "table"
_LEVELS = range(1, 10)
_MOST_ROWS = 2**40
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
"""Maps a part of an error message of pandas to the reason why rows cannot be appended."""

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
        "level": Setting(_LEVELS, None, "level of the codec; required with a codec"),
    }


class _HdfPandas(TabularFormat):
    """Base class of the adapters for HDF5 by pandas' to_hdf and read_hdf."""

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
                f"{self.format}: codec={values['codec']} needs a level (level=1 to level=9): "
                "without a level, pandas writes the data uncompressed"
            )

    @property
    def calls(self) -> Calls:
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
        """Import pandas and PyTables. With threads=1, the codec library Blosc uses one thread only."""
        import pandas
        import pandas.io.pytables
        import tables

        self._pandas = pandas
        self._tables = tables
        if self.threads == 1:
            tables.set_blosc_max_threads(1)

    def save(self, table: pd.DataFrame, location: Path) -> None:
        """Write one file with the table under one key. The file gets no search index for columns."""
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
        return self._pandas.read_hdf(location, key=_KEY)  # type: ignore[return-value]

    def stored(self, location: Path) -> Stored:
        """Return the codecs of all arrays in the file. Several codecs are joined by '+'."""
        with self._tables.open_file(location) as file:
            leaves = list(file.walk_nodes("/", "Leaf"))
            codecs = sorted({leaf.filters.complib or "none" for leaf in leaves})
        return Stored("+".join(codecs))


class HdfFixed(_HdfPandas):
    """HDF5 in pandas' layout `fixed`. Columns of the same type are stored as one array, and text as pickled objects.

    read_hdf cannot read single columns from this layout."""

    losses = (
        _OBJECTS_OF_NULLS_AS_TEXT,
        shared.objects_of_nulls("date-null", strings=("object",)),
        shared.NAN_AS_NULL,
        shared.DECIMAL_PRECISION,
        shared.VECTORS_AS_LISTS,
        shared.INTEGERS_THROUGH_NUMPY,
    )

    format = "hdf5-fixed"
    # The blosc2 codecs are missing, because HDF5 supports them only for plain arrays, and text is no plain array.
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
    """HDF5 in pandas' layout `table`, a table of rows, in which text is bytes of a fixed width."""

    losses = (
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
    # The capability NO_PICKLE is missing, because PyTables unpickles the attributes in which pandas stores the names of
    # columns. OTHER_LANGUAGES is missing, because other languages can read the values, but not the columns' names.
    capabilities = frozenset({Can.PROJECTION, Can.APPEND, Can.TYPES, Can.SINGLE_FILE})

    def refusal(self, schema: pa.Schema, rows: int) -> str | None:
        """Return a reason if the table has lists, structs or maps, which pandas cannot store in an HDF5 table."""
        refused = refusals.of_nested(schema, "pandas cannot store nested columns in a table of HDF5")
        return refused or super().refusal(schema, rows)

    def project(self, location: Path, columns: list[str]) -> pd.DataFrame:
        """Return only these columns. read_hdf reads whole rows. Raises KeyError for a missing column, which read_hdf
        itself would ignore."""
        frame: Any = self._pandas.read_hdf(location, key=_KEY, columns=columns)
        return in_order(frame, columns)

    def batches(self, location: Path, columns: list[str], rows: int) -> Iterator[pd.DataFrame]:
        """Yield batches of `rows` rows. pandas reads whole rows."""
        with self._pandas.HDFStore(str(location), mode="r") as store:
            yield from (in_order(each, columns) for each in store.select(_KEY, columns=columns, chunksize=rows))

    def open_rows(self, location: Path) -> Handle:
        """Return a handle that keeps the file open."""
        store = self._pandas.HDFStore(str(location), mode="r")
        rows = store.get_storer(_KEY).nrows

        def take(numbers: np.ndarray, columns: Sequence[str]) -> pd.DataFrame:
            # The store reads whole rows, and returns the requested columns in the order of the table.
            if len(numbers):
                frame: Any = store.select(_KEY, where=checked(numbers, rows), columns=list(columns))
            else:
                # For an empty list of numbers, one row is read and dropped, because the store would return all rows. If
                # it read no rows, it would return text columns with another dtype.
                frame = store.select(_KEY, start=0, stop=1, columns=list(columns)).iloc[:0]
            return in_order(frame, list(columns))

        return Handle(take=take, close=store.close)

    def append(self, table: pd.DataFrame, location: Path) -> None:
        """Append rows. Raises RefusedData if a text is longer than all texts that `save` stored in the same column, or
        if the types of columns differ."""
        with _refusing_what_does_not_fit():
            table.to_hdf(location, key=_KEY, mode="a", format="table", append=True, index=False)

    def save_stream(self, schema: pa.Schema, batches: Iterator[pd.DataFrame], location: Path) -> None:
        """Write a stream of batches as one file. If there are no batches, the file has no table.

        The first batch determines the types and the maximum length of texts. Raises RefusedData if a later batch has
        other types or longer texts.
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


class HdfDask(DaskEngine, HdfTable):
    """HDF5 tables by dask.dataframe's to_hdf and read_hdf, which call pandas."""

    distributions = (*DaskEngine.distributions, "tables")
    extra = "cluster,hdf5"
    capabilities = HdfTable.capabilities - NOT_OFFERED

    def load_library(self) -> None:
        """Import dask, and make a lock for this process. dask's default lock would let only one process of a cluster
        open a file at a time."""
        super().load_library()
        from dask.utils import SerializableLock

        self._lock = SerializableLock()

    def write(self, frame: dd.DataFrame, folder: Path) -> None:
        """Write one file for each partition. Each file has one table, under the same key."""
        frame.to_hdf(
            f"{folder}/part-*.h5",
            key=_KEY,
            mode="w",
            name_function=number,
            lock=self._lock,
            index=False,
            complib=None if self.values["codec"] == "none" else self.values["codec"],
            complevel=self.values["level"],
        )

    def frame_of(self, files: list[str]) -> dd.DataFrame:
        """Return the files as one dask DataFrame, with one partition for each file. Long files are not split."""
        return self._frames.read_hdf(files, key=_KEY, chunksize=_MOST_ROWS, lock=self._lock)


@contextmanager
def _refusing_what_does_not_fit() -> Iterator[None]:
    """Return a context manager that raises RefusedData for pandas' errors about rows that cannot be appended."""
    try:
        yield
    except ValueError as error:
        said = str(error).splitlines()[0]
        for part, reason in _DOES_NOT_FIT.items():
            if part in said:
                raise RefusedData(f"{reason} ({said})") from error
        raise


FIXED = (HdfFixed,)
TABLE = (HdfTable, HdfDask)
