"""Compiled Wasm modules, kept between processes in a folder that its owner alone can read and write.

Loading a compiled module runs what the file holds, so a file that anybody else could have written is not loaded, and a
folder that others can enter is not used. The key is the module's hash with the runtime's version and the processor:
another of any of them is another file.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import stat
import tempfile
from functools import cache
from pathlib import Path

import platformdirs

MOST_KEPT = 64
"""Compiled modules, those that were used last."""


def folder() -> Path:
    """Where compiled modules lie. Removing it costs a compilation each."""
    return platformdirs.user_cache_path("format-bench") / "f3-modules"


@cache
def _processor() -> str:
    described = platform.processor()
    with contextlib.suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        described += next((line for line in lines if line.startswith(("flags", "Features"))), "")
    return f"{platform.system()} {platform.machine()} {described}"


def key(module: bytes, runtime: str) -> str:
    """The name of a compiled module's file."""
    surroundings = hashlib.sha256(f"{runtime} {_processor()}".encode()).hexdigest()
    return f"{hashlib.sha256(module).hexdigest()}-{surroundings[:16]}"


def load(name: str) -> bytes | None:
    """What was kept under a name; None where nothing was, or where others could have written it."""
    if not _is_private(folder(), stat.S_ISDIR):
        return None
    path = folder() / name
    if not _is_private(path, stat.S_ISREG):
        return None
    try:
        os.utime(path)
        return path.read_bytes()
    except OSError:
        return None


def keep(name: str, compiled: bytes) -> None:
    """Keep a compiled module; where that is not possible, the next process compiles again."""
    place = folder()
    with contextlib.suppress(OSError):
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not _is_private(place, stat.S_ISDIR):
            return
        descriptor, temporary = tempfile.mkstemp(dir=place)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(compiled)
                # A machine that stops leaves the whole or nothing: loading runs what the file holds.
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, place / name)
        except OSError:
            os.unlink(temporary)
        _forget(place)


def _forget(place: Path) -> None:
    """Remove what was used longest ago: every damaged or hostile module would stay for good otherwise."""
    used = sorted(((file.stat().st_mtime_ns, file) for file in place.iterdir()), reverse=True)
    for _, file in used[MOST_KEPT:]:
        file.unlink(missing_ok=True)


def _is_private(path: Path, is_kind: object) -> bool:
    """Whether a path is of a kind, not a link, ours, and closed to everybody else."""
    if not hasattr(os, "geteuid"):
        return False
    try:
        found = path.lstat()
    except OSError:
        return False
    kind = stat.S_ISDIR if is_kind is stat.S_ISDIR else stat.S_ISREG
    return kind(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o077
