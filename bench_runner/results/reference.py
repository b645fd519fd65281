"""The reference run, which is part of the package. It has results of whole suites on our machines, for use without
measuring.

Each suite has a folder below reference_runs, and further folders if it is also measured in other ways, such as with a
cold page cache. `python -m tests.selfbench.reference` creates them. The cost of measuring each cell is stored next to
the results, to predict how long runs take on other machines. All folders have the same machine name, but not the same
processor. The results in one folder are of one machine, but two folders may be of two machines.
"""

from __future__ import annotations

from pathlib import Path

from bench_runner.results.records import RecordError, Run, read_run

NAME = "reference"
"""The name with which users select these runs in commands."""
PLACE = Path(__file__).with_name("reference_runs")
COSTS = PLACE / "costs.json"
ORDER = (
    *("tabular", "access", "image", "engines", "compression"),
    *("wide", "encodings", "encodings-cold", "training", "writing", "sweep"),
    *("near-storage", "near-storage-all", "documents", "documents-layouts", "documents-ranges"),
)
"""The folders in the order in which they are shown, with the main question first. Other folders come last."""


def reference_runs() -> list[Run]:
    """Return one run for each suite, in order. Raises RecordError if the package contains none."""
    folders = sorted(path.parent for path in PLACE.glob("*/run.json"))
    if not folders:
        raise RecordError("This package includes no reference run.", "Measure your own.")
    folders.sort(key=lambda folder: ORDER.index(folder.name) if folder.name in ORDER else len(ORDER))
    return [read_run(folder) for folder in folders]
