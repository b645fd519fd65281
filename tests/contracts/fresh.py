"""Fresh interpreters, forked from a process that has executed the given imports and nothing else.

To see what a library imports during a timed call, a test needs a process that has not imported it before. Starting such
a process takes most of a second, nearly all of it to import modules that all adapters share. Forking avoids this.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]

_FORKING = """
import json, os, sys, traceback, warnings

warnings.simplefilter("ignore")
exec(sys.argv[1])
for line in sys.stdin:
    code, arguments, out, err = json.loads(line)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            for number, path in ((1, out), (2, err)):
                os.dup2(os.open(path, os.O_WRONLY), number)
            sys.argv = ["-c", *arguments]
            exec(code, {"__name__": "__main__"})
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@cache
def _forking(imports: str, path: str) -> subprocess.Popen[str]:
    """Return the process to fork from. Each search path needs another process, because some tests add
    packages to the path."""
    started = subprocess.Popen(
        [sys.executable, "-c", _FORKING, imports],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
    )
    atexit.register(started.kill)
    return started


def run_fresh(imports: str, code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python code in a process that has executed `imports` and no other import of this project."""
    forking = _forking(imports, os.pathsep.join([str(ROOT), *(entry for entry in sys.path if entry)]))
    assert forking.stdin is not None
    assert forking.stdout is not None
    with tempfile.NamedTemporaryFile("r") as out, tempfile.NamedTemporaryFile("r") as err:
        forking.stdin.write(json.dumps([code, arguments, out.name, err.name]) + "\n")
        forking.stdin.flush()
        status = int(forking.stdout.readline())
        return subprocess.CompletedProcess([code, *arguments], status, out.read(), err.read())
