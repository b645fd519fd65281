"""Draw the PDF's pages about fidelity: matrices of signs that show what each variant does to each kind of column."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from bench_runner.results.records import Run
from reports.analysis.fidelity import Matrix
from reports.analysis.sections import TITLES, Contents
from reports.pdf.page import FAINT, TEXT, above_foot, in_two_lines, new_page, spaced

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_KINDS = 60
"""Number of kinds of columns that fit on a page. Two matrices share a page if each has at most half of this number."""
_LABEL_LETTERS = 32
"""Number of characters of a variant's name that fit above a matrix. Longer names take two lines, and the longest names
have smaller type."""
_OUTCOME_COLOURS = {"exact": "#deebf7", "lossy": "#fdb863", "refused": "#bdbdbd", "error": "#b35806"}
_OUTCOME_SIGNS = {"exact": "", "lossy": "~", "refused": "×", "error": "!"}


def fidelity_pages(contents: Contents) -> Iterator[Figure]:
    """Yield pages with all matrices of a run."""
    for group in _shared(contents.matrices):
        yield _page(contents.run, group)


def _shared(found: Sequence[Matrix]) -> list[list[tuple[Matrix, tuple[str, ...]]]]:
    """Return the matrices of each page, each with the kinds of columns to show. A page has either one long matrix or
    two short ones."""
    pages: list[list[tuple[Matrix, tuple[str, ...]]]] = []
    for matrix in found:
        for start in range(0, len(matrix.kinds), MOST_KINDS):
            kinds = matrix.kinds[start : start + MOST_KINDS]
            before = pages[-1] if pages else []
            if len(before) == 1 and max(len(kinds), len(before[0][1])) <= MOST_KINDS // 2:
                before.append((matrix, kinds))
            else:
                pages.append([(matrix, kinds)])
    return pages


def _page(run: Run, parts: Sequence[tuple[Matrix, tuple[str, ...]]]) -> Figure:
    figure = new_page(
        run, TITLES["fidelity"], "each kind of column, without nulls (left half) and with nulls (right half)"
    )
    foot = above_foot(run, 0.058)
    top, bottom, labels, row = 0.925, foot + 0.037, 0.125, 0.0165
    room = (top - bottom) / len(parts) - labels
    for matrix, kinds in parts:
        height = min(room, row * len(kinds))
        _draw(figure.add_axes((0.19, top - labels - height, 0.775, height)), matrix, kinds)
        top -= labels + height
    _legend(figure, [matrix for matrix, _ in parts], foot)
    return figure


def _draw(axes: Axes, matrix: Matrix, kinds: Sequence[str]) -> None:
    from matplotlib.collections import PatchCollection
    from matplotlib.patches import Rectangle

    variants = list(matrix.labels)
    cells = []
    for across, variant in enumerate(variants):
        for down, kind in enumerate(kinds):
            for half, verdict in enumerate(matrix.cells.get((variant, kind), (None, None))):
                outcome = verdict.outcome if verdict else ""
                left = across + half * 0.47
                cells.append(Rectangle((left, down), 0.45, 0.88, facecolor=_OUTCOME_COLOURS.get(outcome, "white")))
                if not _OUTCOME_SIGNS.get(outcome):
                    continue
                colour = "white" if outcome == "error" else TEXT
                axes.text(
                    left + 0.225,
                    down + 0.46,
                    _OUTCOME_SIGNS[outcome],
                    fontsize=6.5,
                    ha="center",
                    va="center",
                    color=colour,
                    fontweight="bold",
                )
    # All rectangles are one matplotlib artist, because drawing thousands separately takes seconds.
    axes.add_collection(PatchCollection(cells, match_original=True), autolim=False)
    axes.set_xlim(0, max(len(variants), 1))
    axes.set_ylim(len(kinds), 0)
    axes.set_xticks([place + 0.46 for place in range(len(variants))])
    names = [in_two_lines(spaced(matrix.labels[name])) for name in variants]
    longest = max((len(line) for name in names for line in name.splitlines()), default=1)
    axes.set_xticklabels(
        names,
        rotation=60,
        ha="left",
        va="bottom",
        rotation_mode="anchor",
        fontsize=6.5 * min(1, _LABEL_LETTERS / longest),
    )
    axes.set_yticks([place + 0.45 for place in range(len(kinds))])
    told = [f"{kind} †" if kind in matrix.target_alone else kind for kind in kinds]
    axes.set_yticklabels(told, fontsize=6.5)
    axes.xaxis.tick_top()
    axes.tick_params(length=0, pad=2)
    axes.spines[:].set_visible(False)
    axes.text(
        -0.18,
        1.01,
        matrix.title.replace(", ", "\n"),
        transform=axes.transAxes,
        fontsize=8.5,
        fontweight="bold",
        va="bottom",
        ha="left",
    )


def _legend(figure: Figure, found: Sequence[Matrix], foot: float) -> None:
    from matplotlib.patches import Patch

    meanings = {
        "exact": "exact",
        "lossy": "~  lossy, as declared",
        "refused": "×  refused with an error",
        "error": "!  wrong: a change without a bound",
    }
    patches = [Patch(facecolor=_OUTCOME_COLOURS[name], label=text) for name, text in meanings.items()]
    place = (0.04, foot + 0.008)
    figure.legend(handles=patches, loc="lower left", bbox_to_anchor=place, ncols=4, frameon=False, fontsize=7)
    if any(matrix.target_alone for matrix in found):
        note = "† the target itself already loses something, without any format; 'report RUN --fidelity' lists it"
        figure.text(0.05, foot, note, fontsize=6, color=FAINT, va="bottom")
