"""The interactive site: a folder of pages that a browser opens from a disk or from GitHub Pages, without any network.

Each page is whole in itself: style, script, figures and the drawing library lie in it, and its security policy lets
nothing else in. Without scripts every figure is still there, as tables. What the pages say is in reports.site_figures
and reports.site_charts; the looks are in reports/site_pages. Runs are hostile text: templates escape everything.
"""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import platformdirs

from bench_runner.records import FIGURES, Run
from reports import fidelity, site_charts, terminal
from reports.compression import READ, SAVE, break_even_text, codec_effects, has_codecs
from reports.findings import FORMATS as THESIS_FORMATS
from reports.first_calls import HEADERS, first_calls
from reports.first_calls import TITLE as FIRST_CALLS
from reports.repeating import repeating_command
from reports.reproduction import Reproduction, both_text, count_text, grids, reproduce, row_of
from reports.site_figures import (
    Facet,
    Group,
    Place,
    TableView,
    band_meanings,
    cell_view,
    facets,
    groups,
    mapping,
    mean_band,
    places,
    suite_page,
)
from reports.tables import COLUMNS, remarks, unit_for

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

MANIFEST = "site.json"
"""Names the files of a site, so that the next one removes what is out of date, and nothing else."""
RAW = ("run.json", "samples.jsonl", "fidelity.jsonl", "report.pdf")
TITLE = "Format Bench"


class SiteError(Exception):
    """The site cannot be made: what is missing or in the way, and what to do."""


@dataclass(frozen=True)
class Link:
    """Something that lies behind the site: its title, and its address from the site's folder."""

    title: str
    address: str


def write_site(runs: Sequence[Run], folder: Path, *, links: Sequence[Link] = (), among_others: bool = False) -> Path:
    """Write the site of `runs` into `folder` and return its front page.

    A site that was there before is replaced. Raises SiteError without the libraries, and when `folder` holds something
    else, unless `among_others` says that this stays beside the site; OSError when the disk refuses.
    """
    _check_libraries()
    before = _files_before(folder)
    if before is None and not among_others and folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise SiteError(f"{folder} is not empty and holds no site of ours; name another folder")
    shown = places(runs)
    pages = dict(_pages(shown, links))
    copies = {f"data/{place.slug}/{path.name}": path for place in shown for path in _raw_files(place)}
    written = {*pages, *copies, MANIFEST}
    for name in (before or set()) - written:
        (folder / name).unlink(missing_ok=True)
    for name, text in pages.items():
        _put(folder / name, text)
    for name, source in copies.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, folder / name)
    _put(folder / MANIFEST, json.dumps({"files": sorted(written - {MANIFEST})}, indent=1) + "\n")
    return folder / "index.html"


def check_pages(runs: Sequence[Run]) -> None:
    """Make the pages of runs and write none. Raises SiteError without the libraries, and whatever odd facts in a run.json
    raise."""
    _check_libraries()
    for _ in _pages(places(runs), ()):
        pass


def missing_library() -> str | None:
    """The distribution that the site lacks here, None when it has all."""
    import importlib.util

    needed = {"jinja2": "jinja2", "vl_convert": "vl-convert-python"}
    return next((name for module, name in needed.items() if importlib.util.find_spec(module) is None), None)


def _check_libraries() -> None:
    missing = missing_library()
    if missing:
        raise SiteError(f"the site needs {missing}, not installed here: pip install -e '.[site]'")


def _files_before(folder: Path) -> set[str] | None:
    """The files of the site that lies there, None where there is none. A manifest may be anybody's: it names nothing
    outside of the folder."""
    try:
        names = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))["files"]
        inside = folder.resolve()
        return {name for name in names if (inside / name).resolve().is_relative_to(inside) and (inside / name).is_file()}
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part")
    try:
        part.write_text(text, encoding="utf-8", newline="\n")
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _raw_files(place: Place) -> list[Path]:
    folder = place.run.folder
    found = [folder / name for name in RAW] + sorted([*folder.glob("results-*.csv"), *folder.glob("codecs-*.csv")])
    return [path for path in found if path.is_file() and not path.is_symlink()]


# --- pages --------------------------------------------------------------------------------------------------------


def _pages(shown: Sequence[Place], links: Sequence[Link]) -> Iterator[tuple[str, str]]:
    """(name, text) of every page."""
    suites = list(dict.fromkeys(suite for place in shown for suite in place.suites))
    navigation = [Link("Overview", "index.html"), *(Link(name, suite_page(name)) for name in suites)]
    navigation += [
        Link("Fidelity", "fidelity.html"),
        Link("Method and machines", "method.html"),
        Link("The thesis", "thesis.html"),
        *links,
    ]
    render = _renderer(navigation)
    yield "index.html", render("overview", "index.html", **_overview(shown))
    for suite in suites:
        yield suite_page(suite), render("suite", suite_page(suite), **_suite(suite, shown))
    yield "fidelity.html", render("fidelity", "fidelity.html", **_fidelity(shown))
    yield "method.html", render("method", "method.html", **_method(shown))
    yield "thesis.html", render("thesis", "thesis.html", **_thesis(shown))
    for place in shown:
        for view in place.tables:
            yield view.samples_address, render("samples", view.samples_address, **_samples(view))
        for group in groups(place):
            yield group.samples_address, render("means", group.samples_address, group=group, columns=COLUMNS)


def _renderer(navigation: Sequence[Link]) -> Callable[..., str]:
    environment = _environment()

    def render(template: str, address: str, **values: Any) -> str:
        scripts = []
        if "data" in values:
            scripts = [*([drawing_library()] if values.get("draws") else []), _asset("site.js")]
        return environment.get_template(f"{template}.html").render(
            site=TITLE,
            navigation=navigation,
            address=address,
            up="../" * address.count("/"),
            style=_asset("site.css"),
            scripts=scripts,
            policy=_policy(scripts),
            **values,
        )

    return render


def _environment() -> Environment:
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("reports", "site_pages"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["breakable"] = _breakable
    environment.filters["mean_band"] = mean_band
    return environment


def _breakable(label: str) -> Markup:
    """A label that may be broken before its settings and between them."""
    from markupsafe import Markup, escape

    text = str(escape(label))
    return Markup(text.replace("[", "<wbr>[").replace(",", ",<wbr>"))


def _asset(name: str) -> str:
    return resources.files("reports").joinpath(f"site_pages/{name}").read_text(encoding="utf-8")


@cache
def drawing_library() -> str:
    """Vega, Vega-Lite and vega-embed as one script that can stand in a page; kept in the user's cache folder, because
    making it takes seconds."""
    import vl_convert

    kept = platformdirs.user_cache_path("format-bench", appauthor=False) / "site" / f"vega-{vl_convert.__version__}.js"
    with suppress(OSError):
        return kept.read_text(encoding="utf-8")
    # Within a string or a regular expression of JavaScript the backslash changes nothing.
    script = str(vl_convert.javascript_bundle()).replace("</script", "<\\/script").replace("<!--", "<\\!--")
    script = script.replace("\r\n", "\n").replace("\r", "\n")
    with suppress(OSError):
        _put(kept, script)
    return script


def _policy(scripts: Sequence[str]) -> str:
    """Nothing is fetched, nothing is sent, and only our own scripts run: they are named by their digests. Styles are
    free, because the drawing library writes some; they can fetch nothing either."""
    digests = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests) or "'none'"
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _choices(found: Sequence[Facet], shown: Sequence[tuple[str, Mapping[str, str]]]) -> dict[str, Any]:
    """What the script needs to choose sections by."""
    keys = [facet.key for facet in found]
    return {
        "facets": keys,
        "sections": [{"id": name, "facets": {key: values[key] for key in keys if key in values}} for name, values in shown],
    }


def _overview(shown: Sequence[Place]) -> dict[str, Any]:
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


def _suite(suite: str, shown: Sequence[Place]) -> dict[str, Any]:
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


def _fidelity(shown: Sequence[Place]) -> dict[str, Any]:
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


def _method(shown: Sequence[Place]) -> dict[str, Any]:
    return {
        "runs": [
            {
                "place": place,
                "facts": list(_facts(place)),
                "libraries": sorted(mapping(place.run.info.get("libraries")).items()),
                "command": " ".join(map(str, command)) if isinstance(command := place.run.info.get("command"), list) else "",
                "remarks": remarks(place.run, place.summaries),
                "missing": list(_missing(place)),
                "files": [(path.name, f"data/{place.slug}/{path.name}", path.stat().st_size) for path in _raw_files(place)],
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
        "version": f"{info['commit']}{', with uncommitted changes' if info.get('dirty') else ''}" if info.get("commit") else None,
        "seed of the order": info.get("seed"),
        "rounds asked for": info.get("rounds_asked") or "7, fewer for slow cells",
        "time limit": f"{info['timeout_s']:g} s" if isinstance(info.get("timeout_s"), int | float) else None,
        "processes": info.get("isolate"),
        "memory under this is not told apart": _least(place),
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


def _thesis(shown: Sequence[Place]) -> dict[str, Any]:
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
                    "addresses": _thesis_addresses(place, found),
                }
            )
    return {"parts": parts}


def _thesis_addresses(place: Place, found: Reproduction) -> dict[str, str]:
    """Where the figure of ours lies whose text stands in a table of the reproduction: by data set, format, column and
    text."""
    fitting = [view for view in place.tables if view.table.conditions == found.conditions]
    views = {view.table.dataset: view for view in reversed(fitting)}
    addresses = {}
    for item in found.comparisons:
        view = views[item.dataset]
        standing = row_of(view.table, THESIS_FORMATS[item.format])
        for row in view.rows:
            if row.row is standing:
                place_in = f"{item.dataset}|{item.format}|{COLUMNS.index(item.column)}|{both_text(item)}"
                addresses[place_in] = row.address(item.column.operation)
    return addresses


def _samples(view: TableView) -> dict[str, Any]:
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
        "raw": [path.name for path in _raw_files(view.place) if path.suffix != ".csv"],
    }
