"""The PDF report: A4 pages of five bar charts for each table, as in the thesis's figure 5.3, and pages of
fidelity.

It differs from the thesis's figure where that misleads: bars carry their intervals and values, the axis is
logarithmic where values span more than a decade, and the colour tells the ratio to the best, not to the mean,
which one slow format spoils. A pure function of stored samples.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench_runner.results.records import Run
from bench_runner.results.statistics import is_apart, is_raw_io, summarise
from reports.analysis import engines
from reports.analysis.codecs import has_codecs
from reports.analysis.cold_start import HEADERS, FirstCalls, first_calls
from reports.analysis.cold_start import TITLE as FIRST_CALLS
from reports.analysis.fidelity import Matrix, matrices
from reports.analysis.columns import Column
from reports.analysis.labels import conditions_text
from reports.analysis.remarks import Remark, remarks
from reports.analysis.tables import COLUMNS, Row, Table, amount_text, tables, unit_for, value_text
from reports.analysis.units import MEGABYTES, Unit
from reports.pdf import codecs as pdf_codecs

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.backends.backend_pdf import PdfPages
    from matplotlib.figure import Figure

A4_INCHES = (8.27, 11.69)
MOST_ROWS = 20
"""Variants that fit on one page; further ones go to a second page of the same table."""
FEWEST_ROWS = 10
"""Room for this many, so that the bars of a short table are no slabs."""
MOST_KINDS = 48
"""Kinds of columns that fit under each other on a page; two targets share one when half as many do."""
MOST_LINES = 15
"""Lines of remarks that fit beside the charts."""
BANDS = (
    (1.0, "#08306b", "best, or tied with it"),
    (2.0, "#2f7fbc", "under 2 times the best"),
    (5.0, "#8fc1de", "2 to 5 times"),
    (20.0, "#fdb863", "5 to 20 times"),
    (float("inf"), "#b35806", "over 20 times"),
)
"""Upper end of the ratio to the best, colour, meaning. From ColorBrewer's blue to brown, which every common
kind of colour blindness keeps apart; the order of lightness also holds in grey at both ends."""
_APART_COLOUR, _TEXT, _FAINT = "#d9d9d9", "#222222", "#777777"
_OUTCOME_COLOURS = {"exact": "#deebf7", "lossy": "#fdb863", "refused": "#bdbdbd", "error": "#b35806"}
_OUTCOME_SIGNS = {"exact": "", "lossy": "~", "refused": "×", "error": "!"}


class ReportError(Exception):
    """The report cannot be made: what is missing, and the command that installs it."""


def write_pdf(run: Run, path: Path) -> Path:
    """Write the report and return its path. Raises ReportError without matplotlib, OSError when the disk
    refuses."""
    try:
        import matplotlib.backends.backend_pdf as backend
        from matplotlib import rc_context
    except ModuleNotFoundError as error:
        raise ReportError(f"the PDF report needs {error.name}; pip install -e '.[pdf]'") from None
    summaries = summarise(run.samples)
    found = tables(run, summaries)
    notes = remarks(run, summaries)
    style: dict[Any, Any] = {
        "font.family": "DejaVu Sans",
        "font.size": 7,
        "text.color": _TEXT,
        "axes.edgecolor": _FAINT,
    }
    title = f"Format Bench {run.info.get('id', '')}"
    with _whole(path) as place, rc_context(style), backend.PdfPages(place, metadata={"Title": title}) as pages:
        for table in found:
            for part in _parts(table):
                _save(pages, _table_page(run, table, part))
            if has_codecs(table):
                _save(pages, _codecs_page(run, table))
            if engines.has_calls(table):
                _save(pages, _calls_page(run, table))
        for group in _fidelity_pages(matrices(run)):
            _save(pages, _fidelity_page(run, group))
        rare = first_calls(run)
        if rare:
            _save(pages, _first_calls_page(run, rare))
        if notes or not found:
            _save(pages, _remarks_page(run, notes))
    return path


@contextmanager
def _whole(path: Path) -> Iterator[Path]:
    """A place to write to that becomes `path` at the end: a full disk or Ctrl-C leaves an older report as it was."""
    part = path.with_name(f".{path.name}.part")
    try:
        yield part
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _save(pages: PdfPages, figure: Figure) -> None:
    pages.savefig(figure)


def _new_page(run: Run, title: str, below: str) -> Figure:
    """An empty A4 page with title and foot. No pyplot: nothing stays open behind."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=A4_INCHES)
    figure.text(0.05, 0.972, title, fontsize=13, fontweight="bold", va="top")
    figure.text(0.05, 0.950, below, fontsize=8, color=_FAINT, va="top")
    figure.text(0.05, 0.014, "\n".join(_foot(run)), fontsize=6, color=_FAINT, va="bottom", linespacing=1.4)
    return figure


def _foot(run: Run) -> list[str]:
    info = run.info
    machine = _mapping(info.get("machine"))
    memory = machine.get("memory_bytes")
    facts = [
        str(info.get("id", run.folder.name)),
        str(machine.get("name", "")),
        str(machine.get("cpu", "")),
        f"{machine['cores']} cores" if machine.get("cores") else "",
        f"{memory / 1e9:.0f} GB" if memory else "",
        str(machine.get("kernel", "")),
        f"on {machine['virtualisation']}" if machine.get("virtualisation") not in (None, "none") else "",
    ]
    dirty = " with uncommitted changes" if info.get("dirty") else ""
    commit = f"commit {str(info['commit'])[:12]}{dirty}" if info.get("commit") else ""
    folders = [
        f"{name}: {folder.get('filesystem', '?')} on {folder.get('device', '?')}"
        for name, folder in _mapping(info.get("work_dirs")).items()
        if isinstance(folder, dict)
    ]
    made = [
        str(info.get("started", ""))[:16].replace("T", " "),
        commit,
        f"seed {info['seed']}" if "seed" in info else "",
        f"rounds asked for: {info['rounds_asked']}" if info.get("rounds_asked") else "",
        f"working folder {', '.join(folders)}" if folders else "",
    ]
    versions = {"python": machine.get("python"), **_mapping(info.get("libraries"))}
    named = [f"{name} {version}" for name, version in versions.items() if version]
    lines = [" · ".join(filter(None, facts)), " · ".join(filter(None, made)), " · ".join(named)]
    return [part for line in lines if line for part in textwrap.wrap(line, 170)]


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


# --- one table: five charts ---------------------------------------------------------------------------------------


def _parts(table: Table) -> list[Sequence[Row]]:
    rows = [row for row in table.rows if not is_raw_io(row.variant)]
    return [rows[start : start + MOST_ROWS] for start in range(0, len(rows), MOST_ROWS)]


def _table_page(run: Run, table: Table, rows: Sequence[Row]) -> Figure:
    title = f"{table.suite}: {table.dataset}"
    data = _mapping(_mapping(run.info.get("datasets")).get(table.dataset))
    named = f" ({data['title']})" if data.get("title") not in (None, table.dataset) else ""
    below = f"{amount_text(run, table)}{named}; {conditions_text(table.conditions)}; machine {table.machine}"
    figure = _new_page(run, title, below)
    grid = figure.add_gridspec(3, 2, left=0.20, right=0.965, top=0.905, bottom=0.105, hspace=0.24, wspace=0.10)
    places = (grid[0, 0], grid[0, 1], grid[1, 0], grid[2, 0], grid[2, 1])
    for column, place in zip(COLUMNS, places, strict=True):
        axes = figure.add_subplot(place)
        _chart(axes, table, rows, column)
        _name_rows(axes, rows, place.colspan.start == 0)
    _explain(figure.add_subplot(grid[1, 1]), table, rows)
    return figure


def _codecs_page(run: Run, table: Table) -> Figure:
    below = f"{amount_text(run, table)}; {conditions_text(table.conditions)}; machine {table.machine}"
    figure = _new_page(run, f"{table.suite}: {table.dataset}, what a codec costs and saves", below)
    pdf_codecs.draw(figure, table)
    return figure


def _name_rows(axes: Axes, rows: Sequence[Row], shown: bool) -> None:
    """Labels beside the left chart of a line; long ones take two lines of smaller type."""
    axes.set_yticks(range(len(rows)))
    labels = ["\n".join(textwrap.wrap(_spaced(row.label), 28, break_on_hyphens=False)[:2]) for row in rows]
    axes.set_yticklabels(labels if shown else [""] * len(rows))
    axes.tick_params(axis="y", length=0)
    for tick in axes.get_yticklabels():
        tick.set_fontsize(4.8 if "\n" in tick.get_text() else 6.8)


def _spaced(label: str) -> str:
    return label.replace("[", " [")


def _chart(axes: Axes, table: Table, rows: Sequence[Row], column: Column) -> None:
    unit = MEGABYTES if column.is_memory else unit_for(table, column.figure)
    values = {row.variant: _value(table, row, column, unit) for row in rows}
    yardstick = next((row.interval(column) for row in table.rows if is_raw_io(row.variant)), None)
    present = [value for value in values.values() if value > 0]
    drawn = yardstick is not None and yardstick.median > 0 and not column.is_memory
    compared = [*present, yardstick.median / unit.scale] if yardstick and drawn else present
    logarithmic = bool(compared) and max(compared) > 10 * min(compared)
    _set_axis(axes, compared, logarithmic)
    for place, row in enumerate(rows):
        _bar(axes, place, table, row, column, unit)
    if yardstick and drawn:
        axes.axvline(yardstick.median / unit.scale, color=_FAINT, linewidth=0.8, linestyle=(0, (4, 3)), zorder=3)
    axes.set_ylim(max(len(rows), FEWEST_ROWS) - 0.4, -0.6)
    scale = ", logarithmic" if logarithmic else ""
    axes.set_title(f"{column.title} ({unit.name}{scale})", fontsize=8.5, fontweight="bold", loc="left", pad=4)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="x", color="#eeeeee", linewidth=0.6, zorder=0)
    axes.set_axisbelow(True)
    axes.tick_params(axis="x", labelsize=6, colors=_FAINT)


def _value(table: Table, row: Row, column: Column, unit: Unit) -> float:
    interval = row.interval(column)
    if interval is None:
        return 0.0
    return max(interval.median, table.least_bytes if column.is_memory else 0) / unit.scale


def _set_axis(axes: Axes, values: Sequence[float], logarithmic: bool) -> None:
    """Leave room on the right for the value labels."""
    from matplotlib.ticker import FuncFormatter

    if not values:
        axes.set_xlim(0, 1)
        axes.set_xticks([])
        return
    if not logarithmic:
        axes.set_xlim(0, max(values) * 1.28)
        return
    low, high = min(values) / 2, max(values)
    axes.set_xscale("log")
    axes.set_xlim(low, high * (high / low) ** 0.32)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: _tick(value)))
    axes.minorticks_off()


def _tick(value: float) -> str:
    return f"{value:,.0f}" if value >= 1 else f"{value:g}"


def _bar(axes: Axes, place: int, table: Table, row: Row, column: Column, unit: Unit) -> None:
    interval = row.interval(column)
    if interval is None:
        axes.text(
            0.01,
            place,
            _why_none(row, column),
            transform=axes.get_yaxis_transform(),
            va="center",
            fontsize=6,
            color=_FAINT,
            style="italic",
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.6},
            zorder=5,
        )
        return
    value = _value(table, row, column, unit)
    left = axes.get_xlim()[0]
    unseen = column.is_memory and interval.median < table.least_bytes
    hatch = "////" if is_apart(row.variant) else None
    axes.barh(
        place,
        value - left,
        left=left,
        height=0.72,
        color=_colour(table, row, column),
        hatch=hatch,
        edgecolor="white",
        linewidth=0,
        alpha=0.4 if unseen else 1,
        zorder=2,
    )
    ends = [end / unit.scale for end in interval.spread]
    reach = value
    if not unseen and ends[1] > ends[0]:
        axes.plot(ends, [place, place], color="black", linewidth=1.0, zorder=4, solid_capstyle="butt")
        axes.plot(ends, [place, place], color="black", marker="|", markersize=4.5, linewidth=0, zorder=4)
        reach = max(value, ends[1])
    text = value_text(table, row, column, unit) or ""
    axes.annotate(
        text + table.mark(column, row.variant).replace("=", " ="),
        (reach, place),
        xytext=(4, 0),
        textcoords="offset points",
        va="center_baseline",
        fontsize=6.5,
        zorder=5,
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.6},
    )


def _why_none(row: Row, column: Column) -> str:
    summary = row.cells.get(column.operation)
    if summary is None:
        return "not run"
    return summary.failures[0].kind if summary.failures else "not counted"


def _colour(table: Table, row: Row, column: Column) -> str:
    ratio = table.ranks[column].get(row.variant)
    if ratio is None:
        return _APART_COLOUR
    if ratio.tied:
        return BANDS[0][1]
    return next(colour for end, colour, _ in BANDS if ratio.ratio <= end)


def _explain(axes: Axes, table: Table, rows: Sequence[Row]) -> None:
    """The sixth place: legend, rounds, and what has no figures or loses something."""
    from matplotlib.patches import Patch

    axes.axis("off")
    patches = [Patch(facecolor=colour, label=meaning) for _, colour, meaning in BANDS]
    if table.few_rounds:
        patches[0].set_label("the lowest (no verdict)")
    if any(is_apart(row.variant) for row in rows):
        patches.append(
            Patch(facecolor=_APART_COLOUR, hatch="////", edgecolor="white", label="not ranked: another result")
        )
    axes.legend(
        handles=patches,
        loc="upper left",
        frameon=False,
        fontsize=7,
        bbox_to_anchor=(-0.02, 1.04),
        title="ratio to the best",
        title_fontsize=7.5,
        alignment="left",
        labelspacing=0.35,
    )
    lines = []
    for paragraph in _paragraphs(table, rows):
        lines += textwrap.wrap(textwrap.shorten(paragraph, 180, placeholder=" ..."), 64, subsequent_indent="   ")
    if len(lines) > MOST_LINES:
        lines = [*lines[: MOST_LINES - 1], "   ... more on the terminal: format-bench report"]
    axes.text(0, 0.60, "\n".join(lines), fontsize=6.2, va="top", linespacing=1.35, transform=axes.transAxes)


def _paragraphs(table: Table, rows: Sequence[Row]) -> list[str]:
    whisker = "minimum to maximum (under 5 rounds: no verdicts)" if table.few_rounds else "95 % interval of the median"
    few = "" if table.few_rounds else ", minimum to maximum under 5 rounds"
    marks = "" if table.few_rounds else " * best, = tied."
    found = [f"Bars: medians. Whiskers: {whisker}{few}.{marks} Dashed: raw I/O, a plain write and read."]
    if table.least_bytes:
        found.append("Pale memory bars: below what the probe of this run can tell.")
    found.append(f"Counted rounds: {_rounds(rows)}.")
    for row in rows:
        for failure, operations in row.failures.items():
            found.append(f"{row.label}: {' and '.join(operations)} {failure.kind}: {failure.reason}")
    found += [f"{row.label} is lossy: {'; '.join(row.losses)}" for row in rows if row.losses]
    return found


def _rounds(rows: Sequence[Row]) -> str:
    groups: dict[int, list[str]] = {}
    for row in rows:
        if row.measured:
            groups.setdefault(min(number for number in row.rounds if number), []).append(row.label)
    if not groups:
        return "none"
    most = max(groups, key=lambda number: len(groups[number]))
    others = [f"{number} for {', '.join(labels)}" for number, labels in sorted(groups.items()) if number != most]
    return ", ".join([str(most), *others])


# --- fidelity -----------------------------------------------------------------------------------------------------


def _fidelity_pages(found: Sequence[Matrix]) -> list[list[tuple[Matrix, tuple[str, ...]]]]:
    """Which matrices, with which of their kinds, share a page: two short ones, or one."""
    pages: list[list[tuple[Matrix, tuple[str, ...]]]] = []
    for matrix in found:
        for start in range(0, len(matrix.kinds), MOST_KINDS):
            kinds = matrix.kinds[start : start + MOST_KINDS]
            before = pages[-1] if pages else []
            if len(before) == 1 and max(len(kinds), len(before[0][1])) <= MOST_KINDS // 2:
                before.append((matrix, kinds))
            else:
                pages.append([(matrix, kinds)])
    return pages


def _fidelity_page(run: Run, parts: Sequence[tuple[Matrix, tuple[str, ...]]]) -> Figure:
    figure = _new_page(
        run, "what comes back", "each kind of column, without nulls (left half) and with nulls (right half)"
    )
    top, bottom, labels, row = 0.925, 0.095, 0.125, 0.0165
    room = (top - bottom) / len(parts) - labels
    for matrix, kinds in parts:
        height = min(room, row * len(kinds))
        _matrix(figure.add_axes((0.19, top - labels - height, 0.775, height)), matrix, kinds)
        top -= labels + height
    _fidelity_legend(figure, [matrix for matrix, _ in parts])
    return figure


def _matrix(axes: Axes, matrix: Matrix, kinds: Sequence[str]) -> None:
    from matplotlib.patches import Rectangle

    variants = list(matrix.labels)
    for across, variant in enumerate(variants):
        for down, kind in enumerate(kinds):
            for half, verdict in enumerate(matrix.cells.get((variant, kind), (None, None))):
                outcome = verdict.outcome if verdict else ""
                left = across + half * 0.47
                axes.add_patch(Rectangle((left, down), 0.45, 0.88, facecolor=_OUTCOME_COLOURS.get(outcome, "white")))
                if not _OUTCOME_SIGNS.get(outcome):
                    continue
                colour = "white" if outcome == "error" else _TEXT
                axes.text(
                    left + 0.225,
                    down + 0.46,
                    _OUTCOME_SIGNS[outcome],
                    fontsize=6.5,
                    ha="center",
                    va="center",
                    color=colour,
                    fontweight="bold",
                )
    axes.set_xlim(0, max(len(variants), 1))
    axes.set_ylim(len(kinds), 0)
    axes.set_xticks([place + 0.46 for place in range(len(variants))])
    axes.set_xticklabels(
        [_spaced(matrix.labels[name]) for name in variants],
        rotation=60,
        ha="left",
        va="bottom",
        rotation_mode="anchor",
        fontsize=6.5,
    )
    axes.set_yticks([place + 0.45 for place in range(len(kinds))])
    names = [f"{kind} †" if kind in matrix.target_alone else kind for kind in kinds]
    axes.set_yticklabels(names, fontsize=6.5)
    axes.xaxis.tick_top()
    axes.tick_params(length=0, pad=2)
    axes.spines[:].set_visible(False)
    axes.text(
        -0.18,
        1.01,
        matrix.title.replace(", ", "\n"),
        transform=axes.transAxes,
        fontsize=8.5,
        fontweight="bold",
        va="bottom",
        ha="left",
    )


def _fidelity_legend(figure: Figure, found: Sequence[Matrix]) -> None:
    from matplotlib.patches import Patch

    meanings = {
        "exact": "exact",
        "lossy": "~  lossy, as declared",
        "refused": "×  refused with an error",
        "error": "!  wrong: a change without a bound",
    }
    patches = [Patch(facecolor=_OUTCOME_COLOURS[name], label=text) for name, text in meanings.items()]
    figure.legend(handles=patches, loc="lower left", bbox_to_anchor=(0.04, 0.066), ncols=4, frameon=False, fontsize=7)
    if any(matrix.target_alone for matrix in found):
        note = "† the target alone loses something already, without any format; 'report RUN --fidelity' says what"
        figure.text(0.05, 0.066, note, fontsize=6, color=_FAINT, va="top")


def _first_calls_page(run: Run, rows: Sequence[FirstCalls]) -> Figure:
    figure = _new_page(run, "the first call", textwrap.fill(f"{FIRST_CALLS}; medians over data sets and rounds", 110))
    lefts = (0.05, *(0.40 + 0.11 * place for place in range(len(HEADERS))))
    top, height = 0.91, 0.018
    for line, texts in enumerate((("format", *HEADERS), *((_spaced(row.label), *row.texts) for row in rows))):
        for place, (left, text) in enumerate(zip(lefts, texts, strict=True)):
            figure.text(
                left,
                top - line * height,
                text,
                fontsize=7,
                ha="left" if place == 0 else "right",
                va="top",
                fontweight="bold" if line == 0 else "normal",
            )
    return figure


def _calls_page(run: Run, table: Table) -> Figure:
    below = f"{table.amount}; {conditions_text(table.conditions)}; machine {table.machine}"
    figure = _new_page(run, f"{table.suite}: {table.dataset}, the format and the call", below)
    lines: list[tuple[str, ...]] = [("", *engines.HEADERS)]
    for column in (engines.SAVE, engines.READ):
        found = engines.calls_of(table, column)
        lines += [(column.operation if place == 0 else "", *engines.texts(calls)) for place, calls in enumerate(found)]
    top, height = 0.91, 0.018
    for number, texts in enumerate(lines):
        for left, text in zip((0.05, 0.10, 0.18, 0.42, 0.66, 0.82), texts, strict=True):
            weight = "bold" if number == 0 else "normal"
            figure.text(left, top - number * height, text, fontsize=7, va="top", fontweight=weight)
    words = [*engines.answers(table), engines.EXPLANATION]
    text = "\n".join(textwrap.fill(paragraph, 120) for paragraph in words)
    figure.text(0.05, top - (len(lines) + 1) * height, text, fontsize=8, va="top", linespacing=1.6)
    return figure


def _remarks_page(run: Run, notes: Sequence[Remark]) -> Figure:
    figure = _new_page(run, "what to be careful of", f"{len(run.samples)} samples")
    lines = []
    for note in notes:
        lines += textwrap.wrap(f"- {note.text}", 105, subsequent_indent="  ")
        if note.remedy:
            lines += textwrap.wrap(f"what to do: {note.remedy}", 105, initial_indent="  ", subsequent_indent="  ")
    if not run.samples:
        lines.append("no sample was stored: nothing to show")
    figure.text(0.05, 0.92, "\n".join(lines), fontsize=8, va="top", linespacing=1.6)
    return figure
