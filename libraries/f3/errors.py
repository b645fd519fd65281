"""The one error that F3 files and calls end in, and how it learns its place."""

from __future__ import annotations

from types import TracebackType

import pyarrow as pa


class F3Error(Exception):
    """What is wrong, and where: a path, a section, a column, an EncUnit, an offset. The message is for the user."""


class Placed:
    """A `with` block whose errors begin with the place: a file, a column; Arrow's errors in it are F3Errors, and so is
    too little memory."""

    def __init__(self, what: str) -> None:
        self._what = what

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, F3Error):
            raise type(error)(f"{self._what}: {error}") from None
        # The second is what names that are no UTF-8 end in.
        if isinstance(error, pa.ArrowException | UnicodeDecodeError):
            raise F3Error(f"{self._what}: {error}") from error
        if isinstance(error, MemoryError):
            raise F3Error(f"{self._what}: needs more memory than there is; take fewer rows at a time") from error
