"""Versions, which are the files of the tree at one moment, and counts of the holders of each file.

The tree holds the files of its newest version, and a snapshot holds the files of its own version. A file that was
replaced is removed when its last holder releases it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from threading import RLock
from typing import Generic, TypeVar

from libraries.document_store.files import FileReader
from libraries.document_store.indexes.index_files import IndexFile
from libraries.document_store.layouts import StoredComponent

Content = TypeVar("Content")


class Held(Generic[Content]):
    """An open file and the number of its holders. The creator is the first holder."""

    def __init__(self, number: int, reader: FileReader, content: Content, unlink: Callable[[], None]) -> None:
        """`unlink` removes the file. It is called once the file is unwanted and has no holders."""
        self.number, self.content = number, content
        self._reader, self._unlink = reader, unlink
        self._holders = 1
        # Reentrant, because the garbage collector may release an iterator during a call of this object.
        self._counting = RLock()
        self._unwanted = False

    @property
    def size_bytes(self) -> int:
        """The size of the file."""
        return self._reader.size_bytes

    def hold(self) -> None:
        """Add a holder."""
        with self._counting:
            assert self._holders, "a released file is held again"
            self._holders += 1

    def release(self, unwanted: bool = False) -> None:
        """Remove a holder. The last holder closes the file. If any holder marked the file as unwanted, the last holder
        also removes it."""
        with self._counting:
            self._holders -= 1
            self._unwanted = self._unwanted or unwanted
            last = self._holders == 0
        if not last:
            return
        self._reader.close()
        if self._unwanted:
            # A name that cannot be removed now is removed when the store is opened again, because the manifest lacks
            # it.
            with suppress(OSError):
                self._unlink()


@dataclass(frozen=True, kw_only=True)
class Version:
    """Files that are valid together: components of the documents and, by path, of the secondary indexes. All are given
    newest first.

    `log` is the number of the first log with batches that are not in these files.
    """

    log: int
    components: tuple[Held[StoredComponent], ...] = ()
    indexes: dict[str, tuple[Held[IndexFile], ...]] = field(default_factory=dict)

    @property
    def most_files(self) -> int:
        """The highest number of files of the documents or of any index."""
        return max(len(files) for files in (self.components, *self.indexes.values()))

    def files(self) -> Iterator[Held[StoredComponent] | Held[IndexFile]]:
        """Yield all files."""
        yield from self.components
        for files in self.indexes.values():
            yield from files

    def hold(self) -> None:
        """Hold all files."""
        for file in self.files():
            file.hold()

    def release(self) -> None:
        """Release all files."""
        for file in self.files():
            file.release()

    def flushed(self, log: int, component: Held[StoredComponent], indexes: dict[str, Held[IndexFile]]) -> Version:
        """Return the version with the files of one flush."""
        changed = {path: (made, *self.indexes[path]) for path, made in indexes.items()}
        return Version(log=log, components=(component, *self.components), indexes={**self.indexes, **changed})

    def with_index(self, path: str, files: tuple[Held[IndexFile], ...]) -> Version:
        """Return the version with one more index."""
        return replace(self, indexes={**self.indexes, path: files})

    def merged(self, merged: tuple[Held[StoredComponent], ...], into: Held[StoredComponent] | None) -> Version:
        """Return the version with the component `into`, or with none, instead of the consecutive components
        `merged`."""
        return replace(self, components=_in_place_of(self.components, merged, into))

    def index_merged(self, path: str, merged: tuple[Held[IndexFile], ...], into: Held[IndexFile] | None) -> Version:
        """Return the version with the index file `into`, or with none, instead of the consecutive index files
        `merged`."""
        return replace(self, indexes={**self.indexes, path: _in_place_of(self.indexes[path], merged, into)})


def _in_place_of(
    files: tuple[Held[Content], ...], merged: tuple[Held[Content], ...], into: Held[Content] | None
) -> tuple[Held[Content], ...]:
    start = files.index(merged[0])
    assert files[start : start + len(merged)] == merged, "merged files must be consecutive"
    return (*files[:start], *([] if into is None else [into]), *files[start + len(merged) :])
