"""Execute plans so that the result is columns instead of rows. Each column consists of vectors, from which Arrow tables
are made.

Filters are generated code over columns, which skips parts and columns that are not needed. Only arrays, objects and
values beyond the schema's limit are assembled in Python.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from libraries.document_queries.errors import QueryError
from libraries.document_queries.interpreter import evaluate, tuples
from libraries.document_queries.json_form import to_json
from libraries.document_queries.plan import Plan, absolute
from libraries.document_queries.results import Row
from libraries.document_queries.semantics import MISSING, step_into
from libraries.document_queries.steps import Compute, Condition, Field, Filter, Limit, Named, Project, TopK, Unnest
from libraries.document_store.messagepack import decode
from libraries.document_store.projection import rows_under
from libraries.document_store.queries.branches import NESTED, Places
from libraries.document_store.queries.executor import execute, parts_for
from libraries.document_store.queries.generated.columns import Columns, Function, function_for
from libraries.document_store.queries.interpreting import assembled, reaches_rest
from libraries.document_store.queries.parts import QueryPart, Snapshot
from libraries.document_store.queries.ranges import Bounds, bounds_of, may_match, ranges_of
from libraries.document_store.queries.threads import in_threads
from libraries.document_store.queries.vectors.arrow_columns import Chunks, column_of, typed_column_of, vector_of
from libraries.document_store.queries.vectors.codes import Codes
from libraries.document_store.queries.vectors.vector import Index, Vector, concatenated
from libraries.document_store.schema import Schema

Types = Mapping[str, pa.DataType]
"""Name of a column -> its type. Values of other types become null."""


@dataclass(frozen=True)
class _Fitted:
    schema: Schema
    """Kept so that the schema stays alive. Otherwise another object could get the schema's id."""
    is_interpreted: bool
    function: Function | None
    """The generated function; None if no tuple can come from this schema."""
    bounds: tuple[tuple[Bounds, ...], ...]
    assembled: frozenset[str]
    """Names of columns whose arrays and objects are assembled in Python."""


_Found = tuple[Index, list[Vector]] | None
"""Positions of the documents that a plan selects, and a vector for each column. None if no document is selected."""


class _Receiver:
    """Stores the results that a generated function returns for one part."""

    def __init__(self) -> None:
        self.is_empty = True
        self.index: Index = None
        self.vectors: Sequence[Vector] = ()

    def rows(self, index: Index, vectors: Sequence[Vector]) -> None:
        self.is_empty, self.index, self.vectors = False, index, vectors

    def documents(self, index: Index) -> None:
        self.is_empty, self.index = False, index

    def tuples(self, count: int, keys: Sequence[Codes | Vector], operands: Sequence[Vector | None]) -> None:
        raise NotImplementedError("plans here have no groups")


class _Projection:
    """Executes one plan, which returns either the columns of a Project or whole documents."""

    def __init__(self, plan: Plan) -> None:
        self.plan, self.ranges = plan, ranges_of(plan)
        self._fitted: dict[int, _Fitted] = {}

    def _fitted_to(self, schema: Schema) -> _Fitted:
        if id(schema) not in self._fitted:
            places = Places(schema)
            bounds = tuple(bounds_of(places, wanted) for wanted in self.ranges)
            nested = frozenset(each.name for each in self._columns() if self._is_nested(places, each.expression))
            if nested and any(isinstance(step, Unnest) for step in self.plan.gathering):
                self._fitted[id(schema)] = _Fitted(schema, True, None, bounds, nested)
            else:
                simple = tuple(column for column in self._columns() if column.name not in nested)
                plan = Plan((*self.plan.gathering, Project(simple))) if simple else Plan(self.plan.gathering)
                function = function_for(plan, to_json(plan), places)
                self._fitted[id(schema)] = _Fitted(schema, False, function, bounds, nested)
        return self._fitted[id(schema)]

    def _columns(self) -> tuple[Named, ...]:
        return self.plan.result.columns if isinstance(self.plan.result, Project) else ()

    def _is_nested(self, places: Places, expression: object) -> bool:
        if not isinstance(expression, Field):
            return False
        branches = places.branches(absolute(self.plan, expression.of, expression.path))
        return any(branch.kind in NESTED for branch in branches)

    def found(self, part: QueryPart, most: int | None = None) -> tuple[Index, list[Vector]] | None:
        """Return the positions of the documents that the plan selects in a part, and a vector for each column. Return
        None if no document is selected.

        With `most`, documents after the first `most` may be omitted.
        """
        fitted = self._fitted_to(part.schema)
        if fitted.is_interpreted or reaches_rest(part, self.plan):
            return self._interpreted(part)
        if fitted.function is None or not all(may_match(part, wanted) for wanted in fitted.bounds):
            return None
        received = _Receiver()
        fitted.function(Columns(part), received)
        if received.is_empty:
            return None
        index = received.index
        few = None
        if most is not None and most < (part.count if index is None else len(index)):
            few = np.arange(most)
            index = few if index is None else index[few]
        simple = iter(received.vectors)
        vectors = [
            _nested(part, column.expression, index) if column.name in fitted.assembled else next(simple).take(few)
            for column in self._columns()
        ]
        return index, vectors

    def _interpreted(self, part: QueryPart) -> tuple[Index, list[Vector]] | None:
        place = [0]
        flow = tuples(self.plan, _counted(assembled(part, self.plan), place))
        places, rows = [], []
        for row in flow:
            places.append(place[0])
            rows.append([evaluate(column.expression, row) for column in self._columns()])
        if not rows:
            return None
        return np.array(places), [vector_of(column) for column in zip(*rows, strict=True)]


def _counted(documents: Iterable[dict[str, Any]], place: list[int]) -> Iterator[dict[str, Any]]:
    for place[0], document in enumerate(documents):
        yield document


def _nested(part: QueryPart, field: Any, index: Index) -> Vector:
    # An Unnest repeats documents in the index, so each document is assembled once.
    chosen = None if index is None else np.unique(index)
    some = part if chosen is None else part.narrowed(chosen)
    rows = rows_under(some, [field.path]) if some.columnar else some.rows()
    values = [step_into(decode(row), field.path) for row in rows]
    if index is None or chosen is None or len(chosen) == len(index):
        return vector_of(values)
    return vector_of([values[place] for place in np.searchsorted(chosen, index).tolist()])


def matching(snapshot: Snapshot, where: Condition) -> Iterator[tuple[QueryPart, Index]]:
    """Yield each part that has documents for which the condition is true, and the positions of these documents (None:
    all)."""
    plan = Plan((Filter(where),))
    projection = _Projection(plan)
    for part in parts_for(snapshot, plan):
        found = projection.found(part)
        if found is not None:
            yield part, found[0]


def table_of_plan(snapshot: Snapshot, plan: Plan, types: Types) -> pa.Table:
    """Return the answer to a plan as a table. Missing values and nulls are both null.

    A column of mixed types becomes JSON text and causes a warning, unless `types` names the column's type. Raises
    QueryError.
    """
    names = _names(plan)
    if unknown := sorted(set(types) - set(names)):
        raise QueryError(
            f"`types` has the column {unknown[0]!r}, but the answer has only the columns {', '.join(names)}"
        )
    if isinstance(plan.result, Project) and not any(isinstance(step, Compute | TopK) for step in plan.steps):
        columns: Sequence[Chunks] = projected(snapshot, plan)
    else:
        columns = [[vector] for vector in _of_rows(execute(snapshot, plan), names)]
    return table_of(dict(zip(names, columns, strict=True)), types)


def _names(plan: Plan) -> list[str]:
    result = plan.result
    if result is None:
        raise QueryError("an answer as a table needs columns: add a Project, GroupBy or Count, or use to_arrow")
    if isinstance(result, Project):
        names = [column.name for column in result.columns]
    else:
        names = [*(key.name for key in result.keys), *(aggregate.name for aggregate in result.aggregates)]
    return [*names, *(column.name for step in plan.steps if isinstance(step, Compute) for column in step.columns)]


def _of_rows(rows: Sequence[Row], names: Sequence[str]) -> list[Vector]:
    return [vector_of([row.get(name, MISSING) for row in rows]) for name in names]


def table_of(columns: Mapping[str, Chunks], types: Types) -> pa.Table:
    """Return a table of these columns. Warn about each column of mixed types, unless `types` names the column's
    type."""
    mixed: set[str] = set()
    arrays = [
        typed_column_of(chunks, types[name], name) if name in types else column_of(chunks, mixed, name)
        for name, chunks in columns.items()
    ]
    for path in sorted(mixed):
        named = f"; to keep only its integers, pass types={{{path!r}: pa.int64()}}" if path in columns else ""
        warnings.warn(f"{path} has values of several types, and becomes JSON text{named}", stacklevel=4)
    return pa.Table.from_arrays(arrays, list(columns))


def projected(snapshot: Snapshot, plan: Plan) -> list[list[Vector]]:
    """Return the columns of a plan that ends with a Project, or with a Limit after it. Rows are in the order of
    document keys.

    A column consists of one vector per part. If the keys of parts overlap, or with a Limit, a column is a single
    vector.
    """
    result = plan.result
    assert isinstance(result, Project)
    most = next((step.rows for step in plan.steps if isinstance(step, Limit)), None)
    projection = _Projection(plan)
    keys: list[np.ndarray] = []
    pieces: list[list[Vector]] = []
    for part, found in _found(projection, parts_for(snapshot, plan), most, keys):
        if found is not None:
            index, vectors = found
            keys.append(part.keys if index is None else part.keys[index])
            pieces.append(vectors)
    # The parts of one component do not overlap. Then their order is that of their first keys, and no key is compared.
    order = sorted(range(len(keys)), key=lambda place: keys[place][0])
    columns = [[pieces[place][number] for place in order] for number in range(len(result.columns))]
    overlap = any(keys[one][-1] > keys[next_][0] for one, next_ in pairwise(order))
    if not keys or (not overlap and most is None):
        return columns
    index = np.arange(sum(map(len, keys)))
    if overlap:
        index = np.argsort(np.concatenate([keys[place] for place in order]), kind="stable")
    return [[concatenated(column).take(index[:most])] for column in columns]


def _found(
    projection: _Projection, parts: Iterator[QueryPart], most: int | None, keys: list[np.ndarray]
) -> Iterator[tuple[QueryPart, _Found]]:
    """Yield each part with the result of `_Projection.found`. With `most`, skip parts that cannot have one of the first
    `most` rows. The caller appends to `keys` the keys of the rows that it received."""
    if most is not None:
        for part in parts if most else ():
            if not _has_enough(keys, most, part.keys[0]):
                yield part, projection.found(part, most)
        return
    yield from in_threads(projection.found, parts)


def _has_enough(keys: list[np.ndarray], most: int, next_key: Any) -> bool:
    """Return whether at least `most` rows have keys below the next key."""
    return sum(int(np.searchsorted(some, next_key)) for some in keys) >= most
