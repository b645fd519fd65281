"""Create the benches of a run. A bench has everything that the execution of a chain (a save and the operations on the
saved copy) needs: workers with a number of threads, and a working folder."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from bench_runner import registries
from bench_runner.clock import now_ns, pause
from bench_runner.machine import environment
from bench_runner.plan.chain import Plan
from bench_runner.run.chains import Bench
from bench_runner.run.launcher import Launcher
from bench_runner.run.options import Options
from bench_runner.worker import settle
from bench_runner.worker.settle import Readiness, Settler

LEFT_ALONE_S = 3.0
"""Seconds after which the host of a virtual machine has reclaimed unused memory, if the host reclaims memory at all
(rule 1)."""


@contextmanager
def opened_launchers(plan: Plan, options: Options) -> Iterator[Mapping[str, Launcher]]:
    """Yield a dict with a launcher for each thread condition of a plan, such as '1' or 'default'. Close the launchers
    afterwards."""
    conditions = {chain.conditions.threads: chain.conditions.strings for chain in plan.chains}
    launchers = {
        threads: Launcher(
            isolate=options.isolate,
            threads=1 if threads == "1" else None,
            preload=preloaded(plan.variants),
            strings=strings,
        )
        for threads, strings in conditions.items()
    }
    try:
        yield launchers
    finally:
        for launcher in launchers.values():
            launcher.close()


def preloaded(variants: Iterable[str]) -> list[str]:
    """Return the variants whose libraries work after a fork. The forkserver may load these libraries."""
    return [variant for variant in variants if registries.engine_of(variant)[0].survives_fork]


def _load_libraries(launchers: Iterable[Launcher]) -> None:
    """Start the forkservers. Then wait, if needed, so that starting and waiting take at least LEFT_ALONE_S seconds
    together."""
    started = now_ns()
    for launcher in launchers:
        launcher.load()
    pause(max(LEFT_ALONE_S - (now_ns() - started) / 1e9, 0))


def made_benches(
    options: Options,
    work: Mapping[str, Path],
    launchers: Mapping[str, Launcher],
    machine: str,
    readiness: Readiness | None,
) -> dict[tuple[str, str], Bench]:
    """Return a bench (everything that executing a chain needs) for each pair of working folder and launcher. The keys
    of the dict are (label of the folder, thread condition). First find out whether the host reclaims memory, unless
    `readiness` says so, and calibrate the control measurement of each folder."""
    if readiness is None:
        readiness = settle.examine(lambda: _load_libraries(launchers.values()), environment.usable_memory_bytes())
    for launcher in launchers.values():
        launcher.load()
    settlers = {label: Settler(folder, readiness=readiness) for label, folder in work.items()}
    for settler in settlers.values():
        settler.calibrate()
    return {
        (label, threads): Bench(
            launcher, settlers[label], work[label], options.timeout_s, machine, block_ns=options.block_ns
        )
        for label in work
        for threads, launcher in launchers.items()
    }
