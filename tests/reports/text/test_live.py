"""The live table of a run in progress, as plain text."""

from __future__ import annotations

import io
import itertools

import pytest
from rich.console import Console

from bench_runner.results.records import Failure, changed
from reports.analysis.live_tables import SoFar
from reports.text.live import Lines, Screen, Screens, status_line
from tests.reports.analysis.test_live_tables import fed
from tests.reports.factory import make_run, with_info

TWO = make_run(datasets=("eq", "core"), tracks=("plain",), rounds=5, project=True)


def printed(screen: Screen, width: int) -> list[str]:
    console = Console(record=True, width=width, file=io.StringIO())
    console.print(Lines(screen.lines))
    return console.export_text().splitlines()


def shown(so_far: SoFar, width: int = 120, height: int = 60, *, name: str = "") -> list[str]:
    place = next(place for place, named in so_far.names.items() if named.startswith(name))
    return printed(Screens(so_far).screen(place, width, height), width)


def line_of(lines: list[str], start: str) -> str:
    return next(line for line in lines if line.startswith(start))


def test_unmeasured_rows_show_pending_signs() -> None:
    lines = shown(fed(make_run(datasets=("eq",), tracks=("plain",)), most=0))
    assert lines[0] == "tabular: eq, 1,000,000 rows, track plain, cache warm, target pandas"
    assert [lines[1].split(), lines[2].split()] == [
        ["save", "read", "size", "save", "read"],
        ["format", "s", "s", "MB", "peak", "MB", "peak", "MB", "rounds"],
    ]
    assert line_of(lines, "pickle").split() == ["pickle", *["…"] * 6]
    assert len(lines) == 3 + 16


def test_rows_are_sorted_by_read_time_as_in_the_final_table() -> None:
    run = make_run(datasets=("eq",), tracks=("plain",), rounds=5)
    lines = shown(fed(run))
    assert lines[3].split() == ["pickle", "470", "±5%", "39.8", "±6%", "60.0", "67.8", "124", "5", "of", "5"]
    assert [line.split()[0] for line in lines[3:7]] == ["pickle", "feather", "lance", "parquet"]
    assert line_of(lines, "xml").split()[1] == "16.2s"
    assert line_of(lines, "lance").rstrip().endswith("5/4 of 5"), "a round was not counted"
    early = shown(fed(run, most=3))
    assert sum("…" not in line for line in early[3:]) == 3
    assert all("…" in line for line in early[6:])


def test_the_total_of_rounds_is_shown_only_if_the_user_gave_it() -> None:
    run = with_info(make_run(datasets=("eq",), tracks=("plain",), rounds=3), rounds_asked=None)
    assert line_of(shown(fed(run)), "pickle").endswith("  3")
    asked = with_info(run, rounds_asked=2)
    assert line_of(shown(fed(asked)), "raw-io").endswith("  3"), "raw I/O takes part as long as others do"


def test_a_reason_replaces_missing_figures_cut_to_the_width() -> None:
    so_far = fed(make_run(datasets=("core",), tracks=("plain",), rounds=2))
    lines = shown(so_far, width=80)
    assert lines[-1] == "excel                   refused: Excel holds at most 1,048,576 rows, this table…"
    assert lines[-2] == "avro                    save skipped: its read did not pass; read mismatch: col…"


def test_further_failures_follow_the_figures_if_there_is_room() -> None:
    run = make_run(datasets=("eq",), tracks=("plain",), rounds=2)
    so_far = fed(run)
    bell = Failure(kind="error", reason="it rang\x07 and\n\x1b[2Jcleared")
    of_pickle = (sample for sample in run.samples if sample.variant.startswith("pickle"))
    sample = next(sample for sample in of_pickle if sample.operation == "read")
    so_far.take([changed(sample, round=3, position=999, figures={}, fidelity=None, saw_all=False, failure=bell)])
    assert line_of(shown(so_far, width=140), "pickle").endswith("2 of 2  read error in 1 round: it rang and [2Jcleared")
    assert line_of(shown(so_far, width=70), "pickle").endswith("2 of 2")


def test_what_was_not_counted_says_so() -> None:
    run = make_run(datasets=("eq",), tracks=("plain",), rounds=1)
    so_far = fed(run, most=0)
    so_far.take([changed(sample, unsettled=True) for sample in run.samples if sample.variant.startswith("pickle")])
    assert "not counted (" in line_of(shown(so_far), "pickle")


def test_a_narrow_terminal_has_fewer_columns_and_a_wide_one_more_operations() -> None:
    so_far = fed(TWO)

    at = {width: shown(so_far, width, 22) for width in (120, 80, 60, 40, 30)}
    assert [at[120][1].split(), at[120][2].split()[-1]] == [["project", "10"], "columns"]
    assert line_of(at[120], "pickle").count("%") == 3
    assert "project" not in " ".join(at[80])
    assert line_of(at[80], "pickle").count("%") == 2
    assert "%" not in line_of(at[60], "pickle")
    assert line_of(at[60], "format").split() == ["format", "ms", "ms", "MB", "peak", "MB", "rounds"]
    assert line_of(at[40], "format").split() == ["format", "ms", "ms", "MB"]
    assert line_of(at[30], "format").split() == ["format", "ms"], "the read time stays the longest"


@pytest.mark.parametrize("most", [0, 40, None])
def test_it_is_never_wider_nor_higher_than_the_terminal(most: int | None) -> None:
    so_far = fed(make_run(datasets=("eq", "core", "str", "int"), tracks=("plain",), rounds=1, project=True), most)
    sizes = itertools.product([1, 5, 20, 37, 60, 80, 100, 250], [1, 2, 4, 7, 8, 15, 17, 24, 38, 70])
    for (width, height), place in itertools.product(sizes, so_far.names):
        screen = Screens(so_far).screen(place, width, height)
        assert len(screen.lines) <= height
        assert max((line.cell_len for line in screen.lines), default=0) <= width


def test_the_current_table_comes_first_then_others_and_the_rest_in_one_line_each() -> None:
    so_far = fed(make_run(datasets=("eq", "core", "str"), tracks=("plain",), rounds=2), most=60)

    def titles(lines: list[str]) -> list[str]:
        return [line.split(",")[0] for line in lines if line.startswith("tabular: ")]

    told = {name: f"{name}: 30 of 30 cells, round 2" for name in ("eq", "str")}
    low = shown(so_far, height=24, name="core")
    assert titles(low) == ["tabular: core"]
    assert low[-3:] == ["", told["eq"], told["str"]]
    assert not any("more" in line for line in low)
    high = shown(so_far, height=34, name="core")
    assert titles(high) == ["tabular: eq", "tabular: core"], "in the order of the report"
    assert sum("more rows" in line for line in high) == 1
    assert titles(shown(so_far, height=60, name="core")) == ["tabular: eq", "tabular: core", "tabular: str"]
    tiny = shown(so_far, height=9, name="core")
    assert titles(tiny) == ["tabular: core"]
    assert tiny[-4:] == ["… and 14 more rows", "", told["eq"], told["str"]]


def test_tables_without_a_line_are_counted() -> None:
    so_far = fed(make_run(rounds=1), most=0)
    lines = shown(so_far, height=16)
    assert lines[-2:] == ["int-default: 0 of 16 cells", "… and 8 more tables"]
    assert len(lines) == 16


def test_the_row_that_is_measured_now_is_bold() -> None:
    so_far = fed(TWO, most=20)
    core = list(so_far.names)[1]
    screen = Screens(so_far).screen(core, 100, 60)
    for variant, number in screen.rows.items():
        assert screen.lines[number].plain.startswith(so_far.label(core, variant)[:10])
        assert [span.style for span in screen.marked(variant)[number].spans][-1] == "bold not dim"
    assert screen.marked("nothing") == list(screen.lines)
    assert any(variant.is_raw_io for variant in screen.rows)


def test_what_has_not_changed_is_not_laid_out_again() -> None:
    so_far = fed(TWO, most=20)
    eq = next(iter(so_far.names))
    screens = Screens(so_far)
    before = screens.screen(eq, 100, 60).lines
    so_far.take([sample for sample in TWO.samples if sample.dataset == "eq" and sample.variant.startswith("orc")])
    after = screens.screen(eq, 100, 60).lines
    of_core = next(number for number, line in enumerate(before) if line.plain.startswith("tabular: core"))
    assert all(one is other for one, other in zip(before[of_core:], after[of_core:], strict=True))
    assert not any(one is other for one, other in zip(before[:10], after[:10], strict=True))


def test_the_line_above() -> None:
    assert status_line("round 3", 0.25, 80).plain == "━━━━━─────────────── round 3"
    assert status_line("round 3", None, 80).plain == "──────────────────── round 3"
    assert status_line("round 3", 7.0, 80).plain == "━━━━━━━━━━━━━━━━━━━━ round 3"
    assert status_line("round 3, 2:10 min left", 0.25, 12).plain == "round 3, 2:…"


def test_a_plan_without_a_chain_has_no_table() -> None:
    assert not SoFar({}, TWO.info).names
