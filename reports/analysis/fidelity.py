"""What each variant does to each kind of column: exact, lossy or refused, for each target, with what the
target alone already loses. A pure function of stored verdicts, for the terminal and as Markdown.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from rich.console import Console
from rich.markup import escape
from rich.table import Table as Grid

from bench_runner.results.records import Fidelity, Run
from bench_runner.results.statistics import is_raw_io
from reports.analysis.tables import short_labels
from reports.text.terminal import page_for, print_lines

SYMBOLS = {"exact": "+", "lossy": "~", "refused": "x", "error": "!"}
UNKNOWN = " "
MEANING = "+ exact   ~ lossy   x refused   ! wrong: a change without a bound"
PAIRS = "Each cell is the kind without nulls and with nulls."
_COLUMNS_WIDE = 18
"""Variants that fit beside each other on a terminal."""


@dataclass(frozen=True)
class Matrix:
    """The verdicts for one target: `cells` by variant and kind, each without and with nulls (None: not
    tried)."""

    target: str
    strings: str
    labels: Mapping[str, str]
    """By variant, in order."""
    kinds: tuple[str, ...]
    cells: Mapping[tuple[str, str], tuple[Fidelity | None, Fidelity | None]]
    target_alone: Mapping[str, tuple[str, ...]]
    """By kind, what the target loses without any format."""

    @property
    def title(self) -> str:
        """'target pandas, strings as str'."""
        return f"target {self.target}" + (f", strings as {self.strings}" if self.target == "pandas" else "")

    def symbols(self, variant: str, kind: str) -> str:
        """Two characters: the kind without nulls and with nulls."""
        pair = self.cells.get((variant, kind), (None, None))
        return "".join(SYMBOLS.get(verdict.outcome, "?") if verdict else UNKNOWN for verdict in pair)

    def details(self, variant: str) -> dict[str, tuple[str, ...]]:
        """What is not exact, in words, each with the kinds that it befalls."""
        found: dict[str, list[str]] = {}
        for kind in self.kinds:
            pair = self.cells.get((variant, kind), (None, None))
            words = [_words(verdict) if verdict and verdict.outcome != "exact" else "" for verdict in pair]
            if words[0] and words[0] == words[1]:
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
    """One matrix for each target and way of holding strings that the run has verdicts for."""
    groups: dict[tuple[str, str], list[Fidelity]] = {}
    for verdict in run.fidelity:
        groups.setdefault((verdict.target, verdict.strings), []).append(verdict)
    return [_matrix(target, strings, group) for (target, strings), group in groups.items()]


def _matrix(target: str, strings: str, group: list[Fidelity]) -> Matrix:
    cells: dict[tuple[str, str], tuple[Fidelity | None, Fidelity | None]] = {}
    alone: dict[str, dict[str, None]] = {}
    for verdict in group:
        without, with_nulls = cells.get((verdict.variant, verdict.kind), (None, None))
        pair = (without, verdict) if verdict.nulls else (verdict, with_nulls)
        cells[verdict.variant, verdict.kind] = pair
        if verdict.target_alone:
            alone.setdefault(verdict.kind, {})[verdict.target_alone] = None
    variants = sorted({verdict.variant for verdict in group if not is_raw_io(verdict.variant)})
    return Matrix(
        target,
        strings,
        short_labels(variants),
        tuple(dict.fromkeys(verdict.kind for verdict in group)),
        cells,
        {kind: tuple(texts) for kind, texts in alone.items()},
    )


def show_fidelity(run: Run, console: Console) -> None:
    """Print the matrices; columns are letters that the lines below spell out."""
    page = page_for(console)
    found = matrices(run)
    if not found:
        print_lines(page, ["this run holds no verdicts on kinds of columns (fidelity.jsonl)"])
    for matrix in found:
        page.print()
        print_lines(page, [f"what comes back, {matrix.title}"], style="bold")
        variants = list(matrix.labels)
        for start in range(0, len(variants), _COLUMNS_WIDE):
            page.print(_grid(matrix, variants[start : start + _COLUMNS_WIDE], start))
        print_lines(page, [MEANING, PAIRS])
        print_lines(page, _spelled_out(matrix))


def _letter(place: int) -> str:
    return chr(ord("a") + place) if place < 26 else f"a{chr(ord('a') + place - 26)}"


def _grid(matrix: Matrix, variants: list[str], start: int) -> Grid:
    grid = Grid(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold")
    grid.add_column("kind", overflow="fold")
    for place in range(len(variants)):
        grid.add_column(_letter(start + place), no_wrap=True, min_width=2)
    for kind in matrix.kinds:
        grid.add_row(escape(kind), *(matrix.symbols(variant, kind) for variant in variants))
    return grid


def _spelled_out(matrix: Matrix) -> Iterator[str]:
    for place, (variant, label) in enumerate(matrix.labels.items()):
        details = matrix.details(variant)
        yield f"{_letter(place)}  {label}{'' if details else ': exact'}"
        for words, kinds in details.items():
            yield f"   {', '.join(kinds)}: {words}"
    for kind, texts in matrix.target_alone.items():
        yield f"the target alone, {kind}: {'; '.join(texts)}"


def fidelity_markdown(run: Run) -> str:
    """The matrices as Markdown, with every loss and refusal in words."""
    parts = []
    for matrix in matrices(run):
        head = ["kind", *matrix.labels.values(), "the target alone loses"]
        lines = [f"### {matrix.title.capitalize()}", "", _markdown_row(head), _markdown_row(["---"] * len(head))]
        for kind in matrix.kinds:
            symbols = (f"`{matrix.symbols(variant, kind)}`" for variant in matrix.labels)
            lines.append(_markdown_row([kind, *symbols, "; ".join(matrix.target_alone.get(kind, ()))]))
        lines += ["", f"{MEANING}. {PAIRS}", ""]
        for variant, label in matrix.labels.items():
            for words, kinds in matrix.details(variant).items():
                lines.append(f"- **{label}**, {', '.join(kinds)}: {words}")
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"


def _markdown_row(cells: list[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
