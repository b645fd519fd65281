"""Whether documents, or rows of an answer, are what they should be: by type and bits, or but for declared losses.

What is right is computed by the operation, from the cached data set and in memory.
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
    """The losses that explain what differs; none where nothing does. Raises Mismatch for anything else."""
    if isinstance(result, Text):
        if result.text != json_lines(stage.table(stage.rows)):
            raise Mismatch("the text that came back is not what was written")
        return ()
    if not isinstance(result, Documents):
        raise Mismatch(f"came back as {type(result).__name__}, not as Documents")
    exactly = operation.difference(stage, held, result, ())
    if exactly is None:
        return ()
    declared = [loss for loss in cast(DocumentStoreAdapter, stage.adapter).losses if loss.view is not None]
    # The fewest that explain it: what is named was seen.
    for loss in declared:
        if operation.difference(stage, held, result, [loss]) is None:
            return (loss.what,)
    if declared and operation.difference(stage, held, result, declared) is None:
        return tuple(loss.what for loss in declared)
    raise Mismatch(exactly)


def refuse_what_shows_nothing(adapter: Adapter, location: Path, *, whole: bool) -> None:
    """A setting whose figures would be those of another variant. On few rows, as in a pilot round, it may be so."""
    if whole and isinstance(adapter, DocumentStoreAdapter):
        reason = adapter.shows_nothing(location)
        if reason is not None:
            raise RefusedData(reason)
