"""A run as a DataFrame: a row for each cell, figures with their units, and reasons for missing ones."""

from dataclasses import replace

import pandas as pd

from bench_runner.results.records import Failure, changed
from bench_runner.results.statistics import summarise
from reports.analysis.frame import frame
from tests.reports.factory import make_run, make_sample


def test_every_cell_is_a_row_with_its_figures_or_its_reason() -> None:
    run = make_run(datasets=("eq",), tracks=("plain",), rounds=5)
    found = frame(run)
    summaries = summarise(run.samples)
    assert len(found) == len(summaries)
    for (cell, summary), (_, row) in zip(summaries.items(), found.iterrows(), strict=True):
        assert (row["variant"], row["operation"], row["track"]) == (cell.variant, cell.operation, cell.conditions.track)
        assert row["rounds"] == summary.rounds
        if summary.figures:
            wall = summary.figures["wall_ns"]
            assert row["wall_ns"] == wall.median
            for name, end in (("wall_ns_low", wall.low), ("wall_ns_high", wall.high)):
                assert pd.isna(row[name]) if end is None else row[name] == end
        else:
            assert row["reason"]


def test_where_nothing_was_counted_times_are_missing_and_sizes_are_known() -> None:
    run = make_run(datasets=("eq",), tracks=("plain",), rounds=2)
    nothing = frame(replace(run, samples=tuple(changed(sample, unsettled=True) for sample in run.samples)))
    assert nothing["wall_ns"].isna().all()
    saves = nothing[nothing["operation"] == "save"]
    assert (saves["size_bytes"] == frame(run).loc[saves.index, "size_bytes"]).all()
    assert (nothing["rounds"] == 0).all()


def test_cells_that_are_not_ranked_are_marked() -> None:
    mismatch = Failure(kind="mismatch", reason="row 3 came back as None")
    samples = [
        make_sample(variant=name, round=number, cached=name == "orc") for name in ("csv", "orc") for number in (1, 2)
    ]
    wrong = changed(samples[1], figures={}, fidelity=None, saw_all=False, failure=mismatch)
    found = frame(replace(make_run(datasets=()), samples=(samples[0], wrong, *samples[2:]))).set_index("variant")
    assert found["cached"].to_dict() == {"csv": False, "orc": True}
    assert found["wrong"].to_dict() == {"csv": True, "orc": False}
