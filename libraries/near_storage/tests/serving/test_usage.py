"""The reported usage is that of the process, not of its parent."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[4]
TELL = "from libraries.near_storage.serving import usage; print(usage.of_this_process().peak_bytes)"
START_WITH_300_MB = """
import subprocess, sys
held = b"x" * 300_000_000
subprocess.run([sys.executable, "-c", sys.argv[1]], check=True)
"""


def told(*arguments: str) -> int:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", *arguments]
    return int(subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, check=True).stdout)


def test_the_most_bytes_are_those_of_the_process_itself():
    assert 10**7 < told(START_WITH_300_MB, TELL) < 150 * 10**6


def test_the_most_bytes_stay_when_they_are_given_back():
    assert told("held = b'x' * 300_000_000; del held; " + TELL) > 300 * 10**6
