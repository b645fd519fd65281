"""The identity of a decoder module: its encodings' name and semantic version, in a custom section of the module.

A reader that knows the name, and whose native decoders have the same major version and at least the same minor version,
need not run the module (F3, SIGMOD 2025, section 6.4). The paper records one version per built-in encoding in the
footer; the footer's schema has one per type of encoding only, so a file with two modules could not tell them apart.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass

CORE = "core"
"""Name of this package's decoder module among those of a file."""
SECTION = b"f3.encoding"
"""Name of the custom section. Its content is text: a name, a space, and three numbers with points between them."""
_MOST_BYTES, _MOST_SECTIONS = 100, 1000
_TEXT = re.compile(rb"([a-z0-9.-]{1,64}) (\d{1,5})\.(\d{1,5})\.(\d{1,5})")


@dataclass(frozen=True)
class EncodingVersion:
    """Name and semantic version of a module's encodings."""

    name: str
    major: int
    minor: int
    patch: int

    def __str__(self) -> str:
        return f"{self.name} {self.major}.{self.minor}.{self.patch}"

    def decodes(self, other: EncodingVersion | None) -> bool:
        """Return whether decoders of this version decode everything that the other version's do."""
        return other is not None and (self.name, self.major) == (other.name, other.major) and self.minor >= other.minor


NATIVE = EncodingVersion("format-bench.core", 1, 0, 1)
"""What the native library decodes, as in kernels.h. A new node raises the minor version, a changed meaning of an
existing one the major version, and a change of the module alone the last number."""
_UNNAMED = {
    "2e27dd45aad24a363c79bf2acc5f11649c72b5f1c582e7e5d34bb98c2b095734": EncodingVersion("format-bench.core", 1, 0, 0)
}
"""SHA-256 of modules that were written to files before modules had the section."""


def version_of(wasm: bytes) -> EncodingVersion | None:
    """Return the identity that a module states, or None if it states none."""
    for name, content in _custom_sections(wasm):
        found = _TEXT.fullmatch(content) if name == SECTION and len(content) <= _MOST_BYTES else None
        if found:
            return EncodingVersion(found[1].decode(), int(found[2]), int(found[3]), int(found[4]))
    return _UNNAMED.get(hashlib.sha256(wasm).hexdigest())


def _custom_sections(wasm: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield name and content of a module's custom sections, up to the first that is cut short. A module has a few
    sections; after `_MOST_SECTIONS` the search ends."""
    at = 8  # after the magic number and the version of WebAssembly
    for _ in range(_MOST_SECTIONS):
        if at >= len(wasm):
            return
        kind = wasm[at]
        size, at = _number(wasm, at + 1)
        if kind == 0:
            name_bytes, start = _number(wasm, at)
            content = start + name_bytes
            end = min(at + size, content + _MOST_BYTES + 1)
            yield wasm[start : min(content, start + _MOST_BYTES)], wasm[content:end]
        at += size


def _number(data: bytes, at: int) -> tuple[int, int]:
    """Return an unsigned LEB128 number of at most 32 bits, and the position after it."""
    number = 0
    for place, byte in enumerate(data[at : at + 5]):
        number |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            return number, at + place + 1
    return 0, len(data)
