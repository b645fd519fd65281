"""Write asv's settings into a folder: `python -m benchmarks.asv_settings FOLDER MACHINE`.

The settings are those of the project's asv.conf.json with absolute paths. The folder is also the home folder with which
asv runs, so the file of machines in the user's home folder stays unchanged. This machine is described only once,
because asv would start another graph after every change of the description, such as a new kernel. This module does not
run asv.
"""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Sequence
from pathlib import Path

from bench_runner.machine import environment
from bench_runner.run.measuring import PROJECT_ROOT

MACHINES = ".asv-machine.json"
SETTINGS = "asv.conf.json"


def write_settings(folder: Path, machine: str) -> Path:
    """Write asv's settings and a description of the machine into `folder`, and return the path of the settings."""
    import json5  # a dependency of asv, which reads its settings with it

    settings = json5.loads((PROJECT_ROOT / SETTINGS).read_text())
    settings |= {
        "repo": str(PROJECT_ROOT),
        "benchmark_dir": str(PROJECT_ROOT / settings["benchmark_dir"]),
        "results_dir": str(folder / "results" / "asv"),
        "html_dir": str(folder / "html"),
        "env_dir": str(folder / "env"),
    }
    (folder / SETTINGS).write_text(json.dumps(settings, indent=2))
    _describe(folder / MACHINES, machine)
    return folder / SETTINGS


def _describe(path: Path, machine: str) -> None:
    """Write the description that `asv machine` would write, but without questions to the user."""
    known = json.loads(path.read_text()) if path.exists() else {"version": 1}
    if machine in known:
        return
    facts = environment.machine_facts(machine)
    known[machine] = {
        "machine": machine,
        "os": platform.system(),
        "arch": platform.machine(),
        "cpu": str(facts.get("cpu", "")),
        "num_cpu": str(os.cpu_count() or ""),
        "ram": f"{round(facts['memory_bytes'] / 1e9)} GB" if "memory_bytes" in facts else "",
    }
    path.write_text(json.dumps(known, indent=2))


def main(arguments: Sequence[str]) -> int:
    """Write the settings and return the exit status. The arguments are FOLDER and MACHINE."""
    if len(arguments) != 2:
        print("usage: python -m benchmarks.asv_settings FOLDER MACHINE", file=sys.stderr)
        return 2
    write_settings(Path(arguments[0]).resolve(), arguments[1])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
