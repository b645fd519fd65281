"""Limit the process that opens untrusted files, so that it cannot harm the machine or outlive its parent."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PR_SET_NO_NEW_PRIVS = 38
_LARGEST_FILE_BYTES = 1 << 20
"""Maximum size of files that the process may write. Libraries write messages to stderr, which is a file. Results go
through a pipe, which has no limit."""

_LANDLOCK_CREATE, _LANDLOCK_RESTRICT = 444, 446
_WRITING = 1 << 1 | sum(1 << bit for bit in range(4, 13))
"""Access rights of Landlock (landlock(7), ABI 1) to write to files, and to create or remove files and folders."""


def confine(parent: int, memory_bytes: int) -> None:
    """Limit this process permanently.

    The limits apply to private memory and to the size of written files. Core dumps are turned off. When memory runs
    out, this process is the first to be killed. It is also killed when `parent` ends. Raises OSError if the kernel
    refuses a limit.
    """
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
    # The kernel does not report a parent that ended before the call above.
    if os.getppid() != parent:
        os._exit(1)


def forbid_writing() -> bool:
    """Forbid this process permanently to open files for writing, and to create or remove files and folders.

    Return whether this succeeded. Without Landlock, which Linux has since version 5.13, nothing is forbidden.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    handled = ctypes.c_uint64(_WRITING)
    ruleset = libc.syscall(_LANDLOCK_CREATE, ctypes.byref(handled), ctypes.c_size_t(8), 0)
    if ruleset < 0:
        return False
    try:
        # The ruleset has no rules, so all actions that it handles are forbidden.
        return libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 and libc.syscall(_LANDLOCK_RESTRICT, ruleset, 0) == 0
    finally:
        os.close(ruleset)
