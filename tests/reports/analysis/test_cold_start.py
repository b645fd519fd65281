"""Cold starts: medians, their order, and missing values."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bench_runner.results.information import information
from bench_runner.results.records import Run, changed
from reports.analysis.cold_start import cold_starts
from tests.reports.factory import make_run, make_sample

RAW_IO = "raw-io[engine=readinto]"
PARQUET = "parquet[engine=pyarrow,codec=none]"
CSV = "csv[engine=pandas]"
ORC, LANCE = "orc[engine=pyarrow]", "lance[engine=pylance]"


def run_of(*costs: tuple[str, str, int, int], info: dict[str, object] | None = None) -> Run:
    """Return a run of samples (variant, operation, first_call_ns, first_call_rss_bytes)."""
    samples = tuple(
        make_sample(variant=variant, operation=operation, figures={"first_call_ns": ns, "first_call_rss_bytes": rss})
        for variant, operation, ns, rss in costs
    )
    return Run(Path("results/test"), information(info or {}), samples)


def test_medians_by_operation_beside_the_import() -> None:
    described = {PARQUET: {"import_ns": 120_000_000, "import_rss_bytes": 30_000_000}}
    calls = [(PARQUET, "save", ns, 2_000_000) for ns in (1_000_000, 9_000_000, 2_000_000)]
    (found,) = cold_starts(run_of(*calls, (PARQUET, "read", 5_000_000, 20_000_000), info={"variants": described}))
    ((label, texts),) = found.lines
    assert label == "parquet"
    assert dict(zip(found.headers, texts, strict=True)) == {
        "import\nms": "120",
        "first save\nms": "2.00",
        "first read\nms": "5.00",
        "import\nMB": "30.0",
        "first save\nMB": "2.00",
        "first read\nMB": "20.0",
    }


def test_the_cheapest_comes_first_and_raw_io_not_at_all() -> None:
    (found,) = cold_starts(
        run_of((PARQUET, "save", 9_000_000, 0), (CSV, "save", 3_000_000, 0), (RAW_IO, "save", 1_000_000, 0))
    )
    assert found.variants == (CSV, PARQUET)
    assert found.lines[0] == ("csv", ("-", "3.00", "-", "0.000"))


def test_what_is_not_counted_is_left_out() -> None:
    run = run_of((PARQUET, "save", 9_000_000, 0))
    assert not list(cold_starts(replace(run, samples=tuple(changed(each, round=0) for each in run.samples))))
    assert not list(cold_starts(replace(run, samples=())))


def test_of_both_conditions_of_threads_the_libraries_own_is_shown() -> None:
    """A median over both thread conditions would be the cost under neither condition."""
    run = run_of((PARQUET, "save", 2_000_000, 0), (PARQUET, "save", 8_000_000, 0))
    own, single = run.samples
    single = changed(single, conditions=changed(single.conditions, threads="1"))
    for samples, told in (((own, single), "2.00"), ((single,), "8.00")):
        (found,) = cold_starts(replace(run, samples=samples))
        assert found.lines[0][1][1] == told


def test_every_variant_of_a_run_has_a_row() -> None:
    run = make_run(datasets=("eq",))
    variants = {sample.variant for sample in run.samples if sample.counted and sample.variant != "raw-io"}
    (found,) = cold_starts(run)
    assert set(found.variants) == variants


def test_only_calls_on_the_same_data_are_compared() -> None:
    """A data set with most of the variants is shown. Medians over different data sets would not be comparable."""
    on_eq = run_of((PARQUET, "save", 2_000_000, 0), (CSV, "save", 4_000_000, 0), (ORC, "save", 8_000_000, 0)).samples
    on_core = run_of((PARQUET, "save", 6_000_000, 0), (LANCE, "save", 1_000_000, 0)).samples
    run = run_of()
    samples = (*(changed(each, dataset="core") for each in on_core), *on_eq)
    (found,) = cold_starts(replace(run, samples=samples))
    assert [(label, texts[1]) for label, texts in found.lines] == [
        ("parquet", "2.00"),
        ("csv", "4.00"),
        ("orc", "8.00"),
    ]
    assert found.title.startswith("tabular: eq")
    assert found.notes == ("not shown, because not counted on eq: lance",)


@pytest.mark.parametrize("condition", [{"target": "arrow"}, {"cache": "cold"}, {"network": "loopback"}])
def test_calls_under_other_conditions_have_a_separate_table(condition: dict[str, str]) -> None:
    run = run_of((PARQUET, "save", 2_000_000, 0), (PARQUET, "save", 8_000_000, 0))
    usual, other = run.samples
    other = changed(other, conditions=changed(other.conditions, **condition))
    found = list(cold_starts(replace(run, samples=(usual, other))))
    assert [each.lines[0][1][1] for each in found] == ["2.00", "8.00"]
    assert found[0].title != found[1].title


def test_tracks_share_a_table_because_a_call_does_not_depend_on_them() -> None:
    run = run_of((PARQUET, "save", 2_000_000, 0), (CSV, "save", 8_000_000, 0))
    plain, default = run.samples
    default = changed(default, conditions=changed(default.conditions, track="default"))
    (found,) = cold_starts(replace(run, samples=(plain, default)))
    assert found.variants == (PARQUET, CSV)
    assert "track" not in found.title


def test_a_variant_without_all_costs_does_not_come_first() -> None:
    (found,) = cold_starts(
        run_of((PARQUET, "save", 9_000_000, 0), (PARQUET, "read", 9_000_000, 0), (CSV, "save", 3_000_000, 0))
    )
    assert found.variants == (PARQUET, CSV)
