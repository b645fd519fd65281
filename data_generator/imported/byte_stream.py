"""Read a user's text file as UTF-8. Compressed files are unpacked, and other encodings are converted.

Nothing is written to disk, and at most one block of the file is in memory.
"""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import lzma
import re
import zipfile
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, NoReturn

import pyarrow as pa

from data_generator.imported.refusal import Refused

PACKED = {".gz": "gunzip -k", ".bz2": "bunzip2 -k", ".xz": "xz -dk", ".zst": "zstd -d", ".zip": "unzip"}
"""Suffix of a compressed file -> the command that unpacks it and keeps the original."""

_MAGIC = ((b"\x1f\x8b", ".gz"), (b"\xfd7zXZ\0", ".xz"), (b"\x28\xb5\x2f\xfd", ".zst"), (b"PK\x03\x04", ".zip"))
_BZIP2 = re.compile(rb"BZh[1-9](?:1AY&SY|\x17rE8P\x90)")
_OF_MACOS = "__MACOSX/"
"""Folder that macOS adds to archives. It has metadata of the files."""

_MOST_TIMES = 200
_LEAST_BOMB_BYTES = 1 << 30
"""A compressed file is refused as a decompression bomb if it unpacks to more bytes than this, and to more than
_MOST_TIMES times its size. Tables unpack to 3 to 50 times their size."""

_BEGINNING_BYTES = 1 << 20
_TEXT_BLOCK_BYTES = 1 << 20
BLOCK_BYTES = 8 << 20
"""Number of bytes that are read at a time from files of lines. This is also the maximum length of a line."""


class Line(NamedTuple):
    """A line without its end, and its number in the file, counted from 1."""

    number: int
    content: bytes


def packing_of(name: str) -> str:
    """Return the suffix for compression in the name of a file, such as '.gz'; '' if the name has none."""
    lowered = name.lower()
    return next((ending for ending in PACKED if lowered.endswith(ending)), "")


def check_packing(name: str, beginning: bytes) -> None:
    """Raise Refused if a file is compressed, judging by its first bytes, but its name has no suffix for compression."""
    found = next((ending for magic, ending in _MAGIC if beginning.startswith(magic)), "")
    found = found or (".bz2" if _BZIP2.match(beginning) else "")
    if found and not packing_of(name):
        what = "a zip archive or an Excel workbook" if found == ".zip" else f"compressed ({found.removeprefix('.')})"
        ending = ".zip (.xlsx for a workbook)" if found == ".zip" else found
        raise Refused(
            f"is {what}, but its name does not end with {found}", f"Append {ending} to the name, or unpack the file."
        )


class ByteStream:
    """The content of a file, unpacked, as UTF-8 without a byte order mark.

    Newlines are counted while the content is read. pyarrow can read this object like a file. Errors of unpacking and
    decoding are raised as Refused.
    """

    closed = False

    def __init__(self, descriptor: int, path: str, size_bytes: int, encoding: str | None = None) -> None:
        """Open the file again and unpack it as the suffix of `path` requires. Messages call the file `path`.

        `descriptor` is not read directly, because each read moves the position of the descriptor, and pyarrow reads
        ahead even for readers that are no longer used.
        """
        self._path, self._packing = path, packing_of(path)
        self._most_bytes = max(_LEAST_BOMB_BYTES, _MOST_TIMES * size_bytes) if self._packing else None
        self._raw = self._unpacked(f"/proc/self/fd/{descriptor}")
        self._raw_bytes = 0
        self._rest = self._raw_read(4)
        self.encoding = encoding or _encoding_of_mark(self._rest)
        """The file's encoding as Python names it: 'utf-8-sig' for UTF-8 with a byte order mark."""
        is_utf8 = codecs.lookup(self.encoding).name in ("utf-8", "utf-8-sig")
        if is_utf8:
            self._rest = self._rest.removeprefix(codecs.BOM_UTF8)
        self._decoder = None if is_utf8 else codecs.getincrementaldecoder(self.encoding)()
        self._is_first_text = True
        self._rest_of_text = b""
        self._skipped = b""
        self.watch: Callable[[bytes], None] | None = None
        """Function that is called with each piece of content when the piece is read."""
        self.newlines = 0
        self.last = b""
        self.read_bytes = 0

    def _unpacked(self, opened: str) -> Any:
        try:
            if self._packing == ".gz":
                return gzip.open(opened, "rb")
            if self._packing == ".bz2":
                return bz2.open(opened, "rb")
            if self._packing == ".xz":
                return lzma.open(opened, "rb")
            if self._packing == ".zst":
                return pa.CompressedInputStream(pa.OSFile(opened), "zstd")
            return self._only_member(opened) if self._packing == ".zip" else open(opened, "rb")
        except (OSError, zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
            self._refuse_packing(error)

    def _only_member(self, opened: str) -> Any:
        archive = zipfile.ZipFile(opened)
        members = [member for member in archive.infolist() if not member.is_dir()]
        members = [member for member in members if not member.filename.startswith(_OF_MACOS)]
        if len(members) != 1:
            names = ", ".join(member.filename for member in members[:4])
            raise Refused(
                f"is a zip archive of {len(members):,} files, but must have exactly one"
                + (f" (given: {names}{', ..' if len(members) > 4 else ''})" if names else ""),
                "Unpack the archive, and name one of its files.",
                self._path,
            )
        if members[0].flag_bits & 1:
            raise Refused("is an encrypted zip archive", "Unpack the archive, and name its file.", self._path)
        return archive.open(members[0])

    def _refuse_packing(self, error: Exception) -> NoReturn:
        said = (str(error).splitlines() or [""])[0] or type(error).__name__
        raise Refused(
            f"cannot be unpacked as {self._packing.removeprefix('.')}: {said}",
            "Compress the original file again, or name that file.",
            self._path,
        ) from None

    def _raw_read(self, size_bytes: int) -> bytes:
        try:
            content: bytes = self._raw.read(*([size_bytes] if size_bytes >= 0 else []))
        except (OSError, EOFError, lzma.LZMAError, zipfile.BadZipFile, RuntimeError, ValueError) as error:
            self._refuse_packing(error)
        except Exception as error:
            # zlib.error has no base class other than Exception, so identify it by its module.
            if type(error).__module__ != "zlib":
                raise
            self._refuse_packing(error)
        self._raw_bytes += len(content)
        if self._most_bytes is not None and self._raw_bytes > self._most_bytes:
            raise Refused(
                f"unpacks to more than {_MOST_TIMES} times its size",
                "The file may be hostile. If you trust it, unpack it, and name the unpacked file.",
                self._path,
            )
        return content

    def skip_lines(self, lines: int) -> None:
        """Skip the next `lines` lines. Raises Refused for content that cannot be read."""
        while lines > 0 and (content := self.read(_TEXT_BLOCK_BYTES)):
            for _ in range(min(lines, content.count(b"\n"))):
                content = content[content.index(b"\n") + 1 :]
                lines -= 1
            if lines == 0:
                self._skipped = content
                self.newlines -= content.count(b"\n")

    def read(self, size_bytes: int = -1) -> bytes:
        """Return the next bytes as UTF-8, at most `size_bytes`. Raises Refused for content that cannot be read."""
        content, self._skipped = self._skipped, b""
        if content and 0 <= size_bytes < len(content):
            content, self._skipped = content[:size_bytes], content[size_bytes:]
        elif not content:
            content = self._next_utf8(size_bytes) if self._decoder is None else self._transcoded(size_bytes)
        self.newlines += content.count(b"\n")
        self.read_bytes += len(content)
        self.last = content[-1:] or self.last
        if self.watch is not None:
            self.watch(content)
        return content

    def _next_utf8(self, size_bytes: int) -> bytes:
        if not self._rest:
            return self._raw_read(size_bytes)
        if 0 <= size_bytes < len(self._rest):
            content, self._rest = self._rest[:size_bytes], self._rest[size_bytes:]
            return content
        content, self._rest = self._rest, b""
        return content + self._raw_read(size_bytes if size_bytes < 0 else size_bytes - len(content))

    def _transcoded(self, size_bytes: int) -> bytes:
        assert self._decoder is not None
        while len(self._rest_of_text) < size_bytes or size_bytes < 0:
            packed = self._take_rest() or self._raw_read(_TEXT_BLOCK_BYTES)
            try:
                text = self._decoder.decode(packed, final=not packed)
            except UnicodeDecodeError as error:
                raise Refused(
                    f"byte 0x{error.object[error.start]:02x} in line {self.newlines + 1:,} or later is not valid in "
                    f"{self.encoding}",
                    "Name another `encoding`.",
                    self._path,
                ) from None
            if self._is_first_text and text:
                text, self._is_first_text = text.removeprefix("\ufeff"), False
            self._rest_of_text += text.encode("utf-8", "surrogatepass")
            if not packed:
                break
        count = len(self._rest_of_text) if size_bytes < 0 else size_bytes
        content, self._rest_of_text = self._rest_of_text[:count], self._rest_of_text[count:]
        return content

    def _take_rest(self) -> bytes:
        rest, self._rest = self._rest, b""
        return rest

    def text_lines(self, longest_bytes: int, errors: str = "replace") -> Iterator[str]:
        """Yield the content as lines of text. Lines of more than `longest_bytes` are split."""
        text = io.TextIOWrapper(io.BufferedReader(_Raw(self)), "utf-8", errors, newline="")
        return iter(lambda: text.readline(longest_bytes), "")

    def lines(self) -> Iterator[list[Line]]:
        """Yield the lines that are not blank, block by block. Raises Refused for a line longer than a block."""
        rest, number = b"", 1
        while part := self.read(BLOCK_BYTES):
            lines = (rest + part).split(b"\n")
            rest = lines.pop()
            yield _filled(lines, number)
            number += len(lines)
            if len(rest) > BLOCK_BYTES:
                where = f"{self._path}, line {number:,}"
                raise Refused(f"is longer than {BLOCK_BYTES >> 20} MB", "Shorten or remove the line.", where)
        yield _filled([rest], number)

    def close(self) -> None:
        """Do nothing, because the caller closes the file."""

    def readable(self) -> bool:
        """Return True, as a file does."""
        return True


def _filled(lines: list[bytes], first: int) -> list[Line]:
    return [Line(number, line) for number, line in enumerate(lines, start=first) if line and not line.isspace()]


class _Raw(io.RawIOBase):
    """A ByteStream with Python's interface of raw files, so that Python can read it as text."""

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        content = self._stream.read(len(buffer))
        buffer[: len(content)] = content
        return len(content)


def _encoding_of_mark(beginning: bytes) -> str:
    """Return the encoding that a byte order mark indicates; UTF-8 if there is no mark."""
    for mark, encoding in (
        (codecs.BOM_UTF8, "utf-8-sig"),
        (codecs.BOM_UTF32_LE, "utf-32"),
        (codecs.BOM_UTF32_BE, "utf-32"),
        (codecs.BOM_UTF16_LE, "utf-16"),
        (codecs.BOM_UTF16_BE, "utf-16"),
    ):
        if beginning.startswith(mark):
            return encoding
    return "utf-8"


def first_bytes(stream: ByteStream) -> bytes:
    """Return the beginning of the content, at most 1 MiB."""
    return stream.read(_BEGINNING_BYTES)
