"""Compare published claims with a run. For each claim, give the source's figures, our figures, a verdict and the
reason.

A source is a publication. It has three files below `published/`: its claims as rows, the names used in these rows, and
the published figures. The same code judges the claims of all sources. A claim holds, does not hold, is open, or cannot
be tested. A claim cannot be tested if no measurement here covers it, if a library gives no valid figure, or if the run
lacks the measurement. In the last case, the reason names the command that makes the measurement.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

from bench_runner.results.records import Conditions, Run, changed
from bench_runner.results.statistics import CellSummary, Interval, smallest_shown, summarise
from reports.analysis.columns import Column
from reports.analysis.near_storage.workloads import published_rows
from reports.analysis.units import MILLISECONDS
from reports.sources.judgement import FindingVerdict, Judgement, Ours, judge
from reports.sources.rows import ROLES, Finding, Names, Row, Slip, Subject, claims_of, names_of

CLIENTS_ALONE = ("cpu_ns", "peak_private_bytes")
"""In a run over a network, CPU time and private memory cover only the client, not the services. These two figures then
cannot support a claim."""

MOST_NAMED = 3
"""Largest number of our figures that the reason for a verdict names."""


@dataclass(frozen=True)
class Claim:
    """One statement of a source. The source's CSV file lists the claim's figures under `key`.

    `finding` states what our figures must show for the claim to hold. If nothing here can test the claim, `finding` is
    None and `untestable` gives the reason. `differs` states how our measurement differs from the source's measurement,
    and is shown with every verdict. `command` is the command that makes the measurement.
    """

    key: str
    place: str
    statement: str
    finding: Finding | None = None
    untestable: str = ""
    differs: str = ""
    command: str = ""

    @property
    def measured(self) -> str:
        """Titles of our figures, such as 'take 1 row time'. If there are many, only the first titles, then 'and
        more'."""
        pairs = self.finding.pairs if self.finding is not None else ()
        columns = (subject.column for pair in pairs for subject in (pair.lower, pair.higher))
        titles = list(dict.fromkeys(column.title for column in columns))
        return ", ".join(titles[:MOST_NAMED]) + " and more" * (len(titles) > MOST_NAMED)


@dataclass(frozen=True)
class Publication:
    """A publication whose claims are compared. `name` identifies it on the command line. `variants` maps the
    publication's names of formats to our variants. `slips` lists errors in the publication."""

    name: str
    title: str
    variants: Mapping[str, str]
    claims: tuple[Claim, ...]
    slips: tuple[Slip, ...] = ()


@dataclass(frozen=True)
class Judged:
    """A claim with the published figures, our figures, and the verdict."""

    claim: Claim
    published: tuple[str, ...]
    verdict: FindingVerdict
    ours: tuple[str, ...]
    reason: str
    conditions: Conditions | None
    machine: str = ""
    """The machine of our figures. It is set only if the run has several machines."""


# --- rows ---------------------------------------------------------------------------------------------------------


def _source(name: str) -> Publication:
    file = _file_name(name)
    names = names_of(file)
    claims = tuple(_claim(names, rows) for rows in claims_of(file))
    return Publication(name, names.title, names.variants, claims, names.slips)


def _claim(names: Names, rows: Sequence[Row]) -> Claim:
    row = rows[0]
    about = (row["claim"], row["place"], row["statement"])
    if row["untestable"]:
        return Claim(*about, untestable=names.text(row["untestable"]))
    differs = "; ".join(map(names.text, row["differs"].split("; ")))
    return Claim(*about, names.finding(rows), differs=differs, command=names.text(row["command"]) or names.command)


def _file_name(source: str) -> str:
    return source.replace("-", "_")


SOURCES: Mapping[str, Publication] = {name: _source(name) for name in ("lance", "f3", "near-storage", "documents")}
"""Publications by their names on the command line. The thesis by Tarageľ has its own modules."""


@cache
def published(name: str) -> Mapping[str, tuple[str, ...]]:
    """Return the published figures of each claim. Each place in the publication that prints figures has one string.

    Example: 'Lance 2.1, scalars: 518929 rows/s; Lance 2.0, scalars: 718330 rows/s (place in the publication)'.
    """
    found: dict[str, dict[str, list[str]]] = {}
    for row in published_rows(f"{_file_name(name)}.csv"):
        told = f"{row['what']}: {row['value']} {row['unit']}".rstrip()
        found.setdefault(row["claim"], {}).setdefault(row["source"], []).append(told)
    return {
        key: tuple(f"{'; '.join(told)} ({place})" for place, told in by_place.items())
        for key, by_place in found.items()
    }


def judged(runs: Sequence[Run], source: Publication) -> tuple[Judged, ...]:
    """Return the verdict on every claim of a source. The verdict is that of the first run that decides the claim. If no
    run decides, the verdict is that of the first run that leaves the claim open (measured, but without a clear result),
    or else of the first run with some of the figures."""
    measured = [_measured(run) for run in runs]
    return tuple(
        max(
            (_judged(source, claim, each) for each in measured),
            key=lambda found: (
                found.verdict in (FindingVerdict.HOLDS, FindingVerdict.DOES_NOT),
                found.verdict is FindingVerdict.OPEN,
                bool(found.ours),
                found.conditions is not None,
            ),
        )
        for claim in source.claims
    )


# --- what a run has -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Place:
    """Conditions and machine of figures. Figures are compared only if the conditions, the machine, the data set and the
    number of rows are the same."""

    conditions: Conditions
    machine: str


@dataclass(frozen=True)
class _Cells:
    """Figures with the same conditions, machine, data set and rows. `aside` maps each measurement that was tried
    without a valid figure to the reason."""

    figures: dict[Subject, tuple[Interval, Mapping[int, int]]]
    aside: dict[Subject, str]

    def count(self, needed: Sequence[Subject]) -> tuple[int, int]:
        """Return two numbers: how many of the needed measurements have a figure, and how many were tried."""
        known = sum(subject in self.figures for subject in needed)
        return known, sum(subject in self.figures or subject in self.aside for subject in needed)


@dataclass(frozen=True)
class _Measured:
    """All figures of a run. The keys of `cells` are conditions and machine, then data set and rows. Figures with
    default conditions come first."""

    cells: Mapping[_Place, Mapping[tuple[str, int], _Cells]]
    least_bytes: int
    several_machines: bool


def _measured(run: Run) -> _Measured:
    found: dict[_Place, dict[tuple[str, int], _Cells]] = {}
    for cell, summary in summarise(run.samples).items():
        place = _Place(changed(cell.conditions, track=""), cell.machine)
        cells = found.setdefault(place, {}).setdefault((cell.dataset, cell.rows), _Cells({}, {}))
        why = _aside(summary)
        for figure, role in ROLES.items():
            subject = Subject(Column(cell.operation, figure, role, ""), cell.variant, cell.dataset)
            if figure in CLIENTS_ALONE and cell.conditions.network:
                cells.aside.setdefault(subject, "covers the client alone, while the services do part of the work")
            elif why:
                cells.aside.setdefault(subject, why)
            elif figure in summary.figures:
                # Several suites may measure the same variant. Then the first figure is used.
                cells.figures.setdefault(subject, (summary.figures[figure], summary.by_round[figure]))
    by_place = dict(sorted(found.items(), key=lambda each: _unusual(each[0].conditions)))
    return _Measured(by_place, smallest_shown(run.info), has_several_machines(run))


def has_several_machines(run: Run) -> bool:
    """Return whether a run was merged from several machines, so that reports must name the machine of each figure."""
    return len({sample.machine for sample in run.samples}) > 1


def _aside(summary: CellSummary) -> str:
    """Return why a measurement has no valid figure, by the same rules as in rankings. Return '' if the figure is
    valid."""
    if summary.wrong:
        return "wrong answer in a counted round"
    if summary.fallback:
        return f"no native call: {summary.fallback}"
    if summary.cached:
        return "answered from the library's memory"
    return summary.failures[0].kind if summary.failures and not summary.figures else ""


def _unusual(conditions: Conditions) -> tuple[bool, ...]:
    return (
        conditions.network != "",
        conditions.cache != "warm",
        conditions.threads != "default",
        conditions.target != "arrow",
        conditions.work_dir != "default",
    )


def needed_by(finding: Finding, dataset: str) -> tuple[Subject, ...]:
    """Return all of our figures that a finding (a published statement) compares on one data set."""
    subjects = (subject for pair in finding.pairs for subject in (pair.lower, pair.higher))
    return tuple(dict.fromkeys(replace(subject, dataset=subject.dataset or dataset) for subject in subjects))


def _cells_of(finding: Finding, by_rows: Mapping[tuple[str, int], _Cells]) -> _Cells:
    """Return all figures that a finding compares, for one set of conditions and one machine.

    Suites may measure a data set with different numbers of rows. The number of rows that has the most of these figures
    is used. If several numbers have equally many figures, the largest number is used.
    """
    needed = tuple(dict.fromkeys(subject for name in finding.datasets for subject in needed_by(finding, name)))
    chosen = _Cells({}, {})
    for dataset in {subject.dataset for subject in needed}:
        there = [rows for name, rows in by_rows if name == dataset]
        if there:
            of = tuple(subject for subject in needed if subject.dataset == dataset)
            cells = by_rows[dataset, max(there, key=lambda rows: (*by_rows[dataset, rows].count(of), rows))]
            chosen.figures.update({each: cells.figures[each] for each in of if each in cells.figures})
            chosen.aside.update({each: cells.aside[each] for each in of if each in cells.aside})
    return chosen


# --- what it says -------------------------------------------------------------------------------------------------


def _judged(source: Publication, claim: Claim, measured: _Measured) -> Judged:
    theirs = published(source.name)[claim.key]
    if claim.finding is None:
        return Judged(claim, theirs, FindingVerdict.NOT_TESTABLE, (), claim.untestable, None)
    finding = claim.finding
    places = {place: _cells_of(finding, by_rows) for place, by_rows in measured.cells.items()}
    place = max(places, key=lambda each: _known(finding, places[each]), default=None)
    cells = places[place] if place is not None else _Cells({}, {})
    left_out = {name: why for name in finding.datasets if (why := _left_out(cells, needed_by(finding, name)))}
    ours = Ours(cells.figures, measured.least_bytes, MILLISECONDS)
    judgement = judge(finding, ours, {}, left_out, faults=())
    reason = _why(claim, judgement, cells, left_out)
    found = Judged(claim, theirs, judgement.verdict, judgement.figures, reason, None)
    if place is None or not (cells.figures or cells.aside):
        return found
    return replace(found, conditions=place.conditions, machine=place.machine if measured.several_machines else "")


def _known(finding: Finding, cells: _Cells) -> tuple[int, int, int]:
    """Return three counts: data sets for which all compared figures are known, figures that are known, and figures that
    were tried."""
    needed = [needed_by(finding, dataset) for dataset in finding.datasets]
    known, tried = zip(*map(cells.count, needed), strict=True)
    return sum(number == len(all_) for number, all_ in zip(known, needed, strict=True)), sum(known), sum(tried)


_NOT_IN_RUN = "not in this run"


def _left_out(cells: _Cells, needed: Sequence[Subject]) -> str:
    """Return which formats have no figure and why, or '' if every format has one."""
    lacking = [subject for subject in needed if subject not in cells.figures]
    tried = {subject: cells.aside[subject] for subject in lacking if subject in cells.aside}
    if len(lacking) == len(needed) and not tried:
        return _NOT_IN_RUN
    reasons: dict[str, dict[str, None]] = {}
    for subject in tried or lacking:
        reasons.setdefault(tried.get(subject, _NOT_IN_RUN), {})[subject.format] = None
    return ", ".join(f"no figure of {', '.join(names)} ({why})" for why, names in reasons.items())


def _why(claim: Claim, judgement: Judgement, cells: _Cells, left_out: Mapping[str, str]) -> str:
    parts = [judgement.reason] if judgement.reason else []
    if any(_NOT_IN_RUN in why for why in left_out.values()):
        # A finding that compares data sets is left out as a whole, so name its data sets.
        across = {subject.dataset: None for subject in needed_by(judgement.finding, "")} if "" in left_out else {}
        told = f"{claim.command} measures {claim.measured}{' of ' * bool(across)}{', '.join(across)}"
        # The run has measurements without a valid figure and no figure that decides. The missing measurements may then
        # have no valid figure either.
        doubtful = cells.aside and not judgement.figures
        parts.append(f"{told} of the other formats, which may have no figure either" if doubtful else told)
    if claim.differs and len(left_out) < len(judgement.finding.datasets):
        parts.append(claim.differs)
    return "; ".join(parts)
