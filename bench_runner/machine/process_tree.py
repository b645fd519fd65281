"""CPU time and memory of all descendants of a process.

If a library does its work in other processes, that work is part of its cost (rule 20 of docs/method.md). A worker is
checked for child processes every 2 ms, so the check must take almost no time for a worker without child processes.
"""

from __future__ import annotations

import os
import resource
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress

from bench_runner.clock import cpu_of_process_ns, now_ns
from bench_runner.machine import linux
from bench_runner.machine.linux import IoBytes, MemoryLevel

LOOK_MS = 20
"""Interval at which the tree of processes is searched even if no new process was noticed (rule 20)."""
INHERITED_MS = 100
"""Interval at which the memory that a forked process still shares with its parent is measured (rule 20). Each
measurement takes 4 ms for a process with 400 MB."""

NOTHING = MemoryLevel(0, 0)

_GONE = (FileNotFoundError, ProcessLookupError)
_FORKED_NO_EXEC = 0x40
"""PF_FORKNOEXEC in the flags of /proc/<pid>/stat. It means that the process still runs its parent's program."""
_NS_PER_TICK = 10**9 // os.sysconf("SC_CLK_TCK")
_LISTS_CHILDREN = os.path.exists("/proc/thread-self/children")
"""Whether the kernel lists each thread's children (CONFIG_PROC_CHILDREN)."""


def descendants(root: int) -> list[int]:
    """Return the process ids of all descendants of `root`, each parent before its children. Processes that have ended
    are included until their parent has waited for them."""
    children: Callable[[int], Iterable[int]] = _listed_children if _LISTS_CHILDREN else _by_parent().__getitem__
    # A dict keeps the insertion order, and lists a process only once even if its parent changes meanwhile.
    found = {root: None}
    waiting = [root]
    while waiting:
        for child in children(waiting.pop()):
            if child not in found:
                found[child] = None
                waiting.append(child)
    del found[root]
    return list(found)


def started_cpu_ns() -> int:
    """Return the user and system time, in nanoseconds, of all descendants of this process, running or ended.

    Once a parent has waited for a process, the kernel adds the time of that process to the parent's time. Any other
    process is counted separately, so no time is counted twice. The resolution is 10 ms for processes that running
    descendants have waited for, and 1 µs for all others.
    """
    while True:
        reaped = _reaped_cpu_ns()
        alive = sum(map(_cpu_ns, descendants(os.getpid())))
        # A process that was waited for between the two readings would be in neither sum. Then read again.
        if _reaped_cpu_ns() == reaped:
            return reaped + alive


def cpu_of_ns(process: int) -> int:
    """Return the user and system time, in nanoseconds, of another process and its descendants."""
    return _cpu_ns(process) + sum(map(_cpu_ns, descendants(process)))


def tree_io_bytes() -> IoBytes:
    """Return the bytes that this process and its descendants have read and written so far. The kernel adds the bytes of
    an ended process to the process that waited for it."""
    of_started = []
    for process in descendants(os.getpid()):
        with suppress(*_GONE):
            of_started.append(linux.io_bytes(process))
    # Read the own counters last, because reading the others counts too.
    own = linux.io_bytes()
    return IoBytes(
        own.device_read + sum(each.device_read for each in of_started),
        own.dirtied + sum(each.dirtied for each in of_started),
        own.asked + sum(each.asked for each in of_started),
        own.look,
    )


def started_memory() -> MemoryLevel:
    """Return the current memory level of all descendants of this process."""
    tree = ProcessTree(os.getpid())
    try:
        tree.look()
        return tree.memory()
    finally:
        tree.close()


class ProcessTree:
    """Keeps a list of the descendants of another process, and reads the memory of these descendants repeatedly."""

    def __init__(self, root: int) -> None:
        self._root = root
        self._loadavg = os.open("/proc/loadavg", os.O_RDONLY | os.O_CLOEXEC)
        self._newest = b""
        self._look_again = False
        self._looked_ns = 0
        self.members: list[int] = []
        self._inherited: dict[int, tuple[int, int]] = {}
        self.private_bytes: dict[int, int] = {}
        """Private memory of each descendant at the last call of `memory`."""

    def look(self) -> None:
        """Update the list of descendants. Without new processes on the machine, this takes some microseconds.

        New processes are detected by the process id that the kernel assigned last. A new process appears in the lists a
        moment after its id is assigned, so the list is updated once more after each change.
        """
        newest = os.pread(self._loadavg, 128, 0).rsplit(None, 1)[-1]
        changed = newest != self._newest
        now = now_ns()
        if changed or self._look_again or now - self._looked_ns > LOOK_MS * 10**6:
            self._newest, self._look_again, self._looked_ns = newest, changed, now
            self.members = descendants(self._root)
            for gone in self._inherited.keys() - set(self.members):
                del self._inherited[gone]

    def read_shared_again(self) -> None:
        """Measure now, instead of at the next interval, how much memory forked processes still share with other
        processes."""
        self._inherited.clear()
        self.memory()

    def memory(self) -> MemoryLevel:
        """Return the total memory of the descendants. Memory that a forked process shares with its parent counts only
        for the parent. Pages of files count once for each process that maps them."""
        if not self.members:
            return NOTHING
        levels = {process: self._level(process) for process in self.members}
        self.private_bytes = {process: level.private_bytes for process, level in levels.items()}
        return total(levels.values())

    def close(self) -> None:
        """Close open files."""
        os.close(self._loadavg)

    def _level(self, process: int) -> MemoryLevel:
        try:
            fields = _stat(process)
            # Check first whether the process is forked. If it calls exec in between, it shares no memory.
            if int(fields[6]) & _FORKED_NO_EXEC:
                # Until it calls exec, a process started by vfork runs in its parent's memory.
                if linux.share_memory(process, int(fields[1])):
                    return NOTHING
                inherited = self._inherited_bytes(process)
            else:
                inherited = 0
            reader = linux.MemoryReader(process)
            try:
                level = reader.read() or NOTHING
            finally:
                reader.close()
        except _GONE:
            return NOTHING
        inherited = min(inherited, level.private_bytes)
        return MemoryLevel(level.resident_bytes - inherited, level.private_bytes - inherited)

    def _inherited_bytes(self, process: int) -> int:
        """Return how much of a forked process's anonymous memory is shared with other processes, in bytes.

        /proc/<pid>/statm counts this memory as private. To report the shared amount, the kernel must examine all pages,
        which is slow. So the amount is read only every INHERITED_MS. In between, new allocations are noticed at once.
        When the process changes a shared page, it gets its own copy of the page. Such copies are noticed only at the
        next read.
        """
        now = now_ns()
        known = self._inherited.get(process)
        if known is None:
            known = self._inherited[process] = (now, linux.inherited_bytes(process))
        elif now - known[0] > INHERITED_MS * 10**6:
            # The shared memory can only shrink. Memory that the process allocated stays its own if it forks.
            known = self._inherited[process] = (now, min(known[1], linux.inherited_bytes(process)))
        return known[1]


def total(levels: Iterable[MemoryLevel]) -> MemoryLevel:
    """Return the sum of memory levels."""
    resident = private = 0
    for level in levels:
        resident += level.resident_bytes
        private += level.private_bytes
    return MemoryLevel(resident, private)


def _listed_children(process: int) -> list[int]:
    found: list[int] = []
    with suppress(*_GONE):
        for thread in os.listdir(f"/proc/{process}/task"):
            with suppress(*_GONE):
                found.extend(map(int, _read(f"/proc/{process}/task/{thread}/children").split()))
    return found


def _by_parent() -> Mapping[int, list[int]]:
    """Return a dict from each process id to the ids of its children. Used only if the kernel has no lists of children,
    because this function is about 30 times as slow as reading such lists."""
    found: dict[int, list[int]] = defaultdict(list)
    for name in os.listdir("/proc"):
        if name.isdigit():
            with suppress(*_GONE):
                found[int(_stat(int(name))[1])].append(int(name))
    return found


def _reaped_cpu_ns() -> int:
    """Return the CPU time of the child processes that this process has waited for. This includes the time of all
    descendants that these child processes have waited for."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return round((usage.ru_utime + usage.ru_stime) * 10**6) * 1000


def _cpu_ns(process: int) -> int:
    """Return the CPU time of a process and of the processes that it has waited for. Return 0 if the process no longer
    exists."""
    try:
        fields = _stat(process)
        return cpu_of_process_ns(process) + (int(fields[13]) + int(fields[14])) * _NS_PER_TICK
    except OSError:
        return 0


def _stat(process: int) -> list[bytes]:
    """Return the fields of /proc/<pid>/stat, starting with the third field, the state. The first two fields are
    dropped, because the second field, the program's name, may contain blanks and brackets."""
    return _read(f"/proc/{process}/stat").rpartition(b")")[2].split()


def _read(path: str) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, 1 << 16)
    finally:
        os.close(descriptor)
