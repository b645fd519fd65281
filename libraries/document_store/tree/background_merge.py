"""Merge components in a background thread of the store while merges are due.

An error does not end the thread. The user's next call raises the error, and then the merge is retried. This module
decides when to merge which files; `layouts` and `indexes` merge the files.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from threading import Condition, Thread
from typing import Protocol

from libraries.document_store import layouts
from libraries.document_store.errors import CorruptError, DocumentStoreError, FullError
from libraries.document_store.files import FileWriter, told_as
from libraries.document_store.indexes.index_files import IndexFile, newest, write_index
from libraries.document_store.layouts import ComponentInfo, StoredComponent
from libraries.document_store.tree.memtable_flush import Workshop
from libraries.document_store.tree.policy import due
from libraries.document_store.tree.versions import Held, Version


class Cancelled(Exception):
    """The store was closed during a merge. The unfinished output of the merge is removed."""


@dataclass(frozen=True)
class Merge:
    """Consecutive components to merge into one, newest first, and whether the store's oldest component is among them.

    `path` is the path of a secondary index, or None to merge the documents themselves.
    """

    path: str | None
    components: tuple[Held[StoredComponent], ...]
    index_files: tuple[Held[IndexFile], ...]
    with_oldest: bool

    def files(self) -> Sequence[Held[StoredComponent] | Held[IndexFile]]:
        """Return the files to merge."""
        return self.components or self.index_files


def due_merge(version: Version, late: bool = False) -> Merge | None:
    """Return the next merge, or None. Merges of documents come before merges of indexes. `late` as in `policy.due`."""
    count = due([file.size_bytes for file in version.components], late)
    if count is not None:
        return Merge(None, version.components[:count], (), count == len(version.components))
    for path, files in version.indexes.items():
        count = due([file.size_bytes for file in files], late)
        if count is not None:
            return Merge(path, (), files[:count], count == len(files))
    return None


class Tree(Protocol):
    """The members of the tree that a merge needs."""

    state: Condition
    workshop: Workshop

    @property
    def version(self) -> Version:
        """The newest version."""

    def next_number(self) -> int:
        """Return a new file number."""

    def install_merge(self, merge: Merge, made: Held[StoredComponent] | Held[IndexFile] | None) -> None:
        """Replace the merged files by the result. Raises `OSError`."""


class Merger:
    """The merge thread. Other threads wait for it with the tree's condition `state`."""

    def __init__(self, tree: Tree, late: bool) -> None:
        self._tree, self._late = tree, late
        self._thread: Thread | None = None
        self._running = self._stopped = False
        self._error: BaseException | None = None
        self.done = 0

    def wake(self) -> None:
        """Start the merge thread if a merge is due, and wake all threads that wait for the tree's `state`. The caller
        holds `state`."""
        if self._thread is None and not self._stopped and self._due() is not None:
            thread = Thread(target=self._work, name="document store: merges", daemon=True)
            try:
                thread.start()
                self._thread = thread
            except RuntimeError as error:
                # The system cannot start a thread now. The current call has succeeded, so the next call raises the
                # error.
                self._error = error
        self._tree.state.notify_all()

    def raise_error(self) -> None:
        """Raise the error of a merge that failed since the last call. The caller holds the tree's `state`."""
        error, self._error = self._error, None
        if error is None:
            return
        self.wake()
        words = f"A merge in the background failed, and this call did nothing: {error}"
        kind = type(error) if isinstance(error, FullError | CorruptError) else DocumentStoreError
        raise kind(words) from error

    def wait(self) -> None:
        """Return when no merge is due or running. Raises the error of a failed merge."""
        with self._tree.state:
            self.raise_error()
            while self._error is None and not self._stopped and self._busy():
                self._tree.state.wait()
            self.raise_error()

    def wait_for_room(self, most: int) -> None:
        """Return when fewer than `most` files hold documents, and each index has fewer than `most` files. Raises the
        error of a failed merge."""
        with self._tree.state:
            while self._error is None and self._tree.version.most_files >= most:
                self._tree.state.wait()
            self.raise_error()

    def check(self) -> None:
        """Raise Cancelled if the merger was stopped."""
        if self._stopped:
            raise Cancelled

    def stop(self) -> None:
        """Abort the running merge and wait until the thread has ended."""
        with self._tree.state:
            self._stopped = True
            self._tree.state.notify_all()
        if self._thread is not None:
            self._thread.join()

    def _due(self) -> Merge | None:
        return due_merge(self._tree.version, self._late)

    def _busy(self) -> bool:
        return self._running or self._due() is not None

    def _work(self) -> None:
        while (merge := self._next()) is not None:
            error: BaseException | None = None
            try:
                self._merge(merge)
            except BaseException as raised:  # any error is raised by the next call
                error = raised
            with self._tree.state:
                self._running, self._error = False, error
                self._tree.state.notify_all()

    def _merge(self, merge: Merge) -> None:
        try:
            with suppress(Cancelled), told_as("the merge"):
                self._tree.install_merge(merge, self._made(merge))
                self.done += 1
        finally:
            for file in merge.files():
                file.release()

    def _next(self) -> Merge | None:
        """Return the next merge, and hold its files so that they are not removed. Return None if the merger was
        stopped."""
        with self._tree.state:
            while not self._stopped:
                merge = self._due() if self._error is None else None
                if merge is not None:
                    self._running = True
                    for file in merge.files():
                        file.hold()
                    return merge
                self._tree.state.wait()
            return None

    def _made(self, merge: Merge) -> Held[StoredComponent] | Held[IndexFile] | None:
        """Merge the files, and return the merged file. Return None if no entries of the input files remain."""
        number, workshop = self._tree.next_number(), self._tree.workshop
        made: Held[StoredComponent] | Held[IndexFile]
        if merge.path is None:
            made = workshop.component(number, lambda writer: self._merge_components(writer, merge), self.check)
            count = made.content.info.count
        else:
            made = workshop.index(number, lambda writer: self._merge_index(writer, merge), self.check)
            count = made.content.count
        if count == 0:
            made.release(unwanted=True)
            return None
        return made

    def _merge_components(self, writer: FileWriter, merge: Merge) -> ComponentInfo:
        contents = [file.content for file in merge.components]
        return layouts.merge_components(writer, contents, merge.with_oldest, self._tree.workshop.options)

    def _merge_index(self, writer: FileWriter, merge: Merge) -> int:
        sources = [file.content.all() for file in merge.index_files]
        return write_index(writer, newest(sources, drop_removed=merge.with_oldest))
