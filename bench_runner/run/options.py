"""How a run measures what a request asks for."""

from __future__ import annotations

from dataclasses import dataclass

QUICK_BUDGET_S = 150.0
"""Of a quick run for which no budget is named. One round of everything comes first; what is left of it is for cells
that were not counted, and for what is kept for later runs. With start and reports it ends within three minutes."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """How to measure; the defaults are those of the command line."""

    rounds: int | None = None
    quick: bool = False
    budget_s: float | None = None
    """For everything from `began_ns` on; each chain gets one round, however long what comes before it takes."""
    began_ns: int | None = None
    """When the command began, by bench_runner.clock; None: when measuring does."""
    timeout_s: float = 600.0
    seed: int | None = None
    isolate: str = "forkserver"
    resume: bool = False
    machine: str | None = None
    fidelity: bool = True
    fresh: bool = False
    """What is kept from earlier runs (bench_runner.run.known.facts_store) is measured again."""
    brief: bool = False
    """A run that only sifts: its memory probe is not tested, imports are not timed."""

    @property
    def rounds_asked(self) -> int | None:
        """The number of rounds that the user fixed, or None."""
        return 1 if self.quick else self.rounds
