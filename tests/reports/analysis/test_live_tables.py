"""Tables of a run in progress show what is known so far, are updated quickly, and equal the final tables at the end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from bench_runner.results.records import Cell, Conditions, Failure, Run, Sample, changed
from bench_runner.results.statistics import CellSummary
from reports.analysis import live_tables as module
from reports.analysis.live_tables import Counts, SoFar
from reports.analysis.tables import Table, tables
from tests.reports.factory import make_run, make_sample


def one_table() -> Run:
    return make_run(datasets=("eq",), tracks=("plain",), rounds=5)


def planned(run: Run) -> dict[str, list[Cell]]:
    """Return the cells of each chain of a run, by the chain's label."""
    cells: dict[str, list[Cell]] = {}
    for cell in dict.fromkeys(sample.cell for sample in run.samples):
        cells.setdefault(f"{cell.suite}/{cell.dataset}/{cell.variant}", []).append(cell)
    return cells


def executions(run: Run) -> list[list[Sample]]:
    found: list[list[Sample]] = []
    for sample in run.samples:
        new = not found or replace(found[-1][0].cell, operation="") != replace(sample.cell, operation="")
        if new or found[-1][0].round != sample.round:
            found.append([])
        found[-1].append(sample)
    return found


def fed(run: Run, most: int | None = None) -> SoFar:
    running = SoFar(planned(run), run.info)
    for execution in executions(run)[:most]:
        running.take(execution)
    return running


def seen(table: Table) -> list[tuple[str, str, dict[str, CellSummary]]]:
    """Return all that a table shows for its rows, except multiples of raw I/O, which live tables do not show."""
    return [
        (row.variant, row.label, {name: replace(cell, raw_io_multiple=None) for name, cell in row.cells.items()})
        for row in table.rows
    ]


def test_at_its_end_it_is_the_finished_run() -> None:
    run = make_run(datasets=("eq", "core", "str"), rounds=5, project=True)
    running = fed(run)
    finished = tables(run)
    assert [(place.dataset, place.conditions) for place in running.names] == [
        (table.dataset, table.conditions) for table in finished
    ]
    for place, table in zip(running.names, finished, strict=True):
        assert seen(running.table(place)) == seen(table)
        assert running.table(place).columns == table.columns


def test_what_is_planned_is_there_before_it_is_measured() -> None:
    run = one_table()
    running = SoFar(planned(run), run.info)
    (place,) = running.names
    assert not running.begun
    table = running.table(place)
    assert {row.variant for row in table.rows} == {sample.variant for sample in run.samples}
    assert not any(row.measured for row in table.rows)
    assert running.counts(place) == Counts(0, 30, 0)
    running.take(executions(run)[0])
    assert running.begun
    assert running.table(place).rows[0].variant == run.samples[0].variant


def test_counts_are_of_cells_with_a_figure_or_a_reason() -> None:
    run = make_run(datasets=("eq", "core"), tracks=("plain",), rounds=2)
    running = fed(run)
    assert {running.names[place]: running.counts(place) for place in running.names} == {
        "eq": Counts(30, 30, 2),
        "core": Counts(30, 30, 2),
    }


def test_tables_of_one_data_set_have_the_track_in_their_names() -> None:
    running = fed(make_run(datasets=("eq",), rounds=1), most=0)
    assert list(running.names.values()) == ["eq-plain", "eq-default"]


def test_of_the_pilot_round_only_reasons_are_shown_and_they_are_about_all_rows() -> None:
    run = one_table()
    running = fed(run, most=0)
    (place,) = running.names
    pilot = changed(make_sample(round=0, rows=500), figures={"wall_ns": 7})
    running.take([pilot])
    assert running.counts(place).tried == 0
    refused = Failure(kind="refused", reason="no such column")
    running.take([changed(pilot, figures={}, fidelity=None, saw_all=False, failure=refused)])
    assert list(running.names) == [place], "the reason adds no table"
    (row,) = (row for row in running.table(place).rows if row.variant == pilot.variant)
    assert list(row.failures) == [refused]


def test_a_save_counts_when_a_later_part_of_the_run_has_read_it() -> None:
    """The run was stopped between the two samples, and then resumed."""
    run = one_table()
    save, read = next(execution for execution in executions(run) if execution[0].variant.startswith("parquet"))
    running = fed(run, most=0)
    (place,) = running.names
    running.take([save])
    assert running.counts(place).tried == 1
    assert not any(row.measured for row in running.table(place).rows)
    running.take([read])
    assert running.table(place).rows[0].rounds == (1, 1)


def test_what_an_earlier_part_has_beyond_the_plan_is_shown_too() -> None:
    run = make_run(datasets=("eq", "core"), tracks=("plain",), rounds=1)
    plan = {label: cells for label, cells in planned(run).items() if "/eq/" in label and "pickle" not in label}
    running = SoFar(plan, run.info)
    assert list(running.names.values()) == ["eq"]
    running.take(run.samples)
    assert list(running.names.values()) == ["eq", "core"]
    assert "pickle" in [row.label for row in running.table(next(iter(running.names))).rows]


def test_only_the_chain_that_was_measured_is_computed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    original = module.summarise

    def counting(samples: Sequence[Sample]) -> dict[Cell, CellSummary]:
        asked.append(len(samples))
        return original(samples)

    monkeypatch.setattr(module, "summarise", counting)
    run = make_run(datasets=("eq", "core"), tracks=("plain",), rounds=5)
    fed(run)
    assert max(asked) == 5 * 2


def test_a_table_is_made_again_only_when_something_of_it_changed() -> None:
    run = make_run(datasets=("eq", "core"), tracks=("plain",), rounds=2)
    running = fed(run, most=10)
    eq, core = running.names
    for variant, changes in (("pickle", (True, False)), ("raw-io", (True, False))):
        before = running.table(eq), running.table(core)
        running.take(
            [sample for sample in run.samples if sample.dataset == "eq" and sample.variant.startswith(variant)]
        )
        assert (running.table(eq) is not before[0], running.table(core) is not before[1]) == changes


def test_a_step_is_found_by_its_label_in_every_table_that_it_may_be_about() -> None:
    running = fed(make_run(datasets=("eq", "core"), rounds=1), most=0)
    names = running.names

    def found(label: str) -> list[str]:
        chain = running.chain_of(label)
        assert chain is not None
        return [names[place] for place in chain[1]]

    assert found("tabular/eq/csv[engine=pandas]") == ["eq-plain", "eq-default"]
    assert found("tabular/core/parquet[engine=pyarrow,codec=none]") == ["core-plain"]
    assert found("tabular/core/raw-io") == ["core-plain", "core-default"], "raw I/O has no track"
    assert running.chain_of("eq: 65,536 of 1,000,000 rows") is None


def test_a_variant_has_the_name_that_the_table_gives_it() -> None:
    running = fed(one_table(), most=0)
    (place,) = running.names
    assert running.label(place, "feather[engine=pyarrow,codec=none,mapped=true]") == "feather[mapped=true]"
    assert running.label(replace(place, conditions=Conditions(cache="cold")), "other") == "other"
