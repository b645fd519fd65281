"""Show the same measurements on several machines side by side.

Figures of different machines are never averaged, and no verdict compares machines: each ratio is to the best variant of
the same machine.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from bench_runner.conditions import conditions_text
from bench_runner.results.records import Run
from bench_runner.variants import Variant
from reports.analysis.columns import Column, Role
from reports.analysis.figures import Figures
from reports.analysis.labels import short_labels
from reports.analysis.tables import Table, unit_for, value_text
from reports.analysis.units import Unit, number_text
from reports.analysis.words import NOTHING

TITLE = "machines side by side"
MEANING = (
    "each time is from the samples of one machine; x best: ratio to the best variant on the same machine, = if tied "
    "with it. No figure combines machines"
)


def machines_of(tables: Iterable[tuple[Run, Table]]) -> Iterator[Figures]:
    """Yield `Figures` for each time of each data set that was measured under the same conditions on more than one
    machine.

    `tables` has the tables of all runs. Data sets are the same if they have the same digest.
    """
    groups: dict[tuple[object, ...], dict[str, Table]] = {}
    for run, table in tables:
        about = run.info.datasets.get(table.dataset)
        same = (table.suite, table.dataset, about and about.digest, table.data_rows, table.conditions)
        # Of several runs on one machine, the last is shown.
        groups.setdefault(same, {})[table.machine] = table
    several = [list(found.values()) for found in groups.values() if len(found) > 1]
    for number, figures in enumerate(itertools.chain.from_iterable(map(_of_group, several))):
        yield figures if number else replace(figures, notes=(MEANING,))


def _of_group(tables: Sequence[Table]) -> Iterator[Figures]:
    columns = dict.fromkeys(column for table in tables for column in table.columns if column.role is Role.TIME)
    variants = list(dict.fromkeys(row.variant for table in tables for row in table.rows if row.measured))
    labels = short_labels(variants)
    first = tables[0]
    where = f"{first.dataset}, {first.amount}, {conditions_text(first.conditions)}"
    for column in columns:
        having = [table for table in tables if any(row.interval(column) for row in table.rows)]
        if len(having) > 1:
            # The unit with the most digits is readable for all machines.
            unit = min((unit_for(table, column.figure) for table in having), key=lambda each: each.scale)
            lines = [(labels[variant], _texts(having, column, variant, unit)) for variant in variants]
            headers = [(f"{table.machine}\n{unit.name}", f"{table.machine}\nx best") for table in having]
            yield Figures(
                title=f"{column.title}: {where}",
                corner="format",
                headers=tuple(header for pair in headers for header in pair),
                lines=tuple(line for line in lines if any(text != NOTHING for text in line[1])),
                suite=first.suite,
            )


def _texts(tables: Sequence[Table], column: Column, variant: Variant, unit: Unit) -> tuple[str, ...]:
    texts = []
    for table in tables:
        row = next((row for row in table.rows if row.variant == variant), None)
        value = value_text(table, row, column, unit) if row is not None else None
        ratio = table.ranks(column).get(variant)
        texts += [value or NOTHING, NOTHING if ratio is None else number_text(ratio.ratio) + "=" * bool(ratio.tied)]
    return tuple(texts)
