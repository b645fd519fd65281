"""Options of a run: how to measure what a request contains."""

from __future__ import annotations

from dataclasses import dataclass

QUICK_BUDGET_S = 150.0
"""Default budget of a quick run. After one round of everything, the rest of it is for cells that were not counted, and
for facts kept for later runs. With start and reports it ends within three minutes."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """How to measure. The defaults are those of the command line."""

    rounds: int | None = None
    quick: bool = False
    budget_s: float | None = None
    """Covers everything from `began_ns` on. Each chain gets one round, however long earlier parts take."""
    began_ns: int | None = None
    """When the command began, by bench_runner.clock; None for the start of measuring."""
    timeout_s: float = 600.0
    seed: int | None = None
    isolate: str = "forkserver"
    resume: bool = False
    machine: str | None = None
    fidelity: bool = True
    fresh: bool = False
    """Measure again what is kept from earlier runs (bench_runner.run.known.facts_store)."""
    brief: bool = False
    """A run that only screens: its memory probe is not tested, and imports are not timed."""

    @property
    def rounds_asked(self) -> int | None:
        """The number of rounds that the user fixed, or None."""
        return 1 if self.quick else self.rounds
