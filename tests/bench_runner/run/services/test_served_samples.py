"""Samples of a copy that a service reads: their figures, their verification, and services that end early."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bench_runner.results.records import Sample
from bench_runner.run.chains import Bench, execute
from bench_runner.run.services.monitor import ServiceMonitor
from data_generator.cache import StoredDataset, prepare
from data_generator.catalogue import resolve
from tests.bench_runner.conftest import PLUGINS, chain_of

pytestmark = pytest.mark.usefixtures("at_rest")

QUERY = "query[groups=0.1,place=scattered,block_rows=500]"
ROWS = 5_000
Served = Callable[..., Sample]


@pytest.fixture(scope="module")
def queries(cache_folder: Path) -> StoredDataset:
    return prepare(resolve("snowset", {"block_rows": "500"}, rows=ROWS), cache_folder)


@pytest.fixture
def served(bench: Bench, queries: StoredDataset) -> Served:
    def run(fault: str = "none", operation: str = QUERY, **conditions: str) -> Sample:
        chain = chain_of(f"served[fault={fault}]", operations=("save", operation), **conditions)
        samples = execute(
            bench, chain, queries, rows=ROWS, round_number=1, position=0, need_bytes=queries.size_bytes, wanted=None
        )
        assert [sample.operation for sample in samples[:2]] == ["save", operation]
        assert list(bench.folder.iterdir()) == [], "nothing is left behind"
        return samples[1]

    return run


@pytest.mark.parametrize("network", ["loopback", "400mbit"])
def test_what_a_service_does_while_the_clock_runs_is_measured(served: Served, network: str) -> None:
    plugin = sys.modules.get("served_formats") or _plugin()
    sample = served(network=network, service="warm")
    assert sample.failure is None, sample.failure
    assert sample.fidelity == "exact"
    figures = sample.figures
    calls = figures["repetitions"]
    assert calls > 1
    assert plugin.WORK_S * 1e9 <= figures["node_cpu_ns"] < 10 * plugin.WORK_S * 1e9, "of one call"
    assert figures["node_peak_memory_bytes"] == pytest.approx(plugin.TAKES_BYTES, rel=0.25), "of all, not divided"
    assert figures["node_memory_bytes"] > 10_000_000, "an interpreter with Arrow"
    assert figures["result_bytes"] < figures["wire_bytes"]
    tries, wire_bytes, most = 4, figures["wire_bytes"], 1.3 * figures["result_bytes"] + 20_000
    while wire_bytes >= most and network == "loopback" and (tries := tries - 1):
        # The network interface also counts the bytes of other tests. A proxy counts only its own bytes.
        wire_bytes = served(network=network, service="warm").figures["wire_bytes"]
    assert wire_bytes < most
    assert figures["node_device_bytes"] < figures["result_bytes"] / 20, "of the copy nothing: of code a page perhaps"
    assert figures["cpu_ns"] < figures["node_cpu_ns"], "the worker's own is another figure"
    assert figures["first_ns"] > 0


def test_a_fresh_service_is_asked_once(served: Served) -> None:
    sample = served(network="loopback", service="fresh")
    assert sample.failure is None, sample.failure
    assert sample.figures["repetitions"] == 1
    assert "first_ns" not in sample.figures


@pytest.mark.disk
@pytest.mark.rule(14)
def test_what_a_service_read_to_answer_once_is_read_again_cold(served: Served, bench: Bench) -> None:
    """The call that warms up the service must not leave pages in the cache that the cold call should fetch
    (rule 14)."""
    sample = served("reads_to_warm_up", cache="cold", network="loopback", service="warm")
    assert sample.failure is None, sample.failure
    assert sample.figures["resident_before_bytes"] == 0
    assert sample.figures["node_device_bytes"] >= 0.9 * sample.figures["distinct_bytes"] > 0


def test_without_a_network_there_is_no_service(served: Served) -> None:
    sample = served()
    assert sample.failure is None, sample.failure
    assert not any(name.startswith("node_") or name == "wire_bytes" for name in sample.figures)


def test_a_wrong_answer_of_a_service_is_found(served: Served) -> None:
    failure = served("wrong", network="loopback", service="fresh").failure
    assert failure is not None
    assert failure.kind == "mismatch"


def test_a_service_that_ends_is_the_samples_failure(served: Served) -> None:
    failure = served("ends", network="loopback", service="warm").failure
    assert failure is not None
    assert failure.kind == "crash"
    assert failure.reason == "the service node ended while it was needed (exit code 7)"


def test_a_service_that_does_not_start_is_reported_with_the_reason(served: Served) -> None:
    failure = served("never_starts", network="loopback", service="warm").failure
    assert failure is not None
    assert "the service node did not start (exit code 1); it printed: no such stored copy" in failure.reason


def test_what_services_hold_counts_to_the_limit_of_memory(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ServiceMonitor, "private_bytes", lambda self: 10**15)
    failure = served(network="loopback", service="warm").failure
    assert failure is not None
    assert failure.kind == "memory"


def _plugin() -> object:
    spec = importlib.util.spec_from_file_location("served_formats", PLUGINS / "served_formats.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
