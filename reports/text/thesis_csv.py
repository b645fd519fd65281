"""Write CSV files in the shape that the thesis (M. Tarageľ, 2024) uses: medians in seconds and megabytes (1,000,000
bytes), with one file for each data set and set of conditions.

The thesis measures only save and read, so other operations have separate files. `samples.jsonl` has the individual
samples.
"""

from __future__ import annotations

import csv
import re
from pathlib import Path

from bench_runner.results.information import READ, SAVE
from bench_runner.results.records import Run
from bench_runner.variants import OperationName
from reports.analysis.codecs import codec_effects, has_codecs
from reports.analysis.columns import READ_PEAK, READ_TIME, SAVE_PEAK, SAVE_TIME, SIZE, Column, Role
from reports.analysis.tables import Row, Table, distinguishing_names, tables

HEADER = (
    *("format_name", "save_time (s)", "read_time (s)"),
    *("save_peak_mem (MB)", "read_peak_mem (MB)", "file_size (MB)"),
)
"""Header of the files that the thesis's own program writes."""
CODECS_HEADER = ("format_name", "save_time_delta (s)", "read_time_delta (s)", "compression_ratio")
"""Metrics of the thesis's tables 6.8 and 6.9. Each metric compares a codec with the same format without a codec in the
same rounds."""
OPERATIONS_HEADER = ("format_name", "operation", "time (s)", "peak_mem (MB)", "fallback", "cached", "wrong")
"""`fallback` is 'read-all' if the library has no call for the operation, so that everything is read and then selected.
`cached` is 'yes' if the library answered from its own memory, and `wrong` is 'yes' if a round gave a wrong answer. Do
not rank such rows together with others."""


def write_csv(run: Run, folder: Path) -> list[Path]:
    """Write CSV files into `folder` and return their paths. `results-<data set>-<track>.csv` has save and read,
    `codecs-...` has codecs, and `operations-...` has other operations.

    A value is empty if there is no figure, because nothing was counted or because the memory is too small to be
    measured.
    """
    found = tables(run)
    names = distinguishing_names(found)
    paths = [_write(table, folder / f"results-{_safe(names[place])}.csv") for place, table in enumerate(found)]
    for place, table in enumerate(found):
        if has_codecs(table):
            paths.append(_write_codecs(table, folder / f"codecs-{_safe(names[place])}.csv"))
        if _further(table):
            paths.append(_write_operations(table, folder / f"operations-{_safe(names[place])}.csv"))
    return paths


def _write(table: Table, path: Path) -> Path:
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(HEADER)
        for row in table.rows:
            values = (_text(table, row, column) for column in (SAVE_TIME, READ_TIME, SAVE_PEAK, READ_PEAK, SIZE))
            writer.writerow((row.variant, *values))
    return path


def _write_codecs(table: Table, path: Path) -> Path:
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(CODECS_HEADER)
        for effect in codec_effects(table):
            deltas = (effect.save_delta_ns, effect.read_delta_ns)
            seconds = ("" if delta is None else f"{delta.median / 1e9:.6f}" for delta in deltas)
            writer.writerow((effect.row.variant, *seconds, "" if effect.ratio is None else f"{effect.ratio:.4f}"))
    return path


def _further(table: Table) -> list[OperationName]:
    return [name for name in table.columns.operations if name not in (SAVE, READ)]


def _write_operations(table: Table, path: Path) -> Path:
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(OPERATIONS_HEADER)
        for operation in _further(table):
            shown = [table.columns.find(operation, role) for role in (Role.TIME, Role.MEMORY)]
            for row in table.rows:
                if operation in row.cells:
                    values = ("" if column is None else _text(table, row, column) for column in shown)
                    flags = ("yes" * row.cached(operation), "yes" * row.wrong(operation))
                    writer.writerow((row.variant, operation, *values, row.fallback(operation), *flags))
    return path


def _text(table: Table, row: Row, column: Column) -> str:
    interval = row.interval(column)
    if interval is None or (column.is_memory and interval.median < table.least_bytes):
        return ""
    if column.role is Role.TIME:
        return f"{interval.median / 1e9:.6f}"
    return f"{interval.median / 1e6:.6f}"


def _safe(name: str) -> str:
    """Return `name` with characters that are safe in a file name. 'synthetic[int=5]', for example, has characters that
    shells interpret."""
    return re.sub(r"[^A-Za-z0-9.-]+", "_", name).strip("_")
