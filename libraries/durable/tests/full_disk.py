"""A disk that is really full: a small tmpfs in a separate mount namespace."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


def run_on_small_disk(program: str, folder: Path, size: str) -> None:
    """Run Python with a tmpfs of `size` mounted at `folder`, and pass `folder` as the first argument. Fail if Python
    fails."""
    mount = f'mount -t tmpfs -o size={size} none "$0" && exec "$@"'
    mounted = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", mount, str(folder)]
    if subprocess.run([*mounted, "true"], capture_output=True).returncode != 0:
        pytest.skip("this machine does not let ordinary users mount file systems")
    command = [*mounted, sys.executable, "-c", program, str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
