"""Test the two memory probes, which measure peak private memory and peak resident memory, with allocations of known
size. The error is stored with every run.

The allocations are made in the same kind of worker that measures samples, so the conditions are the same.
bench_runner.worker.memory_probe makes the allocations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from bench_runner.errors import RunError
from bench_runner.results.information import KnownAnswer
from bench_runner.run.launcher import Launcher, Limits
from bench_runner.run.tasks import probe_task, scratch_folder
from bench_runner.worker.memory_probe import ALLOCATIONS, EXACT, SIZES_BYTES
from bench_runner.worker.messages import Probed

SHORT = (("numpy", 10**7), ("numpy", 10**8), ("four threads", 10**8))
"""The allocations (method, bytes) of the short test, which every run does before its rounds. The long test, with the
allocations of LONG, is done once for each machine."""
LONG = tuple((how, size_bytes) for how in ALLOCATIONS for size_bytes in SIZES_BYTES)
LIMITS = Limits(timeout_s=60, memory_bytes=4 * 10**9)


def known_answers(
    launcher: Launcher, folder: Path, tell: Callable[[str, float | None], None], asked: Sequence[tuple[str, int]]
) -> Iterator[KnownAnswer]:
    """Make each allocation of `asked`, given as (method, bytes), in a fresh worker. Yield a KnownAnswer with the peaks
    that the probes reported. Raises RunError if a worker fails."""
    for how, size_bytes in asked:
        tell(f"{size_bytes // 10**6} MB by {how}", None)
        with scratch_folder(folder) as scratch:
            outcome = launcher.run(probe_task(how, size_bytes, scratch), LIMITS)
        if outcome.failure is not None:
            raise RunError(f"the memory probe could not be tested: {outcome.failure.reason}")
        probed = outcome.answer(Probed)
        yield KnownAnswer(
            how=how,
            size_bytes=size_bytes,
            peak_private_bytes=outcome.added_bytes(probed),
            peak_rss_bytes=probed.peak_rss_bytes,
        )


def error_bytes(answers: Iterable[KnownAnswer]) -> int:
    """Return the largest error of the probe of private memory in bytes. Only allocations whose true size is known
    exactly are used."""
    return max(abs(answer.peak_private_bytes - answer.size_bytes) for answer in answers if answer.how in EXACT)
