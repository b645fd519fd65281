"""What keeps a process that opens strangers' files from harming the machine, or from outliving who started it."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PR_SET_NO_NEW_PRIVS = 38
_LARGEST_FILE_BYTES = 1 << 20
"""Room for what libraries complain of on stderr; results leave through a pipe."""

_LANDLOCK_CREATE, _LANDLOCK_RESTRICT = 444, 446
_WRITING = 1 << 1 | sum(1 << bit for bit in range(4, 13))
"""landlock(7), ABI 1: write to files; remove and make files and folders of every sort."""


def confine(parent: int, memory_bytes: int) -> None:
    """Limit this process for good: private memory, files that it writes, no core dump; first to go when memory runs
    out; killed when `parent` ends. Raises OSError when the kernel will not."""
    Path("/proc/self/oom_score_adj").write_text("1000")
    for what, limit in (
        (resource.RLIMIT_DATA, memory_bytes),
        (resource.RLIMIT_FSIZE, _LARGEST_FILE_BYTES),
        (resource.RLIMIT_CORE, 0),
    ):
        _, highest = resource.getrlimit(what)
        lowered = limit if highest == resource.RLIM_INFINITY else min(limit, highest)
        resource.setrlimit(what, (lowered, lowered))
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG)")
    # A parent that ended before the call would never be noticed.
    if os.getppid() != parent:
        os._exit(1)


def forbid_writing() -> bool:
    """Let this process, for good, open no file to write to, and make and remove none (Landlock, Linux 5.13). False
    where the kernel has no Landlock: then nothing is forbidden."""
    libc = ctypes.CDLL(None, use_errno=True)
    handled = ctypes.c_uint64(_WRITING)
    ruleset = libc.syscall(_LANDLOCK_CREATE, ctypes.byref(handled), ctypes.c_size_t(8), 0)
    if ruleset < 0:
        return False
    try:
        # No rule is added, so that nothing of what is handled is allowed.
        return libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 and libc.syscall(_LANDLOCK_RESTRICT, ruleset, 0) == 0
    finally:
        os.close(ruleset)
