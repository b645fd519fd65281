"""Resources that this process used since it started, as counted by Linux. Benchmarks request them from nodes."""

from __future__ import annotations

import resource
from pathlib import Path
from typing import NamedTuple


class Usage(NamedTuple):
    """CPU seconds in user and system mode, peak resident bytes, bytes read from and written to the device."""

    cpu_s: float
    peak_bytes: int
    device_read_bytes: int
    device_written_bytes: int


def of_this_process() -> Usage:
    """Return the current usage. Device bytes are -1 where the system does not report them (no /proc/self/io)."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    device = _device()
    return Usage(
        used.ru_utime + used.ru_stime,
        _high_water_bytes(used.ru_maxrss * 1024),
        device.get("read_bytes", -1),
        device.get("write_bytes", -1),
    )


def _high_water_bytes(otherwise: int) -> int:
    """Return the peak resident memory of this program. ru_maxrss is not used, because it includes the parent's peak.
    Return `otherwise` if the system does not report the peak."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return otherwise
    sizes = (line.split()[1] for line in lines if line.startswith("VmHWM:"))
    return int(next(sizes, otherwise // 1024)) * 1024


def _device() -> dict[str, int]:
    try:
        lines = Path("/proc/self/io").read_text().splitlines()
    except OSError:
        return {}
    return {name: int(count) for name, _, count in (line.partition(": ") for line in lines)}
