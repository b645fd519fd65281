"""The identity of a decoder module: the name and the semantic version of its encodings, in a custom section of the
module.

A reader need not run the module if the reader has native decoders with the same name, the same major version, and at
least the same minor version (F3, SIGMOD 2025, section 6.4). The paper stores versions in the footer instead, one per
built-in encoding. The footer's schema has only one version per type of encoding, so two modules of a file could not
have different versions.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass

CORE = "core"
"""Name of this package's decoder module in `Coding.modules()`."""
SECTION = b"f3.encoding"
"""Name of the custom section. Its content is text: a name, a space, and a version of three numbers separated by
points."""
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
        """Return whether decoders of this version can decode all payloads of the other version. False if `other` is
        None."""
        return other is not None and (self.name, self.major) == (other.name, other.major) and self.minor >= other.minor


NATIVE = EncodingVersion("format-bench.core", 1, 0, 1)
"""Version of the encodings that the native library decodes, as in kernels.h. A new node raises the minor version, and a
change of a node's meaning the major version. If only the module changes, the last number is raised."""
_UNNAMED = {
    "2e27dd45aad24a363c79bf2acc5f11649c72b5f1c582e7e5d34bb98c2b095734": EncodingVersion("format-bench.core", 1, 0, 0)
}
"""SHA-256 -> version, for modules that were written to files before modules had the section."""


def version_of(wasm: bytes) -> EncodingVersion | None:
    """Return the identity that a module states in its section. Some modules without the section are known by their
    hash. For all other modules return None."""
    for name, content in _custom_sections(wasm):
        found = _TEXT.fullmatch(content) if name == SECTION and len(content) <= _MOST_BYTES else None
        if found:
            return EncodingVersion(found[1].decode(), int(found[2]), int(found[3]), int(found[4]))
    return _UNNAMED.get(hashlib.sha256(wasm).hexdigest())


def _custom_sections(wasm: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield name and content of each custom section of a module. The search ends at a section that is cut short, and
    after `_MOST_SECTIONS` sections, because a valid module has only a few."""
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
    """Return the unsigned LEB128 number of at most 32 bits at a position, and the position after it. If the number is
    invalid, return 0 and the end of the data."""
    number = 0
    for place, byte in enumerate(data[at : at + 5]):
        number |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            return number, at + place + 1
    return 0, len(data)
