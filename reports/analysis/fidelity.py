"""Show whether each variant stores each kind of column exactly, with losses, or not at all.

A target is the library that the data are read into, such as pandas. Values that the target library itself cannot
represent are shown separately. All functions are pure functions of stored verdicts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bench_runner.results.records import Fidelity, Run
from bench_runner.variants import Variant, variant_of
from reports.analysis.labels import short_labels

SYMBOLS = {"exact": "+", "lossy": "~", "refused": "x", "error": "!"}
UNKNOWN = " "
MEANING = "+ exact   ~ lossy   x refused   ! wrong: a change without a bound"
PAIRS = (
    "Each entry has two signs: the kind without nulls, then with nulls. A kind without values has only the second sign."
)
"""How to read a matrix in which each kind was tried without nulls and with nulls."""


@dataclass(frozen=True)
class Matrix:
    """The verdicts for one target. `cells` has two verdicts for each variant and kind: without nulls and with nulls. A
    verdict is None if this combination was not tried."""

    target: str
    strings: str
    labels: Mapping[Variant, str]
    """Label of each variant, in display order."""
    kinds: tuple[str, ...]
    cells: Mapping[tuple[Variant, str], tuple[Fidelity | None, Fidelity | None]]
    target_alone: Mapping[str, tuple[str, ...]]
    """What the target library itself loses without any format, by kind of column."""

    @property
    def with_nulls(self) -> bool:
        """Whether kinds were tried both without and with nulls. This is so for columns, but not for documents, for
        which nulls are separate kinds."""
        return any(with_nulls is not None for _, with_nulls in self.cells.values())

    @property
    def title(self) -> str:
        """Title of the matrix, such as 'target pandas, strings as str'."""
        return f"target {self.target}" + (f", strings as {self.strings}" if self.target == "pandas" else "")

    def symbols(self, variant: Variant, kind: str) -> str:
        """Return two characters: one for the kind without nulls, one for the kind with nulls. For documents, return
        only the first character."""
        shown = self.cells.get((variant, kind), (None, None))[: 2 if self.with_nulls else 1]
        return "".join(SYMBOLS.get(verdict.outcome, "?") if verdict else UNKNOWN for verdict in shown)

    def details(self, variant: Variant) -> dict[str, tuple[str, ...]]:
        """Return each loss or refusal of a variant as printed, with the kinds of column that the loss or refusal
        affects."""
        found: dict[str, list[str]] = {}
        for kind in self.kinds:
            pair = self.cells.get((variant, kind), (None, None))
            words = [_words(verdict) if verdict and verdict.outcome != "exact" else "" for verdict in pair]
            if words[1] and (pair[0] is None or words[0] == words[1]):
                found.setdefault(words[1], []).append(kind)
                continue
            if words[0] and pair[1] is None:
                found.setdefault(words[0], []).append(kind)
                continue
            for text, name in zip(words, (f"{kind} without nulls", f"{kind} with nulls"), strict=True):
                if text:
                    found.setdefault(text, []).append(name)
        return {words: tuple(kinds) for words, kinds in found.items()}


def _words(verdict: Fidelity) -> str:
    causes = {"format": "by the format", "call": "by the default of the call", "target": "by the target"}
    parts = (verdict.how, verdict.bound, causes.get(verdict.cause, verdict.cause))
    return f"{verdict.outcome}: {', '.join(part for part in parts if part)}"


def matrices(run: Run) -> list[Matrix]:
    """Return one matrix for each target and each representation of strings for which the run has verdicts."""
    groups: dict[tuple[str, str], list[Fidelity]] = {}
    for verdict in run.fidelity:
        groups.setdefault((verdict.target, verdict.strings), []).append(verdict)
    return [_matrix(target, strings, group) for (target, strings), group in groups.items()]


def _matrix(target: str, strings: str, group: list[Fidelity]) -> Matrix:
    cells: dict[tuple[Variant, str], tuple[Fidelity | None, Fidelity | None]] = {}
    alone: dict[str, dict[str, None]] = {}
    for verdict in group:
        key = variant_of(verdict.variant), verdict.kind
        without, with_nulls = cells.get(key, (None, None))
        pair = (without, verdict) if verdict.nulls else (verdict, with_nulls)
        cells[key] = pair
        if verdict.target_alone:
            alone.setdefault(verdict.kind, {})[verdict.target_alone] = None
    variants = sorted({variant for variant, _ in cells if not variant.is_raw_io})
    return Matrix(
        target,
        strings,
        short_labels(variants),
        tuple(dict.fromkeys(verdict.kind for verdict in group)),
        cells,
        {kind: tuple(texts) for kind, texts in alone.items()},
    )
