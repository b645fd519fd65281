"""Options of a run. They state how to measure what a request contains."""

from __future__ import annotations

from dataclasses import dataclass

QUICK_BUDGET_S = 150.0
"""Default budget of a quick run. After one round of everything, the rest of the budget is for repeating samples that
were not counted, and for measuring facts that later runs reuse. Including start and reports, the run ends within three
minutes."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """How to measure. The defaults are those of the command line."""

    rounds: int | None = None
    quick: bool = False
    budget_s: float | None = None
    """Time limit in seconds, from `began_ns` on. Each chain gets one round, however long earlier parts take."""
    began_ns: int | None = None
    """Start time of the command, as given by bench_runner.clock. None means the start of measuring."""
    timeout_s: float = 600.0
    seed: int | None = None
    isolate: str = "forkserver"
    resume: bool = False
    machine: str | None = None
    fidelity: bool = True
    fresh: bool = False
    """Measure again the facts that earlier runs stored (bench_runner.run.known.facts_store)."""
    brief: bool = False
    """Only screen variants, without testing the memory probe and without timing imports."""

    @property
    def rounds_asked(self) -> int | None:
        """The number of rounds that the user fixed, or None."""
        return 1 if self.quick else self.rounds
