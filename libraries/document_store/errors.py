"""The errors of the document store. Messages name the location, the problem and the next step."""

from __future__ import annotations


class DocumentStoreError(Exception):
    """Base of all errors of the document store."""


class DocumentError(DocumentStoreError):
    """A document that cannot be stored, or a key that no document can have. No document of the same batch is stored."""

    def __init__(self, words: str, document: int | None = None, path: str = "", what: str = "document") -> None:
        """`document` is the index in the batch, from 0. `path` is a path as text; '' means the whole document.

        For an error about a requested key, `what` is 'key'."""
        where = f"the {what}" if document is None else f"{what} {document} of the batch"
        super().__init__(f"{where}{f', {path}' if path else ''}: {words}")
        self.words, self.document, self.path = words, document, path


class CorruptError(DocumentStoreError):
    """Stored bytes were not written by the store, or changed after they were written."""


class LockedError(DocumentStoreError):
    """Another process has the store open."""


class FullError(DocumentStoreError):
    """A limit of the disk or of the store is reached."""


class ClosedError(DocumentStoreError):
    """The store was closed before the call."""
