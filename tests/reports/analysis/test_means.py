"""Columns of geometric means over data sets."""

from __future__ import annotations

from dataclasses import replace

from bench_runner.results.records import RunInfo
from reports.analysis.sections import Contents
from tests.reports.factory import make_run, make_sample


def test_a_column_in_which_nothing_has_a_mean_is_left_out() -> None:
    samples = tuple(
        make_sample(dataset=dataset, operation=operation, variant=variant, round=number)
        for dataset, operations in (("eq", ("save", "read", "take[rows=1]")), ("core", ("save", "read")))
        for operation in operations
        for variant in ("csv", "orc")
        for number in (1, 2)
    )
    (means,) = Contents(replace(make_run(datasets=()), samples=samples, fidelity=(), info=RunInfo())).means
    assert {column.operation for column in means.columns} == {"save", "read"}
    assert all(mean is not None for variant in means.variants for mean in means.of(variant))
