"""Compile a Wasm module in a process of its own, with limits on time and memory: a few hundred kilobytes that are made
for it keep a compiler busy for minutes, and nothing stops it within this process.

`libraries.f3.decoders.wasm` calls it, and it runs itself by its path.
"""

from __future__ import annotations

import contextlib
import importlib
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

MOST_HERE_BYTES = 1 << 16
"""Of a module that is compiled in this process: the worst of that size take about a second."""
_SECONDS, _SECONDS_PER_MEBIBYTE = 1, 2
_MEMORY_BYTES = 1 << 32
_WAITED_FOR = 10
"""Times the seconds: they are the processor's, which others use too."""


class CompilingError(Exception):
    """Why a module could not be compiled."""


def engine() -> Any:
    """The runtime as modules are compiled for it, the same in both processes."""
    wasmtime = importlib.import_module("wasmtime")
    config = wasmtime.Config()
    config.epoch_interruption = True
    config.parallel_compilation = False
    config.wasm_threads = False
    return wasmtime.Engine(config)


def is_possible() -> bool:
    """Whether there is a Python that could be started: in a program that has one inside it may be that program."""
    return "py" in Path(sys.executable or "").name and not getattr(sys, "frozen", False)


def compiled(module: bytes) -> bytes:
    """What `wasmtime.Module.deserialize` takes. Raises CompilingError for what is no module, or takes too long."""
    seconds = math.ceil(_SECONDS + _SECONDS_PER_MEBIBYTE * len(module) / (1 << 20))
    command = [sys.executable, "-P", __file__, str(seconds)]
    try:
        done = subprocess.run(command, input=module, capture_output=True, timeout=_WAITED_FOR * seconds)
    except subprocess.TimeoutExpired:
        raise CompilingError(f"it takes more than {seconds} s") from None
    if done.returncode < 0:
        raise CompilingError(f"it takes more than {seconds} s, or more than {_MEMORY_BYTES >> 30} GiB of memory")
    if done.returncode:
        raise CompilingError(done.stderr.decode("utf-8", "replace") or "no reason is given")
    return done.stdout


def main(seconds: int) -> None:
    """Compile what comes in, and put it out."""
    # A system may have no such limits; the caller's patience is one too.
    with contextlib.suppress(ImportError, ValueError, OSError):
        resource: Any = importlib.import_module("resource")
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    wasmtime = importlib.import_module("wasmtime")
    try:
        module = wasmtime.Module(engine(), sys.stdin.buffer.read())
    except wasmtime.WasmtimeError as error:
        sys.exit(str(error).strip())
    sys.stdout.buffer.write(module.serialize())


if __name__ == "__main__":
    main(int(sys.argv[1]))
