"""Create a sample from the worker's measurement, the launcher's observations and the state of the page cache."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from bench_runner.errors import Failure, OperationFailed
from bench_runner.operations import VERIFYING, operation_of
from bench_runner.results.records import Sample, changed
from bench_runner.run.launcher import Outcome
from bench_runner.run.page_cache import Residency, device_doubt
from bench_runner.run.services.monitor import ServiceMonitor, is_fetched_anew, per_call
from bench_runner.worker.messages import Measured
from bench_runner.worker.settle import Readiness

ONE_THREAD_LIMIT = 1.05
"""Largest ratio of CPU time to wall time under threads=1 (rule 9)."""


def assembled(
    blank: Sample,
    measured: Measured,
    outcome: Outcome,
    *,
    readiness: Readiness,
    cached: Residency | None = None,
    sizes: Mapping[str, int] | None = None,
    services: ServiceMonitor | None = None,
) -> Sample:
    """Return the sample of one operation. All fields except `harness_ns` are set.

    `blank` is the sample without results. `readiness` says how much memory was made ready, i.e. touched so that its
    first use is fast. For a read, `cached` is the state of the page cache before the read. If the read used services,
    `services` is their monitor. For a save, `sizes` are the size figures of the stored copy. Raises OperationFailed if
    a cold read was served from the page cache, or if an operation under threads=1 used more than one core.
    """
    before = {} if cached is None else {"resident_before_bytes": cached.resident_bytes}
    figures = before | measured.figures | _outside_figures(outcome, measured)
    if services is not None:
        figures |= per_call(services.figures, figures.get("repetitions", 1))
    figures |= sizes or {}
    why_not = measured.rest.why_not and f"the machine was not at rest: {measured.rest.why_not}"
    if cached is not None and not why_not and operation_of(blank.operation).sampling != "write":
        why_not = _cache_doubt(blank, measured, figures, cached, services)
    if measured.collected:
        why_not = why_not or "a full garbage collection ran during timing (from now on it runs before timing)"
    if blank.conditions.threads == "1":
        refuse_more_than_one_core(figures)
    taken_bytes = outcome.added_bytes(measured) + measured.held_before_bytes + figures.get("dirtied_bytes", 0)
    beyond_bytes = readiness.most_bytes if beyond_what_was_ready(taken_bytes, readiness) else 0
    return changed(
        blank,
        figures=figures,
        fidelity=measured.fidelity,
        saw_all=measured.saw_all,
        fallback=measured.fallback,
        cached=measured.cached and not is_fetched_anew(figures, measured.held_bytes),
        losses=tuple(measured.losses),
        codec=measured.codec,
        encodings=tuple(measured.encodings),
        warnings=tuple(_warnings(outcome, why_not, beyond_bytes=beyond_bytes)),
        unsettled=bool(why_not),
    )


def _cache_doubt(
    blank: Sample, measured: Measured, figures: Mapping[str, int], cached: Residency, services: ServiceMonitor | None
) -> str:
    """Return why statistics must not use a read, or '' if they may use the read. The number of bytes that the read
    fetched from the device must match the requested state of the page cache (warm or cold)."""
    wanted, size_bytes = blank.conditions.cache, cached.size_bytes
    fetched_bytes, wall_ns = figures["device_read_bytes"], figures["wall_ns"]
    if measured.device_bytes_of_all is not None:
        fetched_bytes, wall_ns = measured.device_bytes_of_all, figures["calls_ns"]
    if services is not None:
        # Services read the copy, but the worker may read a part of it too, such as a schema. Both count.
        fetched_bytes += services.device_bytes
    # Only the format knows which pages a partial read needs. So require that all pages in the page cache were read from
    # the device.
    is_part = blank.operation != VERIFYING
    return device_doubt(
        wanted,
        fetched_bytes=fetched_bytes,
        needed_bytes=figures["distinct_bytes"] if wanted == "cold" and is_part else size_bytes,
        size_bytes=size_bytes,
        wall_ns=wall_ns,
        served="node_cpu_ns" in figures,
    )


def refuse_more_than_one_core(figures: Mapping[str, int]) -> None:
    """Raise OperationFailed if the CPU time of a sample under threads=1 exceeds its wall time (rule 9)."""
    wall_ns: float = figures["wall_ns"]
    if "repetitions" in figures and "epoch_rows" not in figures:
        # If a call was repeated, the wall time is the median over the calls, but the CPU time is the mean.
        wall_ns = figures["calls_ns"] / figures["repetitions"]
    cores = figures["cpu_ns"] / max(wall_ns, 1)
    if cores > ONE_THREAD_LIMIT:
        raise OperationFailed(Failure(kind="threads", reason=f"used {cores:.2f} cores under the condition threads=1"))


def _outside_figures(outcome: Outcome, measured: Measured) -> dict[str, int]:
    # Child processes have no peak counter that could be read after their end.
    of_the_tree = outcome.peak_tree_resident_bytes - measured.resident_before_bytes
    private = {"peak_private_bytes": outcome.added_bytes(measured)}
    if outcome.peak_of_one_bytes:
        private["peak_process_bytes"] = outcome.peak_of_one_bytes
    rest = measured.rest
    return {
        **(private if measured.tells_memory else {}),
        "peak_rss_bytes": max(measured.figures["peak_rss_bytes"], of_the_tree),
        "prepare_ns": measured.started_ns - outcome.launched_ns - rest.settle_ns,
        "settle_ns": rest.settle_ns,
        "control_write_ns": rest.control.write_ns,
        "control_allocate_ns": rest.control.allocate_ns,
    }


def beyond_what_was_ready(taken_bytes: int, readiness: Readiness) -> bool:
    """Return whether a sample used more memory than was made ready (touched, so that its next use is fast) before the
    sample (rule 1). This is checked only on machines whose host reclaims unused memory. On such machines the first
    access to memory that was not made ready is slow, and may take most of the sample's time."""
    return readiness.touches and taken_bytes > readiness.most_bytes


def _warnings(outcome: Outcome, why_not: str, *, beyond_bytes: int) -> Iterator[str]:
    if beyond_bytes:
        ready = f"{beyond_bytes // 10**6} MB of memory that are made ready before a sample"
        yield f"took more than the {ready}: its times may include waiting for this machine's host"
    if outcome.printed:
        yield f"the library printed: {outcome.printed.splitlines()[0][:200]}"
    if why_not:
        yield f"not counted, {why_not}"
