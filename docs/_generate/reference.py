"""Read the reference run and its tables once for all pages, because that takes seconds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from bench_runner.results.records import Run
from bench_runner.results.reference import reference_runs
from reports.analysis.tables import Table, tables


@dataclass(frozen=True)
class Reference:
    """The runs of suites, with their tables."""

    runs: tuple[Run, ...]

    @cached_property
    def tables(self) -> tuple[tuple[Run, Table], ...]:
        """All tables, each with its run."""
        return tuple((run, table) for run in self.runs for table in tables(run))

    def of(self, suite: str) -> Iterator[tuple[Run, Table]]:
        """Yield the tables of a suite with a warm page cache."""
        return (each for each in self.tables if each[1].suite == suite and each[1].conditions.cache == "warm")

    @property
    def machines(self) -> str:
        """Name the runs of each processor: '`tabular` and `image` on AMD EPYC; ...'."""
        by_processor: dict[str, list[str]] = {}
        for run in self.runs:
            by_processor.setdefault(run.info.machine.cpu or "an unknown processor", []).append(f"`{run.folder.name}`")
        return "; ".join(
            f"{' and '.join(filter(None, (', '.join(most), last)))} on {cpu}"
            for cpu, (*most, last) in by_processor.items()
        )


def reference() -> Reference:
    """Return the reference run of this checkout."""
    return Reference(tuple(reference_runs()))
