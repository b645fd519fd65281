"""Plant each fault in a copy of the project and run the tests that should find it: `python -m tests.planted [REGEX]`.

REGEX selects faults by name. One line is printed for each fault: found, MISSED, or not tried. The exit code is 0 if all
faults were found, 1 if a fault was missed or could not be tried, 2 if no name matches, and 130 after an interruption.
The copies are in a temporary folder, which is removed at the end.
"""

from __future__ import annotations

import itertools
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

from tests.planted.faults import ROOT, Fault, faults

AT_ONCE = 2
MOST_S = 600
_COMPILED = {"libraries": "libraries.build", "bench_runner": "bench_runner.build"}
"""Top folder of a C source -> the module that compiles it."""

_times = itertools.count(1)


class Copy:
    """A copy of the project in which one fault at a time is planted."""

    def __init__(self, place: Path) -> None:
        self._place = place
        command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0")
        built = [str(path.relative_to(ROOT)) for kind in ("*.so", "*.wasm") for path in _built(kind)]
        for name in {*filter(None, listed), *built}:
            if (ROOT / name).is_file():
                (place / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, place / name)
        # Some tests need the history and the list of tracked files.
        shutil.copytree(ROOT / ".git", place / ".git", symlinks=True)

    def tried(self, fault: Fault) -> str:
        """Plant the fault, run its tests, and restore the file. Return 'found', 'MISSED', or why the fault could not be
        tried."""
        file = self._place / fault.file
        before = file.read_text()
        try:
            self._write(file, fault.planted(before))
            code, output = self._pytest(fault.tests)
        finally:
            self._write(file, before)
        # With a negative code, a signal killed pytest. The suite would end in the same way, so the fault counts as
        # found.
        if code in (0, 1) or code < 0:
            return "found" if code else "MISSED"
        last = (output.strip().splitlines() or [""])[-1]
        return f"not tried, pytest ended with {code}: {last[:200]}"

    def _write(self, file: Path, text: str) -> None:
        file.write_text(text)
        # Python reuses a compiled module if its source has the same size and the same modification time in seconds.
        moment = time.time() + next(_times)
        os.utime(file, (moment, moment))
        if file.suffix in (".c", ".h"):
            module = _COMPILED[file.relative_to(self._place).parts[0]]
            built = self._run(sys.executable, "-m", module)
            if built.returncode:
                raise ValueError(f"{module} fails on the changed source: {(built.stdout + built.stderr)[-500:]}")

    def _pytest(self, tests: tuple[str, ...]) -> tuple[int, str]:
        done = self._run(sys.executable, "-m", "pytest", "-x", "-p", "no:cacheprovider", *tests)
        return done.returncode, done.stdout

    def _run(self, *command: str) -> subprocess.CompletedProcess[str]:
        env = {**os.environ, "PYTHONPATH": str(self._place)}
        return subprocess.run(command, cwd=self._place, env=env, capture_output=True, text=True, timeout=MOST_S)


def _built(kind: str) -> list[Path]:
    return [path for package in _COMPILED for path in (ROOT / package).rglob(kind)]


def main(pattern: str) -> int:
    """Try the faults whose names match; return the exit code."""
    chosen = [fault for fault in faults() if re.search(pattern, fault.name)]
    if not chosen:
        print(f"no name of a fault matches {pattern!r}", file=sys.stderr)
        return 2
    copies: SimpleQueue[Copy] = SimpleQueue()

    def tried(fault: Fault) -> str:
        copy = copies.get()
        started = time.monotonic()
        try:
            outcome = copy.tried(fault)
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            outcome = f"not tried: {error}"
        finally:
            copies.put(copy)
        print(f"{outcome:8}{time.monotonic() - started:6.1f} s  {fault.name}", flush=True)
        return outcome

    with tempfile.TemporaryDirectory(prefix="planted-") as folder, ThreadPoolExecutor(AT_ONCE) as pool:
        for number in range(AT_ONCE):
            copies.put(Copy(Path(folder) / str(number)))
        pending = [pool.submit(tried, fault) for fault in chosen]
        try:
            outcomes = [each.result() for each in pending]
        except KeyboardInterrupt:
            pool.shutdown(cancel_futures=True)
            print("interrupted before all faults were tried", file=sys.stderr)
            return 128 + signal.SIGINT
    found, missed = outcomes.count("found"), outcomes.count("MISSED")
    print(f"{len(chosen)} faults: {found} found, {missed} missed, {len(chosen) - found - missed} not tried")
    return int(found < len(chosen))


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else ""))
