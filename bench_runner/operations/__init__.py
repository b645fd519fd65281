"""The operations that are timed. Each operation is one class, which defines its parameters, its fallback and its right
answer.

To add an operation, write one module here and add one row to OPERATIONS. adapters.contract defines the calls that
adapters offer.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import Field, fields
from typing import Any

from adapters.errors import SpellingError
from adapters.spelling import parse
from bench_runner.errors import PlanError
from bench_runner.operations import parameters
from bench_runner.operations.documents.ask import Ask, Sql
from bench_runner.operations.documents.fields import Fields
from bench_runner.operations.documents.get import Get
from bench_runner.operations.documents.ingest import Ingest
from bench_runner.operations.documents.ranges import Range
from bench_runner.operations.operation import READ_ALL, Calls, Operation, OperationContext, OtherAnswer, Writes
from bench_runner.operations.parallel.tables import ReadParallel, SaveParallel, ScanParallel
from bench_runner.operations.row_groups.aggregate import Aggregate
from bench_runner.operations.row_groups.metadata import Metadata
from bench_runner.operations.row_groups.query import Query
from bench_runner.operations.streams.batches import Batches, Epoch
from bench_runner.operations.streams.tables import StreamRead, StreamSave
from bench_runner.operations.tables.append import Append
from bench_runner.operations.tables.project import Project
from bench_runner.operations.tables.scan import Scan
from bench_runner.operations.tables.take import Take
from bench_runner.operations.whole import Read, Save

__all__ = [
    "OPERATIONS",
    "READ_ALL",
    "SAVE",
    "VERIFYING",
    "Batches",
    "Calls",
    "Epoch",
    "Operation",
    "OperationContext",
    "OtherAnswer",
    "Writes",
    "operation_of",
]

OPERATIONS: Mapping[str, type[Operation]] = {
    operation.name: operation
    for operation in (
        *(Save, Read, Project, Take, Scan, Query, Aggregate, Metadata),
        *(Append, Batches, StreamSave, StreamRead),
        *(SaveParallel, ReadParallel, ScanParallel),
        *(Get, Fields, Ask, Sql, Range, Ingest),
    )
}
SAVE = Save().spelled
VERIFYING = Read().spelled
"""The name of the operation that verifies a stored copy if none of the requested operations reads all of the saved
data. The time of this operation is not counted."""


def operation_of(spelled: str, parameter: str = "operations") -> Operation:
    """Return the operation with a name such as 'read' or 'project[columns=10]'. Omitted parameters get their defaults.

    `parameter` is the option that gave the name, for error messages. Raises PlanError for an unknown operation,
    parameter or value.
    """
    try:
        name, given = parse(spelled)
    except SpellingError as error:
        raise PlanError(f"`{parameter}`: {error}", parameter=parameter, given=spelled) from None
    if name not in OPERATIONS:
        near = difflib.get_close_matches(name, OPERATIONS, n=1)
        guess = f" (did you mean {near[0]!r}?)" if near else ""
        raise PlanError(
            f"`{parameter}`: there is no operation {name!r}{guess}.",
            f"Choose among {', '.join(OPERATIONS)}.",
            parameter=parameter,
            given=name,
            allowed=tuple(OPERATIONS),
        )
    known = {item.name: item for item in fields(OPERATIONS[name])}
    values: dict[str, Any] = {}
    for key, value in given.items():
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1)
            guess = f" (did you mean {near[0]!r}?)" if near else ""
            raise PlanError(
                f"`{parameter}`: {name} has no parameter {key!r}{guess} (got {spelled!r}).",
                f"It has {', '.join(known)}." if known else "It has none.",
                parameter=parameter,
                given=spelled,
                allowed=tuple(known),
            )
        values[key] = _value(spelled, known[key], value, parameter)
    return OPERATIONS[name](**values)


def _value(spelled: str, item: Field[Any], text: str, parameter: str) -> int | float | str:
    how = parameters.of(item)
    try:
        return how.parse(text)
    except ValueError:
        raise PlanError(
            f"`{parameter}`: {item.name} must be {how.allowed} (got {spelled!r}).",
            f"Write e.g. {item.name}={how.example}.",
            parameter=parameter,
            given=spelled,
            allowed=how.allowed,
        ) from None
