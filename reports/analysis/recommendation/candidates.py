"""Collect the candidates of a recommendation with their figures by round, and the reasons why some candidates drop out.

A track is a rule by which a run chose codecs. The tracks of a run are merged here, because the codec is part of the
recommendation.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from bench_runner.data_kinds import kind_of_target
from bench_runner.results.information import READ, MaturityInfo, VariantInfo
from bench_runner.results.records import Cell, Conditions, Failure, Run, changed
from bench_runner.results.statistics import MISMATCH, CellSummary, smallest_shown, summarise
from bench_runner.variants import Variant
from reports.analysis.columns import READ_PEAK, READ_TIME, SAVE_PEAK, SAVE_TIME, SIZE
from reports.analysis.recommendation.preferences import STAGES, Preferences
from reports.analysis.recommendation.projection import projected

FIGURES = {"read": READ_TIME, "save": SAVE_TIME, "size": SIZE, "read_memory": READ_PEAK, "save_memory": SAVE_PEAK}
"""Figures of save and read that can have a weight. Any other operation has one figure, its time. The name of that
figure is the operation with its parameters."""
_WHOLE = {column.operation for column in FIGURES.values()}
OPENING = "open "
"""Prefix of the name of a figure: the time to open the copy that stays open during an operation. The operation with its
parameters follows the prefix. The time of the operation itself excludes the time to open."""
NOT_COUNTED, CHANGES, CANNOT = "no round was counted", "changes this data", "cannot"
NO_FIGURE = "no figure of"
"""First words of the reasons why a variant drops out. A colon and details may follow."""
_NEEDS_MET = {"take": "random-access", "scan": "pushdown"}
"""Maps a partial read that a variant declares to the ability that a user may require."""


@dataclass(frozen=True)
class Question:
    """One data set on one machine under one set of conditions. The condition `track` is empty, because all tracks are
    merged."""

    dataset: str
    rows: int
    machine: str
    conditions: Conditions


@dataclass(frozen=True, eq=False)
class Candidate:
    """One variant that may be recommended. `figures` maps name -> round -> value in ns or bytes, and has only counted
    rounds."""

    variant: Variant
    figures: Mapping[str, Mapping[int, float]]
    cells: Mapping[str, CellSummary]
    """The summary of each operation."""
    encodings: tuple[str, ...]
    capabilities: frozenset[str] | None
    """Abilities that the format declares, including those that its partial reads imply. If an ability was also
    measured, the measured times decide. None if the run did not record abilities."""
    title: str = ""
    """Title of the variant's format; empty if the run did not record the title."""
    maturity: MaturityInfo | None = None
    """The maturity that the format declares, or None if it declares none."""

    @property
    def stage(self) -> str:
        """The maturity of the variant's format; 'young' if the format declares none."""
        return self.maturity.stage if self.maturity is not None else STAGES[1]

    projected_rows: int | None = None
    """Number of rows of the whole table if `figures` are projected to it. `cells` are always those of the sample. None
    if `figures` are those of the sample, too."""
    decisive: tuple[str, ...] = tuple(FIGURES)
    """The figures of save and read that a round must have in order to count. Rounds without them do not affect the
    ranking."""

    @property
    def rounds(self) -> frozenset[int]:
        """The rounds that have all figures named in `decisive`."""
        return frozenset.intersection(*(frozenset(self.figures.get(name, {})) for name in self.decisive))

    @property
    def losses(self) -> tuple[str, ...]:
        """What saving and reading changes in this data; empty if nothing changes."""
        read = self.cells.get(READ)
        return read.losses if read is not None else ()

    @property
    def reason(self) -> str:
        """Why there are no valid figures, e.g. because a round returned other data or crashed. Empty if there are valid
        figures."""
        failures = self._failures(_WHOLE)
        if wrong := _wrong(failures):
            return wrong
        if self.rounds:
            return ""
        return f"{failures[0].kind}: {failures[0].reason}" if failures else NOT_COUNTED

    @property
    def unknown(self) -> bool:
        """Whether the result is unknown: nothing failed, but no round was counted, because the machine was busy."""
        return not self.rounds and not self._failures(_WHOLE)

    def _failures(self, operations: Collection[str]) -> list[Failure]:
        return [failure for name, cell in self.cells.items() if name in operations for failure in cell.failures]

    def lacks(self, operation: str) -> str:
        """Return why the time of an operation is missing or cannot be compared. Return '' if the time can be
        compared."""
        cell = self.cells.get(operation)
        if cell is not None and cell.cached and not _counts_own_memory(cell):
            return "its library answers calls from its own cache, which says nothing about the format"
        failures = self._failures((operation,))
        if wrong := _wrong(failures):
            return wrong
        if self.figures.get(operation):
            return ""
        if failures:
            return f"{failures[0].kind}: {failures[0].reason}"
        return NOT_COUNTED if cell is not None else "not measured"

    def answers_from_memory(self, operation: str) -> bool:
        """Return True if the library answered an operation from its own memory, and if such times are ranked for this
        kind of data."""
        cell = self.cells.get(operation)
        return cell is not None and cell.cached and _counts_own_memory(cell)

    def stands_in(self, operation: str) -> str:
        """Return the fallback for a missing call ('read-all', 'rewrite'), or '' if the variant has the call."""
        cell = self.cells.get(operation)
        return cell.fallback if cell is not None else ""


def _counts_own_memory(cell: CellSummary) -> bool:
    return kind_of_target(cell.cell.conditions.target).counts_own_memory


def _wrong(failures: Sequence[Failure]) -> str:
    """Return the first failure that excludes a variant even if other rounds succeeded. Return '' if there is none."""
    return next((f"{each.kind}: {each.reason}" for each in failures if each.kind in (MISMATCH, "crash")), "")


@dataclass(frozen=True, eq=False)
class RunSummary:
    """The summary of a run. For each data set and set of conditions, `questions` has the candidates, in the order of
    the samples and without raw I/O.

    Conditions with a network are left out if the run also has conditions without one.
    """

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
        # If several suites or tracks measured a variant, only its first cell for each operation is used.
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


def is_cold(conditions: Conditions) -> bool:
    """Return whether reads come from the device. Their times then include its bandwidth."""
    return conditions.cache.startswith("cold")


def for_preferences(candidates: Iterable[Candidate], preferences: Preferences) -> list[Candidate]:
    """Return the candidates with `decisive` set to the figures that a round needs in order to count. If only the size
    has a weight, a round needs no times, so rounds on a busy machine also count."""
    decisive = ("size",) if preferences.needs_size_alone else tuple(FIGURES)
    return [replace(candidate, decisive=decisive) for candidate in candidates]


def whole_rows(run: Run, dataset: str) -> int | None:
    """Return the number of rows of the whole table if this data set is a sample of a table, else None."""
    about = run.info.datasets.get(dataset)
    return None if about is None else about.whole_rows


def project_candidates(
    candidates: Sequence[Candidate], fewer: Sequence[Candidate], sizes: tuple[int, int, int]
) -> list[Candidate]:
    """Return the candidates with each figure projected to all rows of the table.

    `fewer` has the same variants measured on a smaller sample. `sizes` are three numbers of rows: of the sample of
    `fewer`, of the sample of `candidates`, and of the whole table.
    """
    smaller = {candidate.variant: candidate.figures for candidate in fewer}
    return [
        replace(
            candidate,
            figures={
                name: projected(smaller.get(candidate.variant, {}).get(name, {}), values, sizes)
                for name, values in candidate.figures.items()
            },
            projected_rows=sizes[-1],
        )
        for candidate in candidates
    ]


def _figures(cells: Mapping[str, CellSummary], least_bytes: int) -> dict[str, dict[int, float]]:
    """Return figures by name and round. Memory below the smallest measurable value counts as that value (rule 13 in
    docs/method.md)."""
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
    if about.capabilities is None:
        return None, about.title, about.maturity
    met = (need for operation, need in _NEEDS_MET.items() if operation in (about.partial_reads or ()))
    return frozenset((*about.capabilities, *met)), about.title, about.maturity
