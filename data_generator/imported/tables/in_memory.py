"""Store a program's in-memory table in a file while the table is measured.

The file is then read like any file of the user. Its name is derived from its content, so the same table is recognized
as the same input, even by a resumed run. Some properties of a DataFrame cannot be stored in any table. They are refused
here, because later errors could no longer name them.
"""

from __future__ import annotations

import datetime as dt
import decimal
import fcntl
import hashlib
import os
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import pyarrow as pa

from data_generator import cache
from data_generator.errors import DataError
from data_generator.imported.refusal import printable
from data_generator.imported.tables.held_table import HeldTable

if TYPE_CHECKING:
    import pandas as pd

TAKEN = "a pandas DataFrame, a pyarrow Table, or a table with __arrow_c_stream__, such as polars' and DuckDB's"
_FOLDER = "in-memory"
_SUFFIX = ".arrows"

_CLASSES: dict[type, str] = {
    str: "str",
    bytes: "bytes",
    bool: "bool",
    int: "int",
    float: "float",
    decimal.Decimal: "Decimal",
    dt.datetime: "datetime",
    dt.date: "date",
    dt.time: "time",
    dt.timedelta: "timedelta",
    list: "list",
    tuple: "list",
    dict: "dict",
}
"""Python types that are allowed in a column of objects -> name of the type. All values of a column must have the same
name. A subclass gets the name of its nearest base class in this list."""


def is_given(data: object) -> bool:
    """Return whether `data` is a table in memory. It may also be a path or None."""
    return data is not None and not isinstance(data, str | os.PathLike)


@contextmanager
def held(data: Any) -> Iterator[HeldTable]:
    """Store a table in a file of the cache until the `with` block ends.

    Warns of a DataFrame's index, which becomes columns. Raises DataError for objects that are not tables, for columns
    with equal names, for columns with values of several types, and if the file cannot be written to the cache folder.
    """
    title = _title(data)
    reader = _reader(data, title)
    folder = cache.default_folder() / _FOLDER
    with cache.errors_told(title, folder):
        folder.mkdir(parents=True, exist_ok=True)
        _remove_left_over(folder)
        path, locked = _stored(reader, Path(os.path.realpath(folder)), title)
    with locked:
        try:
            yield HeldTable(path, title)
        finally:
            _remove_last(path, locked)


def _title(data: Any) -> str:
    kind = type(data)
    return f"{kind.__module__.partition('.')[0].lstrip('_')} {kind.__name__} in memory"


def _reader(data: Any, title: str) -> pa.RecordBatchReader:
    if _is_frame(data):
        return _of_frame(data, title).to_reader()
    if isinstance(data, pa.RecordBatch):
        data = pa.Table.from_batches([data])
    if not hasattr(data, "__arrow_c_stream__"):
        step = "Call .collect() first." if hasattr(data, "collect") else f"Pass a path, or {TAKEN}"
        raise DataError(f"`data` is not a table (got {type(data).__name__}).", step, parameter="data", allowed=TAKEN)
    try:
        return pa.RecordBatchReader.from_stream(data)
    except (pa.ArrowException, TypeError, ValueError) as error:
        said = (str(error).splitlines() or [""])[0]
        raise DataError(
            f"`data` is not a table (got {type(data).__name__}): {printable(said)}.",
            f"Pass {TAKEN}.",
            parameter="data",
            allowed=TAKEN,
        ) from None


def _is_frame(data: Any) -> bool:
    """Return whether `data` is a pandas object, without importing pandas, which other tables do not need."""
    return any(f"{base.__module__}.{base.__name__}".startswith("pandas.") for base in type(data).__mro__) and (
        hasattr(data, "columns") and hasattr(data, "index")
    )


# --- DataFrames ------------------------------------------------------------------------------------------------------


def _of_frame(frame: pd.DataFrame, title: str) -> pa.Table:
    import pandas as pd

    if isinstance(frame.columns, pd.MultiIndex):
        raise DataError(
            f"{title}: its columns are a MultiIndex of {frame.columns.nlevels} levels, which no format supports.",
            'Join the levels: df.columns = ["_".join(map(str, name)) for name in df.columns]',
        )
    frame = _with_index_as_columns(frame, title)
    _check_names(list(frame.columns), title)
    arrays = [_column(frame.iloc[:, place], title) for place in range(frame.shape[1])]
    return pa.Table.from_arrays(arrays, names=list(frame.columns))


def _with_index_as_columns(frame: pd.DataFrame, title: str) -> pd.DataFrame:
    import pandas as pd

    index = frame.index
    if index.nlevels == 1 and index.name is None and index.equals(pd.RangeIndex(len(frame))):
        return frame
    without = frame.reset_index(drop=True)
    names = list(index.names)
    if index.nlevels == 1 and index.name is None:
        names = ["index"]
    names = [f"level_{place}" if name is None else name for place, name in enumerate(names)]
    for name in names:
        if name in frame.columns:
            raise DataError(
                f"{title}: its index would become the column {name!r}, which already exists.",
                "Rename the index: df.rename_axis('NAME'), or leave the index out: df.reset_index(drop=True)",
            )
    listed = f"{'column' if len(names) == 1 else 'columns'} {', '.join(repr(name) for name in names)}"
    warnings.warn(
        f"{title}: its index is measured as the {listed}, because formats store no index; "
        "df.reset_index(drop=True) leaves the index out",
        stacklevel=6,
    )
    columns = [pd.Series(index.get_level_values(place), name=name) for place, name in enumerate(names)]
    return pd.concat([*columns, without], axis="columns")


def _check_names(names: list[Any], title: str) -> None:
    for place, name in enumerate(names, start=1):
        if not isinstance(name, str):
            raise DataError(
                f"{title}: column {place} has the name {name!r}, which is {type(name).__name__} and not text.",
                "Make all names text: df.columns = df.columns.astype(str)",
            )
    for name, count in Counter(names).items():
        if count > 1:
            raise DataError(f"{title}: {count} columns have the name {name!r}.", "Give each column a unique name.")


def _column(series: pd.Series, title: str) -> pa.Array | pa.ChunkedArray:
    if series.dtype == object:
        _check_objects(series, title)
    try:
        return pa.array(series, from_pandas=True)
    except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
        said = printable((str(error).splitlines() or [""])[0])
        raise DataError(
            f"{title}: column {series.name!r} ({series.dtype}) cannot be converted: {said}.",
            "Leave the column out, or store it as another type.",
        ) from None


def _check_objects(series: pd.Series, title: str) -> None:
    """Raise DataError unless all values in a column of objects, except missing ones, have the same supported type."""
    present = series[series.notna()]
    found = Counter(map(type, present))
    kinds: Counter[str] = Counter()
    for kind, count in found.items():
        kinds[_kind(kind)] += count
    if len(kinds) > 1:
        listed = ", ".join(f"{count:,} of {kind}" for kind, count in kinds.most_common())
        raise DataError(
            f"{title}: column {series.name!r} has values of several types, but must have one (given: {listed}).",
            f"Convert the column: df[{series.name!r}] = df[{series.name!r}].astype('str')",
        )
    for unknown in kinds.keys() - set(_CLASSES.values()):
        raise DataError(
            f"{title}: column {series.name!r} has values of the type {unknown}, which no table supports.",
            f"Leave the column out, or convert it to text: df[{series.name!r}] = df[{series.name!r}].astype('str')",
        )


def _kind(kind: type) -> str:
    import numpy as np

    for ours, theirs in (("bool", np.bool_), ("int", np.integer), ("float", np.floating), ("list", np.ndarray)):
        if issubclass(kind, theirs):
            return ours
    return next((_CLASSES[base] for base in kind.__mro__ if base in _CLASSES), kind.__name__)


# --- the file --------------------------------------------------------------------------------------------------------


def _stored(reader: pa.RecordBatchReader, folder: Path, title: str) -> tuple[Path, IO[bytes]]:
    """Write the table to a file named after its content. Return the path and the open file with a shared lock."""
    descriptor, name = tempfile.mkstemp(suffix=cache.PARTIAL, dir=folder)
    written = open(descriptor, "w+b")  # noqa: SIM115  (closed with its lock)
    try:
        fcntl.flock(written, fcntl.LOCK_SH)
        try:
            with pa.ipc.new_stream(written, reader.schema) as stream:
                for batch in reader:
                    stream.write_batch(batch)
        except pa.ArrowException as error:
            said = printable((str(error).splitlines() or [""])[0])
            raise DataError(
                f"{title} cannot be read: {said}.",
                "Leave out the column that causes this, or convert it to another type.",
            ) from None
        written.flush()
        written.seek(0)
        digest = hashlib.file_digest(written, "sha256").hexdigest()[:16]
        # The modification time identifies the input of a sample, so it must not change.
        os.utime(name, ns=(0, 0))
        path = folder / f"{title.replace(' ', '-')}-{digest}{_SUFFIX}"
        while True:
            try:
                os.link(name, path)
            except FileExistsError:
                if (theirs := _shared(path)) is None:
                    continue
                written.close()
                return path, theirs
            return path, written
    except BaseException:
        written.close()
        raise
    finally:
        os.unlink(name)


def _shared(path: Path) -> IO[bytes] | None:
    """Return the file that another call has written, with a shared lock; None if that call has just removed the
    file."""
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return None
    fcntl.flock(file, fcntl.LOCK_SH)
    if _is_there(path, file):
        return file
    file.close()
    return None


def _is_there(path: Path, file: IO[bytes]) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False


def _remove_last(path: Path, locked: IO[bytes]) -> None:
    """Remove the file, unless another call holds a lock on it."""
    with suppress(BlockingIOError):
        fcntl.flock(locked, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if _is_there(path, locked):
            path.unlink()


def _remove_left_over(folder: Path) -> None:
    """Remove the files that killed calls have left behind."""
    cache.remove_abandoned(folder)
    for path in folder.glob(f"*{_SUFFIX}"):
        with suppress(FileNotFoundError), path.open("rb") as file:
            _remove_last(path, file)
