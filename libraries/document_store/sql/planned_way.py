"""Answer a query by a plan over the store's columns, without DuckDB."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from libraries.document_queries.aggregates import State, SumState
from libraries.document_queries.plan import Plan
from libraries.document_queries.semantics import MISSING as NO_VALUE
from libraries.document_queries.sql.planning import Kinds, Planned, Sorting
from libraries.document_queries.steps import GroupBy, Project
from libraries.document_store.queries.columns_of_plans import projected
from libraries.document_store.queries.executor import Generated, parts_for
from libraries.document_store.queries.generated.result_collection import Collected
from libraries.document_store.queries.parts import Snapshot
from libraries.document_store.queries.vectors.arrow_columns import vector_of
from libraries.document_store.queries.vectors.codes import Codes
from libraries.document_store.queries.vectors.vector import DOUBLE, MISSING, NULL, Vector
from libraries.document_store.sql.typing import own_column


def answer(snapshot: Snapshot, planned: Planned, mixed: set[str]) -> pa.Table:
    """Return the answer. Add the paths whose values of mixed types become JSON text to `mixed`."""
    result = planned.plan.result
    assert result is not None
    if isinstance(result, Project):
        names = [column.name for column in result.columns]
        found = projected(snapshot, planned.plan)
    else:
        names = [*(key.name for key in result.keys), *(figure.name for figure in result.aggregates)]
        found = [[vector] for vector in groups(snapshot, planned.plan, result, planned.kinds)]
    shown = dict(zip(planned.columns, planned.names, strict=True))
    columns = {}
    for name, chunks in zip(names, found, strict=True):
        path = shown.get(name, name)
        columns[name], kinds = own_column(chunks, planned.kinds.get(name, frozenset()), mixed, path)
        if len(kinds) > 1:
            mixed.add(path)
    table = pa.table(columns)
    if planned.sorting.columns:
        table = _sorted(table, planned.sorting, planned.limit, planned.offset)
    table = table.slice(planned.offset, planned.limit)
    return pa.Table.from_arrays([table.column(name) for name in planned.columns], names=list(planned.names))


class _Groups(Collected):
    """Collects groups in which missing and null are the same key, and sums of kind double are doubles."""

    def __init__(self, plan: Plan, kinds: Mapping[str, Kinds]) -> None:
        super().__init__(plan)
        result = plan.result
        assert isinstance(result, GroupBy)
        self._are_double_sums = [
            figure.function == "sum" and kinds.get(figure.name) == {DOUBLE} for figure in result.aggregates
        ]

    def tuples(self, count: int, keys: Sequence[Codes | Vector], operands: Sequence[Vector | None]) -> None:
        """See `Collected`."""
        super().tuples(count, [_key_with_nulls(key) for key in keys], operands)

    def vectors(self) -> list[Vector]:
        """Return the keys and then the aggregates of all groups."""
        result = self.plan.result
        assert isinstance(result, GroupBy)
        if self._pending_keys and not self.groups:
            _, keys, figures = self._grouped(result)
            found = [
                [_result(state, is_double) for state in figure.states()] if is_double else figure.results()
                for figure, is_double in zip(figures, self._are_double_sums, strict=True)
            ]
            return [*keys, *(each if isinstance(each, Vector) else vector_of(each) for each in found)]
        self._into_states()
        merged: dict[tuple[Any, ...], list[Any]] = {}
        for name, (values, states) in self.groups.items():
            known = tuple(None if part is NO_VALUE else part for part in name)
            if known not in merged:
                merged[known] = [[None if value is NO_VALUE else value for value in values], states]
                continue
            for state, other in zip(merged[known][1], states, strict=True):
                state.merge(other)
        rows = [[*values, *map(_result, states, self._are_double_sums)] for values, states in merged.values()]
        width = len(result.keys) + len(result.aggregates)
        return [vector_of([row[place] for row in rows]) for place in range(width)]


def _result(state: State, is_double_sum: bool) -> Any:
    return state.as_double() if is_double_sum and isinstance(state, SumState) else state.result()


def _key_with_nulls(key: Codes | Vector) -> Codes | Vector:
    # Two codes may then have the same value. These codes become one code when the codes of all parts are joined.
    return key._replace(values=_with_nulls(key.values)) if isinstance(key, Codes) else _with_nulls(key)


def _with_nulls(vector: Vector) -> Vector:
    if isinstance(vector.kinds, int):
        return Vector(vector.count, NULL, {}) if vector.kinds == MISSING else vector
    return Vector(vector.count, np.where(vector.kinds == MISSING, np.uint8(NULL), vector.kinds), vector.values)


def groups(snapshot: Snapshot, plan: Plan, result: GroupBy, kinds: Mapping[str, Kinds]) -> list[Vector]:
    """Return the keys and then the aggregates of a plan's groups. Missing and null are the same key.

    `kinds` are the kinds of the columns. A sum whose kind is double is a double in all groups, also in groups that have
    only integers.
    """
    if plan.counts_documents_only:
        return [vector_of([snapshot.count()]) for _ in result.aggregates]
    collected = _Groups(plan, kinds)
    Generated(plan, "auto", collected).collect(parts_for(snapshot, plan))
    vectors = collected.vectors()
    if not result.keys and vectors[0].count == 0:
        zero = {"count": 0, "count_distinct": 0}
        return [vector_of([zero.get(figure.function)]) for figure in result.aggregates]
    return vectors


def _sorted(table: pa.Table, sorting: Sorting, limit: int | None, offset: int) -> pa.Table:
    """Sort as DuckDB does: each key states whether nulls come first or last, and NaN is above all numbers."""
    keys: list[tuple[str, str, str]] = []
    for name, descends, nulls_first in sorting.columns:
        if any(name == key[0] for key in keys):
            # A column that is named again does not change the order.
            continue
        order = ("descending" if descends else "ascending", "at_start" if nulls_first else "at_end")
        column = table.column(name)
        if pa.types.is_floating(column.type) and pc.any(pc.is_nan(column)).as_py():
            table = table.append_column(f"{name} nan", pc.is_nan(column))
            keys.append((f"{name} nan", *order))
        keys.append((name, *order))
    indices = pc.sort_indices(table, sort_keys=keys)
    return table.take(indices if limit is None else indices.slice(0, limit + offset))
