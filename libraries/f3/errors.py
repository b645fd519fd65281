"""`F3Error`, the exception for faulty F3 files and wrong calls, and `Placed`, which adds a location to error
messages."""

from __future__ import annotations

from types import TracebackType

import pyarrow as pa


class F3Error(Exception):
    """A file is faulty, or a call is wrong. The message is for users and names the location: a path, section, column,
    offset or EncUnit (the smallest part of a column that can be decoded)."""


class Placed:
    """Prefix errors raised in a `with` block with a location, such as a file or column.

    Arrow's errors, `UnicodeDecodeError` and `MemoryError` become `F3Error`.
    """

    def __init__(self, what: str) -> None:
        self._what = what

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, F3Error):
            raise type(error)(f"{self._what}: {error}") from None
        # UnicodeDecodeError is raised for a name that is not UTF-8.
        if isinstance(error, pa.ArrowException | UnicodeDecodeError):
            raise F3Error(f"{self._what}: {error}") from error
        if isinstance(error, MemoryError):
            raise F3Error(f"{self._what}: not enough memory; read or write fewer rows at a time") from error
