"""Facts about a folder: its file system, mount, device and space, and whether its files can be removed from the page
cache.

Facts that cannot be read are omitted, as in bench_runner.machine.environment. Facts are not judged here, except that
the functions below say which file systems allow cold reads, are in memory or are remote.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench_runner.machine.system_files import SYSTEM, text_of, unescaped

EVICTABLE = frozenset({"ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs"})
"""Local file systems on which posix_fadvise(DONTNEED) removes the pages of a file from the page cache, so that the next
read of the file goes to the device."""

_IN_MEMORY = frozenset({"tmpfs", "ramfs", "devtmpfs", "hugetlbfs"})
_NETWORK = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "virtiofs", "ceph", "afs", "lustre", "gpfs", "beegfs"}
)


@dataclass(frozen=True)
class Mount:
    """One line of /proc/self/mountinfo (see proc(5)). `options` are the options of the mount, and `super_options` are
    the options of the mounted file system."""

    root: str
    point: str
    options: str
    filesystem: str
    source: str
    super_options: str

    @classmethod
    def of(cls, line: str) -> Mount:
        """Parse a line of mountinfo."""
        head, _, tail = line.partition(" - ")
        _, _, _, root, point, options, *_ = head.split(" ")
        filesystem, source, super_options = tail.split(" ", 2)
        return cls(unescaped(root), unescaped(point), options, filesystem, unescaped(source), super_options)


def folder_facts(path: Path, *, system: Path = SYSTEM) -> dict[str, Any]:
    """Return a dict with the file system, mount, device and space of an existing folder.

    For an overlay file system, `filesystem` also names the file system of the upper folder if that folder is visible
    here, for example 'overlay on ext4'. Sizes are in bytes. `rotational` is the value that the kernel reports, which
    may be wrong for a virtual disk. `read_ahead_kb` is the kernel's read-ahead in KiB. `journal` is whether an ext4
    file system has a journal.
    """
    real = Path(os.path.realpath(path))
    space = shutil.disk_usage(real)
    facts: dict[str, Any] = {
        "path": str(path),
        "free_bytes": space.free,
        "total_bytes": space.total,
        "block_bytes": os.statvfs(real).f_frsize,
    }
    mount = _mount_of(real, list(all_mounts(system)))
    if mount is None:
        return facts
    facts |= {
        "filesystem": _filesystem(mount, system),
        "mount_point": mount.point,
        "mount_options": _mount_options(mount),
        "device": mount.source,
    }
    return facts | _device_facts(mount.source, system)


def supports_cold(filesystem: str | None) -> str | None:
    """Return why cold reads are refused on this file system, or None if cold reads are possible. `filesystem` is as
    returned by `folder_facts`.

    Cold reads are possible only on file systems where dropping the page cache is known to send the next read to the
    device (method rule 14).
    """
    if filesystem is None:
        return "the file system of this folder is unknown, and so is whether its cache can be emptied"
    kind, _, below = filesystem.partition(" on ")
    if kind in EVICTABLE:
        return None
    if kind in _IN_MEMORY:
        return f"{kind} is in memory: there is no device to read from"
    if kind == "zfs":
        return "zfs has a separate cache (ARC), which cannot be emptied for one file"
    if kind in _NETWORK:
        return f"{kind} is served from elsewhere: the server's cache cannot be emptied from here"
    if kind.startswith("fuse"):
        return f"{kind} is served by a program with a separate cache"
    if kind == "overlay" and below:
        return supports_cold(below)
    if kind == "overlay":
        return "overlay (a container's layer) hides the file system that it writes to; use a mounted volume"
    known = ", ".join(sorted(EVICTABLE))
    return f"{kind} is not among the file systems whose cache is known to be emptied ({known})"


def is_in_memory(filesystem: str | None) -> bool:
    """Return whether files of this file system never reach a device."""
    return filesystem in _IN_MEMORY


def is_remote(filesystem: str | None) -> bool:
    """Return whether files of this file system are on another machine."""
    return filesystem in _NETWORK


def all_mounts(system: Path) -> Iterator[Mount]:
    """Yield every mount that this process sees, in the order in which they were made."""
    for line in (text_of(system / "proc/self/mountinfo") or "").splitlines():
        yield Mount.of(line)


def _mount_of(path: Path, mounts: list[Mount]) -> Mount | None:
    """Return the mount whose mount point is the longest prefix of `path`. Of several mounts at one point, return the
    last one, because it hides the others."""
    found = None
    for mount in mounts:
        if path.is_relative_to(mount.point) and (found is None or len(mount.point) >= len(found.point)):
            found = mount
    return found


def _mount_options(mount: Mount) -> str:
    # `super_options` of network file systems contain addresses and users. Those of overlays list the layers.
    shown = mount.options
    if mount.source.startswith("/dev/") and mount.super_options:
        shown += f",{mount.super_options}"
    return ",".join(dict.fromkeys(shown.split(",")))


def _filesystem(mount: Mount, system: Path) -> str:
    if mount.filesystem != "overlay":
        return mount.filesystem
    options = dict(option.partition("=")[::2] for option in mount.super_options.split(","))
    upper = Path(unescaped(options.get("upperdir", "")))
    # Inside a container the upper folder is a path of the host, which here does not exist or is another folder.
    if mount.point == "/" or not upper.is_absolute() or not upper.is_dir():
        return "overlay"
    below = _mount_of(upper, [other for other in all_mounts(system) if other.filesystem != "overlay"])
    return f"overlay on {below.filesystem}" if below else "overlay"


def _device_facts(source: str, system: Path) -> dict[str, Any]:
    if not source.startswith("/dev/"):
        return {}
    name = Path(os.path.realpath(source)).name
    block = system / "sys/class/block" / name
    # A partition has no queue folder. Use its disk, which is the folder above.
    disk = Path(os.path.realpath(block))
    if not (disk / "queue").is_dir():
        disk = disk.parent
    facts: dict[str, Any] = {}
    rotational = text_of(disk / "queue/rotational")
    if rotational is not None:
        facts = {"rotational": rotational == "1", "nvme": disk.name.startswith("nvme")}
    read_ahead = text_of(disk / "queue/read_ahead_kb")
    if read_ahead is not None and read_ahead.isdecimal():
        facts["read_ahead_kb"] = int(read_ahead)
    model = text_of(disk / "device/model")
    task = text_of(system / "sys/fs/ext4" / name / "journal_task")
    return facts | ({"device_model": model} if model else {}) | ({"journal": task != "<none>"} if task else {})
