"""CPU time and memory of the processes that a process has started, and that those have started in turn.

Rule 20 of the method: what a library has done by another process is its own cost all the same. Looking must cost next
to nothing while there are no such processes, because a worker is watched every 2 ms. Nothing here knows of samples.
"""

from __future__ import annotations

import os
import resource
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress

from bench_runner.clock import cpu_of_process_ns, now_ns
from bench_runner.machine import linux
from bench_runner.machine.linux import MemoryLevel

LOOK_MS = 20
"""The tree of processes is walked this often, even where none seems to have been started (rule 20)."""
INHERITED_MS = 100
"""What a forked process still shares is asked for this often (rule 20): 4 ms for 400 MB in small pages (measured)."""

NOTHING = MemoryLevel(0, 0)

_GONE = (FileNotFoundError, ProcessLookupError)
_FORKED_NO_EXEC = 0x40
"""PF_FORKNOEXEC of the flags in /proc/<pid>/stat: the process still runs its parent's program."""
_NS_PER_TICK = 10**9 // os.sysconf("SC_CLK_TCK")
_LISTS_CHILDREN = os.path.exists("/proc/thread-self/children")
"""Whether the kernel lists each thread's children (CONFIG_PROC_CHILDREN)."""


def descendants(root: int) -> list[int]:
    """Process ids of all that `root` has started, directly or not, each parent before its children.

    Those that have ended, but were not waited for, are among them.
    """
    children: Callable[[int], Iterable[int]] = _listed_children if _LISTS_CHILDREN else _by_parent().__getitem__
    # The order of a dict is that of insertion, and a process that changes its parent meanwhile is listed once.
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
    """User and system time, in nanoseconds, of all that this process has started, whether it has ended or not.

    A process that was waited for stands in its parent's sum, any other one speaks for itself: none does both. What
    living processes have themselves waited for is known to 10 ms, all else to a microsecond.
    """
    while True:
        reaped = _reaped_cpu_ns()
        alive = sum(map(_cpu_ns, descendants(os.getpid())))
        # One that was waited for in between would be in neither sum.
        if _reaped_cpu_ns() == reaped:
            return reaped + alive


def cpu_of_ns(process: int) -> int:
    """User and system time, in nanoseconds, of another process and of all that it has started."""
    return _cpu_ns(process) + sum(map(_cpu_ns, descendants(process)))


def started_memory() -> MemoryLevel:
    """The present memory level of all that this process has started."""
    tree = ProcessTree(os.getpid())
    try:
        tree.look()
        return tree.memory()
    finally:
        tree.close()


class ProcessTree:
    """Follows all that one process starts, from outside, for reading its memory again and again."""

    def __init__(self, root: int) -> None:
        self._root = root
        self._loadavg = os.open("/proc/loadavg", os.O_RDONLY | os.O_CLOEXEC)
        self._newest = b""
        self._look_again = False
        self._looked_ns = 0
        self.members: list[int] = []
        self._inherited: dict[int, tuple[int, int]] = {}

    def look(self) -> None:
        """Find out who is there; without new processes on the whole machine it takes some microseconds.

        The kernel says which process id it gave out last. A new process has its id a moment before it is listed, so
        there is one more look after each change.
        """
        newest = os.pread(self._loadavg, 128, 0).rsplit(None, 1)[-1]
        changed = newest != self._newest
        now = now_ns()
        if changed or self._look_again or now - self._looked_ns > LOOK_MS * 10**6:
            self._newest, self._look_again, self._looked_ns = newest, changed, now
            self.members = descendants(self._root)
            for gone in self._inherited.keys() - set(self.members):
                del self._inherited[gone]

    def memory(self) -> MemoryLevel:
        """The sum over the processes of the last look, without the first one.

        What a forked process shares with others is not its own; pages of files count once for each that maps them.
        """
        return total(map(self._level, self.members)) if self.members else NOTHING

    def close(self) -> None:
        """Close what is kept open."""
        os.close(self._loadavg)

    def _level(self, process: int) -> MemoryLevel:
        try:
            fields = _stat(process)
            # First whether it is forked: a process that then begins a program of its own has none of the other's.
            if int(fields[6]) & _FORKED_NO_EXEC:
                # One that was started by vfork is, until it begins its program, in the very memory of its parent.
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
        """Anonymous memory of a forked process that others still have as well.

        It is what statm calls private. Asking the kernel means a walk through all its pages, so it is not done at each
        poll: fresh memory shows in statm at once, only the copies of shared pages are seen later.
        """
        now = now_ns()
        known = self._inherited.get(process)
        if known is None:
            known = self._inherited[process] = (now, linux.inherited_bytes(process))
        elif now - known[0] > INHERITED_MS * 10**6:
            # It can only shrink: what it took itself stays its own when it forks in turn.
            known = self._inherited[process] = (now, min(known[1], linux.inherited_bytes(process)))
        return known[1]


def total(levels: Iterable[MemoryLevel]) -> MemoryLevel:
    """The sum of memory levels."""
    resident = private = 0
    for level in levels:
        resident += level.resident_bytes
        private += level.private_bytes
    return MemoryLevel(resident, private)


def _listed_children(process: int) -> list[int]:
    """The children of all threads of a process, by the kernel's own lists."""
    found: list[int] = []
    with suppress(*_GONE):
        for thread in os.listdir(f"/proc/{process}/task"):
            with suppress(*_GONE):
                found.extend(map(int, _read(f"/proc/{process}/task/{thread}/children").split()))
    return found


def _by_parent() -> Mapping[int, list[int]]:
    """Parent -> children of all processes of the machine: for kernels without lists, and about 30 times as dear."""
    found: dict[int, list[int]] = defaultdict(list)
    for name in os.listdir("/proc"):
        if name.isdigit():
            with suppress(*_GONE):
                found[int(_stat(int(name))[1])].append(int(name))
    return found


def _reaped_cpu_ns() -> int:
    """Of the processes that this one has waited for, and of those that they have waited for."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return round((usage.ru_utime + usage.ru_stime) * 10**6) * 1000


def _cpu_ns(process: int) -> int:
    """Of one process and of those that it has waited for; 0 once it was waited for itself."""
    try:
        fields = _stat(process)
        return cpu_of_process_ns(process) + (int(fields[13]) + int(fields[14])) * _NS_PER_TICK
    except OSError:
        return 0


def _stat(process: int) -> list[bytes]:
    """The fields of /proc/<pid>/stat from the third one on, the state; the second, a name, may hold anything."""
    return _read(f"/proc/{process}/stat").rpartition(b")")[2].split()


def _read(path: str) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, 1 << 16)
    finally:
        os.close(descriptor)
