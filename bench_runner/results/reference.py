"""The reference run, which is part of the package. It has results of whole suites on the maintainers' machines. Users
can read these results without measuring.

Each suite has a folder below reference_runs. A suite that is also measured in another way, such as with a cold page
cache, has a further folder for it. `python -m tests.selfbench.reference` creates the folders. The file costs.json next
to these folders has the time that each measurement took. The duration of runs on other machines is predicted from these
times. All folders have the same machine name. Each folder has results of a single machine, but two folders may come
from two machines with different processors.
"""

from __future__ import annotations

from pathlib import Path

from bench_runner.results.records import RecordError, Run, read_run

NAME = "reference"
"""The name by which commands select the reference run."""
PLACE = Path(__file__).with_name("reference_runs")
COSTS = PLACE / "costs.json"
ORDER = (
    *("tabular", "access", "image", "engines", "compression"),
    *("wide", "encodings", "encodings-cold", "training", "writing", "parallel"),
    *("levels", "row-groups", "files", "small"),
    *("near-storage", "near-storage-all"),
    *("documents", "documents-layouts", "documents-sizes", "documents-ranges", "documents-fidelity"),
)
"""The folders in the order in which they are shown, the most important first. Folders that are not listed here come
last."""


def reference_runs() -> list[Run]:
    """Return the runs of all folders, in the order of ORDER. Raises RecordError if the package has none."""
    folders = sorted(path.parent for path in PLACE.glob("*/run.json"))
    if not folders:
        raise RecordError("This package includes no reference run.", "Measure your own.")
    folders.sort(key=lambda folder: ORDER.index(folder.name) if folder.name in ORDER else len(ORDER))
    return [read_run(folder) for folder in folders]
