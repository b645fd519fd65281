"""Prepare the geometric means over several data sets for the site, and the ratios from which they are computed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from bench_runner.variants import Variant
from reports.analysis.bands import band_of_mean
from reports.analysis.columns import Columns
from reports.analysis.means import Means
from reports.site.addresses import Slugs
from reports.site.choices import OVERALL
from reports.site.views import BAND_NAMES, NONE, Place, RowView, TableView


@dataclass(frozen=True, eq=False)
class OverallRow:
    """One variant over all data sets of a group: the geometric means, and the rows from which the means are
    computed."""

    label: str
    variant: Variant
    format: str
    slug: str
    means: tuple[float | None, ...]
    """A mean for each column of the group. A mean is None if a data set has no ratio in the column."""
    parts: tuple[tuple[RowView | None, TableView], ...]


@dataclass(frozen=True, eq=False)
class Group:
    """Tables that differ only in their data set."""

    views: tuple[TableView, ...]
    name: str
    found: Means

    @property
    def columns(self) -> Columns:
        """The columns in which at least one variant has a mean. If there is no such column, all columns of the
        tables."""
        return self.found.columns

    @property
    def id(self) -> str:
        """Name of the group in addresses."""
        return f"{self.views[0].place.slug}-{self.name}"

    @property
    def samples_address(self) -> str:
        """Address of the page with the ratios behind the means."""
        return f"samples/{self.id}.html"

    @property
    def facets(self) -> Mapping[str, str]:
        """The values by which a reader selects the group on a page. They are the values of the group's tables, but the
        data set and the amount are OVERALL."""
        return {**self.views[0].facets, "dataset": OVERALL, "amount": OVERALL}

    @cached_property
    def rows(self) -> tuple[OverallRow, ...]:
        """Every variant that is ranked in at least one of the tables. Rows are sorted by the mean in the leading column
        (normally read time). Variants without any mean come last."""
        by_view = [{row.row.variant: row for row in view.rows} for view in self.views]
        slugs = Slugs()
        rows = []
        for variant in self.found.variants:
            parts = tuple((known.get(variant), view) for known, view in zip(by_view, self.views, strict=True))
            label = next(row.row.label for row, _ in parts if row is not None)
            told = self.found.of(variant)
            rows.append(OverallRow(label, variant, variant.format_name, slugs.of(variant), told, parts))
        return tuple(sorted(rows, key=lambda row: all(mean is None for mean in row.means)))


def groups(place: Place) -> list[Group]:
    """Return the groups of a run's tables. The tables of a group differ only in their data set, and there are at least
    two."""
    by_table = {id(view.table): view for view in place.tables}
    slugs = Slugs({view.name for view in place.tables})
    found = []
    for means in place.contents.means:
        first = means.tables[0]
        name = slugs.of(f"overall-{first.suite}-{first.conditions.track}")
        found.append(Group(tuple(by_table[id(table)] for table in means.tables), name, means))
    return found


def mean_band(mean: float | None) -> str:
    """Return the name of the colour for a geometric mean of ratios."""
    if mean is None:
        return NONE
    return BAND_NAMES[band_of_mean(mean)]
