"""Who wins at what in the reference run, as a table for docs/findings.md: names, figures, intervals of its samples.

It knows the reference run and how reports rank; it writes no page.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence

from rich.console import Console

from bench_runner.results.records import Run
from bench_runner.results.reference import PLACE
from bench_runner.results.statistics import Ratio, summarise
from format_bench import recommend
from reports.analysis import engines
from reports.analysis.access.uses import NO_VERDICT
from reports.analysis.columns import READ_PEAK, READ_TIME, SAVE_PEAK, SAVE_TIME, SIZE, Column
from reports.analysis.tables import Table, unit_of, value_text
from reports.analysis.units import number_text
from reports.sources.reproduction import reproduction_markdown
from reports.text.recommendation import show
from tests import reference_tables
from tests.reference_tables import tables_of

HEADS = {
    READ_TIME: "reads fastest",
    SAVE_TIME: "saves fastest",
    SIZE: "smallest",
    READ_PEAK: "least memory to read",
    SAVE_PEAK: "least memory to save",
}
MOST_TIED = 3
IN_THESIS = {"tabular": "Tables", "image": "Images", "compression": "Codecs"}
ANSWERED = "python main.py recommend --from reference --datasets core"


def wins() -> str:
    """One row for each table without a codec: the best, who is tied with it, and who comes next by how much."""
    return _wins("tabular")


def image_wins() -> str:
    """The same of images."""
    return _wins("image")


def codec_wins() -> str:
    """The same of every format with each of its codecs and without."""
    return _wins("compression", "codecs")


def _wins(suite: str, track: str = "plain") -> str:
    lines = [f"| data | {' | '.join(HEADS.values())} |", f"|{' --- |' * (1 + len(HEADS))}"]
    for table in _tables(suite):
        if table.conditions.track == track:
            cells = [_winner(table, column) for column in HEADS]
            lines.append(f"| `{table.dataset}`, {table.amount} | {' | '.join(cells)} |")
    return "\n" + "\n".join(lines) + "\n"


def format_or_call() -> str:
    """What a call makes of the time and what a format, for each table and operation of the suite `engines`."""
    heads = ("data", "threads", "operation", "slowest call over fastest, of a format", "tied", "farthest formats")
    lines = [f"| {' | '.join(heads)} |", f"|{' --- |' * len(heads)}"]
    for table in _tables(engines.SUITE):
        threads = "the libraries' own" if table.conditions.threads == "default" else "1"
        for column in (SAVE_TIME, READ_TIME):
            if found := engines.calls_of(table, column):
                told = (f"`{table.dataset}`", threads, column.operation, *_spread(found), _farthest(found))
                lines.append(f"| {' | '.join(told)} |")
    return "\n" + "\n".join(lines) + "\n"


def _spread(found: Sequence[engines.Calls]) -> tuple[str, str]:
    """How far the calls of a format lie apart, least and most, and of which formats that cannot be told."""
    several = [(calls.by_call, calls.format) for calls in found if calls.by_call is not None]
    # Medians may have another order than the rounds, paired: then neither call is the slower one.
    tied = [name for ratio, name in several if ratio.tied or ratio.ratio <= 1]
    apart = sorted((each for each in several if each[1] not in tied), key=lambda each: each[0].ratio)
    ends = [f"{_times(ratio)} ({name})" for ratio, name in apart[:1] + apart[1:][-1:]]
    return " to ".join(ends) or "-", ", ".join(tied) or "-"


def _farthest(found: Sequence[engines.Calls]) -> str:
    """The slowest format beside the fastest, each by its fastest call that was measured."""
    (best, best_call, *_), (worst, worst_call, *_) = (engines.texts(found[place]) for place in (0, -1))
    ratio = found[-1].by_format
    if len(found) < 2 or ratio.tied:
        return "-"
    return f"{worst} ({worst_call}) {_times(ratio)} times {best} ({best_call})"


def _times(ratio: Ratio) -> str:
    return f"{number_text(ratio.ratio)}{NO_VERDICT if ratio.tied is None else ''}"


def measured() -> str:
    """When, on what and with how many rounds the reference run was measured, suite by suite."""
    lines = ["| suite | measured | machine | samples | rounds of a cell |", "| --- | --- | --- | --- | --- |"]
    for run in _runs():
        rounds = sorted(each.rounds for each in summarise(run.samples).values() if each.rounds)
        about = run.info.machine
        machine = f"{about.cpu}, {about.cores} cores, {(about.memory_bytes or 0) / 1e9:.0f} GB"
        day = (run.info.started or "").partition("T")[0]
        told = f"{len(run.samples):,} | {rounds[0]} to {rounds[-1]}"
        lines.append(f"| `{run.folder.name}` | {day} | {machine} | {told} |")
    return "\n" + "\n".join(lines) + "\n"


def machines() -> str:
    """Which suites of the reference run are of which processor: '`tabular` and `image` on AMD EPYC; ...'."""
    by_processor: dict[str, list[str]] = {}
    for run in _runs():
        by_processor.setdefault(run.info.machine.cpu or "an unknown processor", []).append(f"`{run.folder.name}`")
    return "; ".join(
        f"{' and '.join(filter(None, (', '.join(most), last)))} on {cpu}" for cpu, (*most, last) in by_processor.items()
    )


def answer() -> str:
    """What `recommend` answers of the reference run at once, as it is printed, without the figures of each variant."""
    if not PLACE.exists():
        return "\n"
    printed = io.StringIO()
    show(recommend(stored="reference", datasets="core"), Console(file=printed, width=100))
    first, _, _ = printed.getvalue().partition("\nvariant ")
    lines = [line.rstrip() for line in first.rstrip().splitlines()]
    return "\n" + "\n".join(["```", f"$ {ANSWERED}", *lines, "```", ""])


def beside_thesis() -> str:
    """The reference run beside the thesis, suite by suite, where the thesis has figures."""
    told = [
        f"# {IN_THESIS[suite]}\n\n{reproduction_markdown(run).strip()}"
        for run in _runs()
        for suite in run.info.suites
        if suite in IN_THESIS
    ]
    return "\n" + "\n\n".join(told) + "\n"


def _runs() -> list[Run]:
    return list(reference_tables.runs())


def _tables(suite: str) -> Iterator[Table]:
    for run in _runs():
        if suite in run.info.suites:
            yield from tables_of(run)


def _winner(table: Table, column: Column) -> str:
    ranks = table.ranks(column)
    if not ranks:
        return "-"
    labels = {row.variant: row for row in table.rows}
    first, *others = ranks
    unit = unit_of(table, column)
    value = value_text(table, labels[first], column, unit)
    tied = [labels[name].label for name in others if table.mark(column, name) == "="]
    has_verdict = bool(tied) or all(ranks[name].tied is not None for name in others[:1])
    bold = "**" if has_verdict else ""
    told = f"{bold}{labels[first].label}{bold} {value} {unit.name}"
    if tied:
        told += f", tied with {', '.join(tied[:MOST_TIED])}" + (" and others" if len(tied) > MOST_TIED else "")
    after = next((name for name in others if table.mark(column, name) == ""), None)
    if after is not None:
        ratio = ranks[after]
        told += f"; {labels[after].label} {number_text(ratio.ratio)}{NO_VERDICT if ratio.tied is None else ''} times"
        if ratio.low is not None and ratio.high is not None:
            told += f" ({number_text(ratio.low)} to {number_text(ratio.high)})"
    return told
