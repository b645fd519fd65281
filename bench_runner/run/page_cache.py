"""Bring a stored copy into the page cache, or remove it, before a read. Check afterwards that the read was warm or
cold, as requested (rule 14)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bench_runner.errors import Failure, OperationFailed
from bench_runner.machine import linux

WARM_RESIDENT_SHARE = 0.99
"""Share of the stored copy that must be in the page cache before a warm read (rule 14)."""
WARM_DEVICE_SHARE = 0.01
"""Share of the stored copy that a warm read may fetch from the device (rule 14)."""
COLD_DEVICE_SHARE = 0.90
"""Share of the stored copy that a cold read must fetch from the device (rule 14)."""
WARM_DEVICE_BYTES_PER_S = 1_000_000
"""Bytes that a long warm read may fetch from the device per second (rule 14). With a device of 100 MB/s, this adds 1 %
to the time."""
WARM_LONG_SHARE = 0.10
"""Share of the stored copy that a long warm read may fetch at most (rule 14). Without this limit, a slow cold read
would pass as warm."""
DEVICE_SLACK_BYTES = 256 * 1024
"""Bytes that a warm read may always fetch (rule 14), because pages of libraries may be loaded at any time."""


@dataclass(frozen=True)
class Residency:
    """How many bytes of a stored copy are in the page cache."""

    resident_bytes: int
    size_bytes: int


def bring_into_cache(location: Path, wanted: str) -> Residency:
    """Bring all of a stored copy into the page cache if `wanted` is 'warm', or remove it from the page cache if
    `wanted` is 'cold'. Return how much of the copy is in the page cache afterwards. Raises OperationFailed if the copy
    does not stay in the wanted state. Call this only when no process maps the copy."""
    if wanted == "cold":
        for path in linux.files_below(location):
            linux.evict_file(path)
    found = _residency(location)
    if wanted == "warm" and found.resident_bytes < found.size_bytes:
        for path in linux.files_below(location):
            linux.read_through(path)
        found = _residency(location)
    if wanted == "warm" and found.resident_bytes < WARM_RESIDENT_SHARE * found.size_bytes:
        share = found.resident_bytes / found.size_bytes
        reason = f"only {share:.0%} of the stored copy stays in the page cache"
        raise OperationFailed(Failure(kind="cache", reason=reason))
    if wanted == "cold" and found.resident_bytes > 0:
        reason = f"{found.resident_bytes:,} bytes of the stored copy cannot be evicted"
        raise OperationFailed(Failure(kind="cache", reason=reason))
    return found


def _residency(location: Path) -> Residency:
    files = list(linux.files_below(location))
    return Residency(sum(linux.resident_file_bytes(path) for path in files), sum(path.stat().st_size for path in files))


def device_doubt(
    wanted: str, *, fetched_bytes: int, needed_bytes: int, size_bytes: int, wall_ns: int, served: bool = False
) -> str:
    """Return why statistics must not use a read that fetched `fetched_bytes` from the device, or '' if they may use the
    read.

    The stored copy has `size_bytes` bytes, of which the read needs `needed_bytes`. A warm read that used the device is
    no failure of the format. In most cases the device reads are pages of libraries that an earlier worker with much
    memory displaced from the page cache. These pages are cached again in the next round. A cold read that was served
    from the page cache raises OperationFailed, because the same would happen in every round.
    """
    if wanted == "warm":
        return warm_doubt(fetched_bytes, size_bytes, wall_ns)
    if not served:
        # A service may serve data from its own memory. Any other reader must read at least one byte.
        needed_bytes = max(needed_bytes, 1)
    if fetched_bytes < COLD_DEVICE_SHARE * needed_bytes:
        reason = f"a cold read fetched only {fetched_bytes:,} of {needed_bytes:,} bytes from the device"
        raise OperationFailed(Failure(kind="cache", reason=reason))
    return ""


def warm_doubt(fetched_bytes: int, size_bytes: int, wall_ns: int) -> str:
    """Return why a read that fetched `fetched_bytes` from the device in `wall_ns` was not warm, or '' if it was
    warm."""
    of_its_time = min(WARM_DEVICE_BYTES_PER_S * wall_ns / 1e9, WARM_LONG_SHARE * size_bytes)
    if fetched_bytes <= max(WARM_DEVICE_SHARE * size_bytes, DEVICE_SLACK_BYTES, of_its_time):
        return ""
    return f"a warm read fetched {fetched_bytes:,} of {size_bytes:,} bytes from the device"
