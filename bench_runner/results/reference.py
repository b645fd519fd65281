"""The reference run: what the whole suites have shown on machines of ours, in the package: an answer without measuring.

One folder for each suite below reference_runs, and more where a suite is measured in another way too, such as with a
cold page cache. They are made by `python -m tests.selfbench.reference`. What it took to measure each cell lies beside
them, for telling how long runs take elsewhere. All bear the same name of a machine, and not all the same processor: one
folder is of one machine, two may be of two.
"""

from __future__ import annotations

from pathlib import Path

from bench_runner.results.records import RecordError, Run, read_run

NAME = "reference"
"""Stands for these runs wherever a run is asked for."""
PLACE = Path(__file__).with_name("reference_runs")
COSTS = PLACE / "costs.json"
ORDER = (
    *("tabular", "access", "image", "engines", "compression"),
    *("wide", "encodings", "encodings-cold", "training", "writing", "sweep"),
    *("near-storage", "near-storage-all", "documents", "documents-layouts", "documents-ranges"),
)
"""The folders as they are shown, the main question first; one that is not named here comes last."""


def reference_runs() -> list[Run]:
    """One run for each suite, in their order. Raises RecordError where the package has none."""
    folders = sorted(path.parent for path in PLACE.glob("*/run.json"))
    if not folders:
        raise RecordError("This package includes no reference run.", "Measure your own.")
    folders.sort(key=lambda folder: ORDER.index(folder.name) if folder.name in ORDER else len(ORDER))
    return [read_run(folder) for folder in folders]
