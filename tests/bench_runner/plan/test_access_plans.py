"""Plans of the access suites: their data points, rejections with reasons, and the needs of streams and kept handles."""

from __future__ import annotations

import pytest

from bench_runner.plan.chain import Plan
from bench_runner.plan.planning import make_plan
from bench_runner.request import Request
from bench_runner.suites import SUITES
from data_generator.catalogue import resolve

MOST_BYTES = 2 * 10**9


def plan(suite: str, **request: object) -> Plan:
    return make_plan([SUITES[suite]], Request(**request))  # type: ignore[arg-type]


def refusals(made: Plan, operation: str) -> dict[str, str]:
    return {each.chain.variant: each.failure.reason for each in made.excluded if each.chain.operations == (operation,)}


def test_wide_tables_are_of_all_widths_and_no_copy_is_over_2_gb() -> None:
    made = plan("wide")
    points = {tuple(map(int, (len(each.schema), each.rows))) for each in made.datasets.values()}
    assert points == {
        *((columns, 8) for columns in (10, 100, 1_000, 5_000, 10_000, 20_000)),
        *((columns, 65_536) for columns in (10, 100, 1_000)),
    }
    assert all(8 * columns * rows <= MOST_BYTES for columns, rows in points)
    # The next point would exceed the limit.
    assert MOST_BYTES < 8 * 5_000 * 65_536
    assert any("wide[columns=5000,rows=65536]" in reason for reason in SUITES["wide"].reasons.values())
    assert {chain.conditions.target for chain in made.chains} == {"arrow"}


def test_a_handle_is_kept_where_the_call_has_one() -> None:
    made = plan("wide", datasets=("wide[columns=50,rows=8]",))
    kept = "project[columns=10,handle=kept]"
    assert set(refusals(made, kept)) == {
        "duckdb-table[engine=duckdb]",
        "feather[engine=pyarrow,codec=none]",
        "parquet[engine=polars,codec=none]",
        "parquet[engine=duckdb,codec=none]",
    }
    having = {chain.variant.partition("[")[0] for chain in made.chains if kept in chain.operations}
    assert having == {"f3", "lance", "orc", "parquet", "raw-io", "vortex"}


def test_values_are_of_4_bytes_to_64_kb() -> None:
    made = plan("encodings")
    assert set(made.datasets) == {
        *(f"values[bytes={size}]" for size in (4, 64, 1024, 4096, 16384, 65536)),
        *(f"values[bytes={size},kind=fixed]" for size in (4, 4096)),
    }
    for name, dataset in made.datasets.items():
        size_bytes = int(name.partition("bytes=")[2].rstrip("]").partition(",")[0])
        assert dataset.rows * size_bytes <= 256_000_000


def test_both_encodings_all_versions_and_no_cache_take_part() -> None:
    made = plan("encodings", datasets=("values[bytes=64]",), rows=1_000)
    settings = {chain.variant.partition("engine=pylance")[2].strip(",]") for chain in made.chains}
    assert settings >= {"", "version=2.0", "version=2.1", "structural=miniblock", "structural=fullzip"}
    assert "library_cache=off" in settings
    assert any("page_index=true" in chain.variant for chain in made.chains)
    assert SUITES["encodings"].roofline


@pytest.mark.parametrize("suite", ["wide", "encodings"])
def test_every_point_is_spelled_as_it_is_named(suite: str) -> None:
    """A data set whose name spells out default parameters would have a different name in records."""
    for name in SUITES[suite].datasets:
        base, _, parameters = name.rstrip("]").partition("[")
        given = dict(pair.split("=") for pair in parameters.split(","))
        assert resolve(base, given).name == name


def test_services_are_refused_under_one_thread() -> None:
    """Services use all cores, so comparing them with a client limited to one core would be unfair."""
    request = {"datasets": ("snowset",), "rows": 1_000_000, "formats": ("parquet",), "operations": ("query",)}
    for threads in ("default", "1"):
        made = plan("near-storage", **request, threads=threads, networks=("", "loopback"))
        served = {chain.conditions.network for chain in made.chains if "reader=ranges" in chain.variant}
        assert served == ({"", "loopback"} if threads == "default" else {""})
    reasons = {each.failure.reason for each in made.excluded if "reader=ranges" in each.chain.variant}
    assert reasons == {"its services use all cores, however many the client uses: measure it with --threads default"}


def test_streams_are_refused_under_one_thread_and_for_data_frames() -> None:
    streams = "take[rows=10,handle=kept,streams=16]"
    request = {"datasets": ("values[bytes=64]",), "rows": 1_000, "formats": ("lance",), "operations": (streams,)}
    alone = plan("encodings", **request, threads="1")
    assert {"16 streams need as many threads: measure it with --threads default"} == set(
        refusals(alone, streams).values()
    )
    frames = plan("encodings", **request, target="pandas")
    assert any(f"{streams} returns Arrow tables only" in reason for reason in refusals(frames, streams).values())
    kept = "project[columns=1,handle=kept]"
    frames = plan("encodings", **{**request, "operations": (kept,)}, target="pandas")
    assert any(reason.startswith(f"{kept} returns Arrow tables") for reason in refusals(frames, kept).values())
    once = plan("encodings", **{**request, "operations": ("project[columns=1]",)}, target="pandas")
    assert refusals(once, "project[columns=1]") == {}


def test_zipf_is_refused_without_a_cache() -> None:
    zipf = "take[rows=10,pattern=zipf]"
    made = plan("encodings", datasets=("values[bytes=64]",), rows=1_000, operations=(zipf,), formats=("vortex|lance",))
    assert set(refusals(made, "take[rows=10,pattern=zipf,handle=kept]")) == {
        "lance[engine=pylance,library_cache=off]",
        "vortex[engine=vortex-data,library_cache=off]",
    }


def test_what_shows_in_one_process_goes_over_networks_where_they_are_named() -> None:
    request = {"datasets": ("snowset",), "rows": 1_000_000, "formats": ("parquet",), "operations": ("query",)}
    special = ("technique=", "footers=", "row_group_rows=")

    def over_networks(*networks: str) -> set[bool]:
        chains = plan("near-storage", **request, networks=networks).chains
        far = [chain.variant for chain in chains if chain.conditions.network]
        return {any(setting in variant for setting in special) for variant in far}

    assert over_networks() == {False}
    assert over_networks("loopback") == {False, True}
