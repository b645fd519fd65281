"""What keeps a process that opens strangers' files from harming the machine, or from outliving who started it.

This module knows nothing of what the process does.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_LARGEST_FILE_BYTES = 1 << 20
"""Room for what libraries complain of on stderr; results leave through a pipe."""


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
