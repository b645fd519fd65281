"""Counting the values of some fields in the documents where another field is in a range.

Table 3 of Alkowaileet and Carey has the same experiment: a share of the documents is found by an index or by a scan,
and the values of 1, 5 or 10 fields in these documents are counted.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

from adapters.document_store import DocumentHandle, FieldPath, RefusedQuery
from adapters.errors import RefusedData
from adapters.offers import Handle
from bench_runner.operations.documents import source
from bench_runner.operations.documents.ask import Asking, Plans
from bench_runner.operations.documents.operation import document_handle
from bench_runner.operations.operation import OperationContext
from bench_runner.operations.parameters import count, share, word
from bench_runner.operations.tables.take import generator
from libraries import document_queries as q

SCAN, INDEX = "scan", "index"


@dataclass(frozen=True)
class Range(Asking):
    """Count the values of some fields in a share of the documents of an open store. The result has one count for each
    field."""

    selectivity: float = share(0.001)
    paths: int = count(1, spelled=True)
    by: str = word(SCAN, INDEX, spelled=True)

    name: ClassVar[str] = "range"
    meaning: ClassVar[str] = "count the values of some fields in a share of the documents, by an index or a scan"

    @property
    def title(self) -> str:
        """The name shown to people, such as 'range of 0.1%, 1 field, by index'."""
        return f"range of {self.selectivity * 100:g}%, {self.paths} field{'s' * (self.paths != 1)}, by {self.by}"

    @property
    def leaves_traces(self) -> bool:
        """True for `by=index`, because the index stays in the stored copy. A store would also use this index for
        `by=scan` on the same field."""
        return self.by == INDEX

    def unfit(self, adapter: Any) -> str | None:
        """Return a refusal reason if an index is needed and the store has none."""
        if self.by == INDEX and not adapter.offers.index:
            return "it has no index of fields: measure it with by=scan"
        return super().unfit(adapter)

    def make_ready(self, stage: OperationContext, handle: Handle, inputs: Sequence[Plans]) -> None:
        """For `by=index`, create the index if it does not exist. Then let the store prepare the query plans."""
        if self.by == INDEX:
            document_handle(handle).index(self._ordered(stage))
        super().make_ready(stage, handle, inputs)

    def confirm(self, stage: OperationContext, handle: Handle, inputs: Sequence[str]) -> None:
        """For `by=index`, raise RefusedData if the store reports that it does not use its index for one of the
        ranges."""
        if self.by != INDEX:
            return
        for plan in dict.fromkeys(inputs):
            if self._reads_all(stage, plan) or not _takes_index(document_handle(handle), plan):
                raise RefusedData(
                    f"the store has an index of {'.'.join(self._ordered(stage))}, but does not use the index to find "
                    f"{self.selectivity * 100:g}% of {stage.rows:,} documents; use by=scan, or more documents"
                )

    def inputs(self, stage: OperationContext, rows: int, repetitions: int) -> list[str]:
        """Return a list with a query plan for each repetition. The plans differ in the range of values."""
        ordered = self._ordered(stage)
        (found,) = source.values(stage, rows, ordered)
        # The fields and ranges are the same with and without an index.
        chosen = source.chosen_paths(stage, self.paths, f"range/{self.paths}")
        random = generator(stage.digest, f"range/{self.selectivity}")
        asked = source.shares_between(found, self.selectivity, random, repetitions)
        return [plan(ordered, low, high, chosen) for low, high in asked]

    def right(self, stage: OperationContext, plan: str) -> list[dict[str, Any]]:
        """Return the right counts. This method computes the counts without the reference implementation of the query
        language."""
        condition, counting = json.loads(plan)
        low, high = (bound["right"]["value"] for bound in condition["condition"]["conditions"])
        paths = tuple(tuple(each["expression"]["path"]) for each in counting["aggregates"])
        ordered, *counted = _columns(stage, (self._ordered(stage), *paths))
        inside = [type(value) in (int, float) and low <= value <= high for value in ordered]
        columns = zip(counting["aggregates"], counted, strict=True)
        return [{each["name"]: _present(inside, column) for each, column in columns}]

    def _ordered(self, stage: OperationContext) -> FieldPath:
        return source.ordered_fields(stage, 1)[0]


@lru_cache(maxsize=1)
def _columns(stage: OperationContext, paths: tuple[FieldPath, ...]) -> list[list[Any]]:
    return source.values(stage, stage.rows, *paths)


def _takes_index(handle: DocumentHandle, plan: str) -> bool:
    try:
        return handle.uses_index(plan)
    except RefusedQuery:
        return False


def _present(inside: list[bool], column: list[Any]) -> int:
    return sum(is_inside and value is not None for is_inside, value in zip(inside, column, strict=True))


def plan(ordered: FieldPath, low: int, high: int, counted: list[FieldPath]) -> str:
    """Return a query plan, as JSON, that counts the values of the fields `counted` in the documents where the field
    `ordered` is from `low` to `high`."""
    bounds = ((">=", low), ("<=", high))
    inside = q.And(tuple(q.Compare(q.Field(ordered), operator, q.Constant(value)) for operator, value in bounds))
    counts = (q.Aggregate(f"count_{n}", "count", q.Field(path)) for n, path in enumerate(counted, start=1))
    text: str = q.to_json(q.Plan((q.Filter(inside), q.GroupBy((), tuple(counts)))))
    return text
