"""Print whether each variant stores each kind of column or document exactly, with losses, or not at all. Print on the
terminal and as Markdown."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.markup import escape
from rich.table import Table as Grid

from bench_runner.results.records import Run
from bench_runner.variants import Variant
from reports.analysis.fidelity import MEANING, PAIRS, Matrix, matrices
from reports.text.page import page_for, print_lines

_COLUMNS_WIDE = 18
"""Number of variants that fit next to each other on a terminal."""


def show_fidelity(run: Run, console: Console) -> None:
    """Print the fidelity matrices of a run. The column headers are letters, and a list below each matrix gives the
    variant of each letter."""
    page = page_for(console)
    found = matrices(run)
    if not found:
        print_lines(page, ["This run has no fidelity results (fidelity.jsonl)."])
    for matrix in found:
        page.print()
        print_lines(page, [f"fidelity: what comes back, {matrix.title}"], style="bold")
        variants = list(matrix.labels)
        for start in range(0, len(variants), _COLUMNS_WIDE):
            page.print(_grid(matrix, variants[start : start + _COLUMNS_WIDE], start))
        print_lines(page, [MEANING, *([PAIRS] if matrix.with_nulls else [])])
        print_lines(page, _spelled_out(matrix))


def _letter(place: int) -> str:
    return chr(ord("a") + place) if place < 26 else f"a{chr(ord('a') + place - 26)}"


def _grid(matrix: Matrix, variants: list[Variant], start: int) -> Grid:
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
        yield f"lost by the target itself, {kind}: {'; '.join(texts)}"


def fidelity_markdown(run: Run) -> str:
    """Return the fidelity matrices of a run as Markdown. A list below each matrix describes every loss and refusal in
    words."""
    parts = []
    for matrix in matrices(run):
        head = ["kind", *matrix.labels.values(), "lost by the target itself"]
        lines = [f"### {matrix.title.capitalize()}", "", _markdown_row(head), _markdown_row(["---"] * len(head))]
        for kind in matrix.kinds:
            symbols = (f"`{matrix.symbols(variant, kind)}`" for variant in matrix.labels)
            lines.append(_markdown_row([kind, *symbols, "; ".join(matrix.target_alone.get(kind, ()))]))
        lines += ["", f"{MEANING}. {PAIRS if matrix.with_nulls else ''}".rstrip(), ""]
        for variant, label in matrix.labels.items():
            for words, kinds in matrix.details(variant).items():
                lines.append(f"- **{label}**, {', '.join(kinds)}: {words}")
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"


def _markdown_row(cells: list[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
