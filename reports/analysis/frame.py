"""Return the figures of a run as a DataFrame, for notebooks and programs.

Units are those of the stored records, and part of the column names.
"""

from __future__ import annotations

from dataclasses import fields

import pandas as pd
from msgspec.structs import asdict

from bench_runner.results.records import Run
from bench_runner.results.statistics import summarise
from reports.analysis.columns import Role


def frame(run: Run) -> pd.DataFrame:
    """Return a DataFrame with one row for each cell, in the order of the samples.

    Columns: suite, operation, dataset, rows, variant, machine, the conditions, `rounds` (counted), `fidelity`,
    `fallback`, `reason` (of a failure), and for each figure its median under its own name with `<name>_low` and
    `<name>_high`, the ends of its 95 % interval (missing under five rounds). A cell without figures has missing values
    there, and a reason.
    """
    rows = []
    for cell, summary in summarise(run.samples).items():
        row = {field.name: getattr(cell, field.name) for field in fields(cell) if field.name != "conditions"}
        row |= asdict(cell.conditions)
        row["rounds"] = summary.rounds
        row["fidelity"] = summary.fidelity
        row["fallback"] = summary.fallback
        row["reason"] = f"{summary.failures[0].kind}: {summary.failures[0].reason}" if summary.failures else None
        for name, interval in summary.figures.items():
            row |= dict(zip(_columns(name), (interval.median, interval.low, interval.high), strict=True))
        rows.append(row)
    # If nothing was counted, the figures that every report shows become missing values, not missing columns.
    always = {name: None for role in Role for name in _columns(role.figure)}
    return pd.DataFrame([{**always, **row} for row in rows])


def _columns(figure: str) -> tuple[str, str, str]:
    return figure, f"{figure}_low", f"{figure}_high"
