"""How much memory this process may have, as its control group or the machine limits it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

MOST_BYTES = 500_000_000
SHARE = 1 / 4
"""Of the memory that processes of a group share: catalog, other nodes and clients may be in it."""


def default_memory_bytes(system: Path = Path("/")) -> int:
    """What a server uses for all of its requests together if nothing else is said."""
    return min(MOST_BYTES, int(SHARE * min(_limits(system), default=MOST_BYTES / SHARE)))


def _limits(system: Path) -> Iterator[int]:
    """All limits that hold for this process: of its control groups, of those around them, and of the machine."""
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
