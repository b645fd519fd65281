"""Choose the variants of one format that are measured for a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from adapters.spelling import spell
from bench_runner.operations.targets import Target
from bench_runner.run.watcher import Watcher
from data_generator import cache
from data_generator.dataset import Dataset
from format_bench.within import others, parquet
from format_bench.within.proposal import Proposals
from formats.registry import FORMATS
from reports.analysis.recommendation.preferences import Preferences

PARQUET = "parquet"
FORMATS_WITHIN = (PARQUET, *others.CHANGES)
"""Formats whose settings are compared."""
SHARE = 0.3
"""Share of the budget for trying settings in memory. The rest is for measuring the proposed variants."""
COSTS = ("read", "size", "save")


@dataclass(frozen=True)
class Study:
    """A study of one format: which of its settings suit the user's preferences, target and budget."""

    format: str
    preferences: Preferences
    target: Target
    budget_s: float
    reorder: bool

    @property
    def default(self) -> str:
        """The full name of the format's default variant. Raises the errors of Registry.build."""
        return str(FORMATS.build(spell(self.format, FORMATS.engines(self.format)[0].library_default)).variant)

    def variants(self, dataset: Dataset, folder: Path, watcher: Watcher) -> Sequence[str]:
        """Return the variants to measure on this data set. A file in the result folder stores how each variant differs
        from the default."""
        if self.format == PARQUET:
            watcher.stage("try settings of parquet")
            weights = {name: self.preferences.weights.get(name, 0.0) for name in COSTS}
            if not any(weights.values()):
                weights = dict(Preferences().weights)
            table = cache.read_table(cache.prepare(dataset, cache.default_folder()).path)
            limit_s = SHARE * self.budget_s
            race_s = self.budget_s - limit_s
            found = parquet.proposals(table, weights, self.target, limit_s, race_s, reorder=self.reorder)
        else:
            found = others.proposals(self.format)
        Proposals(self.format, tuple(found)).keep(folder)
        return [proposal.variant for proposal in found]
