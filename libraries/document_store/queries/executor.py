"""Execute a plan over a snapshot, part by part, and skip parts and columns that need not be read.

Every way (method of execution) gives the same answer. The way 'auto' uses generated code over the columns or rows that
each part stores.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

from libraries.document_queries.errors import QueryError
from libraries.document_queries.json_form import to_json
from libraries.document_queries.plan import Plan
from libraries.document_queries.results import Row, finish
from libraries.document_queries.steps import GroupBy
from libraries.document_store.queries.branches import Places, wants_nested_values
from libraries.document_store.queries.generated.columns import Columns, Function, function_for
from libraries.document_store.queries.generated.result_collection import Collected
from libraries.document_store.queries.generated.rows import RowLoop
from libraries.document_store.queries.interpreting import assembled, interpret_columns, interpret_rows, reaches_rest
from libraries.document_store.queries.parts import QueryPart, Snapshot
from libraries.document_store.queries.ranges import Bounds, bounds_of, may_match, ranges_of
from libraries.document_store.schema import Schema

if TYPE_CHECKING:
    import numpy as np

Way = Literal["auto", "rows", "columns", "generated-rows", "generated-columns"]
WAYS: tuple[Way, ...] = get_args(Way)

MOST_BY_INDEX = 0.1
"""Maximum share of documents that an index may select. If it selects more, all documents are scanned."""


def execute(snapshot: Snapshot, plan: Plan, way: Way = "auto", use_indexes: bool = True) -> list[Row]:
    """Return the answer to a plan. Indexes do not change the answer. Raises QueryError or CorruptError."""
    if way not in WAYS:
        raise QueryError(f"unknown way of execution {way!r}; allowed are {', '.join(WAYS)}")
    if plan.counts_documents_only:
        result = plan.result
        assert isinstance(result, GroupBy)
        count = snapshot.count()
        return finish(plan, [([], {aggregate.name: count for aggregate in result.aggregates})])
    parts = parts_for(snapshot, plan) if use_indexes else snapshot.parts()
    if way == "rows":
        return interpret_rows(parts, plan)
    if way == "columns":
        return interpret_columns(parts, plan)
    collected = Collected(plan)
    Generated(plan, way, collected).collect(parts)
    return collected.answer()


@dataclass(frozen=True)
class _Fitted:
    schema: Schema
    """Kept so that the schema stays alive. Otherwise another object could get the schema's id."""
    is_interpreted: bool
    function: Function | None
    """The generated function; None if no tuple can come from this schema."""
    bounds: tuple[tuple[Bounds, ...], ...]
    """One tuple for each range of values that the plan's filters require. The tuple has the leaves (columns of the
    schema) that may have a value in the range, each with both ends of the range as values of the leaf's kind."""


class Generated:
    """One execution by generated code. The code runs over rows, over columns, or over what each part stores."""

    def __init__(self, plan: Plan, way: Way, collected: Collected) -> None:
        """`collected` receives the results."""
        self.plan, self.way, self.spelled = plan, way, to_json(plan)
        self.ranges = ranges_of(plan)
        self.loop = RowLoop(plan, self.spelled)
        self.collected = collected
        self._fitted: dict[int, _Fitted] = {}

    def collect(self, parts: Iterable[QueryPart]) -> None:
        """Process parts. The results go to `collected`."""
        for part in parts:
            if self.way == "generated-columns" or (self.way == "auto" and part.columnar):
                self._by_columns(part)
            else:
                self.loop.add(part.keys.tolist(), part.rows(), self.collected.placed)
        if isinstance(self.plan.result, GroupBy):
            self.loop.merge_into(self.collected.groups)

    def _by_columns(self, part: QueryPart) -> None:
        fitted = self._fitted_to(part.schema)
        if fitted.is_interpreted or reaches_rest(part, self.plan):
            self.collected.interpretation.add(part.keys.tolist(), assembled(part, self.plan))
        elif fitted.function is not None and all(may_match(part, wanted) for wanted in fitted.bounds):
            self.collected.part = part
            fitted.function(Columns(part), self.collected)

    def _fitted_to(self, schema: Schema) -> _Fitted:
        if id(schema) not in self._fitted:
            places = Places(schema)
            # If arrays or objects are needed as values, or paths exceed the schema's limit, interpret the plan.
            is_interpreted = wants_nested_values(self.plan, places)
            function = None if is_interpreted else function_for(self.plan, self.spelled, places)
            bounds = tuple(bounds_of(places, wanted) for wanted in self.ranges)
            self._fitted[id(schema)] = _Fitted(schema, is_interpreted, function, bounds)
        return self._fitted[id(schema)]


def index_of(snapshot: Snapshot, plan: Plan) -> str | None:
    """Return the path of the index that a plan would use. Return None if the plan scans all documents or only counts
    them."""
    found = None if plan.counts_documents_only else _told_by_an_index(snapshot, plan)
    return None if found is None else found[0]


def parts_for(snapshot: Snapshot, plan: Plan) -> Iterator[QueryPart]:
    """Yield all parts. If an index selects few documents, yield only parts with these documents."""
    found = _told_by_an_index(snapshot, plan)
    return snapshot.parts() if found is None else snapshot.parts(found[1])


def _told_by_an_index(snapshot: Snapshot, plan: Plan) -> tuple[str, np.ndarray] | None:
    """Return the path of the first index that selects few documents, and the keys of these documents. Return None if
    there is no such index."""
    most = snapshot.most() * MOST_BY_INDEX
    for wanted in ranges_of(plan):
        if wanted.is_of_documents:
            keys = snapshot.index_keys(str(wanted.path), wanted.low, wanted.high, most)
            if keys is not None:
                return str(wanted.path), keys
    return None
