"""Add the location (file, leaf or column) to the CorruptErrors of a `with` block."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from libraries.document_store.errors import CorruptError


@contextmanager
def placed(where: str) -> Iterator[None]:
    """Put `where` in front of the message of a CorruptError."""
    try:
        yield
    except CorruptError as error:
        raise CorruptError(f"{where}: {error}") from None
