"""Whether documents, or rows of an answer, are what they should be: by type and bits, or but for declared losses.

What is right is computed by the operation, from the cached data set and in memory. This module knows no store.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from adapters.contract import Adapter
from adapters.document_store import DocumentLoss, DocumentStoreAdapter, first_difference
from adapters.errors import RefusedData
from bench_runner.operations import DocumentOperation, Operation, Stage
from bench_runner.operations.documents import source
from bench_runner.operations.targets import Documents, Text
from bench_runner.worker.verify import Mismatch
from data_generator.documents import json_lines


def compare(stage: Stage, operation: Operation, held: Any, result: object) -> tuple[str, ...]:
    """The losses that explain what differs; none where nothing does. Raises Mismatch for anything else."""
    if isinstance(result, Text):
        if result.text != json_lines(stage.table(stage.rows)):
            raise Mismatch("the text that came back is not what was written")
        return ()
    if not isinstance(result, Documents):
        raise Mismatch(f"came back as {type(result).__name__}, not as Documents")
    exactly = _difference(stage, operation, held, result, ())
    if exactly is None:
        return ()
    declared = [loss for loss in cast(DocumentStoreAdapter, stage.adapter).losses if loss.view is not None]
    # The fewest that explain it: what is named was seen.
    for loss in declared:
        if _difference(stage, operation, held, result, [loss]) is None:
            return (loss.what,)
    if declared and _difference(stage, operation, held, result, declared) is None:
        return tuple(loss.what for loss in declared)
    raise Mismatch(exactly)


def refuse_what_shows_nothing(adapter: Adapter, location: Path, *, whole: bool) -> None:
    """A setting whose figures would be those of another variant. On few rows, as in a pilot round, it may be so."""
    if whole and isinstance(adapter, DocumentStoreAdapter):
        reason = adapter.shows_nothing(location)
        if reason is not None:
            raise RefusedData(reason)


def _difference(
    stage: Stage, operation: Operation, held: Any, result: Documents, losses: Sequence[DocumentLoss]
) -> str | None:
    if isinstance(operation, DocumentOperation):
        return operation.difference(stage, held, result, losses)
    return first_difference(source.documents(stage, stage.rows), result.rows, losses, source.key_field(stage))
