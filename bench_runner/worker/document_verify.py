"""Verify documents, or rows of a query result, that a store returned. Types and bits of values must be equal, except
for the changes that the store declares as losses.

The operation computes the right result in memory, from the cached data set.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from adapters.contract import Adapter
from adapters.document_store import DocumentStoreAdapter
from adapters.errors import RefusedData
from bench_runner.operations import OperationContext
from bench_runner.operations.documents.operation import DocumentOperation
from bench_runner.operations.targets import Documents, Text
from bench_runner.operations.whole import Read
from bench_runner.worker.verify import Mismatch
from data_generator.documents import json_lines


def compare(stage: OperationContext, operation: DocumentOperation | Read, held: Any, result: object) -> tuple[str, ...]:
    """Return the descriptions of the declared losses that explain the differences, or an empty tuple if there are no
    differences. Raises Mismatch if the declared losses do not explain a difference."""
    if isinstance(result, Text):
        if result.text != json_lines(stage.table(stage.rows)):
            raise Mismatch("the text read differs from the text written")
        return ()
    if not isinstance(result, Documents):
        raise Mismatch(f"came back as {type(result).__name__}, not as Documents")
    exactly = operation.difference(stage, held, result, ())
    if exactly is None:
        return ()
    declared = [loss for loss in cast(DocumentStoreAdapter, stage.adapter).losses if loss.view is not None]
    # Try single losses before all losses together, so that losses that did not occur are not reported.
    for loss in declared:
        if operation.difference(stage, held, result, [loss]) is None:
            return (loss.what,)
    if declared and operation.difference(stage, held, result, declared) is None:
        return tuple(loss.what for loss in declared)
    raise Mismatch(exactly)


def refuse_what_shows_nothing(adapter: Adapter, location: Path, *, whole: bool) -> None:
    """Raise RefusedData if a setting of the store has no effect on these data. The figures would then only repeat the
    figures of a variant without this setting. Does nothing unless the whole data set was stored."""
    if whole and isinstance(adapter, DocumentStoreAdapter):
        reason = adapter.shows_nothing(location)
        if reason is not None:
            raise RefusedData(reason)
