"""The variants that a recommendation chooses from, with their figures by round, and why some of them drop out.

All tracks of a run stand together here: a codec is part of the choice. Everything comes from stored samples; nothing is
measured, and no format is known by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from bench_runner.results.information import READ, MaturityInfo
from bench_runner.results.records import Conditions, Run, changed
from bench_runner.results.statistics import CellSummary, is_apart, is_raw_io, smallest_shown, summarise
from reports.analysis.columns import READ_PEAK, READ_TIME, SAVE_PEAK, SAVE_TIME, SIZE
from reports.analysis.recommendation.preferences import STAGES, Preferences
from reports.analysis.recommendation.projection import Measured, by_round

FIGURES = {
    "read": READ_TIME,
    "save": SAVE_TIME,
    "size": SIZE,
    "read_memory": READ_PEAK,
    "save_memory": SAVE_PEAK,
}
"""What can be weighed: figures of save and read alone."""
_WEIGHED = {column.operation for column in FIGURES.values()}
NOT_COUNTED, CHANGES, CANNOT = "no round was counted", "changes this data", "cannot"
"""Why a variant drops out: the words before the colon, where more is to be said."""


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

    variant: str
    figures: Mapping[str, Mapping[int, float]]
    cells: Mapping[str, CellSummary]
    """By operation; of those alone that can be weighed."""
    encodings: tuple[str, ...]
    capabilities: frozenset[str] | None
    """None where the run does not tell."""
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
        """Why there are no figures; empty where there are."""
        if self.rounds:
            return ""
        failures = [failure for cell in self.cells.values() for failure in cell.failures]
        return f"{failures[0].kind}: {failures[0].reason}" if failures else NOT_COUNTED

    @property
    def unknown(self) -> bool:
        """Whether it was measured without failing, and no round of it counts: the machine was not at rest."""
        return not self.rounds and not any(cell.failures for cell in self.cells.values())


def questions(run: Run) -> dict[Question, list[Candidate]]:
    """All candidates of a run by question, in the order of its samples; without raw I/O."""
    least_bytes = smallest_shown(run.info)
    encodings: dict[tuple[str, str], tuple[str, ...]] = {}
    for sample in run.samples:
        if sample.encodings:
            encodings[sample.dataset, sample.variant] = sample.encodings
    grouped: dict[Question, dict[str, dict[str, CellSummary]]] = {}
    for cell, summary in summarise(run.samples).items():
        if is_raw_io(cell.variant) or cell.operation not in _WEIGHED:
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
                *_described(run, variant),
            )
            for variant, cells in by_variant.items()
        ]
        for question, by_variant in grouped.items()
    }


def whole_rows(run: Run, dataset: str) -> int | None:
    """How many rows the table has of which this data set is a sample; None where it is all of it."""
    about = run.info.datasets.get(dataset)
    return None if about is None else about.whole_rows


def projected(
    candidates: Sequence[Candidate], rows: int, fewer: Sequence[Candidate], fewer_rows: int, whole: int
) -> list[Candidate]:
    """The candidates with each figure as it would be on `whole` rows, by round, from two sizes of the same sample."""
    smaller = {candidate.variant: candidate for candidate in fewer}
    return [
        replace(
            candidate,
            figures={
                name: by_round(
                    Measured(
                        fewer_rows, smaller[candidate.variant].figures[name] if candidate.variant in smaller else {}
                    ),
                    Measured(rows, values),
                    whole,
                )
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
    return found


def _described(run: Run, variant: str) -> tuple[frozenset[str] | None, str, MaturityInfo | None]:
    """Capabilities, title and maturity."""
    about = run.info.variants.get(variant)
    if about is None:
        return None, "", None
    return None if about.capabilities is None else frozenset(about.capabilities), about.title, about.maturity


def sifted(
    candidates: Iterable[Candidate], preferences: Preferences, held_bytes: int
) -> tuple[list[Candidate], list[tuple[str, str]]]:
    """The candidates that satisfy every need, and the others with the reason, in their order.

    `held_bytes` is what the data take in memory: before a save they are in hand, beside its peak. A variant that
    changes this data drops out as long as another one does not; that one has to be recommendable, if the first is.
    """
    kept: list[Candidate] = []
    dropped: list[tuple[str, str]] = []
    for candidate in candidates:
        reason = candidate.reason or _unfit(candidate, preferences, held_bytes)
        if reason:
            dropped.append((candidate.variant, reason))
        else:
            kept.append(candidate)
    exact = [candidate for candidate in kept if not candidate.losses]
    exact_and_accepted = any(preferences.accepts(candidate.stage) for candidate in exact)
    for candidate in [candidate for candidate in kept if candidate.losses]:
        if exact_and_accepted or (exact and not preferences.accepts(candidate.stage)):
            dropped.append((candidate.variant, f"{CHANGES}: {candidate.losses[0]}"))
            kept.remove(candidate)
    return kept, dropped


def _unfit(candidate: Candidate, preferences: Preferences, held_bytes: int) -> str:
    if is_apart(candidate.variant):
        return "something else: gives back a mapping, views, or numbers in place of missing ones"
    if candidate.capabilities is None and preferences.needs:
        return "the run does not tell what it can do"
    for need in preferences.needs:
        if candidate.capabilities is not None and need not in candidate.capabilities:
            return f"{CANNOT}: {need}"
    limit_bytes = preferences.max_memory_bytes
    if limit_bytes is not None:
        # What a read gives back is part of its peak; what a save takes lies beside its own.
        saving = max(candidate.figures["save_memory"].values()) + held_bytes
        needed = max(saving, *candidate.figures["read_memory"].values())
        if needed > limit_bytes:
            return f"memory: needs {needed / 1e9:.2f} GB, at most {limit_bytes / 1e9:.2f} are allowed"
    return ""
