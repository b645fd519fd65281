"""Merges in the background: one thread of the store makes one of several components as long as any are due.

An error ends no thread: it waits for the next call of the user, who gets it, and after that the merge is tried again.
It knows when and what to merge; how components become one is the layouts' matter.
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
    """The store is closed while a merge is under way: what it had written is removed."""


@dataclass(frozen=True)
class Merge:
    """Neighbours that are to become one, newest first, and whether the oldest of all is among them.

    `path` is that of a secondary index, None for the documents themselves.
    """

    path: str | None
    components: tuple[Held[StoredComponent], ...]
    index_files: tuple[Held[IndexFile], ...]
    with_oldest: bool

    def files(self) -> Sequence[Held[StoredComponent] | Held[IndexFile]]:
        """What is merged."""
        return self.components or self.index_files


def due_merge(version: Version, late: bool = False) -> Merge | None:
    """What is to be merged next: documents first. `late` as in `due`."""
    count = due([file.size_bytes for file in version.components], late)
    if count is not None:
        return Merge(None, version.components[:count], (), count == len(version.components))
    for path, files in version.indexes.items():
        count = due([file.size_bytes for file in files], late)
        if count is not None:
            return Merge(path, (), files[:count], count == len(files))
    return None


class Tree(Protocol):
    """What a merge needs of the tree."""

    state: Condition
    workshop: Workshop

    @property
    def version(self) -> Version:
        """The newest one."""

    def next_number(self) -> int:
        """Of a file."""

    def install_merge(self, merge: Merge, made: Held[StoredComponent] | Held[IndexFile] | None) -> None:
        """Put what was made in place of what was merged. Raises `OSError`."""


class Merger:
    """The thread, and what others wait for under the tree's `state`."""

    def __init__(self, tree: Tree, late: bool) -> None:
        self._tree, self._late = tree, late
        self._thread: Thread | None = None
        self._running = self._stopped = False
        self._error: BaseException | None = None
        self.done = 0

    def wake(self) -> None:
        """Something may be due. The caller holds the tree's state."""
        if self._thread is None and not self._stopped and self._due() is not None:
            thread = Thread(target=self._work, name="document store: merges", daemon=True)
            try:
                thread.start()
                self._thread = thread
            except RuntimeError as error:
                # The system gives no thread now. What called this is done, and the next call is told.
                self._error = error
        self._tree.state.notify_all()

    def raise_error(self) -> None:
        """Raises what a merge ended with since the last call, once. The caller holds the tree's state."""
        error, self._error = self._error, None
        if error is None:
            return
        self.wake()
        words = f"A merge in the background failed, and this call did nothing: {error}"
        kind = type(error) if isinstance(error, FullError | CorruptError) else DocumentStoreError
        raise kind(words) from error

    def wait(self) -> None:
        """Return when nothing is due and nothing under way. Raises what a merge ended with."""
        with self._tree.state:
            self.raise_error()
            while self._error is None and not self._stopped and self._busy():
                self._tree.state.wait()
            self.raise_error()

    def wait_for_room(self, most: int) -> None:
        """Return when documents and each index have fewer than `most` files. Raises what a merge ended with."""
        with self._tree.state:
            while self._error is None and self._tree.version.most_files >= most:
                self._tree.state.wait()
            self.raise_error()

    def check(self) -> None:
        """Raises Cancelled once the merger is stopped."""
        if self._stopped:
            raise Cancelled

    def stop(self) -> None:
        """Give up what is under way; return when the thread has ended."""
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
            except BaseException as raised:  # whatever it is, the next call gets it
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
        """The next merge, whose files are held; None when stopped."""
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
        """The one file, None if nothing is left of those merged."""
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
