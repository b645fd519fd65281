"""A file that is being written: where its end is, and the checksum of everything in it."""

from __future__ import annotations

from collections.abc import Sequence

import xxhash

from libraries.f3.container import io
from libraries.f3.container.metadata import Section


class Output:
    """The file so far: where its end is, and the checksum of everything in it."""

    def __init__(self, target: io.Target, *, checksums: bool) -> None:
        """Continue `target`, which nothing has been written to; with `checksums` IOUnits have one each."""
        self._target = target
        self._checksums = checksums
        self._hash = xxhash.xxh64()
        self.position = 0
        self.done = False

    def write(self, data: bytes) -> Section:
        """Append; returned is where it lies."""
        self._target.write(data)
        self._hash.update(data)
        self.position += len(data)
        return Section(self.position - len(data), len(data))

    def write_unit(self, stored: Sequence[bytes]) -> tuple[Section, int | None]:
        """Append an IOUnit; returned are where it lies and its checksum, if it shall have one."""
        data = b"".join(stored)
        return self.write(data), xxhash.xxh64_intdigest(data) if self._checksums else None

    def checksum(self) -> int:
        """Of everything so far."""
        return self._hash.intdigest()

    def commit(self) -> None:
        """Make it the file; where that fails, there is none."""
        try:
            self._target.commit()
        except BaseException:
            self.abort()
            raise
        self.done = True

    def abort(self) -> None:
        """Make it disappear."""
        if not self.done:
            self.done = True
            self._target.abort()
