"""Find the memory limit of this process, which its control groups or the machine set."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

MOST_BYTES = 500_000_000
SHARE = 1 / 4
"""Share of the available memory for one server, because other servers and clients may use the same memory."""


def default_memory_bytes(system: Path = Path("/")) -> int:
    """Return the default memory limit of a server for all its requests together."""
    return min(MOST_BYTES, int(SHARE * min(_limits(system), default=MOST_BYTES / SHARE)))


def _limits(system: Path) -> Iterator[int]:
    """Yield all memory limits of this process: of its control groups, of their parents, and of the machine."""
    yield os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    root = system / "sys/fs/cgroup"
    for line in _text(system / "proc/self/cgroup").splitlines():
        number, controllers, name = (*line.split(":", 2), "", "")[:3]
        if number == "0":
            top, file = root, "memory.max"
        elif "memory" in controllers.split(","):
            top, file = root / "memory", "memory.limit_in_bytes"
        else:
            continue
        group = top / name.strip().lstrip("/")
        for folder in (group, *group.parents):
            if (told := _text(folder / file).strip()).isdecimal():
                yield int(told)
            if folder == top:
                break


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
