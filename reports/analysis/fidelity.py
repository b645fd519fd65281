"""What each variant does to each kind of column: exact, lossy or refused, for each target, with what the
target alone already loses. A pure function of stored verdicts: how they are shown is none of its business.
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
PAIRS = "Each cell is the kind without nulls and with nulls; a kind that has no value has the latter alone."


@dataclass(frozen=True)
class Matrix:
    """The verdicts for one target: `cells` by variant and kind, each without and with nulls (None: not
    tried)."""

    target: str
    strings: str
    labels: Mapping[Variant, str]
    """By variant, in order."""
    kinds: tuple[str, ...]
    cells: Mapping[tuple[Variant, str], tuple[Fidelity | None, Fidelity | None]]
    target_alone: Mapping[str, tuple[str, ...]]
    """By kind, what the target loses without any format."""

    @property
    def title(self) -> str:
        """'target pandas, strings as str'."""
        return f"target {self.target}" + (f", strings as {self.strings}" if self.target == "pandas" else "")

    def symbols(self, variant: Variant, kind: str) -> str:
        """Two characters: the kind without nulls and with nulls."""
        pair = self.cells.get((variant, kind), (None, None))
        return "".join(SYMBOLS.get(verdict.outcome, "?") if verdict else UNKNOWN for verdict in pair)

    def details(self, variant: Variant) -> dict[str, tuple[str, ...]]:
        """What is not exact, in words, each with the kinds that it befalls."""
        found: dict[str, list[str]] = {}
        for kind in self.kinds:
            pair = self.cells.get((variant, kind), (None, None))
            words = [_words(verdict) if verdict and verdict.outcome != "exact" else "" for verdict in pair]
            if words[1] and (pair[0] is None or words[0] == words[1]):
                found.setdefault(words[1], []).append(kind)
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
    """One matrix for each target and way of holding strings that the run has verdicts for."""
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
