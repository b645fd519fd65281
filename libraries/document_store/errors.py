"""The errors of the document store, for all of its modules. They say where, what, and what to do next."""

from __future__ import annotations


class DocumentStoreError(Exception):
    """Whatever the document store refuses or cannot do."""


class DocumentError(DocumentStoreError):
    """A document that cannot be stored, and nothing of its batch is; or a key that no document can have."""

    def __init__(self, words: str, document: int | None = None, path: str = "", what: str = "document") -> None:
        """`document` counts from 0 in its batch; `path` is spelled as by `paths`, '' is the document itself. Of keys
        that are asked for `what` is 'key'."""
        where = f"the {what}" if document is None else f"{what} {document} of the batch"
        super().__init__(f"{where}{f', {path}' if path else ''}: {words}")
        self.words, self.document, self.path = words, document, path


class CorruptError(DocumentStoreError):
    """Stored bytes that no writer of ours has made, or that changed since."""


class LockedError(DocumentStoreError):
    """Another process has the store open."""


class FullError(DocumentStoreError):
    """A limit was reached: of the disk, or of what a store can hold."""


class ClosedError(DocumentStoreError):
    """The store was closed before the call."""
