"""Kill a process with `kill -9` at a random moment while it writes files of the operating system.

The simulated disk tests fsync. This module tests that real locks, renames and logs can be opened afterwards, and that
no acknowledged data is lost.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress


def kill(
    work: Callable[..., None],
    arguments: tuple[object, ...],
    take_in: Callable[[tuple], bool],
    waited_for: int,
    pause_s: float,
) -> int:
    """Start `work(*arguments, told)` and kill it after some operations and a pause. Return how many it acknowledged.

    The process sends a message when it begins, and before and after each operation. `take_in` returns whether a message
    acknowledges an operation.
    """
    context = multiprocessing.get_context("forkserver")
    # The fork server imports the writers' modules once; processes forked from it need no further imports.
    context.set_forkserver_preload([work.__module__])
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=work, args=(*arguments, theirs))
    process.start()
    theirs.close()
    assert ours.poll(60), "the writer does not start"
    acknowledged = 0
    while acknowledged < waited_for:
        acknowledged += take_in(ours.recv())
    time.sleep(pause_s)
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    assert process.exitcode == -signal.SIGKILL, "the writer failed before it was killed"
    with suppress(EOFError):
        while True:
            acknowledged += take_in(ours.recv())
    ours.close()
    return acknowledged
