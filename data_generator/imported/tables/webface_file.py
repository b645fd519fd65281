"""Read the user's own WebFace file, an HDF5 file with exactly one compound data set, which is a table of named columns.

The file is read batch by batch. Columns of bytes become strings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from data_generator.dataset import Dataset, batch_sizes
from data_generator.errors import DataError

VERSION = 1
_BATCH_ROWS = 262_144


def open_file(path: Path, rows: int | None = None) -> Dataset:
    """Return the first `rows` rows (default: all) of the file's compound data set.

    Integers, floats and booleans keep their width. Fixed and variable bytes become strings, without HDF5's padding
    zeros. Raises DataError for a file that is missing or damaged, for a file that does not have exactly one such data
    set, and for a column that a table cannot hold.
    """
    try:
        import h5py
    except ModuleNotFoundError:
        missing = "reading HDF5 needs h5py, which is not installed. Run: pip install -e '.[hdf5]'"
        raise DataError(f"{path}: {missing}") from None
    try:
        about = path.stat()
        with h5py.File(path) as file:
            key = _compound_key(path, file)
            compound = file[key]
            columns = {name: _column(path, compound.dtype[name], name) for name in compound.dtype.names}
            stored = len(compound)
    except OSError as error:
        raise DataError(f"{path} cannot be read as HDF5: {error.strerror or error}") from error
    if not stored:
        raise DataError(f"{path}: {key!r} has no rows.")
    count = stored if rows is None else min(rows, stored)
    schema = pa.schema([(name, kind) for name, (kind, _) in columns.items()])

    def batches() -> Iterator[pa.RecordBatch]:
        start = 0
        for size in batch_sizes(count, _BATCH_ROWS):
            try:
                with h5py.File(path) as file:
                    records = file[key][start : start + size]
            except OSError as error:
                raise DataError(f"{path}: {key!r} is damaged near row {start:,}: {error}") from error
            arrays = [_made(path, name, start, make, records) for name, (_, make) in columns.items()]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)
            start += size

    source = {"path": str(path.resolve()), "size_bytes": str(about.st_size), "mtime_ns": str(about.st_mtime_ns)}
    return Dataset("webface", count, schema, VERSION, batches, source)


def _compound_key(path: Path, file: Any) -> str:
    import h5py

    found: list[str] = []
    others: list[str] = []

    def visit(key: str, node: Any) -> None:
        if isinstance(node, h5py.Dataset):
            is_table = node.dtype.names is not None and node.ndim == 1
            (found if is_table else others).append(key)

    file.visititems(visit)
    if len(found) == 1:
        return found[0]
    if found:
        raise DataError(
            f"{path} must have exactly one table (a one-dimensional compound data set), but has {len(found)}: "
            f"{', '.join(found)}.",
            "Copy the right table into a separate file (h5copy).",
        )
    raise DataError(
        f"{path} has no table, i.e. no one-dimensional compound data set.",
        f"Its data sets: {', '.join(others) or 'none'}.",
    )


_Make = Callable[[Any], pa.Array]


def _column(path: Path, dtype: np.dtype[Any], name: str) -> tuple[pa.DataType, _Make]:
    import h5py

    if dtype.subdtype is None:
        if dtype.kind in "iufb":
            kind = pa.from_numpy_dtype(dtype)
            return kind, lambda values: pa.array(values.astype(values.dtype.newbyteorder("=")), kind)
        if dtype.kind == "S":
            return pa.string(), lambda values: pa.array(values, pa.binary()).cast(pa.string())
        if h5py.check_string_dtype(dtype) is not None:
            return pa.string(), lambda values: pa.array(values, pa.binary()).cast(pa.string())
    raise DataError(f"{path}: column {name!r} is {dtype}; only numbers, booleans and strings are supported.")


def _made(path: Path, name: str, start: int, make: _Make, records: Any) -> pa.Array:
    try:
        return make(records[name])
    except pa.ArrowInvalid as error:
        raise DataError(f"{path}: column {name!r} has bytes that are not UTF-8, near row {start:,}.") from error
