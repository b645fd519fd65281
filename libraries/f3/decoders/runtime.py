"""The Wasm runtime of this process: the engine, the drivers (modules of this package that call a file's module), and
the clock that limits the time of running modules."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from libraries.f3.decoders import compilation
from libraries.f3.errors import F3Error

TICK_SECONDS = 0.05
_DRIVERS = ("driver", "driver_part")


@dataclass(frozen=True)
class Runtime:
    """The Wasm engine, this package's drivers compiled for this engine, and the version of wasmtime."""

    engine: Any
    driver: Any
    part_driver: Any
    version: str


@cache
def wasmtime_package() -> Any:
    """Return the package wasmtime. Raises F3Error if it is not installed."""
    try:
        import wasmtime
    except ImportError:
        raise F3Error("decoding by Wasm needs the package wasmtime: 'pip install wasmtime'") from None
    return wasmtime


@cache
def runtime_of(process: int) -> Runtime:
    """Return the Wasm runtime of the process with this id. A child process needs a separate runtime, because the thread
    of the clock does not survive a fork."""
    wasmtime = wasmtime_package()
    engine = compilation.engine()
    here = Path(__file__).parent
    driver, part_driver = (wasmtime.Module(engine, (here / f"{name}.wat").read_text()) for name in _DRIVERS)
    ticker = threading.Thread(target=_tick, args=(engine,), name="f3-time-limit", daemon=True)
    ticker.start()
    return Runtime(engine, driver, part_driver, metadata.version("wasmtime"))


_making = threading.Lock()


def runtime_here() -> Runtime:
    """Return the runtime of this process. All threads share it, because only the engine that compiled a module can run
    it."""
    with _making:
        return runtime_of(os.getpid())


class Running:
    """Counts the modules that run now, over all threads. The clock advances only while there are any."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.count = 0

    def renew(self) -> None:
        """Reset the count to 0, with a new lock."""
        self._lock = threading.Lock()
        self.count = 0

    def change(self, by: int) -> None:
        """Change the count by `by`: 1 before a call, -1 after it."""
        with self._lock:
            self.count += by


running = Running()


def _renew() -> None:
    """Replace the locks in a forked process, because a thread of the parent may hold the old ones."""
    global _making
    _making = threading.Lock()
    running.renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)

_pause = threading.Event()


def _tick(engine: Any) -> None:
    """Advance the engine's clock every `TICK_SECONDS` while any module runs. Never returns."""
    while True:
        _pause.wait(TICK_SECONDS)
        if running.count:
            engine.increment_epoch()


def last_line(error: BaseException) -> str:
    """Return the last line of a runtime error, which states the cause. The lines before it are the stack trace."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1].removeprefix("1: ")[:200] if lines else type(error).__name__
