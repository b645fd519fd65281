"""Show which variant of the reference run wins at what, with figures and intervals."""

from __future__ import annotations

import io
from collections.abc import Sequence

from rich.console import Console

from bench_runner.results.reference import NAME
from bench_runner.results.statistics import Ratio, summarise
from docs._generate.reference import Reference
from format_bench import recommend
from reports.analysis import engines
from reports.analysis.access.uses import NO_VERDICT, uses_of
from reports.analysis.columns import READ_PEAK, READ_TIME, SAVE_PEAK, SAVE_TIME, SIZE, Column
from reports.analysis.tables import Table, unit_of, value_text
from reports.analysis.units import number_text
from reports.sources.claims import SOURCES, judged
from reports.sources.judgement import count_text
from reports.sources.reproduction import reproduce
from reports.text.page import markdown_table
from reports.text.recommendation import show

HEADS = {
    READ_TIME: "reads fastest",
    SAVE_TIME: "saves fastest",
    SIZE: "smallest",
    READ_PEAK: "least memory to read",
    SAVE_PEAK: "least memory to save",
}
MOST_TIED = 3
IN_THESIS = {"tabular", "image", "compression"}
ANSWERED = "format-bench recommend --from reference --datasets core"


def wins(reference: Reference) -> str:
    """Return one row for each table without codecs: the best variant, those tied with it, and how far the next is."""
    return _wins(reference, "tabular")


def image_wins(reference: Reference) -> str:
    """Return the same rows as `wins`, for images."""
    return _wins(reference, "image")


def codec_wins(reference: Reference) -> str:
    """Return the same rows as `wins`, for every format with each of its codecs and without a codec."""
    return _wins(reference, "compression", "codecs")


def _wins(reference: Reference, suite: str, track: str = "plain") -> str:
    return markdown_table(
        ("data", *HEADS.values()),
        [
            (f"`{table.dataset}`, {table.amount}", *(_winner(table, column) for column in HEADS))
            for _, table in reference.of(suite)
            if table.conditions.track == track
        ],
    )


def format_or_call(reference: Reference) -> str:
    """Return how much of the time depends on the call and on the format, for each table and operation of `engines`."""
    lines = []
    for _, table in reference.of(engines.SUITE):
        threads = "the libraries' own" if table.conditions.threads == "default" else "1"
        for column in (SAVE_TIME, READ_TIME):
            if found := engines.calls_of(table, column):
                lines.append((f"`{table.dataset}`", threads, column.operation, *_spread(found), _farthest(found)))
    return markdown_table(
        ("data", "threads", "operation", "slowest call over fastest, of a format", "tied", "farthest formats"), lines
    )


def _spread(found: Sequence[engines.Calls]) -> tuple[str, str]:
    """Return the smallest and largest ratio between calls of a format, and the formats whose calls are tied."""
    several = [(calls.by_call, calls.format) for calls in found if calls.by_call is not None]
    # Medians can rank two calls differently than ratios paired by round. Then neither call counts as slower.
    tied = [name for ratio, name in several if ratio.tied or ratio.ratio <= 1]
    apart = sorted((each for each in several if each[1] not in tied), key=lambda each: each[0].ratio)
    ends = [f"{_times(ratio)} ({name})" for ratio, name in apart[:1] + apart[1:][-1:]]
    return " to ".join(ends) or "-", ", ".join(tied) or "-"


def _farthest(found: Sequence[engines.Calls]) -> str:
    """Return the slowest format compared with the fastest, each by its fastest measured call."""
    (best, best_call, *_), (worst, worst_call, *_) = (engines.texts(found[place]) for place in (0, -1))
    ratio = found[-1].by_format
    if len(found) < 2 or ratio.tied:
        return "-"
    return f"{worst} ({worst_call}) {_times(ratio)} times {best} ({best_call})"


def _times(ratio: Ratio) -> str:
    return f"{number_text(ratio.ratio)}{NO_VERDICT if ratio.tied is None else ''}"


def measured(reference: Reference) -> str:
    """Return a table for each machine: its suites, when they were measured, and with how many samples and rounds."""
    by_machine: dict[str, list[tuple[str, ...]]] = {}
    for run in reference.runs:
        rounds = sorted(each.rounds for each in summarise(run.samples).values() if each.rounds)
        about = run.info.machine
        machine = f"{about.cpu}, {about.cores} cores, {(about.memory_bytes or 0) / 1e9:.0f} GB"
        day = (run.info.started or "").partition("T")[0]
        by_machine.setdefault(machine, []).append(
            (f"`{run.folder.name}`", day, f"{len(run.samples):,}", f"{rounds[0]} to {rounds[-1]}")
        )
    header = ("suite", "measured", "samples", "rounds of a cell")
    return "\n\n".join(f"On {machine}:\n\n{markdown_table(header, lines)}" for machine, lines in by_machine.items())


def answer() -> str:
    """Return what `recommend` prints about the reference run, without the figures of each variant."""
    printed = io.StringIO()
    show(recommend(stored=NAME, datasets="core"), Console(file=printed, width=100))
    first, _, _ = printed.getvalue().partition("\nvariant ")
    lines = [line.rstrip() for line in first.rstrip().splitlines()]
    return "\n".join(["```", f"$ {ANSWERED}", *lines, "```"])


def uses(reference: Reference) -> str:
    """Return a table for each data set of the suite `access`: the fastest call for each use, and the next ones."""
    found = []
    for run, table in reference.of("access"):
        found.append(
            f"`{table.dataset}`, {table.amount}, cache {table.conditions.cache}, on {run.info.machine.cpu}:\n\n"
            + markdown_table(
                ("use", "fastest with its own call", "then, in multiples of it"),
                [(use.title, use.best, use.others) for use in uses_of(run, table)],
            )
        )
    return "\n\n".join(found)


def verdicts(reference: Reference) -> str:
    """Return how many claims of each source hold for the reference run."""
    compared = [run for run in reference.runs if IN_THESIS.intersection(run.info.suites)]
    thesis = [each.verdict for run in compared for each in reproduce(run).judgements]
    found = {"thesis": count_text(thesis)}
    found |= {
        name: count_text([each.verdict for each in judged(reference.runs, source)]) for name, source in SOURCES.items()
    }
    return markdown_table(("`--against`", "claims"), [(f"`{name}`", text) for name, text in found.items()])


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
