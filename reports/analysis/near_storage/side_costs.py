"""Show the costs of near-storage reading other than time: services, network, metadata, small row groups, and the effect
of each technique.

The figures correspond to sections 8.1 and 8.3 to 8.5 of Weigand, TU Munich 2025, for our measurements.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from bench_runner.results.records import Run
from bench_runner.results.statistics import CellSummary, ratio_interval
from bench_runner.variants import OperationName, Variant, operation_name_of, variant_of
from reports.analysis.columns import Role
from reports.analysis.engines import ratio_text
from reports.analysis.figures import Figures
from reports.analysis.labels import short_labels
from reports.analysis.near_storage.access_paths import is_way, place_of
from reports.analysis.tables import Row, Table
from reports.analysis.units import MEGABYTES, MILLISECONDS
from reports.analysis.words import NOTHING

NODE_CPU, NODE_MEMORY, NODE_PEAK = "node_cpu_ns", "node_memory_bytes", "node_peak_memory_bytes"
NODE_DEVICE, WIRE = "node_device_bytes", "wire_bytes"
QUERY, METADATA = "query", "metadata"
_ENGINE = "parquet[engine=near-storage,codec=snappy,reader=parquet"
TECHNIQUES = tuple(
    (title, variant_of(f"{_ENGINE}{besides}]"), operation_name_of(operation))
    for title, besides, operation in (
        ("everything is read", ",technique=none", "query[groups=0.01,values=100]"),
        ("row groups left out", ",technique=groups", "query[groups=0.01,values=100]"),
        ("rows filtered too", "", "query[groups=0.01,values=100]"),
        ("one column of the rows", "", "query[groups=0.01,values=100,columns=1]"),
        ("aggregates alone", "", "aggregate[groups=0.01,values=100]"),
    )
)
"""Techniques of near-storage reading, from section 8.1 of Weigand's thesis, as (title, variant, operation). Each entry
adds one technique to the entry before it."""
_GROUP_ROWS = "row_group_rows"


def has_near_storage(table: Table) -> bool:
    """Return whether a table has figures for this section."""
    return any(True for _ in _all(None, table))


def near_storage_of(run: Run, table: Table) -> Iterator[Figures]:
    """Yield several `Figures` (tables of numbers) about near-storage reading, in the order of the sections of Weigand's
    thesis."""
    return _all(run, table)


def _all(run: Run | None, table: Table) -> Iterator[Figures]:
    ways = (row for row in table.rows if is_way(row.variant) and row.measured)
    rows = sorted(ways, key=lambda row: place_of(row.variant))
    yield from _techniques(rows)
    yield from _services(run, table, rows)
    yield from _metadata(table, rows)
    yield from _small_groups(run, table, rows)


def _cell(row: Row, operation: OperationName, figure: str) -> CellSummary | None:
    """Return the summary of an operation. Return None if the summary lacks `figure`, if a fallback was measured, or if
    an answer was wrong or came from the library's cache."""
    cell = row.cells.get(operation)
    if cell is None or figure not in cell.figures:
        return None
    # Variants with fewer techniques are never ranked, but they are what this section compares.
    return None if cell.fallback or cell.cached or cell.wrong else cell


# --- technique by technique ---------------------------------------------------------------------------------------


def _techniques(rows: Sequence[Row]) -> Iterator[Figures]:
    by_variant = {row.variant: row for row in rows}
    found = [
        (title, cell)
        for title, variant, operation in TECHNIQUES
        if variant in by_variant and (cell := _cell(by_variant[variant], operation, "wall_ns")) is not None
    ]
    if len(found) < 2:
        return
    lines = []
    for place, (title, cell) in enumerate(found):
        texts = [MILLISECONDS.text(cell.figures["wall_ns"].median)]
        for other in (found[place - 1][1], found[0][1]) if place else ():
            ratio = ratio_interval(other.by_round["wall_ns"], cell.by_round["wall_ns"])
            texts.append(NOTHING if ratio is None else ratio_text(ratio))
        lines.append((title, (*texts, *("",) * (3 - len(texts)))))
    yield Figures(
        "V1 technique by technique, for a query of 100 values that 1 % of the row groups have",
        "technique",
        ("time ms", "speedup over the line above", "over the first line"),
        tuple(lines),
        ("each line adds one technique to those above it; the node keeps parsed footers between queries",),
    )


# --- services -----------------------------------------------------------------------------------------------------


def _services(run: Run | None, table: Table, rows: Sequence[Row]) -> Iterator[Figures]:
    served = [row for row in rows if any(NODE_CPU in cell.figures for cell in row.cells.values())]
    if not served:
        return
    grids: tuple[tuple[str, str, Callable[[CellSummary], str]], ...] = (
        ("CPU time of the services, ms", NODE_CPU, _milliseconds(NODE_CPU)),
        ("CPU time of the client, ms", "cpu_ns", _milliseconds("cpu_ns")),
        ("memory of the services, MB: before the query, and increase at its peak", NODE_PEAK, _memory),
        ("peak memory increase of the client, MB", Role.MEMORY.figure, _client_memory(table)),
        ("bytes that the services read from the device, MB", NODE_DEVICE, _megabytes(NODE_DEVICE)),
        ("bytes over the network, MB", WIRE, _megabytes(WIRE)),
    )
    proxied = table.conditions.network not in ("", "loopback")
    wire = (
        "counted by the proxy, without headers"
        if proxied
        else "counted at the loopback interface, with headers and with any other local traffic"
    )
    cells = [cell for row in served for cell in row.cells.values() if NODE_DEVICE in cell.figures]
    untouched = not any(cell.figures[NODE_DEVICE].median for cell in cells)
    told = {
        NODE_CPU: "catalog and node together, during the time that the client measures",
        WIRE: f"{wire}{'. The services read nothing from the device' if untouched else ''}",
    }
    for title, figure, text in grids:
        if figure == NODE_DEVICE and untouched:
            continue
        yield from _grid(run, table, served, title, figure, text, [told[figure]] if figure in told else [])


def _grid(
    run: Run | None,
    table: Table,
    rows: Sequence[Row],
    title: str,
    figure: str,
    text: Callable[[CellSummary], str],
    notes: Sequence[str],
) -> Iterator[Figures]:
    """Yield `Figures` with a row for each access path and a column for each operation. Yield nothing if no operation
    has the figure."""
    names = [
        name
        for name in table.columns.operations
        if any(_cell(row, name, NODE_CPU) and _cell(row, name, figure) for row in rows)
    ]
    labels = short_labels(row.variant for row in rows)
    lines = [
        (labels[row.variant], tuple(text(cell) if (cell := _cell(row, name, figure)) else NOTHING for name in names))
        for row in rows
    ]
    if names:
        yield Figures(title, "access path", tuple(_head(run, name) for name in names), tuple(lines), tuple(notes))


def _head(run: Run | None, operation: OperationName) -> str:
    """Return a short header: '10 %', '1 %, scattered', 'aggregate 1 %'."""
    name, settings = operation.name, operation.parameters
    if "groups" not in settings:
        return run.info.operation(operation).title if run is not None else operation
    told = [f"{100 * float(settings['groups']):g} %"]
    told += [settings["place"]] if "place" in settings else []
    counted = [(settings[key], what) for key, what in (("values", "value"), ("columns", "column")) if key in settings]
    told += [f"{number} {what}{'s' * (number != '1')}" for number, what in counted]
    return f"{'' if name == QUERY else f'{name} '}{', '.join(told)}"


def _milliseconds(figure: str) -> Callable[[CellSummary], str]:
    return lambda cell: MILLISECONDS.text(cell.figures[figure].median)


def _megabytes(figure: str) -> Callable[[CellSummary], str]:
    return lambda cell: MEGABYTES.text(max(cell.figures[figure].median, 0))


def _client_memory(table: Table) -> Callable[[CellSummary], str]:
    """Return a function that returns the peak memory of a cell's client, or '<N' below what the probe can measure."""

    def text(cell: CellSummary) -> str:
        peak_bytes = max(cell.figures[Role.MEMORY.figure].median, 0)
        if peak_bytes < table.least_bytes:
            return f"<{MEGABYTES.text(table.least_bytes)}"
        return MEGABYTES.text(peak_bytes)

    return text


def _memory(cell: CellSummary) -> str:
    before = cell.figures.get(NODE_MEMORY)
    added = f"+{MEGABYTES.text(max(cell.figures[NODE_PEAK].median, 0))}"
    return added if before is None else f"{MEGABYTES.text(before.median)} {added}"


# --- metadata -----------------------------------------------------------------------------------------------------


def _metadata(table: Table, rows: Sequence[Row]) -> Iterator[Figures]:
    names = {name: int(name.parameters["files"]) for name in table.columns.operations if name.name == METADATA}
    text = _client_memory(table)
    lines = []
    for row in rows:
        cells = {name: _cell(row, name, Role.MEMORY.figure) for name in names}
        if any(cells.values()):
            texts = [text(cell) if cell else NOTHING for cell in cells.values()]
            lines.append((_form(row.variant), tuple(texts)))
    if lines:
        yield Figures(
            "memory of the metadata of this many files, MB",
            "form",
            tuple(f"{files:,} files" for files in names.values()),
            tuple(lines),
            ("the metadata of the stored files is loaded repeatedly to reach this number; section 8.4 of the thesis",),
        )


def _form(variant: Variant) -> str:
    settings = variant.settings
    form = {"ranges": "compact (V2)", "parquet": "footers, parsed (V1)"}.get(settings["reader"], settings["reader"])
    form = "footers, as bytes (V1)" if settings.get("footers") == "parsed" else form
    return form + (f", groups of {int(settings[_GROUP_ROWS]):,}" if _GROUP_ROWS in settings else "")


# --- small row groups ---------------------------------------------------------------------------------------------


def _small_groups(run: Run | None, table: Table, rows: Sequence[Row]) -> Iterator[Figures]:
    by_variant = {row.variant: row for row in rows}
    pairs = [
        (row, usual)
        for row in rows
        if _GROUP_ROWS in row.variant.settings
        and (usual := by_variant.get(row.variant.without(_GROUP_ROWS))) is not None
    ]
    names = [
        name
        for name in table.columns.operations
        if name.name != METADATA and any(_times(row, usual, name) for row, usual in pairs)
    ]
    if not names:
        return
    labels = short_labels(row.variant for row, _ in pairs)
    yield Figures(
        "time relative to row groups of 10,000 rows",
        "access path",
        tuple(_head(run, name) for name in names),
        tuple(
            (labels[row.variant], tuple(_times(row, usual, name) or NOTHING for name in names)) for row, usual in pairs
        ),
        ("paired by round; 95 % interval from five rounds on; section 8.5 of the thesis",),
    )


def _times(row: Row, usual: Row, operation: OperationName) -> str:
    """Return the time of `row` divided by the time of `usual`, which has row groups of the usual size, with the
    interval. Return '' if a time is missing."""
    small, large = (_cell(each, operation, "wall_ns") for each in (row, usual))
    if small is None or large is None:
        return ""
    ratio = ratio_interval(small.by_round["wall_ns"], large.by_round["wall_ns"])
    return "" if ratio is None else ratio_text(ratio)
