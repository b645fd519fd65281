"""Judge by measured times whether a format has an ability that the user requires, such as random access. An operation
on a part of a table must take much less time than on the whole table.

A format that takes as long to fetch a few rows as to read everything has no random access, even if it declares this
ability. Declarations count only if nothing was measured.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bench_runner.results.statistics import Ratio, ratio_interval
from bench_runner.variants import OperationName, operation_name_of
from reports.analysis.recommendation.candidates import CANNOT, Candidate
from reports.analysis.units import number_text

MOST_OF_ALL = 0.5
"""Largest time for a part, as a share of the time for the whole table, at which a format has the ability. Above this
share, the user saves less than half of the time.

A format that reads everything to return a part has a share of 1, or a little less because fewer values are converted. A
format that really reads a part has a far lower share: the part's share of rows or columns, plus the time to find the
part.
"""


@dataclass(frozen=True)
class Need:
    """An ability that is judged by times. The time of `operation`, with its parameters, is compared with the time of
    `whole`, which is 'read' or 'save'."""

    operation: OperationName
    whole: str


MEASURED: Mapping[str, Need] = {
    "append": Need(operation_name_of("append[rows=1000]"), "save"),
    "projection": Need(operation_name_of("project[columns=1]"), "read"),
    "random-access": Need(operation_name_of("take[rows=100,handle=kept]"), "read"),
    "pushdown": Need(operation_name_of("scan[selectivity=0.01,kind=range]"), "read"),
}
"""Measured abilities by their names on the command line."""


@dataclass(frozen=True)
class Met:
    """Whether a candidate has a required ability. `ratio` is the time for the part divided by the time for the whole,
    or None if the times were not measured."""

    need: str
    reason: str
    """Why the candidate lacks the ability. Empty if it has the ability."""
    operation: str = ""
    ratio: Ratio | None = None

    @property
    def told(self) -> str:
        """The ability with its evidence: 'random-access (take[rows=100,handle=kept] takes 0.02 of reading all, 0.018 to
        0.024)'."""
        if self.ratio is None:
            return f"{self.need} (declared, not measured here)" if self.need in MEASURED else self.need
        return f"{self.need} ({_share_text(self.operation, MEASURED[self.need].whole, self.ratio)})"


def judged(candidate: Candidate, need: str, *, measured: bool = True) -> Met:
    """Return whether a candidate has a required ability. Set `measured=False` to ignore times, for example on few rows,
    where fixed costs dominate."""
    about = MEASURED.get(need)
    operation = _measured_operation(candidate, about) if about is not None else ""
    if about is None or not operation:
        if candidate.capabilities is None:
            return Met(need, "the run did not record its abilities")
        return Met(need, "" if need in candidate.capabilities else f"{CANNOT}: {need}")
    if instead := candidate.stands_in(operation):
        return Met(need, f"lacks {need}: {operation} by {instead}")
    ratio = ratio_interval(candidate.figures[operation], candidate.figures[about.whole]) if measured else None
    lacks = ratio is not None and ratio.ratio > MOST_OF_ALL
    reason = f"lacks {need}: {_share_text(operation, about.whole, ratio)}" if lacks and ratio is not None else ""
    return Met(need, reason, operation, ratio)


def _measured_operation(candidate: Candidate, about: Need) -> str:
    """Return the operation that measures the ability. If this operation has no time, return the first operation of the
    same name that has a time. Return '' if there is none."""
    names = (cell.cell.operation for cell in candidate.cells.values())
    known = [name for name in names if name.name == about.operation.name]
    known.sort(key=lambda name: name != about.operation)
    return next((name for name in known if candidate.figures.get(name)), "")


def _share_text(operation: str, whole: str, ratio: Ratio) -> str:
    interval = ""
    if ratio.low is not None and ratio.high is not None:
        interval = f", {number_text(ratio.low)} to {number_text(ratio.high)}"
    all_of_it = "reading all" if whole == "read" else "saving all"
    return f"{operation} takes {number_text(ratio.ratio)} of {all_of_it}{interval}"
