"""Run the suites wide and encodings as planned, on tables so small that each suite takes seconds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bench_runner.plan.planning import make_plan
from bench_runner.request import Request
from bench_runner.results.records import Sample
from bench_runner.run.chains import Bench, execute
from bench_runner.suites import SUITES
from data_generator.cache import prepare

pytestmark = pytest.mark.usefixtures("at_rest")


def executed(bench: Bench, cache_folder: Path, suite: str, dataset: str, variants: tuple[str, ...]) -> Iterator[Sample]:
    plan = make_plan([SUITES[suite]], Request(datasets=(dataset,), rows=500, formats=variants))
    (planned,) = plan.datasets.values()
    stored = prepare(planned, cache_folder)
    chains = [chain for chain in plan.chains if chain.variant in variants]
    assert len(chains) == len(variants)
    for position, chain in enumerate(chains):
        yield from execute(
            bench, chain, stored, rows=stored.rows, round_number=1, position=10 * position, need_bytes=stored.size_bytes
        )


def test_wide_opens_apart_from_reading(bench: Bench, cache_folder: Path) -> None:
    variants = ("parquet[engine=pyarrow,codec=none]", "parquet[engine=duckdb,codec=none]")
    samples = list(executed(bench, cache_folder, "wide", "wide[columns=60,rows=8]", variants))
    assert [sample.failure for sample in samples] == [None] * 7
    kept = [sample for sample in samples if "handle=kept" in sample.operation]
    assert [sample.variant for sample in kept] == [variants[0]]
    assert {"open_ns", "open_asked_bytes", "first_ns", "wall_ns"} <= set(kept[0].figures)
    # 8 values of each of 10 columns, and at most one byte of validity bits for each column.
    assert 10 * 8 * 8 <= kept[0].figures["result_bytes"] <= 10 * (8 * 8 + 1)


def test_encodings_take_by_one_and_by_many(bench: Bench, cache_folder: Path) -> None:
    variants = ("lance[engine=pylance,structural=fullzip]", "vortex[engine=vortex-data,library_cache=off]")
    samples = list(executed(bench, cache_folder, "encodings", "values[bytes=4096,kind=fixed]", variants))
    assert [sample.failure for sample in samples] == [None] * 8
    assert {sample.fidelity for sample in samples if sample.operation != "save"} == {"exact"}
    at_once = [sample for sample in samples if "streams=16" in sample.operation]
    assert {"latency_ns" in sample.figures for sample in at_once} == {True}
    full_zip = samples[0]
    assert "FullZipLayout" in full_zip.encodings
