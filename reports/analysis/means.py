"""Compute the geometric mean over data sets of each variant's ratio to the best, column by column.

No winner is named over all data sets, because a user has only one data set.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from bench_runner.results.statistics import overall
from bench_runner.variants import Variant
from reports.analysis.columns import Column, Columns, joined
from reports.analysis.tables import Table


@dataclass(frozen=True, eq=False)
class Means:
    """Tables that differ only in their data set."""

    tables: tuple[Table, ...]

    @cached_property
    def columns(self) -> Columns:
        """Every column in which at least one variant has a mean. If there is no such column, every column of the
        tables."""
        every = joined(table.columns for table in self.tables)
        meant = tuple(column for column in every if self._means(column))
        return Columns(meant) if meant else every

    @cached_property
    def variants(self) -> tuple[Variant, ...]:
        """All variants that are ranked in at least one of the tables. They are sorted by their mean in the leading
        column (normally read time)."""
        found = dict.fromkeys(
            variant for table in self.tables for column in self.columns for variant in table.ranks(column)
        )
        leading = self.by_column[self.columns.leading] if self.columns.leading else {}
        return tuple(sorted(found, key=lambda variant: leading.get(variant, float("inf"))))

    @cached_property
    def by_column(self) -> Mapping[Column, Mapping[Variant, float]]:
        """For each column, the mean of each variant that has a ratio in every table."""
        return {column: self._means(column) for column in self.columns}

    def _means(self, column: Column) -> Mapping[Variant, float]:
        ranks = [table.ranks(column) for table in self.tables]
        complete = [variant for variant in ranks[0] if all(variant in each for each in ranks)]
        return overall(
            {
                variant: {table.dataset: each[variant].ratio for table, each in zip(self.tables, ranks, strict=True)}
                for variant in complete
            }
        ).means

    def of(self, variant: Variant) -> tuple[float | None, ...]:
        """Return the means of a variant, one for each column."""
        return tuple(self.by_column[column].get(variant) for column in self.columns)


def means_of(found: Sequence[Table]) -> list[Means]:
    """Return a `Means` for each group of at least two tables that differ only in their data set."""
    groups: dict[tuple[object, ...], list[Table]] = {}
    for table in found:
        groups.setdefault((table.suite, table.machine, table.conditions), []).append(table)
    return [Means(tuple(group)) for group in groups.values() if len({table.dataset for table in group}) > 1]
