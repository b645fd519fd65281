"""What the tree consists of at one moment, and who still reads which file.

A file goes after its last reader: the tree itself holds the files of its newest version, each snapshot those of the one
that it began with.
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
    """An open file and the number of those who hold it. Whoever makes it is the first."""

    def __init__(self, number: int, reader: FileReader, content: Content, unlink: Callable[[], None]) -> None:
        """`unlink` takes the file's name away, when it is no longer wanted and nobody holds it."""
        self.number, self.content = number, content
        self._reader, self._unlink = reader, unlink
        self._holders = 1
        # Whoever lets an iterator go may be within a call of this very object: the collector chooses its moments.
        self._counting = RLock()
        self._unwanted = False

    @property
    def size_bytes(self) -> int:
        """The file's length."""
        return self._reader.size_bytes

    def hold(self) -> None:
        """One holder more."""
        with self._counting:
            assert self._holders, "a file that was given up is held again"
            self._holders += 1

    def release(self, unwanted: bool = False) -> None:
        """One holder less; the last one closes the file, and removes it if any of them found it unwanted."""
        with self._counting:
            self._holders -= 1
            self._unwanted = self._unwanted or unwanted
            last = self._holders == 0
        if not last:
            return
        self._reader.close()
        if self._unwanted:
            # A name that cannot be taken away now is taken away when the store opens again: the manifest lacks it.
            with suppress(OSError):
                self._unlink()


@dataclass(frozen=True, kw_only=True)
class Version:
    """Files that are valid together: components and, by path, those of the secondary indexes, newest first.

    `log` is the first log whose batches are in none of them.
    """

    log: int
    components: tuple[Held[StoredComponent], ...] = ()
    indexes: dict[str, tuple[Held[IndexFile], ...]] = field(default_factory=dict)

    @property
    def most_files(self) -> int:
        """Of the documents or of an index, whichever has more."""
        return max(len(files) for files in (self.components, *self.indexes.values()))

    def files(self) -> Iterator[Held[StoredComponent] | Held[IndexFile]]:
        """All of its files."""
        yield from self.components
        for files in self.indexes.values():
            yield from files

    def hold(self) -> None:
        """All of its files."""
        for file in self.files():
            file.hold()

    def release(self) -> None:
        """All of its files."""
        for file in self.files():
            file.release()

    def flushed(self, log: int, component: Held[StoredComponent], indexes: dict[str, Held[IndexFile]]) -> Version:
        """With what one flush made."""
        changed = {path: (made, *self.indexes[path]) for path, made in indexes.items()}
        return Version(log=log, components=(component, *self.components), indexes={**self.indexes, **changed})

    def with_index(self, path: str, files: tuple[Held[IndexFile], ...]) -> Version:
        """With one index more."""
        return replace(self, indexes={**self.indexes, path: files})

    def merged(self, merged: tuple[Held[StoredComponent], ...], into: Held[StoredComponent] | None) -> Version:
        """With one component, or none, in place of neighbours."""
        return replace(self, components=_in_place_of(self.components, merged, into))

    def index_merged(self, path: str, merged: tuple[Held[IndexFile], ...], into: Held[IndexFile] | None) -> Version:
        """The same for an index."""
        return replace(self, indexes={**self.indexes, path: _in_place_of(self.indexes[path], merged, into)})


def _in_place_of(
    files: tuple[Held[Content], ...], merged: tuple[Held[Content], ...], into: Held[Content] | None
) -> tuple[Held[Content], ...]:
    start = files.index(merged[0])
    assert files[start : start + len(merged)] == merged, "what is merged lies side by side"
    return (*files[:start], *([] if into is None else [into]), *files[start + len(merged) :])
