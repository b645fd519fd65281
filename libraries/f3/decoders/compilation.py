"""Compile a Wasm module in a separate process with limits on time and memory.

A module of a few hundred kilobytes can keep the compiler busy for minutes, and a thread cannot interrupt the compiler.
`libraries.f3.decoders.modules` calls `compiled`, which starts this file as a script in the separate process.
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
"""Largest module that is compiled in the calling process.

The slowest modules of this size compile in about a second.
"""
_SECONDS, _SECONDS_PER_MEBIBYTE = 1, 2
_MEMORY_BYTES = 1 << 32
_WAITED_FOR = 10
"""Wall-clock limit as a multiple of the processor-time limit. The wall-clock limit is larger, because other processes
may use the CPUs."""


class CompilingError(Exception):
    """A module could not be compiled. The message states the reason."""


def engine() -> Any:
    """Return a new Wasm engine. The calling and the compiling process both configure their engine here, so that one
    process can load what the other compiled."""
    wasmtime = importlib.import_module("wasmtime")
    config = wasmtime.Config()
    config.epoch_interruption = True
    config.parallel_compilation = False
    config.wasm_threads = False
    return wasmtime.Engine(config)


def is_possible() -> bool:
    """Return whether a Python process can be started for compilation. If Python is embedded in another program,
    `sys.executable` may be that program."""
    return "py" in Path(sys.executable or "").name and not getattr(sys, "frozen", False)


def compiled(module: bytes) -> bytes:
    """Return a module in the form that `wasmtime.Module.deserialize` accepts.

    Raises CompilingError if the bytes are not a module, or if compilation takes too long.
    """
    seconds = math.ceil(_SECONDS + _SECONDS_PER_MEBIBYTE * len(module) / (1 << 20))
    command = [sys.executable, "-P", __file__, str(seconds)]
    try:
        done = subprocess.run(command, input=module, capture_output=True, timeout=_WAITED_FOR * seconds)
    except subprocess.TimeoutExpired:
        raise CompilingError(f"compilation takes more than {seconds} s") from None
    if done.returncode < 0:
        memory = f"{_MEMORY_BYTES >> 30} GiB of memory"
        raise CompilingError(f"compilation takes more than {seconds} s, or more than {memory}")
    if done.returncode:
        raise CompilingError(done.stderr.decode("utf-8", "replace") or "the compiler gave no reason")
    return done.stdout


def main(seconds: int) -> None:
    """Compile the module on stdin and write the result to stdout."""
    # Some systems lack these limits. The caller's timeout applies in any case.
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
