"""Judge by our samples whether the findings (published statements) of a source hold. Each judgement compares two
figures at a time and then combines the results."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

from bench_runner.results.statistics import FEWEST_ROUNDS, Interval, Ratios
from reports.analysis.columns import Column, Role
from reports.analysis.units import MEGABYTES, SECONDS, Unit
from reports.sources.findings import FAULTS, Fault
from reports.sources.rows import Finding, Pair, Subject


class FindingVerdict(Enum):
    """The verdict on a finding."""

    HOLDS = "holds"
    DOES_NOT = "does not"
    OPEN = "open"
    """No verdict yet: the finding was measured in too few rounds, or its figures are tied (not clearly different). More
    rounds may decide."""
    NOT_TESTABLE = "not testable here"

    def counted(self, count: int) -> str:
        """Return in words how many findings have this verdict: '2 are open'."""
        one, several = {
            FindingVerdict.HOLDS: ("holds", "hold"),
            FindingVerdict.DOES_NOT: ("does not", "do not"),
            FindingVerdict.OPEN: ("is open", "are open"),
            FindingVerdict.NOT_TESTABLE: ("is not testable here", "are not testable here"),
        }[self]
        return f"{count} {one if count == 1 else several}"


def count_text(verdicts: Sequence[FindingVerdict]) -> str:
    """Return how many findings have each verdict, in words."""
    return ", ".join(verdict.counted(verdicts.count(verdict)) for verdict in FindingVerdict)


@dataclass(frozen=True)
class Judgement:
    """The verdict of a run on a finding (a published statement), with the figures that decide the verdict."""

    finding: Finding
    verdict: FindingVerdict
    figures: tuple[str, ...]
    reason: str


@dataclass(frozen=True)
class Ours:
    """The figures of a run that are compared with those of a source."""

    figures: Mapping[Subject, tuple[Interval, Mapping[int, int]]]
    least_bytes: int
    time_unit: Unit = SECONDS
    """The unit in which times are shown."""

    @cached_property
    def ratios(self) -> Mapping[tuple[Column, str], Ratios]:
        """For each kind of figure and data set, a `Ratios` object. It has the figures of all formats, and compares any
        two of these figures."""
        found: dict[tuple[Column, str], dict[Subject, dict[int, float]]] = defaultdict(dict)
        for subject in self.figures:
            found[subject.column, subject.dataset][subject] = self.by_round(subject)
        return {key: Ratios(values, exact=key[0].role is Role.SIZE) for key, values in found.items()}

    def by_round(self, subject: Subject) -> dict[int, float]:
        """Return the figure of each round. Memory below the smallest measurable value counts as that value."""
        least = self.least_bytes if subject.column.is_memory else 0
        return {number: float(max(value, least)) for number, value in self.figures[subject][1].items()}


def by_text(texts: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the data sets by string: each string with the data sets that have this string."""
    found: dict[str, list[str]] = {}
    for dataset, text in texts.items():
        found.setdefault(text, []).append(dataset)
    return found


@dataclass(frozen=True)
class _Weighed:
    """The result of comparing two figures on one data set. `ratio` is (lower * factor) / higher. A ratio below 1
    supports the finding."""

    pair: Pair
    ratio: float
    tied: bool


def judge(
    finding: Finding,
    ours: Ours,
    theirs: Mapping[Subject, float],
    left_out: Mapping[str, str],
    generated: Collection[str] = (),
    faults: Sequence[Fault] = FAULTS,
) -> Judgement:
    """Return the verdict of our figures on a finding.

    `theirs` has the source's own figures. `left_out` has the reason for each data set that has no figures. `generated`
    are data sets that we generated to resemble data sets of the source. `faults` are faults of the source's
    measurements.
    """
    verdicts: dict[str, FindingVerdict] = {}
    figures: dict[str, str] = {}
    reasons: dict[str, str] = {}
    decisive: list[Pair] = []
    for dataset in finding.datasets:
        pairs = [_placed(pair, dataset) for pair in finding.pairs]
        tried = [(pair, _weigh(pair, ours)) for pair in pairs]
        lacking = _lacking(finding, tried, ours)
        weighed = [found for _, found in tried if found is not None]
        missing, too_few = _not_weighed([pair for pair, found in tried if found is None], ours)
        if lacking or not weighed:
            nothing = f"no figure of {', '.join(missing)} to compare with" if missing and not too_few else ""
            reasons[dataset] = left_out.get(dataset) or lacking or nothing or "no format has enough rounds"
            if dataset not in left_out and not nothing and _has_all(finding.about, pairs, ours):
                # The data set was measured in too few rounds, so the verdict could still change.
                verdicts[dataset] = FindingVerdict.OPEN
            continue
        if finding.rests_on_data and dataset in generated:
            reasons[dataset] = "our data are generated, and the way they were generated decides this"
            continue
        closest = max(weighed, key=lambda found: found.ratio)
        verdicts[dataset] = _verdict(weighed, too_few)
        figures[dataset] = _evidence(closest, ours, dataset)
        decisive.append(closest.pair)
        # One comparison that contradicts the finding decides the verdict, whatever the other comparisons show.
        if verdicts[dataset] is not FindingVerdict.DOES_NOT and (told := _open_text(weighed, missing, too_few)):
            reasons[dataset] = told
    verdict = _combined(list(verdicts.values()), finding.some)
    reason = _reason(finding, verdict, reasons, decisive, theirs, faults)
    return Judgement(finding, verdict, tuple(figures.values()), reason)


def _placed(pair: Pair, dataset: str) -> Pair:
    """Return `pair` with `dataset` filled in. A figure that already names a data set keeps that data set."""

    def on(subject: Subject) -> Subject:
        return subject if subject.dataset else Subject(subject.column, subject.format, dataset)

    return Pair(on(pair.lower), on(pair.higher), pair.factor)


def _lacking(finding: Finding, tried: Sequence[tuple[Pair, _Weighed | None]], ours: Ours) -> str:
    """Return why a finding cannot be tested, or '' if it can. A finding cannot be tested if a format that the finding
    needs has no figure or too few rounds."""
    for pair, weighed in tried:
        for subject in (pair.lower, pair.higher) if weighed is None else ():
            if subject.format not in finding.about:
                continue
            if subject not in ours.figures:
                return f"no {subject.column.title} of {subject.format}{_where(pair, subject)}"
            if (rounds := ours.figures[subject][0].rounds) < FEWEST_ROUNDS:
                told = f"{subject.format} has {rounds} round{'s' * (rounds > 1)}{_where(pair, subject)}"
                return f"{told}, too few for a verdict"
    return ""


def _has_all(names: Collection[str], pairs: Sequence[Pair], ours: Ours) -> bool:
    """Return whether each of the formats `names` has all its figures. Any number of rounds is enough."""
    subjects = (subject for pair in pairs for subject in (pair.lower, pair.higher))
    return all(subject in ours.figures for subject in subjects if subject.format in names)


def _not_weighed(pairs: Sequence[Pair], ours: Ours) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the formats that could not be compared: first those without a figure, then those with too few rounds."""
    missing: dict[str, None] = {}
    too_few: dict[str, None] = {}
    for pair in pairs:
        both = (pair.lower, pair.higher)
        absent = [subject.format for subject in both if subject not in ours.figures]
        seldom = [
            subject.format for subject in both if subject in ours.figures and ours.figures[subject][0].low is None
        ]
        missing |= dict.fromkeys(absent)
        # If each figure alone has enough rounds, both figures have too few rounds in common.
        too_few |= dict.fromkeys(seldom if absent or seldom else [subject.format for subject in both])
    return tuple(missing), tuple(too_few)


def _open_text(weighed: Sequence[_Weighed], missing: Sequence[str], too_few: Sequence[str]) -> str:
    """Return why a data set gives no verdict, and which formats could not be compared because they have no figure."""
    parts = ["tied"] if any(found.tied for found in weighed) else []
    parts += [f"too few rounds of {', '.join(too_few)}"] if too_few else []
    told = f"{' and '.join(parts)}, so no verdict" if parts else ""
    absent = f"no figure of {', '.join(missing)} to compare with" if missing else ""
    return f"{told} ({absent})" if told and absent else told or absent


def _where(pair: Pair, subject: Subject) -> str:
    """Return ' on <data set>' for a figure if the two compared figures are from different data sets, else ''."""
    return f" on {subject.dataset}" if pair.lower.dataset != pair.higher.dataset else ""


def _weigh(pair: Pair, ours: Ours) -> _Weighed | None:
    if pair.lower not in ours.figures or pair.higher not in ours.figures:
        return None
    ratios = _ratios(pair, ours)
    ratio = ratios.of(pair.lower, pair.higher)
    if ratio is None or ratio.low is None or ratio.high is None:
        return None
    tied = ratio.low * pair.factor <= 1 <= ratio.high * pair.factor
    return _Weighed(pair, ratio.ratio * pair.factor, tied)


def _ratios(pair: Pair, ours: Ours) -> Ratios:
    """Return the ratios of the two figures to compare. If both are the same kind of figure on the same data set, the
    speed of each round is estimated from the other formats and removed."""
    lower, higher = pair.lower, pair.higher
    if (lower.column, lower.dataset) == (higher.column, higher.dataset):
        return ours.ratios[lower.column, lower.dataset]
    return Ratios({each: ours.by_round(each) for each in (lower, higher)}, exact=lower.column.role is Role.SIZE)


def _verdict(weighed: Sequence[_Weighed], too_few: Sequence[str]) -> FindingVerdict:
    """Return the verdict from all comparisons on a data set. `too_few` are formats with too few rounds."""
    if any(found.ratio > 1 and not found.tied for found in weighed):
        return FindingVerdict.DOES_NOT
    return FindingVerdict.OPEN if too_few or any(found.tied for found in weighed) else FindingVerdict.HOLDS


def _combined(verdicts: Sequence[FindingVerdict], some: bool) -> FindingVerdict:
    """Return the verdict over all data sets. Normally all data sets must support the finding. With `some`, one data set
    is enough."""
    first, second = (
        (FindingVerdict.HOLDS, FindingVerdict.DOES_NOT) if some else (FindingVerdict.DOES_NOT, FindingVerdict.HOLDS)
    )
    if first in verdicts:
        return first
    if not verdicts:
        return FindingVerdict.NOT_TESTABLE
    return FindingVerdict.OPEN if FindingVerdict.OPEN in verdicts else second


def _evidence(closest: _Weighed, ours: Ours, dataset: str) -> str:
    """Return the two figures that decide the verdict, as text. Of all compared pairs, `closest` has the largest ratio.
    The figures of this pair are therefore nearest to contradicting the finding, or contradict the finding most
    clearly."""
    pair = (closest.pair.lower, closest.pair.higher)
    told = [f"{subject.format} {_figure_text(subject, ours)}" for subject in pair]
    where = dataset or f"{closest.pair.lower.dataset} and {closest.pair.higher.dataset}"
    columns = (closest.pair.lower.column, closest.pair.higher.column)
    if columns[0] != columns[1]:
        told = [f"{text} ({column.operation})" for text, column in zip(told, columns, strict=True)]
    return f"{where}: {', '.join(told)}"


def _figure_text(subject: Subject, ours: Ours) -> str:
    unit = ours.time_unit if subject.column.role is Role.TIME else MEGABYTES
    median = ours.figures[subject][0].median
    if subject.column.is_memory and median < ours.least_bytes:
        return f"< {unit.text(ours.least_bytes)} {unit.name}"
    return f"{unit.text(median)} {unit.name}"


def _reason(
    finding: Finding,
    verdict: FindingVerdict,
    reasons: Mapping[str, str],
    decisive: Sequence[Pair],
    theirs: Mapping[Subject, float],
    faults: Sequence[Fault],
) -> str:
    parts = []
    if verdict is FindingVerdict.DOES_NOT:
        parts += _faults(decisive, faults)
    if verdict in (FindingVerdict.HOLDS, FindingVerdict.DOES_NOT) and not _true_of_the_thesis(finding, theirs):
        parts.append("the thesis's own tables do not support it on every data set")
    for text, names in by_text(reasons).items():
        parts.append(f"{', '.join(names)}: {text}" if any(names) else text)
    return "; ".join(parts)


def _faults(pairs: Sequence[Pair], faults: Sequence[Fault]) -> list[str]:
    """Return the faults of the source that affect the deciding figures."""
    subjects = {subject for pair in pairs for subject in (pair.lower, pair.higher)}
    return [
        fault.text
        for fault in faults
        if any(
            subject.column in fault.columns and (not fault.formats or subject.format in fault.formats)
            for subject in subjects
        )
    ]


def _true_of_the_thesis(finding: Finding, theirs: Mapping[Subject, float]) -> bool:
    """Return whether the thesis's own tables support a finding. Comparisons for which the thesis prints no figure count
    as support."""

    def holds(pair: Pair) -> bool:
        lower, higher = theirs.get(pair.lower), theirs.get(pair.higher)
        return lower is None or higher is None or lower * pair.factor < higher

    answers = [all(holds(_placed(pair, dataset)) for pair in finding.pairs) for dataset in finding.datasets]
    return any(answers) if finding.some else all(answers)
