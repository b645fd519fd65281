"""Functions of the Linux kernel that are needed for measuring: memory, page cache, write-back, process control.

Each function does one thing and raises OSError if the kernel call fails. Nothing here depends on formats or samples.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import re
import signal
import struct
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from bench_runner.errors import BenchError

PAGE_BYTES = mmap.PAGESIZE
MANY_FILES = 1_000
"""If a stored copy has more files than this, its whole file system is synced instead of each file (rule 6)."""

_libc = ctypes.CDLL(None, use_errno=True)
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_KCMP = {"x86_64": 312, "aarch64": 272}
_KCMP_VM = 1


def _check(result: int, call: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{call}: {os.strerror(number)}")


def check_probes() -> None:
    """Raise BenchError if the kernel lacks something that every sample needs. The message names what is missing."""
    own = (f"/proc/self/{name}" for name in ("statm", "status", "io", "clear_refs"))
    for path in (*own, "/proc/meminfo", "/proc/loadavg"):
        if not os.path.exists(path):
            raise BenchError(
                f"this kernel has no {path}, without which memory and device reads cannot be measured\n"
                "  Format Bench measures on Linux with a full /proc; a container may hide parts of it"
            )
    os.close(os.pidfd_open(os.getpid()))


# --- processes -------------------------------------------------------------------------------------------------


def die_with_parent(parent: int) -> None:
    """Let the kernel kill this process when `parent` ends. If `parent` has ended already, end this process at once,
    because the kernel then does nothing."""
    _check(_libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0), "prctl(PR_SET_PDEATHSIG)")
    if os.getppid() != parent:
        os._exit(1)


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends, so that daemons remain descendants of this
    process."""
    _check(_libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), "prctl(PR_SET_CHILD_SUBREAPER)")


def share_memory(process: int, other: int) -> bool:
    """Return whether two processes share memory, as after vfork(2). If the kernel does not allow the check (kcmp(2)),
    return True. Memory that both processes may share is then counted only once."""
    call = _KCMP.get(os.uname().machine)
    return call is None or _libc.syscall(call, process, other, _KCMP_VM, 0, 0) in (0, -1)


def go_first_when_memory_runs_out() -> None:
    """Make the kernel kill this process before any other when memory runs out."""
    Path("/proc/self/oom_score_adj").write_text("1000")


_LANDLOCK_CREATE, _LANDLOCK_ADD_RULE, _LANDLOCK_RESTRICT = 444, 445, 446
_PR_SET_NO_NEW_PRIVS = 38
_RULE_PATH_BENEATH = 1
_WRITE_FILE = 1 << 1
_WRITING = _WRITE_FILE | sum(1 << bit for bit in range(4, 13))
"""Rights of landlock(7): writing to files, and creating and removing files and folders of every kind."""
_REFER, _TRUNCATE = 1 << 13, 1 << 14
"""Rights of landlock(7): renaming across folders (since ABI 2), and truncating (since ABI 3)."""


def confine_writes(paths: Iterable[Path]) -> bool:
    """Permanently restrict the writes of this process to `paths` (Landlock, Linux 5.13). If a path is a folder,
    everything below the folder may be written. Other writes then fail with PermissionError. Return False if the kernel
    has no Landlock; then nothing is restricted."""
    abi = _libc.syscall(_LANDLOCK_CREATE, None, ctypes.c_size_t(0), 1)
    if abi < 1:
        return False
    rights = _WRITING | (_REFER if abi >= 2 else 0) | (_TRUNCATE if abi >= 3 else 0)
    handled = ctypes.c_uint64(rights)
    ruleset = _libc.syscall(_LANDLOCK_CREATE, ctypes.byref(handled), ctypes.c_size_t(8), 0)
    if ruleset < 0:
        return False
    try:
        for path in paths:
            descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
            try:
                # struct landlock_path_beneath_attr is packed. It has a 64-bit mask and a 32-bit descriptor.
                allowed = rights if path.is_dir() else rights & (_WRITE_FILE | _TRUNCATE)
                rule = struct.pack("=Qi", allowed, descriptor)
                _check(_libc.syscall(_LANDLOCK_ADD_RULE, ruleset, _RULE_PATH_BENEATH, rule, 0), "landlock_add_rule")
            finally:
                os.close(descriptor)
        _check(_libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "prctl(PR_SET_NO_NEW_PRIVS)")
        _check(_libc.syscall(_LANDLOCK_RESTRICT, ruleset, 0), "landlock_restrict_self")
    finally:
        os.close(ruleset)
    return True


# --- memory of a process ---------------------------------------------------------------------------------------


def reset_high_water() -> None:
    """Reset this process's VmHWM to its current resident size (proc(5), clear_refs, value 5)."""
    Path("/proc/self/clear_refs").write_text("5")


def high_water_bytes() -> int:
    """Return VmHWM of this process, which is the highest resident size since the reset."""
    match = re.search(rb"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_bytes())
    if match is None:
        raise OSError("no VmHWM in /proc/self/status")
    return int(match[1]) * 1024


@dataclass(frozen=True, slots=True)
class MemoryLevel:
    """Resident and private (resident minus shared) bytes at one time."""

    resident_bytes: int
    private_bytes: int


class MemoryReader:
    """Reads the memory level of one process repeatedly, from a file that stays open. In /proc/<pid>/statm, `shared`
    includes file-backed and shmem pages. A mapped file therefore does not count as private."""

    def __init__(self, process: int | str = "self") -> None:
        self._descriptor = os.open(f"/proc/{process}/statm", os.O_RDONLY | os.O_CLOEXEC)

    def read(self) -> MemoryLevel | None:
        """Return the current level, or None if the process has ended."""
        try:
            fields = os.pread(self._descriptor, 128, 0).split()
        except ProcessLookupError:
            return None
        if len(fields) < 3:
            return None
        resident, shared = int(fields[1]), int(fields[2])
        return MemoryLevel(resident * PAGE_BYTES, (resident - shared) * PAGE_BYTES)

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)


def own_memory() -> MemoryLevel:
    """Return the memory level of this process."""
    reader = MemoryReader()
    try:
        level = reader.read()
    finally:
        reader.close()
    if level is None:
        raise OSError("/proc/self/statm is empty")
    return level


def inherited_bytes(process: int) -> int:
    """Return how many bytes of a forked process's anonymous memory are shared with another process.

    If the kernel does not report sharing, return the size of all anonymous memory of the process. Raises
    ProcessLookupError or FileNotFoundError if the process does not exist or has no memory any more.
    """
    try:
        text = Path(f"/proc/{process}/smaps_rollup").read_bytes()
    except PermissionError:
        return sys.maxsize
    kilobytes = {name: int(value) for name, value in re.findall(rb"^(\w+): +(\d+) kB", text, re.MULTILINE)}
    return max(kilobytes.get(b"Anonymous", 0) - kilobytes.get(b"Private_Dirty", 0), 0) * 1024


def trim_heap() -> None:
    """Return freed heap memory to the kernel, if the C library supports it (glibc)."""
    if hasattr(_libc, "malloc_trim"):
        _libc.malloc_trim(0)


def file_mappings(process: int | str = "self") -> list[tuple[int, int, str]]:
    """Return (start, end, path) for every regular file that the process maps, including libraries, sorted by start.

    Deleted files are included, with ' (deleted)' after the path. Files in /dev/shm are included, too. Anonymous shared
    memory and devices are excluded.
    """
    found = []
    for line in Path(f"/proc/{process}/maps").read_text(errors="replace").splitlines():
        parts = line.split(None, 5)
        if len(parts) < 6 or not parts[5].startswith("/") or _IS_NO_FILE.match(parts[5]):
            continue
        start, _, end = parts[0].partition("-")
        found.append((int(start, 16), int(end, 16), parts[5]))
    return found


_IS_NO_FILE = re.compile(r"/memfd:|/dev/(?!shm/)|/SYSV")


class IoBytes(NamedTuple):
    """Bytes that a process has moved so far, over all of its threads."""

    device_read: int
    """Bytes fetched from devices (read_bytes)."""
    dirtied: int
    """Bytes of page-cache pages that were changed (write_bytes)."""
    asked: int
    """Bytes returned by read calls, whether cached or not (rchar). Excludes mappings and io_uring."""
    look: int
    """Size of the file /proc/<pid>/io from which these counters were read. If a process reads its own counters, its
    later values of `asked` include these bytes."""

    def asked_since(self, before: IoBytes) -> int:
        """Return the bytes returned by read calls since `before` was read. The bytes of reading the counters for
        `before` are excluded."""
        return self.asked - before.asked - before.look


def io_bytes(process: int | str = "self") -> IoBytes:
    """Read /proc/<pid>/io. Raises FileNotFoundError or ProcessLookupError if there is no such process."""
    text = Path(f"/proc/{process}/io").read_text()
    counters = dict(line.split(": ") for line in text.splitlines())
    return IoBytes(int(counters["read_bytes"]), int(counters["write_bytes"]), int(counters["rchar"]), len(text))


def loopback_bytes() -> int:
    """Return the bytes that the loopback interface has carried so far, for all programs, including headers."""
    for line in Path("/proc/net/dev").read_text().splitlines():
        name, _, counters = line.partition(":")
        if name.strip() == "lo":
            return int(counters.split()[0])
    raise OSError("no loopback interface in /proc/net/dev")


# --- the system's memory and write-back ------------------------------------------------------------------------


def meminfo_bytes(*names: str) -> tuple[int, ...]:
    """Return the values of the rows `names` of /proc/meminfo, in bytes."""
    rows = {}
    for line in Path("/proc/meminfo").read_text().splitlines():
        name, _, rest = line.partition(":")
        rows[name] = int(rest.split()[0]) * 1024
    return tuple(rows[name] for name in names)


def available_bytes() -> int:
    """Return the memory of the whole machine that is available without swapping."""
    (available,) = meminfo_bytes("MemAvailable")
    return available


def unwritten_bytes() -> int:
    """Return the dirty pages plus the pages in write-back, of the whole system, in bytes."""
    return sum(meminfo_bytes("Dirty", "Writeback"))


def sync_file_system(folder: Path) -> None:
    """Write all data of the folder's file system to its device, and wait until that is done (syncfs(2))."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        _check(_libc.syncfs(descriptor), "syncfs")
    finally:
        os.close(descriptor)


def anonymous_memory(size_bytes: int) -> mmap.mmap:
    """Return private zeroed memory that begins at a page boundary.

    Alignment matters. A copy to the beginning of a page takes two to four times as long if its source begins in the
    last 16 bytes before a page. Copying 64 MB in blocks of 1 MB took 35 to 54 ms instead of 15 to 20 ms. A `bytes`
    object is not used, because its alignment depends on earlier allocations.
    """
    # Use private memory. By default mmap makes shared memory, which is slower.
    return mmap.mmap(-1, max(size_bytes, PAGE_BYTES), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)


def touch_memory(size_bytes: int) -> None:
    """Allocate fresh anonymous memory, as huge pages if possible, write to each page, and free the memory."""
    with anonymous_memory(size_bytes) as memory, anonymous_memory(1 << 16) as zeros:
        with suppress(OSError):  # a kernel without huge pages
            memory.madvise(mmap.MADV_HUGEPAGE)
        # Strided assignment would need a view of the memory. Whole blocks have as little interpreter overhead.
        for _ in range(len(memory) // len(zeros)):
            memory.write(zeros)


# --- the page cache --------------------------------------------------------------------------------------------


def files_below(location: Path) -> Iterator[Path]:
    """Yield the paths of the files of a stored copy. If `location` is a file, yield `location`. If it is a folder,
    yield all files below it, sorted within each folder."""
    if location.is_dir() and not location.is_symlink():
        for folder, folders, names in os.walk(location):
            folders.sort()
            for name in sorted(names):
                yield Path(folder, name)
    elif location.exists():
        yield location


def resident_file_bytes(path: Path) -> int:
    """Return how many bytes of the file are in the page cache (mincore(2) on a temporary mapping)."""
    import numpy as np  # takes longer to load than everything else that the child of a service needs

    size = path.stat().st_size
    if size == 0:
        return 0
    with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, mmap.MAP_SHARED, mmap.PROT_READ) as mapping:
        pages = (size + PAGE_BYTES - 1) // PAGE_BYTES
        flags = np.zeros(pages, dtype=np.uint8)
        address = np.frombuffer(mapping, dtype=np.uint8).ctypes.data
        _check(
            _libc.mincore(ctypes.c_void_p(address), ctypes.c_size_t(size), ctypes.c_void_p(flags.ctypes.data)),
            "mincore",
        )
    resident = flags & 1
    tail = pages * PAGE_BYTES - size
    return int(resident.sum()) * PAGE_BYTES - (tail if resident[-1] else 0)


def evict_file(path: Path) -> None:
    """Drop the file's clean pages from the page cache (posix_fadvise DONTNEED). Sync the file before calling this
    function."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(descriptor)


def evict_all(location: Path) -> None:
    """Sync a stored copy and drop all of its pages from the page cache, except pages that a process maps."""
    fsync_all(location)
    for path in files_below(location):
        evict_file(path)


def read_through(path: Path) -> None:
    """Read the whole file to bring it into the page cache."""
    buffer = bytearray(1 << 20)
    with path.open("rb", buffering=0) as stream:
        while stream.readinto(buffer):
            pass


def fsync_all(location: Path) -> None:
    """fsync every file and folder of a stored copy, and the folder that contains it.

    If there are many files, sync the whole file system that contains the files instead. With 50,000 files, most of the
    time would be the overhead of the calls. Syncing the file system writes little else, because all other data are
    written before each sample starts.
    """
    files = list(files_below(location))
    if len(files) > MANY_FILES:
        sync_file_system(location)
        return
    for path in files:
        _fsync(path)
    for folder, _, _ in os.walk(location):
        _fsync(Path(folder))
    _fsync(location.parent)


def _fsync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
