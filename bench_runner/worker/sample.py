"""Take one sample in this process: everything before timing, the timed operation, and everything after it.

The steps follow docs/method.md: run the operation once on a few rows, load its input into private memory, wait until
the machine is idle, free memory, time the operation, read memory and I/O counters, and verify the result.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bench_runner.clock import Laps, now_ns
from bench_runner.operations import VERIFYING, Operation
from bench_runner.operations.operation import Sampling
from bench_runner.worker.messages import Measured, MeasureTask
from bench_runner.worker.prepared import Prepared, prepare
from bench_runner.worker.sampling import calls, epochs, once, write
from bench_runner.worker.sampling.sampled import Sampled
from bench_runner.worker.verification import Pair, verified


@dataclass(frozen=True)
class Sampler:
    """Three functions that take a sample in one way, for example with one call or with a block of calls."""

    call: Callable[[Prepared, Laps], Any]
    """Function of (prepared, laps) that runs the operation while the caller times it. Returns the result to verify."""
    sample: Callable[[Prepared, MeasureTask, mmap.mmap], Sampled]
    parts: Callable[[Prepared, Any, Any], Sequence[Pair]]
    """Function of (prepared, input, result). It returns the pairs to compare, each with a result and a description of
    the expected result."""


SAMPLERS: Mapping[Sampling, Sampler] = {
    "once": Sampler(once.call, once.sample, once.parts),
    "calls": Sampler(calls.call, calls.sample, calls.parts),
    "epochs": Sampler(once.call, epochs.sample, epochs.parts),
    "write": Sampler(once.call, write.sample, once.parts),
}


def sampler_of(operation: Operation) -> Sampler:
    """Return the sampler of an operation."""
    return SAMPLERS[operation.sampling]


def measure(task: MeasureTask, phase: mmap.mmap) -> Iterator[Measured]:
    """Measure one operation, following method rules 2, 3, 6, 7, 11, 13, 19 and 20. Yield one message with its
    results."""
    prepared = prepare(task)
    operation = prepared.operation
    sampler = sampler_of(operation)
    sampled = sampler.sample(prepared, task, phase)
    measured = sampled.measured
    if sampled.given is not None:
        began_ns = now_ns()
        parts = sampler.parts(prepared, sampled.asked, sampled.given)
        found = verified(prepared, parts, last_reader=task.last_reader)
        # Add to the time of verifying large results of calls before timing.
        measured.figures["verify_ns"] = measured.figures.get("verify_ns", 0) + now_ns() - began_ns
        measured.fidelity, measured.losses = found.fidelity, list(found.losses)
        measured.saw_all = operation.spelled == VERIFYING
        measured.fallback = operation.fallback_in(prepared.stage)
    yield measured
