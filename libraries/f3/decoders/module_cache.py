"""A cache of compiled Wasm modules that processes share, in a folder that only its owner can read and write.

Loading a compiled module executes the file's content. Files that other users could have written are not loaded, and
folders that other users can access are not used. The key combines the module's hash, the runtime's version and the
processor.
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
"""Maximum number of compiled modules. The most recently used modules are kept."""


def folder() -> Path:
    """Return the folder of compiled modules. It can be deleted at any time; each module is then compiled once more."""
    return platformdirs.user_cache_path("format-bench") / "f3-modules"


@cache
def _processor() -> str:
    described = platform.processor()
    with contextlib.suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        described += next((line for line in lines if line.startswith(("flags", "Features"))), "")
    return f"{platform.system()} {platform.machine()} {described}"


def key(module: bytes, runtime: str) -> str:
    """Return the name of a compiled module's file in the cache. `runtime` is the name and version of the Wasm
    runtime."""
    surroundings = hashlib.sha256(f"{runtime} {_processor()}".encode()).hexdigest()
    return f"{hashlib.sha256(module).hexdigest()}-{surroundings[:16]}"


def load(name: str) -> bytes | None:
    """Return the module cached under a name. Return None if there is no such module, or if other users could have
    written the file."""
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
    """Cache a compiled module. If that fails, the next process has to compile it again."""
    place = folder()
    with contextlib.suppress(OSError):
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not _is_private(place, stat.S_ISDIR):
            return
        descriptor, temporary = tempfile.mkstemp(dir=place)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(compiled)
                # Sync the file before it is renamed, so that a crash leaves a complete file or none. Loading executes
                # the content.
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, place / name)
        except OSError:
            os.unlink(temporary)
        _forget(place)


def _forget(place: Path) -> None:
    """Delete the least recently used modules. Without this, damaged and hostile modules would stay forever."""
    used = sorted(((file.stat().st_mtime_ns, file) for file in place.iterdir()), reverse=True)
    for _, file in used[MOST_KEPT:]:
        file.unlink(missing_ok=True)


def _is_private(path: Path, is_kind: object) -> bool:
    """Return whether a path is of the given kind, is not a link, and belongs to this user without access for other
    users."""
    if not hasattr(os, "geteuid"):
        return False
    try:
        found = path.lstat()
    except OSError:
        return False
    kind = stat.S_ISDIR if is_kind is stat.S_ISDIR else stat.S_ISREG
    return kind(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o077
