"""Return the figures of a run as a DataFrame, for notebooks and programs.

The units are those of the stored records, and are part of the column names.
"""

from __future__ import annotations

from dataclasses import fields

import pandas as pd
from msgspec.structs import asdict

from bench_runner.results.records import Run
from bench_runner.results.statistics import summarise
from reports.analysis.columns import Role


def frame(run: Run) -> pd.DataFrame:
    """Return a DataFrame with one row for each cell, in the order of the samples. A cell is one combination of
    operation, data set, variant and conditions.

    The columns are suite, operation, dataset, rows, variant, machine, the conditions, `rounds` (number of counted
    rounds), `fidelity`, `fallback`, `cached` (the library answered from its own memory), `wrong` (a round gave a wrong
    answer) and `reason` (of a failure). Do not rank rows with a fallback, or that are cached or wrong. Each figure has
    three columns: its median under its own name, and the ends of its 95 % interval as `<name>_low` and `<name>_high`.
    The ends are missing under five rounds. A row without figures has missing values, and a reason.
    """
    rows = []
    for cell, summary in summarise(run.samples).items():
        row = {field.name: getattr(cell, field.name) for field in fields(cell) if field.name != "conditions"}
        row |= asdict(cell.conditions)
        row["rounds"] = summary.rounds
        row["fidelity"] = summary.fidelity
        row["fallback"] = summary.fallback
        row["cached"], row["wrong"] = summary.cached, summary.wrong
        row["reason"] = f"{summary.failures[0].kind}: {summary.failures[0].reason}" if summary.failures else None
        for name, interval in summary.figures.items():
            row |= dict(zip(_columns(name), (interval.median, interval.low, interval.high), strict=True))
        rows.append(row)
    # If nothing was counted, the columns of the figures that every report shows exist and hold missing values.
    always = {name: None for role in Role for name in _columns(role.figure)}
    return pd.DataFrame([{**always, **row} for row in rows])


def _columns(figure: str) -> tuple[str, str, str]:
    return figure, f"{figure}_low", f"{figure}_high"
