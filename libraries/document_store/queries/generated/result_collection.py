"""Collect the results of generated functions into the answer: tuples into groups, projections into rows.

Vectors of several parts are collected and grouped together. From `MOST_TUPLES` on, groups are converted to Python
states, so that memory use stays constant.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from libraries.document_queries.interpreter import Groups
from libraries.document_queries.plan import Plan
from libraries.document_queries.reference import Interpretation
from libraries.document_queries.results import Place, Row, finish, rows_of_groups
from libraries.document_queries.semantics import MISSING, identity, order_key
from libraries.document_queries.steps import Call, Compute, Expression, Field, GroupBy, Project, TopK
from libraries.document_store.messagepack import decode
from libraries.document_store.queries.parts import QueryPart
from libraries.document_store.queries.vectors.aggregates import Aggregated, Results, aggregated
from libraries.document_store.queries.vectors.codes import Codes, codes_if_few, codes_of_all, counted, grouped
from libraries.document_store.queries.vectors.vector import DOUBLE, INTEGER, Index, Vector, concatenated, minus

MOST_TUPLES = 4_000_000
"""When this number of tuples is held in memory as vectors, the tuples are grouped and converted to Python states."""


class Collected:
    """Receives the results of generated functions part by part. `part` is the part to which the next results belong."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.part: QueryPart | None = None
        self.interpretation = Interpretation(plan)
        """Processes the parts that no generated function supports."""
        self.groups: Groups = self.interpretation.groups
        """Groups as Python states: from rows, and from vectors that were converted earlier."""
        self.placed: list[tuple[Place, Row]] = self.interpretation.placed
        self._count = 0
        self._pending_keys: list[Sequence[Codes | Vector]] = []
        self._pending_operands: list[Sequence[Vector | None]] = []
        self._pending_counts: list[np.ndarray] = []
        """How many tuples each pending entry represents. Used for queries that only count tuples."""
        result = plan.result
        self._is_counting = isinstance(result, GroupBy) and all(
            aggregate.function == "count" and aggregate.expression is None for aggregate in result.aggregates
        )

    def tuples(self, count: int, keys: Sequence[Codes | Vector], operands: Sequence[Vector | None]) -> None:
        """Receive `count` tuples: the values of each group key, and the operand of each aggregate."""
        keys = [codes_if_few(key) for key in keys]
        if self._is_counting:
            keys, counts = counted(count, keys) or (keys, np.ones(count, np.int64))
            count = len(counts)
            self._pending_counts.append(counts)
        self._count += count
        self._pending_keys.append(keys)
        self._pending_operands.append(operands)
        if self._count >= MOST_TUPLES:
            self._into_states()

    def rows(self, index: Index, vectors: Sequence[Vector]) -> None:
        """Receive rows of a projection. `index` is the position of each row's document; `vectors` are the columns."""
        assert self.part is not None
        assert isinstance(self.plan.result, Project)
        names = [column.name for column in self.plan.result.columns]
        chosen = candidates(self.plan, dict(zip(names, vectors, strict=True)))
        if chosen is not None:
            index = chosen if index is None else index[chosen]
            vectors = [vector.take(chosen) for vector in vectors]
        keys = self.part.keys if index is None else self.part.keys[index]
        lists = [vector.tolist(MISSING) for vector in vectors]
        for key, *values in zip(keys.tolist(), *lists, strict=True):
            row = {name: value for name, value in zip(names, values, strict=True) if value is not MISSING}
            self.placed.append((key, row))

    def documents(self, index: Index) -> None:
        """Receive the positions of documents that are returned whole."""
        assert self.part is not None
        rows = self.part.rows()
        chosen = range(len(rows)) if index is None else index.tolist()
        keys = self.part.keys.tolist()
        self.placed.extend((keys[place], decode(rows[place])) for place in chosen)

    def answer(self) -> list[Row]:
        """Return the rows of the result."""
        result = self.plan.result
        if not isinstance(result, GroupBy):
            return finish(self.plan, self.placed)
        if self.groups or not self._pending_keys:
            self._into_states()
            return finish(self.plan, rows_of_groups(result, self.groups))
        return finish(self.plan, self._rows_of_vectors(result))

    def _grouped(self, result: GroupBy) -> tuple[int, list[Vector], list[Aggregated]]:
        """Group the pending tuples. Return the number of groups, the keys of the groups, and each aggregate for all
        groups."""
        found = grouped(self._count, [codes_of_all(parts) for parts in zip(*self._pending_keys, strict=True)])
        operands = [_whole(column) for column in zip(*self._pending_operands, strict=True)]
        tuples = np.concatenate(self._pending_counts) if self._is_counting else None
        figures = [
            aggregated(aggregate.function, found.groups, found.count, operand, tuples)
            for aggregate, operand in zip(result.aggregates, operands, strict=True)
        ]
        for pending in (self._pending_keys, self._pending_operands, self._pending_counts):
            pending.clear()
        self._count = 0
        return found.count, found.keys, figures

    def _into_states(self) -> None:
        result = self.plan.result
        if not self._pending_keys or not isinstance(result, GroupBy):
            return
        count, keys, figures = self._grouped(result)
        columns = [key.tolist(MISSING) for key in keys]
        states = [figure.states() for figure in figures]
        for group in range(count):
            values = tuple(column[group] for column in columns)
            found = [column[group] for column in states]
            name = tuple(map(identity, values))
            if name not in self.groups:
                self.groups[name] = (values, found)
                continue
            for state, other in zip(self.groups[name][1], found, strict=True):
                state.merge(other)

    def _rows_of_vectors(self, result: GroupBy) -> list[tuple[Place, Row]]:
        _, keys, figures = self._grouped(result)
        names = [*(key.name for key in result.keys), *(aggregate.name for aggregate in result.aggregates)]
        columns: list[Results] = [*keys, *(figure.results() for figure in figures)]
        chosen = candidates(self.plan, dict(zip(names, columns, strict=True)))
        lists = [_listed(column, chosen) for column in columns]
        placed = []
        for values in zip(*lists, strict=True):
            row = {name: value for name, value in zip(names, values, strict=True) if value is not MISSING}
            placed.append(([order_key(value) for value in values[: len(keys)]], row))
        return placed


def _whole(column: tuple[Vector | None, ...]) -> Vector | None:
    parts = [vector for vector in column if vector is not None]
    return concatenated(parts) if parts else None


def _listed(column: Results, chosen: np.ndarray | None) -> list[Any]:
    if isinstance(column, Vector):
        return column.take(chosen).tolist(MISSING)
    return column if chosen is None else [column[place] for place in chosen.tolist()]


def candidates(plan: Plan, columns: dict[str, Results]) -> np.ndarray | None:
    """Return the positions of rows that can be in the result of a TopK (a step that keeps only the first rows of an
    order). None means all rows, e.g. if the first column to order by does not hold only numbers."""
    step = next((step for step in plan.steps if isinstance(step, TopK)), None)
    if step is None or not step.rows:
        return None
    for compute in (step for step in plan.steps if isinstance(step, Compute)):
        for column in compute.columns:
            columns[column.name] = _computed(column.expression, columns)
    values = _numbers(columns.get(step.by[0].name))
    if values is None or len(values) <= step.rows:
        return None
    if step.by[0].descending:
        bound = np.partition(values, len(values) - step.rows)[len(values) - step.rows]
        return np.flatnonzero(values >= bound)
    return np.flatnonzero(values <= np.partition(values, step.rows - 1)[step.rows - 1])


def _numbers(column: Results | None) -> np.ndarray | None:
    if not isinstance(column, Vector) or len(column.values) != 1:
        return None
    for kind in (INTEGER, DOUBLE):
        if kind in column.values and len(column.values[kind]) == column.count:
            values: np.ndarray = column.values[kind]
            return None if kind == DOUBLE and np.isnan(values).any() else values
    return None


def _computed(expression: Expression, columns: dict[str, Results]) -> Results:
    """Return a computed column: a field, or the difference of two vectors. For other expressions return an empty list,
    which means that the values are not known here. `finish` computes all columns later, in Python."""
    if isinstance(expression, Field):
        return columns[expression.path[0]]
    if isinstance(expression, Call) and expression.function == "minus":
        left, right = (_computed(operand, columns) for operand in expression.operands)
        if isinstance(left, Vector) and isinstance(right, Vector):
            return minus(left, right)
    return []
