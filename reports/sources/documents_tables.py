"""Compare our figures with table 3 of the paper on columns in document stores. Table 3 has times of range queries by
index and by scan.

Our figures are those of the store AMAX. Each data set and set of conditions has its own table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from bench_runner.conditions import conditions_text
from bench_runner.results.records import Conditions, Run, changed
from bench_runner.results.statistics import CellSummary, summarise
from bench_runner.variants import OperationName, operation_name_of
from reports.analysis.near_storage.workloads import published_rows
from reports.analysis.units import MILLISECONDS
from reports.sources.claims import SOURCES, has_several_machines
from reports.sources.side_by_side import Entry, SideBySide, line_of, measured

AMAX = SOURCES["documents"].variants["amax"]
_NONE = "-"
SELECTIVITIES = ("1e-05", "0.0001", "0.001", "0.01")
FIELDS = (1, 5, 10)
Ours = Mapping[OperationName, CellSummary]
"""The summary of each operation, by its name."""


def tables(runs: Sequence[Run]) -> tuple[SideBySide, ...]:
    """Return table 3 with our figures, for each set of conditions under which a run measured range queries. If no run
    measured any, return only the published figures."""
    found = [(about, ours) for run in runs for about, ours in _groups(run)]
    shown = found or [("not in this run; to measure it: run documents --operations range", {})]
    return tuple(_table(about, ours) for about, ours in shown)


def _groups(run: Run) -> Iterator[tuple[str, Ours]]:
    grouped: dict[tuple[str, int, Conditions, str], dict[OperationName, CellSummary]] = {}
    for cell, summary in summarise(run.samples).items():
        if cell.variant == AMAX and cell.operation.name == "range" and _is_own(summary):
            key = (cell.dataset, cell.rows, changed(cell.conditions, track=""), cell.machine)
            grouped.setdefault(key, {})[cell.operation] = summary
    for (dataset, rows, conditions, machine), ours in grouped.items():
        where = conditions_text(conditions).removeprefix("track , ")
        where += f", machine {machine}" if has_several_machines(run) else ""
        yield f"ours: {dataset}, {rows:,} documents, {where}", ours


def _is_own(summary: CellSummary) -> bool:
    return "wall_ns" in summary.figures and not summary.fallback and not summary.cached


@cache
def published() -> Mapping[tuple[int, str], float]:
    """Return the published seconds by (number of fields, access), where access is 'scan' or a selectivity of
    SELECTIVITIES."""
    found: dict[tuple[int, str], float] = {}
    for row in published_rows("documents_index_queries.csv"):
        fields = int(row["columns"])
        found[fields, "scan"] = float(row["scan_s"])
        for share in SELECTIVITIES:
            found[fields, share] = float(row[f"index_{100 * float(share):g}_percent_s"])
    return found


def _table(about: str, ours: Ours) -> SideBySide:
    lines = []
    for fields in FIELDS:
        for by, share in (("scan", "0.001"), *(("index", share) for share in SELECTIVITIES)):
            theirs = f"{1000 * published()[fields, 'scan' if by == 'scan' else share]:,.0f}"
            what = "scan" if by == "scan" else f"index, {100 * float(share):g} %"
            lines.append(line_of(f"{fields}", what, theirs, _measured(ours, fields, by, share)))
    head = ("fields", "by", f"paper {MILLISECONDS.name}", f"ours {MILLISECONDS.name}")
    return SideBySide(f"table 3, counting the values of fields in a range ({about})", head, tuple(lines))


def _measured(ours: Ours, fields: int, by: str, share: str) -> Entry:
    summary = ours.get(operation_name_of(f"range[selectivity={share},paths={fields},by={by}]"))
    if summary is None:
        return Entry(_NONE)
    interval = summary.figures["wall_ns"]
    return measured(MILLISECONDS.text(interval.median), interval, summary.cell)
