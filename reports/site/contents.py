"""Collect the content of each page of the site: the values for its template, and the data for its script."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench_runner.results.information import READ, SAVE
from bench_runner.results.records import FIGURES, Cell
from reports.analysis import engines, fidelity, words
from reports.analysis.access.uses import USES_MEANING, uses_of
from reports.analysis.codecs import added_text, break_even_text, codec_effects, codec_notes
from reports.analysis.columns import READ_TIME, SAVE_TIME
from reports.analysis.machines import TITLE as TITLE_OF_MACHINES
from reports.analysis.machines import machines_of
from reports.analysis.repeat_command import command_text, repeating_command
from reports.analysis.sections import Elsewhere, RunSection, TableSection, sections_of, sections_of_run
from reports.analysis.tables import unit_for
from reports.site import charts as site_charts
from reports.site import lines as site_lines
from reports.site.addresses import slug, suite_page
from reports.site.cells import cell_view
from reports.site.choices import Facet, facets
from reports.site.overall import Group, groups
from reports.site.views import Place, TableView, band_meanings
from reports.sources.judgement import count_text
from reports.sources.reproduction import grids, reproduce

RAW = ("run.json", "samples.jsonl", "fidelity.jsonl", "report.pdf")
"""Files of a result folder that a reader can download, in addition to its CSV files."""
FAST_ROUNDS, EXTRA_ROUNDS = 9, 2
"""Default number of rounds of fast operations, and of rounds that replace unusable samples. Reports may not import
these constants of bench_runner.run, so a test compares them."""
RunRenderer = Callable[[Place, str], dict[str, Any] | None]
"""A function that returns the values of a run's section for the page of a suite. It returns None if the section has
nothing about the suite."""
CSV = ("results", "codecs", "operations")
"""Prefixes of the names of CSV files."""


def raw_files(place: Place) -> list[Path]:
    """Return the files of a run that a reader of the site can download."""
    folder = place.run.folder
    found = [folder / name for name in RAW] + sorted(path for kind in CSV for path in folder.glob(f"{kind}-*.csv"))
    return [path for path in found if path.is_file() and not path.is_symlink()]


def _choices(found: Sequence[Facet], shown: Sequence[tuple[str, Mapping[str, str]]]) -> dict[str, Any]:
    """Return the data that the page's script needs to show the selected sections."""
    keys = [facet.key for facet in found]
    return {
        "facets": keys,
        "sections": [
            {"id": name, "facets": {key: values[key] for key in keys if key in values}} for name, values in shown
        ],
    }


def overview(shown: Sequence[Place]) -> dict[str, Any]:
    """Return the values of the front page: a heat map of each table, and a heat map of the means over data sets."""
    sections: list[tuple[Group | TableView, bool]] = []
    for place in shown:
        sections += [(view, False) for view in place.tables]
        sections += [(group, True) for group in groups(place)]
    found = facets([section.facets for section, _ in sections], shown)
    return {
        "places": shown,
        "sections": sections,
        "facets": found,
        "bands": band_meanings(view for place in shown for view in place.tables),
        "questions": _questions(shown),
        "suite_page": suite_page,
        "data": _choices(found, [(section.id, section.facets) for section, _ in sections]),
    }


def _questions(shown: Sequence[Place]) -> dict[str, str]:
    found: dict[str, str] = {}
    for place in shown:
        for suite in place.suites:
            found.setdefault(suite, place.run.info.suites.get(suite, ""))
    return found


def suite(suite: str, shown: Sequence[Place]) -> dict[str, Any]:
    """Return the values of a suite's page: charts and figures of its tables, and sections about its runs."""
    views = [view for place in shown for view in place.tables if view.table.suite == suite]
    found = facets([view.facets for view in views], shown)
    data = _choices(found, [(view.id, view.facets) for view in views])
    of_runs = [each for place in shown if suite in place.suites for each in _run_sections(place, suite)]
    if side_by_side := list(machines_of((view.place.run, view.table) for view in views)):
        # The section belongs to several runs, so it is always shown.
        told = {"id": "machines", "title": TITLE_OF_MACHINES, "template": "run-figures.html", "leads": False}
        of_runs.append({**told, "place": None, "figures": side_by_side})
    lines = [group for told in of_runs for group in told.get("groups", ())]
    for section, view in zip(data["sections"], views, strict=True):
        section["formats"] = view.formats
        section["charts"] = site_charts.chart_data(view)
    by_run = any(facet.key == "run" for facet in found)
    data["sections"] += [
        {"id": told["id"], "facets": {"run": told["place"].slug} if by_run and told["place"] else {}}
        for told in of_runs
    ]
    chosen = _choices(found, [(each.id, each.facets) for each in lines])["sections"]
    for section, group in zip(chosen, lines, strict=True):
        data["sections"].append({**section, "formats": group.formats, "charts": {"lines": group.charts}})
    data["specs"] = {"bars": site_charts.bars(), "scatter": site_charts.scatter(), "lines": site_lines.specification()}
    data["colours"] = site_charts.COLOURS
    data["line_colours"] = [f"line-{style}" for style in site_lines.STYLES]
    return {
        "suite": suite,
        "question": _questions(shown).get(suite, ""),
        "views": views,
        "facets": found,
        "formats": sorted({name for view in views for name in view.formats}),
        "bands": band_meanings(views),
        "sections": {view.id: _table_sections(view) for view in views},
        "of_runs": of_runs,
        "draws": True,
        "data": data,
    }


def _table_sections(view: TableView) -> list[dict[str, Any]]:
    """Return the sections of a table for the page of its suite, each with the name of its template."""
    return [
        {
            "id": f"{view.id}-{slug(section.name)}",
            "title": section.title,
            "template": f"section-{slug(section.name)}.html",
            "place": view.place,
            **values,
        }
        for section in sections_of(view.table)
        if (values := _of_table(section, view)) is not None
    ]


def _of_table(section: TableSection, view: TableView) -> dict[str, Any] | None:
    """Return the values of a section for its template, or None if the section is shown elsewhere."""
    if section.figures is not None:
        return {"template": "table-figures.html", "figures": list(section.figures(view.place.run, view.table))}
    renderer = OF_TABLE[section.name]
    return None if isinstance(renderer, Elsewhere) else renderer(view)


def _run_sections(place: Place, suite: str) -> list[dict[str, Any]]:
    return [
        {
            "id": f"{slug(section.name)}-{place.slug}",
            "title": section.title,
            "template": f"section-{slug(section.name)}.html",
            "leads": section.leads,
            "place": place,
            **values,
        }
        for section in sections_of_run(place.contents)
        if (values := _of_run(section, place, suite)) is not None
    ]


def _of_run(section: RunSection, place: Place, suite: str) -> dict[str, Any] | None:
    """Return the values of a section. Return None if the section is shown elsewhere or has nothing about the suite."""
    if section.figures is not None:
        found = [each for each in section.figures(place.contents) if each.suite in ("", suite)]
        return {"template": "run-figures.html", "figures": found} if found else None
    renderer = OF_RUN[section.name]
    return None if isinstance(renderer, Elsewhere) else renderer(place, suite)


def _tables(view: TableView) -> dict[str, Any]:
    """Return the charts of a table, and all its figures."""
    run, time = view.place.run, unit_for(view.table, "wall_ns")
    operations = view.columns.operations
    # A header cannot name many operations. Then it names only the operations that a table shows first. The samples
    # pages name all operations.
    beside = operations if len(operations) <= words.MOST_BESIDE else view.columns.main
    return {
        "charts": site_charts.chart_data(view),
        "rows": [
            {
                "rounds": words.rounds_text(row.row, operations),
                "sync": words.sync_text(row.row, time),
                "cores": words.each_text(row.row, beside, words.cores_text),
                "multiple": words.each_text(row.row, beside, words.multiple_text),
                "fidelity": words.fidelity_text(row.row),
                "reasons": [
                    words.failure_text(run, row.row, failure, operations)
                    for failure, operations in row.row.failures.items()
                ],
                "mapped": {
                    column: column.is_memory
                    and column.operation in row.row.cells
                    and row.row.cells[column.operation].memory_disagrees
                    for column in view.columns
                },
            }
            for row in view.rows
        ],
        "operations": words.titles(run, beside, "/"),
        "verifying": next((name for name in operations if not view.columns.writes(name)), ""),
        "saves": SAVE in operations,
        "time_unit": time.name,
        "notes": list(words.notes(run, view.table)),
    }


def _codecs(view: TableView) -> dict[str, Any]:
    time = unit_for(view.table, "wall_ns")
    rows = {row.row: row for row in view.rows}
    effects = [
        {
            "row": rows[effect.row],
            "base": rows[effect.base],
            "texts": (
                (SAVE, " ".join(filter(None, added_text(effect.save_delta_ns, time)))),
                (READ, " ".join(filter(None, added_text(effect.read_delta_ns, time)))),
                (SAVE, "-" if effect.ratio is None else f"{effect.ratio:.2f}"),
                (READ, break_even_text(effect.break_even)),
            ),
        }
        for effect in codec_effects(view.table)
    ]
    return {"effects": effects, "time_unit": time.name, "notes": list(codec_notes(view.table))}


def _calls(view: TableView) -> dict[str, Any]:
    rows = {row.row: row for row in view.rows}
    lines = [
        (column.operation, calls.format, rows[calls.fastest].address(column.operation), engines.texts(calls)[1:])
        for column in (SAVE_TIME, READ_TIME)
        for calls in engines.calls_of(view.table, column)
    ]
    return {
        "headers": engines.HEADERS[1:],
        "lines": lines,
        "answers": list(engines.answers(view.table)),
        "explanation": engines.EXPLANATION,
    }


def _uses(view: TableView) -> dict[str, Any]:
    return {"uses": list(uses_of(view.place.run, view.table)), "meaning": USES_MEANING}


def _throughput(place: Place, suite: str) -> dict[str, Any] | None:
    """Return charts of throughput by the share of row groups that a query reads, for the suite's tables. Return None if
    there are none."""
    found = site_lines.throughput_groups_of(place, suite, _cell_addresses(place))
    return {"groups": found} if found else None


def _lines(place: Place, suite: str) -> dict[str, Any] | None:
    """Return the charts over a parameter for the suite's tables, or None if the suite has no such charts."""
    found = site_lines.groups_of(place, suite, _cell_addresses(place))
    return {"groups": found} if found else None


OF_TABLE: Mapping[str, Callable[[TableView], dict[str, Any]] | Elsewhere] = {
    "tables": _tables,
    "further operations": Elsewhere("each operation has its charts and columns next to those of the table"),
    "uses": _uses,
    "codecs": _codecs,
    "calls": _calls,
}
"""The function that returns the template values of each table section. Sections that consist of `Figures` (tables of
numbers) need no entry."""
OF_RUN: Mapping[str, RunRenderer | Elsewhere] = {
    "throughput": _throughput,
    "lines": _lines,
    "means": Elsewhere("on the front page, index.html, next to their tables"),
    "fidelity": Elsewhere("on a separate page, fidelity.html"),
    "legend": Elsewhere("on each page that needs it, under 'How to read this'"),
    "remarks": Elsewhere("on the page of methods and machines, method.html"),
}
"""The function that returns the template values of each run section. Sections that consist of `Figures` (tables of
numbers) need no entry."""


def fidelity_matrices(shown: Sequence[Place]) -> dict[str, Any]:
    """Return the values of the fidelity page: what each variant does to each kind of column."""
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
        "formats": sorted({variant.format_name for _, _, matrix, _ in found for variant in matrix.labels}),
        "data": _choices(choices, [(name, told) for name, _, _, told in found]),
    }


def method(shown: Sequence[Place]) -> dict[str, Any]:
    """Return the values of the method page: machines, the reasons for missing figures, and files."""
    return {
        "runs": [
            {
                "place": place,
                "facts": list(_facts(place)),
                "libraries": sorted(place.run.info.libraries.items()),
                "command": command_text(place.run.info.command),
                "remarks": place.contents.remarks,
                "missing": list(_missing(place)),
                "files": [(path.name, f"{place.files}/{path.name}", path.stat().st_size) for path in raw_files(place)],
            }
            for place in shown
        ],
        "figures": [(name, figure) for name, figure in FIGURES.items()],
        "most_rounds": FAST_ROUNDS + EXTRA_ROUNDS,
    }


def _facts(place: Place) -> Iterator[tuple[str, str]]:
    """Yield (name, value) pairs that describe the run's machine, the run, and what the user requested."""
    info, machine = place.run.info, place.run.info.machine
    told = {
        "machine": machine.name,
        "processor": machine.cpu,
        "cores": machine.cores,
        "memory": f"{machine.memory_bytes / 1e9:.0f} GB" if machine.memory_bytes else None,
        "system": ", ".join(filter(None, (machine.operating_system, machine.kernel))),
        "virtualisation": machine.virtualisation,
        "container": machine.container,
        "Python": machine.python,
        "started": info.started,
        "finished": "did not finish" if info.partial else info.finished,
        "version": f"{info.commit}{', with uncommitted changes' if info.dirty else ''}" if info.commit else None,
        "seed of the order": info.seed,
        "rounds asked for": info.rounds_asked or f"default: {FAST_ROUNDS} for fast operations, fewer for slow ones",
        "time limit": f"{info.timeout_s:g} s" if info.timeout_s is not None else None,
        "processes": info.isolate,
        "smallest memory shown": _least(place),
    }
    yield from ((name, str(value)) for name, value in told.items() if value not in (None, ""))
    for name, folder in info.work_dirs.items():
        yield f"working folder {name}", f"{folder.filesystem or '?'} on {folder.device or '?'}"


def _least(place: Place) -> str | None:
    least = max((view.table.least_bytes for view in place.tables), default=0)
    return f"{least / 1e6:.3g} MB" if least else None


def _missing(place: Place) -> Iterator[dict[str, Any]]:
    """Yield every operation of a table that has no figures, with the reason."""
    for view in place.tables:
        for row in view.rows:
            for failure, operations in row.row.failures.items():
                yield {
                    "view": view,
                    "row": row,
                    "operations": operations,
                    "words": words.failure_text(place.run, row.row, failure, operations),
                }


def thesis(shown: Sequence[Place]) -> dict[str, Any]:
    """Return the values of the page that compares each run with the thesis."""
    parts = []
    for place in shown:
        if place.tables:
            found = reproduce(place.run)
            parts.append(
                {
                    "place": place,
                    "found": found,
                    "count": count_text([item.verdict for item in found.judgements]),
                    "grids": list(grids(found)),
                    "addresses": _cell_addresses(place),
                }
            )
    return {"parts": parts}


def _cell_addresses(place: Place) -> dict[Cell, str]:
    """Return the address of the page with each cell's samples. A cell is one operation, variant and data set under one
    set of conditions."""
    return {
        summary.cell: row.address(operation)
        for view in place.tables
        for row in view.rows
        for operation, summary in row.row.cells.items()
    }


def samples(view: TableView) -> dict[str, Any]:
    """Return the values of a samples page: every execution behind one table, and the commands that repeat the
    measurements."""
    return {
        "view": view,
        "rows": [
            {
                "row": row,
                "command": repeating_command(view.place.run, view.table, row.row),
                "cells": [
                    (operation, view.place.run.info.operation(operation), cell_view(row, operation))
                    for operation in row.row.cells
                ],
            }
            for row in view.rows
        ],
        "figures": FIGURES,
        "raw": [path.name for path in raw_files(view.place) if path.suffix != ".csv"],
    }
