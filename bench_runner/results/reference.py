"""The reference run, which is part of the package: results of whole suites on our machines, without measuring.

Each suite has a folder below reference_runs, and more if it is measured in other ways too, such as with a cold page
cache. `python -m tests.selfbench.reference` makes them. The cost of measuring each cell is stored next to them, to
predict how long runs take elsewhere. All have the same machine name, but not the same processor: one folder is of one
machine, two may be of two.
"""

from __future__ import annotations

from pathlib import Path

from bench_runner.results.records import RecordError, Run, read_run

NAME = "reference"
"""The name by which commands accept these runs."""
PLACE = Path(__file__).with_name("reference_runs")
COSTS = PLACE / "costs.json"
ORDER = (
    *("tabular", "access", "image", "engines", "compression"),
    *("wide", "encodings", "encodings-cold", "training", "writing", "sweep"),
    *("near-storage", "near-storage-all", "documents", "documents-layouts", "documents-ranges"),
)
"""The folders in the order in which they are shown, the main question first. Others come last."""


def reference_runs() -> list[Run]:
    """Return one run for each suite, in order. Raises RecordError if the package has none."""
    folders = sorted(path.parent for path in PLACE.glob("*/run.json"))
    if not folders:
        raise RecordError("This package includes no reference run.", "Measure your own.")
    folders.sort(key=lambda folder: ORDER.index(folder.name) if folder.name in ORDER else len(ORDER))
    return [read_run(folder) for folder in folders]
