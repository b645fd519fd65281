"""The write-ahead log. A batch is one frame with a checksum. After a power cut a frame is either complete or ignored.

If a call on a log fails, nothing more is written to that log. A new log follows, whose header states how many bytes of
the previous log are valid. A bad frame within these bytes is damage, and the store refuses to open. A bad frame after
these bytes, or at the end of the last log, is the result of a power cut and is ignored. A random number in the header
and in all frames of a log identifies the log. Old disk contents and a user's bytes therefore cannot be mistaken for a
frame.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import xxhash

from libraries.document_store.errors import CorruptError
from libraries.durable.calls import FileCalls

PREFIX = "log-"
DIGITS = 12
"""Minimum digits of a file number. Names then sort by number, and rarely equal names of a user's files."""
_HEADER = struct.Struct("<4sIQQQBBQ")
HEADER_BYTES = _HEADER.size
_HEADER_MAGIC, FORMAT = b"DSLG", 1
_FRAME = struct.Struct("<4sIQQQ")
_FRAME_MAGIC = b"DSFR"


def log_path(folder: Path, number: int) -> Path:
    """Return the path of the log with that number."""
    return folder / f"{PREFIX}{number:0{DIGITS}}"


@dataclass(frozen=True)
class Header:
    """The description of a log and of its predecessor.

    `previous` is the number of the previous log, or 0. The first `previous_bytes` bytes of the previous log are valid;
    they are durable if `previous_synced` is true. If `synced` is true, each frame of this log is made durable before
    the next frame is written.
    """

    salt: int
    previous: int = 0
    previous_bytes: int = 0
    previous_synced: bool = True
    synced: bool = True

    def to_bytes(self) -> bytes:
        """Serialize with a checksum."""
        fields = (self.salt, self.previous, self.previous_bytes, self.previous_synced, self.synced)
        head = _HEADER.pack(_HEADER_MAGIC, FORMAT, *fields, 0)[:-8]
        return head + xxhash.xxh3_64_intdigest(head).to_bytes(8, "little")

    @classmethod
    def from_bytes(cls, data: bytes, name: str) -> Header | None:
        """Deserialize. Return None for an unfinished header. Raises CorruptError if frames follow a broken header."""
        if len(data) >= HEADER_BYTES:
            magic, version, *fields, checksum = _HEADER.unpack_from(data)
            if magic == _HEADER_MAGIC and checksum == xxhash.xxh3_64_intdigest(data[: HEADER_BYTES - 8]):
                if version != FORMAT:
                    raise CorruptError(f"{name}: has format {version}, but this release reads only format {FORMAT}")
                salt, previous, previous_bytes, previous_synced, synced = fields
                return cls(salt, previous, previous_bytes, bool(previous_synced), bool(synced))
        if len(data) > HEADER_BYTES:
            # The header is synced before the first frame is written.
            raise CorruptError(f"{name}: its header was changed after it was stored. Restore the log from a copy.")
        return None


class LogWriter:
    """A log that is being written. If any call raises an error, begin a new log before writing the next frame."""

    def __init__(self, calls: FileCalls, folder: Path, number: int, header: Header) -> None:
        """Create the file durably with its header. Raises `OSError`."""
        self._calls, self._header = calls, header
        self.number, self.valid_bytes = number, HEADER_BYTES
        self.failed = False
        self._frames = 0
        self._descriptor: int | None = calls.create(log_path(folder, number))
        try:
            calls.write(self._descriptor, header.to_bytes())
            calls.fsync(self._descriptor)
            calls.fsync_folder(folder)
        except BaseException:
            self.close()
            raise

    def append(self, payload: bytes) -> None:
        """Append one frame. If the log is synced, the frame is durable on return. If this raises `OSError`, the frame
        is invalid."""
        assert self._descriptor is not None
        assert not self.failed
        head = _frame_header(self._header.salt, self._frames, payload)
        try:
            self._calls.write(self._descriptor, head + payload)
            if self._header.synced:
                self._calls.fsync(self._descriptor)
        except BaseException:
            self.failed = True
            raise
        self._frames += 1
        self.valid_bytes += len(head) + len(payload)

    def sync(self) -> None:
        """Make every frame durable. Raises `OSError`."""
        assert self._descriptor is not None
        try:
            self._calls.fsync(self._descriptor)
        except BaseException:
            self.failed = True
            raise

    def close(self) -> None:
        """Close the descriptor; repeated calls do nothing."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            self._calls.close(descriptor)


@dataclass(frozen=True)
class ReadLog:
    """One log that was read: its number, the length of its valid part in bytes, and the payloads of its frames."""

    number: int
    valid_bytes: int
    payloads: Sequence[bytes]


def read_logs(calls: FileCalls, folder: Path, first: int) -> list[ReadLog]:
    """Return the logs from number `first` on, oldest first, without frames that a power cut left unfinished. Each log's
    header names the log before it.

    Raises CorruptError for damage to durable data, `OSError` if the disk fails.
    """
    found: dict[int, tuple[Header, bytes]] = {}
    for number in log_numbers(calls.listdir(folder)):
        if number >= first:
            data = _content(calls, log_path(folder, number))
            header = Header.from_bytes(data, f"log {number}")
            if header is not None:
                found[number] = header, data
    chain = _chain({number: header for number, (header, _) in found.items()}, first)
    durable_until = max((place for place, number in enumerate(chain) if found[number][0].previous_synced), default=0)
    logs = []
    for place, number in enumerate(chain):
        header, data = found[number]
        last = place + 1 == len(chain)
        limit = len(data) if last else found[chain[place + 1]][0].previous_bytes
        payloads, end = _frames(header, memoryview(data)[:limit])
        logs.append(ReadLog(number, end, payloads))
        if end < limit or limit > len(data):
            _refuse_damage(header, number, data, end, len(payloads), durable=place < durable_until, last=last)
            break
    return logs


def log_numbers(names: Sequence[str]) -> list[int]:
    """Return the numbers of the logs among the names in a folder, ascending."""
    ends = (name.removeprefix(PREFIX) for name in names if name.startswith(PREFIX))
    return sorted(int(end) for end in ends if len(end) >= DIGITS and end.isascii() and end.isdecimal())


def _chain(headers: dict[int, Header], first: int) -> list[int]:
    chain: list[int] = []
    number = max(headers, default=0)
    while number >= first:
        if number not in headers or (chain and number >= chain[-1]):
            what = f"log {number} is missing, or damaged at its start"
            raise CorruptError(f"{what}, but log {chain[-1]} follows. Restore log {number} from a copy.")
        chain.append(number)
        number = headers[number].previous
    if not chain or chain[-1] != first:
        what = f"log {first} is missing, or damaged at its start"
        raise CorruptError(f"{what}. Restore log {first}, which has what was stored since the last flush, from a copy.")
    return chain[::-1]


def _refuse_damage(
    header: Header, number: int, data: bytes, end: int, frames: int, *, durable: bool, last: bool
) -> None:
    """Raise CorruptError unless a power cut can explain the bytes after `end`."""
    damaged = durable or (last and header.synced and _frame_follows(header.salt, data, end, frames))
    if damaged:
        raise CorruptError(
            f"log {number}: frame {frames}, at byte {end}, was changed after it was stored. Restore the log from a "
            "copy."
        )


def _content(calls: FileCalls, path: Path) -> bytes:
    descriptor = calls.open(path)
    try:
        return calls.read(descriptor, calls.status(path).size_bytes, 0)
    finally:
        calls.close(descriptor)


def _frame_header(salt: int, sequence: int, payload: bytes | memoryview) -> bytes:
    checksum = xxhash.xxh3_64_intdigest(payload, seed=salt)
    head = _FRAME.pack(_FRAME_MAGIC, sequence & 0xFFFFFFFF, len(payload), checksum, 0)[:-8]
    return head + xxhash.xxh3_64_intdigest(head, seed=salt).to_bytes(8, "little")


def _frames(header: Header, data: memoryview) -> tuple[list[bytes], int]:
    """Return the payloads before the first incomplete frame, and the position of that frame."""
    payloads: list[bytes] = []
    offset = HEADER_BYTES
    while offset + _FRAME.size <= len(data):
        length = int.from_bytes(data[offset + 8 : offset + 16], "little")
        payload = data[offset + _FRAME.size : offset + _FRAME.size + length]
        if len(payload) != length:
            break
        if data[offset : offset + _FRAME.size] != _frame_header(header.salt, len(payloads), payload):
            break
        payloads.append(bytes(payload))
        offset += _FRAME.size + length
    return payloads, offset


def _frame_follows(salt: int, data: bytes, end: int, sequence: int) -> bool:
    """Return whether a frame with a higher number begins anywhere after `end`."""
    return any(found > sequence for found in _sequences(salt, data, end + 1))


def _sequences(salt: int, data: bytes, start: int) -> Iterator[int]:
    while (start := data.find(_FRAME_MAGIC, start)) >= 0 and start + _FRAME.size <= len(data):
        head = data[start : start + _FRAME.size - 8]
        if xxhash.xxh3_64_intdigest(head, seed=salt).to_bytes(8, "little") == data[start + 24 : start + 32]:
            yield int.from_bytes(data[start + 4 : start + 8], "little")
        start += 1
