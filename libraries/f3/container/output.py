"""The file that a writer builds, with the current position and the checksum of its bytes."""

from __future__ import annotations

from collections.abc import Sequence

import xxhash

from libraries.f3.container import io
from libraries.f3.container.metadata import Section


class Output:
    """The file written so far, with its position and checksum."""

    def __init__(self, target: io.ByteTarget, *, checksums: bool) -> None:
        """Write to `target`, which must be empty. With `checksums`, each IOUnit (a part of a column that is written at
        once) gets a checksum."""
        self._target = target
        self._checksums = checksums
        self._hash = xxhash.xxh64()
        self.position = 0
        self.done = False

    def write(self, data: bytes) -> Section:
        """Append bytes and return their byte range."""
        self._target.write(data)
        self._hash.update(data)
        self.position += len(data)
        return Section(self.position - len(data), len(data))

    def write_unit(self, stored: Sequence[bytes]) -> tuple[Section, int | None]:
        """Append an IOUnit. Return its byte range, and its checksum (None without checksums)."""
        data = b"".join(stored)
        return self.write(data), xxhash.xxh64_intdigest(data) if self._checksums else None

    def checksum(self) -> int:
        """Return the XXH64 of everything written so far."""
        return self._hash.intdigest()

    def commit(self) -> None:
        """Complete the file. If that fails, the file is removed."""
        try:
            self._target.commit()
        except BaseException:
            self.abort()
            raise
        self.done = True

    def abort(self) -> None:
        """Remove the file, unless it is complete."""
        if not self.done:
            self.done = True
            self._target.abort()
