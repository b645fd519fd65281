"""Published claims beside a run: each with its source's figures, ours, a verdict, and why.

A claim holds, does not hold, or cannot be tested: because nothing here measures such a thing, or because the run has
not measured it, and then the command is named that does. A pure function of a run and of the source's data file; which
claims a source makes stands in modules of their own.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources

from bench_runner.results.records import Conditions, Run, changed
from bench_runner.results.statistics import smallest_shown, summarise
from reports.analysis.columns import Column, Role
from reports.analysis.units import MILLISECONDS
from reports.sources.findings import Finding, Pair, Subject
from reports.sources.judging import Judgement, Ours, Verdict, judge

FIGURES = (
    *(("wall_ns", Role.TIME), ("cpu_ns", Role.TIME)),
    *(("size_bytes", Role.SIZE), ("peak_private_bytes", Role.MEMORY)),
)
"""What of each operation is compared."""


@dataclass(frozen=True)
class Claim:
    """One statement of a source. `key` names its figures in the source's data file.

    `finding` is what our cells would have to show, None where nothing here can: `untestable` says why. `differs` is in
    what our cells are another thing than the source's, and is told with every verdict. `command` measures the cells.
    """

    key: str
    place: str
    statement: str
    finding: Finding | None = None
    untestable: str = ""
    differs: str = ""
    command: str = ""


@dataclass(frozen=True)
class Slip:
    """Where a source is off: what it prints, what that must be, and what of it changes."""

    place: str
    printed: str
    right: str
    matters: str


@dataclass(frozen=True)
class Source:
    """A publication: how the command line calls it, what it is, its data file, its claims, and where it is off."""

    name: str
    title: str
    file: str
    claims: tuple[Claim, ...]
    slips: tuple[Slip, ...] = ()


@dataclass(frozen=True)
class Judged:
    """A claim with what the source publishes for it, and what the run says."""

    claim: Claim
    published: tuple[str, ...]
    verdict: Verdict
    ours: tuple[str, ...]
    reason: str
    conditions: Conditions | None

    @property
    def measured(self) -> str:
        """What our figures are of: 'take 1 row time'."""
        pairs = self.claim.finding.pairs if self.claim.finding is not None else ()
        columns = (subject.column for pair in pairs for subject in (pair.lower, pair.higher))
        return ", ".join(dict.fromkeys(column.title for column in columns))


def time_of(operation: str, title: str = "") -> Column:
    """The time of an operation, spelled; `title` is its words for people."""
    return Column(operation, "wall_ns", Role.TIME, f"{title or operation} time")


def claimed(
    key: str,
    place: str,
    statement: str,
    pairs: Sequence[Pair],
    datasets: Sequence[str],
    *,
    command: str,
    differs: str = "",
) -> Claim:
    """A claim that our cells can bear out or contradict: all pairs must hold on all of the data sets that the run has.
    It is about every variant that the pairs name."""
    about = tuple(dict.fromkeys(subject.format for pair in pairs for subject in (pair.lower, pair.higher)))
    finding = Finding(place, statement, tuple(pairs), about, tuple(datasets))
    return Claim(key, place, statement, finding, differs=differs, command=command)


def below(column: Column, lower: str, higher: Sequence[str], factor: float = 1.0) -> tuple[Pair, ...]:
    """One variant's figure times the factor is below that of each other."""
    return tuple(Pair(Subject(column, lower), Subject(column, other), factor) for other in higher)


def alike(column: Column, one: str, other: str, factor: float) -> tuple[Pair, ...]:
    """Neither is more than `factor` times the other."""
    return (*below(column, one, [other], 1 / factor), *below(column, other, [one], 1 / factor))


@cache
def published(source: Source) -> Mapping[str, tuple[str, ...]]:
    """The figures of each claim, in words, a text for each place where they are published: 'Lance 2.1, scalars: 518929
    rows/s; Lance 2.0, scalars: 718330 rows/s (the place)'."""
    text = resources.files("reports.sources").joinpath(f"published/{source.file}").read_text(encoding="utf-8")
    found: dict[str, dict[str, list[str]]] = {}
    for row in csv.DictReader(text.splitlines()):
        told = f"{row['what']}: {row['value']} {row['unit']}".rstrip()
        found.setdefault(row["claim"], {}).setdefault(row["source"], []).append(told)
    return {
        key: tuple(f"{'; '.join(told)} ({place})" for place, told in by_place.items())
        for key, by_place in found.items()
    }


def judged(runs: Sequence[Run], source: Source) -> tuple[Judged, ...]:
    """Every claim of a source by what one of the runs says: the first that decides it, else the first that has some of
    it."""
    figures = [_figures(run) for run in runs]
    return tuple(
        max(
            (_judged(source, claim, each) for each in figures),
            key=lambda found: (found.verdict is not Verdict.NOT_TESTABLE, found.conditions is not None),
        )
        for claim in source.claims
    )


def count_text(found: Sequence[Judged]) -> str:
    """How many claims hold, do not, and cannot be tested."""
    counts = [sum(item.verdict is verdict for item in found) for verdict in Verdict]
    return f"{counts[0]} hold, {counts[1]} do not, {counts[2]} are not testable here"


Figures = Mapping[Conditions, Ours]


def _figures(run: Run) -> Figures:
    """What each set of conditions has: the usual ones first. What was read whole for a part, or came from a library's
    own memory, is left out, as it is from every ranking."""
    found: dict[Conditions, Ours] = {}
    for cell, summary in summarise(run.samples).items():
        if summary.fallback or summary.cached:
            continue
        conditions = changed(cell.conditions, track="")
        ours = found.setdefault(conditions, Ours({}, smallest_shown(run.info), MILLISECONDS))
        more = {
            Subject(Column(cell.operation, figure, role, ""), cell.variant, cell.dataset): (
                summary.figures[figure],
                summary.by_round[figure],
            )
            for figure, role in FIGURES
            if figure in summary.figures
        }
        # A variant that several suites measure is one all the same: the first stands.
        found[conditions] = replace(ours, figures={**more, **ours.figures})
    return dict(sorted(found.items(), key=lambda each: _unusual(each[0])))


def _unusual(conditions: Conditions) -> tuple[bool, ...]:
    return (
        conditions.network != "",
        conditions.cache != "warm",
        conditions.threads != "default",
        conditions.target != "arrow",
        conditions.work_dir != "default",
    )


def _judged(source: Source, claim: Claim, figures: Figures) -> Judged:
    theirs = published(source)[claim.key]
    if claim.finding is None:
        return Judged(claim, theirs, Verdict.NOT_TESTABLE, (), claim.untestable, None)
    finding = claim.finding
    conditions = max(figures, key=lambda each: _known(finding, figures[each]), default=None)
    if conditions is None or not _known(finding, figures[conditions]):
        return Judged(claim, theirs, Verdict.NOT_TESTABLE, (), f"not in this run; measure it: {claim.command}", None)
    ours = figures[conditions]
    there = {subject.dataset for subject in ours.figures}
    left_out = {name: "not in this run" for name in finding.datasets if name and name not in there}
    judgement = judge(finding, ours, {}, left_out, faults=())
    return Judged(
        claim, theirs, judgement.verdict, judgement.figures, _why(claim, judgement, left_out), conditions
    )


def _known(finding: Finding, ours: Ours) -> int:
    """On how many data sets the run has what a finding is about."""
    return sum(
        all(
            Subject(subject.column, subject.format, subject.dataset or dataset) in ours.figures
            for pair in finding.pairs
            for subject in (pair.lower, pair.higher)
        )
        for dataset in finding.datasets
    )


def _why(claim: Claim, judgement: Judgement, left_out: Mapping[str, str]) -> str:
    parts = [judgement.reason] if judgement.reason else []
    if claim.differs:
        parts.append(claim.differs)
    if left_out:
        parts.append(f"the rest is measured by {claim.command}")
    return "; ".join(parts)
