"""A disk that is really full: a small tmpfs in a mount namespace of its own."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


def run_on_small_disk(program: str, folder: Path, size: str) -> None:
    """Run Python whose first argument is `folder`, where a tmpfs of this size is mounted. It has to end well."""
    mount = f'mount -t tmpfs -o size={size} none "$0" && exec "$@"'
    mounted = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", mount, str(folder)]
    if subprocess.run([*mounted, "true"], capture_output=True).returncode != 0:
        pytest.skip("this machine lets ordinary users mount nothing")
    command = [*mounted, sys.executable, "-c", program, str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
