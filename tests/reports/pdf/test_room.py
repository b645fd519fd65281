"""Texts on the PDF's pages neither overlap nor leave the page, however long names are."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import cast

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from bench_runner.results.records import Run, RunInfo
from reports.analysis.figures import Figures
from reports.analysis.sections import Contents
from reports.pdf import pages
from reports.pdf.charts import further_pages, row_name, table_pages
from reports.pdf.fidelity import fidelity_pages
from reports.pdf.lines import throughput_pages
from reports.pdf.page import lines_of
from tests.reports.factory import changed, make_run, make_sample
from tests.reports.invented_near_storage import near_storage_run
from tests.reports.pdf_text import written_on

STORES = tuple(
    f"document-store[layout={layout},way={way}]" for layout in ("amax", "vector") for way in ("rows", "columns")
)
POINT = 1 / 72
"""Inches: texts closer than this vertically are read as one."""
LONG = "V1 (rows), footers parsed, groups of 550, loopback at 1,000 Mbit/s"


def boxes(figure: Figure) -> Iterator[tuple[str, Bbox]]:
    """Return the positions of a page's texts.

    Labels of axes are excluded, because some are outside the visible part.
    """
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    ticks = [tick for axes in figure.axes for each in (axes.xaxis, axes.yaxis) for tick in each.get_major_ticks()]
    along = {label for tick in ticks for label in (tick.label1, tick.label2)}
    for text in figure.findobj(Text):
        if isinstance(text, Text) and text.get_text().strip() and text not in along:
            # The bounding box of an annotation's text, without its connecting line.
            yield text.get_text(), Text.get_window_extent(text, canvas.get_renderer())


def crowded(figures: Iterable[Figure]) -> list[tuple[str, ...]]:
    """Return the texts that overlap another text or leave the page."""
    found: list[tuple[str, ...]] = []
    for figure in figures:
        placed = list(boxes(figure))
        found += [(text,) for text, box in placed if box.x0 < 0 or box.x1 > figure.bbox.width]
        for (one, box), (other, beside) in itertools.combinations(placed, 2):
            across = min(box.x1, beside.x1) - max(box.x0, beside.x0)
            down = min(box.y1, beside.y1) - max(box.y0, beside.y0)
            if across > 0 and down > -POINT * figure.dpi:
                found.append((one, other))
    return found


def stores_run(uses: int = 2) -> Run:
    samples = tuple(
        make_sample(variant=variant, operation=operation, round=number)
        for variant in STORES
        for operation in ("save", "read", *(f"take[rows={rows}]" for rows in range(1, uses)))
        for number in (1, 2)
    )
    return replace(make_run(datasets=()), samples=samples, fidelity=(), info=RunInfo())


def test_labels_of_two_lines_touch_neither_their_neighbours_nor_their_figures() -> None:
    lines = tuple((label, ("-0.00527 ± 0.001",) * 4) for label in (LONG, "V2", LONG, LONG, LONG.replace("V1", "V2")))
    table = Figures("the curve", "way", ("a", "b", "c", "d"), lines, ("a note below the last of them",))
    drawn = list(pages.figures_pages(stores_run(), "curves", "", [table]))
    assert written_on(drawn).count("loopback at 1,000 Mbit/s") == 4
    assert not crowded(drawn)


def test_heads_of_neighbours_have_room() -> None:
    heads = ("range of 0.1%, 1 field, by scan peak memory", "ingest, 50% updates, 2 indexes peak memory") * 4
    table = Figures("means", "format", heads, (("bson", ("1.00",) * 8), ("json", ("12.50",) * 8)), ())
    assert not crowded(pages.figures_pages(stores_run(), "means", "", [table]))


def test_long_names_stay_in_their_columns_of_the_page_of_uses() -> None:
    contents = Contents(stores_run())
    drawn = list(pages.uses_pages(contents.run, contents.tables[0]))
    assert "document-store[layout=amax,way=rows]" in written_on(drawn)
    assert not crowded(drawn)


def test_uses_that_fill_a_page_go_on_on_the_next() -> None:
    contents = Contents(stores_run(uses=40))
    drawn = list(pages.uses_pages(contents.run, contents.tables[0]))
    assert len(drawn) > 1
    assert not crowded(drawn)


def test_labels_next_to_lines_have_room_and_a_single_chart_fills_its_page() -> None:
    contents = Contents(near_storage_run(rounds=1))
    lone = SimpleNamespace(run=contents.run, throughput_lines=contents.throughput_lines[:1])
    for part, least, most in ((lone, 0.6, 0.8), (contents, 0.2, 0.4)):
        drawn = list(throughput_pages(cast(Contents, part)))
        assert all(least < axes.get_position().width < most for figure in drawn for axes in figure.axes)
        assert not crowded(drawn)


def test_names_above_what_comes_back_stay_below_the_title() -> None:
    run = make_run(datasets=("eq",), tracks=("plain",), rounds=1)
    long = "parquet[reader=parquet,footers=parsed,row_group_rows=550]"
    first = run.fidelity[0].variant
    names = (long, long.replace("550", "660"), "parquet[reader=ranges]")
    renamed = [changed(each, variant=name) for each in run.fidelity if each.variant == first for name in names]
    for figure in fidelity_pages(Contents(replace(run, fidelity=tuple(renamed)))):
        assert not crowded([figure])
        title = figure.texts[0].get_window_extent()
        heads = [label for axes in figure.axes for label in axes.get_xticklabels()]
        assert any("row_group_rows=550" in head.get_text() for head in heads)
        assert max(head.get_window_extent().y1 for head in heads) < title.y0


def test_bars_are_named_like_the_lines_of_throughput() -> None:
    contents = Contents(near_storage_run(rounds=1))
    (table, *_) = contents.tables
    told = written_on([*table_pages(contents.run, table), *further_pages(contents.run, table)])
    assert "V1 (rows), footers parsed" in told
    assert "reader=" not in told


def test_names_are_broken_between_their_settings_alone() -> None:
    assert lines_of("document-store[layout=amax] 0.2 ms", 28) == ["document-store[layout=amax]", "0.2 ms"]
    assert lines_of("parquet[reader=parquet,footers=parsed]", 24) == ["parquet[reader=parquet,", "footers=parsed]"]
    assert lines_of("lance 1.2, orc 3.4, csv 5.6", 20, ", ") == ["lance 1.2, orc 3.4,", "csv 5.6"]
    assert row_name("document-store[layout=vector]") == "document-store [layout=vector]"
    assert row_name("document-store[layout=vector,way=columns]") == "document-store\n[layout=vector,way=columns]"
