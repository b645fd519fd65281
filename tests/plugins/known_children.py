"""Child processes of a format that use a known amount of memory or CPU time (method rule 20)."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping

MB = 10**6
TAKEN_BYTES = 400 * MB
HELD_BYTES = 200 * MB
"""Memory that the worker itself holds, in tests in which it could wrongly be counted for a child as well."""
BURNT_S = 0.2

STAYS_S = 0.4
"""How long a child holds its memory. This is several polls of shared memory (INHERITED_MS), even on a busy machine."""

BURN = f"""
import sys, time
def burn(seconds):
    until = time.process_time() + seconds
    while time.process_time() < until:
        pass
def take(size):
    kept.append(b"x" * size)
    time.sleep({STAYS_S})
def say():
    print(flush=True)
kept = []
"""

_waiting: list[subprocess.Popen[bytes]] = []


def _start(code: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-S", "-c", BURN + code]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def _run(code: str) -> None:
    with _start(code):
        pass


def _ask(child: subprocess.Popen[bytes]) -> None:
    """Let the child do its next step, and wait until the step is done."""
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.write(b"\n")
    child.stdin.flush()
    child.stdout.readline()


def takes() -> None:
    _run(f"take({TAKEN_BYTES})")


def takes_then_worker() -> None:
    takes()
    held = b"x" * HELD_BYTES
    time.sleep(0.05)
    del held


def burns() -> None:
    _run(f"burn({BURNT_S})")


def burns_and_stays() -> None:
    """Start a child that burns CPU time, reports, and then sleeps."""
    child = _start(f"burn({BURNT_S}); say(); time.sleep(3600)")
    _waiting.append(child)
    assert child.stdout is not None
    child.stdout.readline()


def _was_there(first: str, then: str) -> bool:
    """In the priming call, start a child that runs its first step. In the next call, let it run the second step.

    Return whether the child existed already.
    """
    if not _waiting:
        _waiting.append(_start(f"{first}; say(); sys.stdin.readline(); {then}; say(); time.sleep(3600)"))
        assert _waiting[0].stdout is not None
        _waiting[0].stdout.readline()
        return False
    _ask(_waiting[0])
    return True


def was_there_and_takes() -> None:
    """Let a child that already held 100 MB allocate more memory."""
    _was_there(f"take({100 * MB})", f"take({TAKEN_BYTES})")


def was_there_and_burns() -> None:
    """Let a child burn CPU time. It had already burnt twice as much before the call."""
    _was_there(f"burn({2 * BURNT_S})", f"burn({BURNT_S})")


def was_there_and_ends() -> None:
    """End a child within the call. The kernel then adds all CPU time that it ever used to the worker's."""
    if _was_there(f"burn({2 * BURNT_S})", f"burn({BURNT_S})"):
        _waiting[0].kill()
        _waiting[0].wait()


def grandchild(code: str = f"take({TAKEN_BYTES})") -> None:
    # Use only `os`, because the memory of further imports would be counted as well.
    words = f"[sys.executable, '-S', '-c', {BURN + code!r}]"
    _run(f"import os; os.waitpid(os.posix_spawn(sys.executable, {words}, os.environ), 0)")


def grandchild_burns() -> None:
    grandchild(f"burn({BURNT_S})")


def daemon() -> None:
    """Start a process in a separate session. Its parent ends at once, so the worker is not its ancestor."""
    reading, writing = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.close(reading)
            names: dict[str, Callable[..., None]] = {}
            exec(BURN, names)
            names["take"](TAKEN_BYTES)
        os._exit(0)
    os.close(writing)
    os.wait()
    os.read(reading, 1)
    os.close(reading)


def fork() -> None:
    """Fork a child that shares the worker's memory and allocates more."""
    held = b"x" * HELD_BYTES
    child = os.fork()
    if child == 0:
        kept = b"x" * TAKEN_BYTES
        time.sleep(STAYS_S)
        os._exit(len(kept) % 1)
    os.waitpid(child, 0)
    del held


def vforks() -> None:
    """Start children that share the worker's memory until they execute their program, which does nothing.

    To find the program they search 40,000 folders, so they share the memory for several polls.
    """
    held = b"x" * HELD_BYTES
    path = ["/-"] * 40_000
    for _ in range(5):
        subprocess.run(["true"], check=True, env={"PATH": os.pathsep.join([*path, os.environ["PATH"]])})
    del held


STARTING: Mapping[str, Callable[[], None]] = {
    "child_takes": takes,
    "child_takes_then_worker": takes_then_worker,
    "child_burns": burns,
    "child_burns_and_stays": burns_and_stays,
    "was_there_and_takes": was_there_and_takes,
    "was_there_and_burns": was_there_and_burns,
    "was_there_and_ends": was_there_and_ends,
    "grandchild": grandchild,
    "grandchild_burns": grandchild_burns,
    "daemon": daemon,
    "fork": fork,
    "vforks": vforks,
}
