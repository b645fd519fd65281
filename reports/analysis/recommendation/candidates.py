"""The variants that a recommendation chooses from, with their figures by round, and why some of them drop out.

All tracks of a run are together here: a codec is part of the choice.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from bench_runner.results.information import READ, MaturityInfo, VariantInfo
from bench_runner.results.records import Cell, Conditions, Failure, Run, changed
from bench_runner.results.statistics import MISMATCH, CellSummary, smallest_shown, summarise
from bench_runner.variants import Variant
from reports.analysis.columns import READ_PEAK, READ_TIME, SAVE_PEAK, SAVE_TIME, SIZE
from reports.analysis.recommendation.preferences import STAGES
from reports.analysis.recommendation.projection import projected

FIGURES = {
    "read": READ_TIME,
    "save": SAVE_TIME,
    "size": SIZE,
    "read_memory": READ_PEAK,
    "save_memory": SAVE_PEAK,
}
"""What can be weighed of save and read. Of every other operation it is the time, under its spelling."""
_WHOLE = {column.operation for column in FIGURES.values()}
OPENING = "open "
"""Before the spelling of an operation: opening the copy that stays open for it, which lies outside its time."""
NOT_COUNTED, CHANGES, CANNOT = "no round was counted", "changes this data", "cannot"
NO_FIGURE = "no figure of"
"""Why a variant drops out: the words before the colon, where more is to be said."""
_NEEDS_MET = {"take": "random-access", "scan": "pushdown"}
"""By the operations that may be among a variant's partial reads."""


@dataclass(frozen=True)
class Question:
    """One data set on one machine under one set of conditions (its track is empty: all stand together)."""

    dataset: str
    rows: int
    machine: str
    conditions: Conditions


@dataclass(frozen=True, eq=False)
class Candidate:
    """One variant. `figures`: what can be weighed -> round -> value, in ns or bytes, counted rounds alone."""

    variant: Variant
    figures: Mapping[str, Mapping[int, float]]
    cells: Mapping[str, CellSummary]
    """By operation."""
    encodings: tuple[str, ...]
    capabilities: frozenset[str] | None
    """With the needs that its partial reads meet: what these cost, times show where there are any. None where the run
    does not tell."""
    title: str = ""
    """Of its format, for people; empty where the run does not tell."""
    maturity: MaturityInfo | None = None
    """None where nobody tells."""

    @property
    def stage(self) -> str:
        """How far its format has come; of whoever says nothing nothing is claimed."""
        return self.maturity.stage if self.maturity is not None else STAGES[1]

    @property
    def rounds(self) -> frozenset[int]:
        """The rounds in which save and read were counted both."""
        return frozenset.intersection(*(frozenset(self.figures.get(name, {})) for name in FIGURES))

    @property
    def losses(self) -> tuple[str, ...]:
        """What the read was found to change of this data; empty for an exact one."""
        read = self.cells.get(READ)
        return read.losses if read is not None else ()

    @property
    def reason(self) -> str:
        """Why there are no figures, or none that count: in a round it gave other data, or ended its process. Empty
        where there are."""
        failures = self._failures(_WHOLE)
        if wrong := _wrong(failures):
            return wrong
        if self.rounds:
            return ""
        return f"{failures[0].kind}: {failures[0].reason}" if failures else NOT_COUNTED

    @property
    def unknown(self) -> bool:
        """Whether it was measured without failing, and no round of it counts: the machine was not at rest."""
        return not self.rounds and not self._failures(_WHOLE)

    def _failures(self, operations: Collection[str]) -> list[Failure]:
        return [failure for name, cell in self.cells.items() if name in operations for failure in cell.failures]

    def lacks(self, operation: str) -> str:
        """Why there is no time of an operation that may be compared; empty where there is one."""
        cell = self.cells.get(operation)
        if cell is not None and cell.cached:
            return "its library answers calls from its own memory, which is no figure of the format"
        failures = self._failures((operation,))
        if wrong := _wrong(failures):
            return wrong
        if self.figures.get(operation):
            return ""
        if failures:
            return f"{failures[0].kind}: {failures[0].reason}"
        return NOT_COUNTED if cell is not None else "not measured"

    def stands_in(self, operation: str) -> str:
        """What stood for a call that it does not have ('read-all', 'rewrite'); empty where it has one."""
        cell = self.cells.get(operation)
        return cell.fallback if cell is not None else ""


def _wrong(failures: Sequence[Failure]) -> str:
    """The first of these that no other round makes up for; empty without one."""
    return next((f"{each.kind}: {each.reason}" for each in failures if each.kind in (MISMATCH, "crash")), "")


@dataclass(frozen=True, eq=False)
class RunSummary:
    """A run, summarised once. `questions` has its candidates in the order of its samples, without raw I/O; those that
    were read through a service only if nothing was read without one."""

    run: Run
    cells: Mapping[Cell, CellSummary]
    questions: Mapping[Question, Sequence[Candidate]]


def summary_of(run: Run) -> RunSummary:
    """Summarise a run."""
    cells = summarise(run.samples)
    questions = _questions(run, cells)
    local = {question: candidates for question, candidates in questions.items() if not question.conditions.network}
    return RunSummary(run, cells, local or questions)


def _questions(run: Run, summaries: Mapping[Cell, CellSummary]) -> dict[Question, Sequence[Candidate]]:
    least_bytes = smallest_shown(run.info)
    encodings: dict[tuple[str, str], tuple[str, ...]] = {}
    for sample in run.samples:
        if sample.encodings:
            encodings[sample.dataset, sample.variant] = sample.encodings
    grouped: dict[Question, dict[Variant, dict[str, CellSummary]]] = {}
    for cell, summary in summaries.items():
        if cell.variant.is_raw_io:
            continue
        question = Question(cell.dataset, cell.rows, cell.machine, changed(cell.conditions, track=""))
        # A variant that several suites or tracks measure is one all the same: the first stands.
        cells = grouped.setdefault(question, {}).setdefault(cell.variant, {})
        cells.setdefault(cell.operation, summary)
    return {
        question: [
            Candidate(
                variant,
                _figures(cells, least_bytes),
                cells,
                encodings.get((question.dataset, variant), ()),
                *_described(run.info.variants.get(variant, VariantInfo())),
            )
            for variant, cells in by_variant.items()
        ]
        for question, by_variant in grouped.items()
    }


def whole_rows(run: Run, dataset: str) -> int | None:
    """How many rows the table has of which this data set is a sample; None where it is all of it."""
    about = run.info.datasets.get(dataset)
    return None if about is None else about.whole_rows


def project_candidates(
    candidates: Sequence[Candidate], fewer: Sequence[Candidate], sizes: tuple[int, int, int]
) -> list[Candidate]:
    """Return the candidates with each figure projected to all rows. `fewer` are the same on fewer rows of the same
    sample, `sizes` the rows of these, of the candidates, and all rows."""
    smaller = {candidate.variant: candidate.figures for candidate in fewer}
    return [
        replace(
            candidate,
            figures={
                name: projected(smaller.get(candidate.variant, {}).get(name, {}), values, sizes)
                for name, values in candidate.figures.items()
            },
        )
        for candidate in candidates
    ]


def _figures(cells: Mapping[str, CellSummary], least_bytes: int) -> dict[str, dict[int, float]]:
    """Memory under what the probe can tell counts as that, as in every ranking (rule 13)."""
    found: dict[str, dict[int, float]] = {}
    for name, column in FIGURES.items():
        values = cells[column.operation].by_round.get(column.figure, {}) if column.operation in cells else {}
        least = max(least_bytes, 1) if column.is_memory else 1
        found[name] = {number: float(max(value, least)) for number, value in values.items()}
    for operation, cell in cells.items():
        if operation not in _WHOLE:
            for name, figure in ((operation, "wall_ns"), (OPENING + operation, "open_ns")):
                if values := cell.by_round.get(figure, {}):
                    found[name] = {number: float(max(value, 1)) for number, value in values.items()}
    return found


def _described(about: VariantInfo) -> tuple[frozenset[str] | None, str, MaturityInfo | None]:
    """Capabilities, title and maturity."""
    if about.capabilities is None:
        return None, about.title, about.maturity
    met = (need for operation, need in _NEEDS_MET.items() if operation in (about.partial_reads or ()))
    return frozenset((*about.capabilities, *met)), about.title, about.maturity
