"""Show a comparison of two runs on the terminal, as Markdown or as JSON. The module reports.analysis.compare computes
the comparison."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec.structs import asdict
from rich.console import Console
from rich.markup import escape
from rich.table import Table as Grid

from bench_runner.conditions import conditions_text
from bench_runner.results.records import FIGURES, Cell, Run
from bench_runner.results.statistics import DRIFT_LIMIT
from reports.analysis.columns import Role
from reports.analysis.compare import FIGURES as COMPARED
from reports.analysis.compare import Change, ChangeVerdict, Drift, RunComparison
from reports.analysis.units import MEGABYTES, MILLISECONDS, SECONDS
from reports.text.page import page_for, print_lines

_TITLES = {figure: FIGURES[figure].title for figure in COMPARED}
HEAD = ("cell", "figure", "before", "after", "ratio", "95 % interval", "libraries")
DRIFT_WORTH_TELLING = 0.02
"""A drift is a shift that all times share. A drift below this share is not shown."""


def show(found: RunComparison, console: Console) -> None:
    """Print what changed, the drift, the noise, and measurements that only one run has. The output is always 100
    columns wide."""
    page = page_for(console)
    print_lines(page, [f"{_run(found.before)} -> {_run(found.after)}"], style="bold")
    print_lines(page, [f"warning: {text}" for text in found.differences], style="yellow")
    for title, changes, style in (
        ("worse than before", found.regressions, "red"),
        ("better than before", found.improvements, "green"),
    ):
        if changes:
            page.print()
            print_lines(page, [title], style=f"bold {style}")
            page.print(_grid(changes))
    page.print()
    print_lines(page, _lines(found))


def _grid(changes: Sequence[Change]) -> Grid:
    grid = Grid(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    grid.add_column(HEAD[0], overflow="fold")
    for place, header in enumerate(HEAD[1:], 1):
        grid.add_column(header, justify="right" if 1 < place < 6 else "left", no_wrap=place < 6, overflow="fold")
    for change in changes:
        grid.add_row(*(escape(text) for text in _row(change)))
    return grid


def markdown(found: RunComparison) -> str:
    """Return Markdown for a comment on a pull request. The verdict comes first, then the tables."""
    parts = [f"**{_verdict(found)}** ({_run(found.before)} -> {_run(found.after)})"]
    parts += [f"> {text}" for text in found.differences]
    for title, changes in (("Worse", found.regressions), ("Better", found.improvements)):
        if changes:
            rows = [HEAD, ("---",) * len(HEAD), *(_row(change) for change in changes)]
            cells = "\n".join(f"| {' | '.join(text.replace('|', chr(92) + '|') for text in row)} |" for row in rows)
            parts.append(f"### {title}\n\n{cells}")
    parts.append("\n".join(f"- {text}" for text in _lines(found)))
    return "\n\n".join(parts) + "\n"


def as_json(found: RunComparison) -> str:
    """Return the comparison as JSON: every change with its interval and verdict, the drifts, and measurements that only
    one run has."""
    shape = {
        "before": _identity(found.before),
        "after": _identity(found.after),
        "failed": found.failed,
        "changes": [_change_shape(change) for change in found.changes],
        "drifts": [
            {
                "operation": drift.operation,
                "ratio": drift.ratio,
                "raw_io": drift.yardstick,
                "noise": drift.noise,
                "cells": drift.cells,
            }
            for drift in found.drifts
        ],
        "newly_failing": [{**_cell_shape(cell), "reason": reason} for cell, reason in found.newly_failing],
        "newly_working": [_cell_shape(cell) for cell in found.newly_working],
        "failing_in_both": [_cell_shape(cell) for cell in found.failing_in_both],
        "only_before": [_cell_shape(cell) for cell in found.only_before],
        "only_after": [_cell_shape(cell) for cell in found.only_after],
        "libraries": list(found.libraries),
        "differences": list(found.differences),
    }
    return json.dumps(shape, indent=1, ensure_ascii=False)


def _identity(run: Run) -> dict[str, Any]:
    return {name: getattr(run.info, name) for name in ("id", "started", "commit", "dirty")}


def _cell_shape(cell: Cell) -> dict[str, Any]:
    return {
        "suite": cell.suite,
        "operation": cell.operation,
        "dataset": cell.dataset,
        "rows": cell.rows,
        "variant": cell.variant,
        "conditions": asdict(cell.conditions),
    }


def _change_shape(change: Change) -> dict[str, Any]:
    return {
        **_cell_shape(change.cell),
        "figure": change.figure,
        "before": change.before,
        "after": change.after,
        "measured_ratio": change.shift.ratio,
        "low": change.shift.low,
        "high": change.shift.high,
        "ratio": change.ratio,
        "verdict": change.verdict.value,
        "libraries": list(change.libraries),
    }


def _run(run: Run) -> str:
    commit = run.info.commit
    return (run.info.id or run.folder.name) + (f" (commit {commit[:10]})" if commit else "")


def _row(change: Change) -> tuple[str, ...]:
    cell = change.cell
    low, high = change.shift.low, change.shift.high
    # The ratio is shown without the drift, and so is its interval.
    without_drift = change.ratio / change.shift.ratio if change.shift.ratio else 1.0
    interval = (
        f"{low * without_drift:.2f} to {high * without_drift:.2f}" if low is not None and high is not None else "-"
    )
    return (
        f"{cell.suite}/{cell.operation}/{cell.dataset}/{cell.variant}",
        _TITLES[change.figure],
        _value(change.figure, change.before),
        _value(change.figure, change.after),
        f"{change.ratio:.2f}",
        interval,
        ", ".join(change.libraries) or "-",
    )


def _value(figure: str, value: float) -> str:
    if figure != Role.TIME.figure:
        return f"{MEGABYTES.text(value)} MB"
    return f"{SECONDS.text(value)} s" if value >= 1e9 else f"{MILLISECONDS.text(value)} ms"


def _verdict(found: RunComparison) -> str:
    worse = len(found.regressions)
    if not found.failed:
        shared = [drift for drift in found.drifts if drift.is_shared and drift.ratio > 1 + DRIFT_LIMIT]
        # Such a shift can also be a change of code that all libraries use, which must not pass unnoticed.
        titles = " and ".join(found.after.info.operation(drift.operation).title for drift in shared)
        return f"no regression of single variants, but all {titles} times are slower" if shared else "no regression"
    parts = [f"{worse} regression{'s' * (worse != 1)}"] if worse else []
    if found.newly_failing:
        cells = len(found.newly_failing)
        parts.append(f"{cells} cell{'s' * (cells != 1)} without figures in the second run")
    return ", ".join(parts)


def _lines(found: RunComparison) -> Iterator[str]:
    judged = [change for change in found.changes if change.verdict is not ChangeVerdict.UNJUDGED]
    yield (
        f"{_verdict(found)}; {len(found.improvements)} better; {len(judged)} figures compared, "
        f"{len(found.changes) - len(judged)} not compared, with too few rounds"
    )
    for drift in found.drifts:
        yield from _drift(drift, found.after.info.operation(drift.operation).title)
    for cell, reason in found.newly_failing:
        named = f"{cell.suite}/{cell.operation}/{cell.dataset}/{cell.variant}"
        yield f"without figures in the second run: {named}: {reason}"
    for title, cells in (
        ("with figures only in the second run", found.newly_working),
        ("failed in both runs", found.failing_in_both),
        ("only in the first run", found.only_before),
        ("only in the second run", found.only_after),
    ):
        if cells:
            yield f"{title}: {_few(cells)}"
    if found.libraries:
        yield f"libraries that differ: {', '.join(found.libraries)}"
    alike = found.changes[0].cell.conditions if found.changes else None
    if alike and all(change.cell.conditions == alike for change in found.changes):
        yield f"conditions: {conditions_text(alike)}"


def _drift(drift: Drift, operation: str) -> Iterator[str]:
    change = drift.ratio - 1
    if abs(change) >= DRIFT_WORTH_TELLING:
        slower = "slower" if change > 0 else "faster"
        if drift.is_shared:
            yardstick = "" if drift.yardstick is None else f"; raw I/O alone: {drift.yardstick - 1:+.1%}"
            yield (
                f"all {operation} times are {abs(change):.1%} {slower} (median over {drift.libraries} libraries"
                f"{yardstick}): the ratios above are corrected for it, because the machine, or something that all "
                "libraries share, has changed"
            )
        else:
            yield (
                f"{operation} by raw I/O is {abs(change):.1%} {slower}: the ratios above are corrected for it, because "
                "the machine has changed"
            )
    yield f"noise of {operation} times between the runs: {drift.noise:.1%} (median of {drift.cells} cells)"


def _few(cells: Sequence[Cell]) -> str:
    operations: dict[str, list[str]] = {}
    for cell in cells:
        operations.setdefault(f"{cell.dataset}/{cell.variant}", []).append(cell.operation)
    names = [f"{name} ({', '.join(dict.fromkeys(told))})" for name, told in operations.items()]
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
