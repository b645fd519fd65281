"""What each page of the site is made of: the values that its template shows and its script chooses from.

It puts together what reports.site.figures, reports.site.charts and the other reports say, and must not know how a page
looks, nor where it is written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench_runner.results.records import FIGURES, Cell
from reports.analysis import fidelity
from reports.analysis.codecs import READ, SAVE, break_even_text, codec_effects, has_codecs
from reports.analysis.cold_start import HEADERS, first_calls
from reports.analysis.cold_start import TITLE as FIRST_CALLS
from reports.analysis.repeating import repeating_command
from reports.analysis.remarks import remarks
from reports.analysis.tables import COLUMNS, unit_for
from reports.site import charts as site_charts
from reports.site.figures import (
    Facet,
    Group,
    Place,
    TableView,
    band_meanings,
    cell_view,
    facets,
    groups,
    mapping,
    suite_page,
)
from reports.sources.reproduction import count_text, grids, reproduce
from reports.text import terminal

RAW = ("run.json", "samples.jsonl", "fidelity.jsonl", "report.pdf")
"""Files of a result folder that are given to download, beside its CSV files."""


def raw_files(place: Place) -> list[Path]:
    """The files of a run that the site gives to download."""
    folder = place.run.folder
    found = [folder / name for name in RAW] + sorted([*folder.glob("results-*.csv"), *folder.glob("codecs-*.csv")])
    return [path for path in found if path.is_file() and not path.is_symlink()]


def _choices(found: Sequence[Facet], shown: Sequence[tuple[str, Mapping[str, str]]]) -> dict[str, Any]:
    """What the script needs to choose sections by."""
    keys = [facet.key for facet in found]
    return {
        "facets": keys,
        "sections": [
            {"id": name, "facets": {key: values[key] for key in keys if key in values}} for name, values in shown
        ],
    }


def overview(shown: Sequence[Place]) -> dict[str, Any]:
    """The front page: a heat map of each table, and of the means over data sets."""
    sections: list[tuple[Group | TableView, bool]] = []
    for place in shown:
        sections += [(view, False) for view in place.tables]
        sections += [(group, True) for group in groups(place)]
    found = facets([section.facets for section, _ in sections], shown)
    return {
        "places": shown,
        "sections": sections,
        "facets": found,
        "columns": COLUMNS,
        "bands": band_meanings(False),
        "questions": _questions(shown),
        "suite_page": suite_page,
        "data": _choices(found, [(section.id, section.facets) for section, _ in sections]),
    }


def _questions(shown: Sequence[Place]) -> dict[str, str]:
    """Each suite with its question."""
    found: dict[str, str] = {}
    for place in shown:
        told = mapping(place.run.info.get("suites"))
        for suite in place.suites:
            found.setdefault(suite, str(told.get(suite) or ""))
    return found


def suite(suite: str, shown: Sequence[Place]) -> dict[str, Any]:
    """The page of a suite: charts and figures of each of its tables."""
    views = [view for place in shown for view in place.tables if view.table.suite == suite]
    found = facets([view.facets for view in views], shown)
    data = _choices(found, [(view.id, view.facets) for view in views])
    paid_once = [(place, rows) for place in shown if suite in place.suites and (rows := first_calls(place.run))]
    for section, view in zip(data["sections"], views, strict=True):
        section["formats"] = view.formats
        section["charts"] = site_charts.chart_data(view)
    data["sections"] += [_first_section(place, found) for place, _ in paid_once]
    data["specs"] = {"bars": site_charts.bars(), "scatter": site_charts.scatter()}
    data["colours"] = site_charts.COLOURS
    return {
        "suite": suite,
        "question": _questions(shown).get(suite, ""),
        "views": views,
        "facets": found,
        "formats": sorted({name for view in views for name in view.formats}),
        "columns": COLUMNS,
        "bands": band_meanings(False),
        "tables": {view.id: _details(view) for view in views},
        "first_headers": HEADERS,
        "first_title": FIRST_CALLS,
        "first_calls": paid_once,
        "draws": True,
        "data": data,
    }


def _first_section(place: Place, found: Sequence[Facet]) -> dict[str, Any]:
    told = {"run": place.slug} if any(facet.key == "run" for facet in found) else {}
    return {"id": f"first-{place.slug}", "facets": told}


def _details(view: TableView) -> dict[str, Any]:
    """What stands below the charts of a table."""
    time = unit_for(view.table, "wall_ns")
    return {
        "charts": site_charts.chart_data(view),
        "frontiers": [(column, site_charts.frontier_names(view, column)) for column in (READ, SAVE)],
        "rows": [
            {
                "rounds": terminal.rounds_text(row.row),
                "sync": f"{terminal.sync_text(row.row, time)}",
                "cores": terminal.pair_text(row.row, terminal.cores_text),
                "multiple": terminal.pair_text(row.row, terminal.multiple_text),
                "fidelity": terminal.fidelity_text(row.row),
                "reasons": [
                    terminal.failure_text(row.row, failure, operations)
                    for failure, operations in row.row.failures.items()
                ],
                "mapped": [
                    column.is_memory
                    and column.operation in row.row.cells
                    and row.row.cells[column.operation].memory_disagrees
                    for column in COLUMNS
                ],
            }
            for row in view.rows
        ],
        "time_unit": time.name,
        "notes": list(terminal.notes(view.place.run, view.table)),
        "codecs": _codecs(view) if has_codecs(view.table) else [],
        "codec_notes": list(terminal.codec_notes(view.table)) if has_codecs(view.table) else [],
    }


def _codecs(view: TableView) -> list[dict[str, Any]]:
    time = unit_for(view.table, "wall_ns")
    rows = {row.row: row for row in view.rows}
    return [
        {
            "row": rows[effect.row],
            "base": rows[effect.base],
            "save": " ".join(filter(None, terminal.added_text(effect.save_delta_ns, time))),
            "read": " ".join(filter(None, terminal.added_text(effect.read_delta_ns, time))),
            "ratio": "-" if effect.ratio is None else f"{effect.ratio:.2f}",
            "break_even": break_even_text(effect.break_even),
            "unit": time.name,
        }
        for effect in codec_effects(view.table)
    ]


def fidelity_matrices(shown: Sequence[Place]) -> dict[str, Any]:
    """What each variant does to each kind of column."""
    found = []
    for place in shown:
        for number, matrix in enumerate(fidelity.matrices(place.run), 1):
            told = {"run": place.slug, "target": matrix.target, "strings": matrix.strings}
            found.append((f"fidelity-{place.slug}-{number}", place, matrix, told))
    choices = facets([told for *_, told in found], shown)
    return {
        "matrices": found,
        "facets": choices,
        "meaning": fidelity.MEANING,
        "without": [place for place in shown if not place.run.fidelity],
        "formats": sorted({variant.partition("[")[0] for _, _, matrix, _ in found for variant in matrix.labels}),
        "data": _choices(choices, [(name, told) for name, _, _, told in found]),
    }


def method(shown: Sequence[Place]) -> dict[str, Any]:
    """The machines, what is missing and why, and the files."""
    return {
        "runs": [
            {
                "place": place,
                "facts": list(_facts(place)),
                "libraries": sorted(mapping(place.run.info.get("libraries")).items()),
                "command": " ".join(map(str, command))
                if isinstance(command := place.run.info.get("command"), list)
                else "",
                "remarks": remarks(place.run, place.summaries),
                "missing": list(_missing(place)),
                "files": [(path.name, f"{place.files}/{path.name}", path.stat().st_size) for path in raw_files(place)],
            }
            for place in shown
        ],
        "figures": [(name, figure) for name, figure in FIGURES.items()],
    }


def _facts(place: Place) -> Iterator[tuple[str, str]]:
    """What is known of machine and request, in the order in which one asks for it."""
    info = place.run.info
    machine = mapping(info.get("machine"))
    memory = machine.get("memory_bytes")
    told = {
        "machine": machine.get("name"),
        "processor": machine.get("cpu"),
        "cores": machine.get("cores"),
        "memory": f"{memory / 1e9:.0f} GB" if isinstance(memory, int | float) else None,
        "system": ", ".join(str(machine[key]) for key in ("operating_system", "kernel") if machine.get(key)),
        "virtualisation": machine.get("virtualisation"),
        "container": machine.get("container"),
        "Python": machine.get("python"),
        "started": info.get("started"),
        "finished": "did not finish" if info.get("partial") else info.get("finished"),
        "version": f"{info['commit']}{', with uncommitted changes' if info.get('dirty') else ''}"
        if info.get("commit")
        else None,
        "seed of the order": info.get("seed"),
        "rounds asked for": info.get("rounds_asked") or "7, fewer for slow cells",
        "time limit": f"{info['timeout_s']:g} s" if isinstance(info.get("timeout_s"), int | float) else None,
        "processes": info.get("isolate"),
        "least memory told": _least(place),
    }
    yield from ((name, str(value)) for name, value in told.items() if value not in (None, ""))
    for name, described in mapping(info.get("work_dirs")).items():
        facts = mapping(described)
        yield f"working folder {name}", f"{facts.get('filesystem', '?')} on {facts.get('device', '?')}"


def _least(place: Place) -> str | None:
    least = max((view.table.least_bytes for view in place.tables), default=0)
    return f"{least / 1e6:.3g} MB" if least else None


def _missing(place: Place) -> Iterator[dict[str, Any]]:
    """Everything without figures, with its reason."""
    for view in place.tables:
        for row in view.rows:
            for failure, operations in row.row.failures.items():
                yield {
                    "view": view,
                    "row": row,
                    "operations": operations,
                    "words": terminal.failure_text(row.row, failure, operations),
                }


def thesis(shown: Sequence[Place]) -> dict[str, Any]:
    """Each run beside the thesis."""
    parts = []
    for place in shown:
        if place.tables:
            found = reproduce(place.run)
            parts.append(
                {
                    "place": place,
                    "found": found,
                    "count": count_text(found),
                    "grids": list(grids(found)),
                    "addresses": _cell_addresses(place),
                }
            )
    return {"parts": parts}


def _cell_addresses(place: Place) -> dict[Cell, str]:
    """Where the samples of each cell lie."""
    return {
        summary.cell: row.address(operation)
        for view in place.tables
        for row in view.rows
        for operation, summary in row.row.cells.items()
    }


def samples(view: TableView) -> dict[str, Any]:
    """Every execution behind one table, and the commands that repeat it."""
    return {
        "view": view,
        "rows": [
            {
                "row": row,
                "command": repeating_command(view.place.run, view.table, row.row),
                "cells": [(operation, cell_view(row, operation)) for operation in row.row.cells],
            }
            for row in view.rows
        ],
        "figures": FIGURES,
        "raw": [path.name for path in raw_files(view.place) if path.suffix != ".csv"],
    }
