"""Find the memory that this machine or container may use."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path


def usable_bytes(root: Path = Path("/")) -> int:
    """Return the number of bytes of memory that this process may use.

    This is the memory of the machine, or the lowest limit of a control group of this process if that is less. `root` is
    the folder that contains /proc and /sys.
    """
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min([machine, *_limits(root)])


def _limits(root: Path) -> Iterator[int]:
    """Yield the memory limits of this process's control groups (versions 1 and 2) and of the groups above them.

    A group without a limit yields nothing (text 'max'), or a number that is larger than any machine's memory.
    """
    groups = {}
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, controllers, group = line.split(":", 2)
        groups.update(dict.fromkeys(controllers.split(","), group))
    for line in _text(root / "proc/self/mountinfo").splitlines():
        mount, _, kind = line.partition(" - ")
        top, point = (field.replace("\\040", " ") for field in mount.split(" ")[3:5])
        if kind.startswith("cgroup2 "):
            controller, name = "", "memory.max"
        elif kind.startswith("cgroup ") and "memory" in kind.split(" ")[2].split(","):
            controller, name = "memory", "memory.limit_in_bytes"
        else:
            continue
        if controller not in groups:
            continue
        # In a container, the mounted folder may be that of this process's group instead of the root group.
        folder = root / point.strip("/") / groups[controller].removeprefix(top.rstrip("/")).strip("/")
        while folder.is_relative_to(root / point.strip("/")):
            limit = _text(folder / name).strip()
            if limit.isdigit():
                yield int(limit)
            folder = folder.parent


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
