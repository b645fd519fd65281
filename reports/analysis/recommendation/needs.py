"""Judge needs by measured times: an operation on a part of a table must take much less time than on the whole table.

A format whose take costs as much as reading everything has no random access, whatever it declares. Declarations count
only if nothing was measured.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bench_runner.results.statistics import Ratio, ratio_interval
from bench_runner.variants import OperationName, operation_name_of
from reports.analysis.recommendation.candidates import CANNOT, Candidate
from reports.analysis.units import number_text

MOST_OF_ALL = 0.5
"""Largest share of the time for the whole table at which a need is met. Above it, the user saves less than half.

If everything is read for a part, the share is 1, or a little less because less is converted. For a real partial read it
is about the part's share of rows or columns, which is far lower, plus the time to find the part."""


@dataclass(frozen=True)
class Need:
    """A measured need: the time of `operation` (spelled) is compared with that of `whole`, 'read' or 'save'."""

    operation: OperationName
    whole: str


MEASURED: Mapping[str, Need] = {
    "append": Need(operation_name_of("append[rows=1000]"), "save"),
    "projection": Need(operation_name_of("project[columns=1]"), "read"),
    "random-access": Need(operation_name_of("take[rows=100,handle=kept]"), "read"),
    "pushdown": Need(operation_name_of("scan[selectivity=0.01,kind=range]"), "read"),
}
"""Measured needs by their names on the command line."""


@dataclass(frozen=True)
class Met:
    """Whether a candidate meets a need. `ratio` is the time for the part / the time for the whole, None if not
    measured."""

    need: str
    reason: str
    """Why the need is not met; empty if it is."""
    operation: str = ""
    ratio: Ratio | None = None

    @property
    def told(self) -> str:
        """A text such as 'random-access (take[rows=100,handle=kept] takes 0.02 of reading all, 0.018 to 0.024)'."""
        if self.ratio is None:
            return f"{self.need} (declared, not measured here)" if self.need in MEASURED else self.need
        return f"{self.need} ({_share_text(self.operation, MEASURED[self.need].whole, self.ratio)})"


def judged(candidate: Candidate, need: str, *, measured: bool = True) -> Met:
    """Judge one need. With `measured=False`, times are ignored, as for few rows, on which fixed costs dominate."""
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
    """Return the need's operation if it has a time, else the first operation of that name with a time, else ''."""
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
