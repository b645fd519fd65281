"""A test that waits for ever inside a library ends all the same, and by name: pytest's settings in pyproject.toml."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.bench_runner.conftest import TEST_TIMEOUT_S

ROOT = Path(__file__).parents[1]

WAITS = """
import ctypes

def test_that_waits_for_ever():
    lock, library = ctypes.create_string_buffer(64), ctypes.CDLL(None)
    library.pthread_mutex_lock(lock)
    library.pthread_mutex_lock(lock)
"""


@pytest.mark.slow
def test_what_waits_inside_a_library_ends_by_name(tmp_path: Path) -> None:
    (tmp_path / "test_waiting.py").write_text(WAITS)
    shorter = ["-o", "timeout=1", "-o", "faulthandler_timeout=2", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", "-c", str(ROOT / "pyproject.toml"), "--rootdir", str(tmp_path), *shorter]
    done = subprocess.run([*command, str(tmp_path)], capture_output=True, text=True, timeout=60)
    assert done.returncode != 0
    assert "in test_that_waits_for_ever" in done.stderr, done.stdout + done.stderr


def test_no_process_ends_before_the_time_of_its_test() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
    paths = (*ROOT.glob("tests/**/*.py"), *ROOT.glob("libraries/*/tests/**/*.py"))
    texts = [path.read_text() for path in paths]
    marked = [int(seconds) for text in texts for seconds in re.findall(r"mark\.timeout\((\d+)\)", text)]
    assert marked
    assert max(*marked, settings["timeout"], TEST_TIMEOUT_S) < settings["faulthandler_timeout"]
