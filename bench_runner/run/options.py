"""Options of a run: how to measure. What to measure is in the request."""

from __future__ import annotations

from dataclasses import dataclass

QUICK_BUDGET_S = 150.0
"""Default budget of a quick run in seconds. A quick run measures everything once. The rest of the budget is used to
repeat unusable samples, and to measure facts (e.g. import times) that later runs reuse. Including start and reports,
the run ends within three minutes."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """How to measure. The defaults are those of the command line."""

    rounds: int | None = None
    quick: bool = False
    budget_s: float | None = None
    """Time limit in seconds, from `began_ns` on. Every variant gets one round even if the time is exceeded."""
    began_ns: int | None = None
    """Start time of the command in ns, from bench_runner.clock. With None, the budget starts with the run."""
    timeout_s: float = 600.0
    seed: int | None = None
    isolate: str = "forkserver"
    resume: bool = False
    machine: str | None = None
    fidelity: bool = True
    fresh: bool = False
    """Whether to measure facts again that earlier runs stored, such as import times
    (bench_runner.run.known.facts_store)."""
    brief: bool = False
    """Whether this run only screens variants (measures them roughly). The memory probe is then not tested, and imports
    are not timed."""

    block_ns: int | None = None
    """Longest duration in ns of a block (calls that are timed in one process) with more than three calls. None means
    the usual limit (rule 19)."""

    @property
    def rounds_asked(self) -> int | None:
        """The number of rounds that the user fixed, or None."""
        return 1 if self.quick else self.rounds
