"""Verify the result of an operation: the result must be in private memory, its values must be right, and the stored
file must have the right codec (rules 7, 10 and 11)."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow.compute as pc

from adapters.contract import Adapter, ImageStorage, Stored, TabularFormat
from bench_runner import data_kinds
from bench_runner.machine import linux
from bench_runner.operations import Operation, OperationContext, targets
from bench_runner.operations.parallel.tables import Left
from bench_runner.worker import document_verify, image_verify, verify
from bench_runner.worker.names import columns_differ
from bench_runner.worker.prepared import Prepared, copy_at
from bench_runner.worker.verify import Mismatch

COMPARE_GROUP_BYTES = 256 * 1024 * 1024
"""Approximate limit, in bytes, for the part of the right table that is in memory while a result is verified."""


@dataclass(frozen=True)
class Pair:
    """The result of a call, and the information from which the right result is computed."""

    asked: Any
    """The input of the call. If the results of several calls were joined, the input of one of these calls."""
    given: Any
    """The result."""
    columns: Sequence[str]
    """The column names that the result must have, in this order. Only for tables."""
    rows: np.ndarray | None = None
    """Row numbers in the table that the operation's method `expected` returns. The result must have these rows. None
    means all rows."""


@dataclass(frozen=True)
class Verified:
    """The outcome for a result that was right. `losses` are the declared changes of values that occurred."""

    losses: tuple[str, ...]

    @property
    def fidelity(self) -> str:
        """The outcome as a value of the field `fidelity` of bench_runner.results.records.Sample."""
        return "declared loss" if self.losses else "exact"


def read_back(adapter: Adapter, location: Path) -> Stored:
    """Check that a stored file has the codec of its variant (rule 10) and return its codec and encodings. Raises
    Mismatch if the file has another codec."""
    stored = adapter.stored(location)
    asked = adapter.values.get("codec")
    if asked is not None and stored.codec != asked:
        raise Mismatch(f"the file was written with codec={stored.codec}, but its variant sets codec={asked}")
    return stored


def verified(prepared: Prepared, parts: Sequence[Pair], *, last_reader: bool) -> Verified:
    """Check that all results are in private memory and right (rules 7 and 11), and return the losses that occurred.
    With `last_reader`, also remove the stored files and compare the results again, to detect results that still depend
    on the files. Raises Mismatch if a check fails."""
    stage, operation = prepared.stage, prepared.operation
    if stage.adapter.values.get("mapped") != "true":
        for part in parts:
            if isinstance(part.given, Left):
                part.given.check(_refuse_mapped)
            else:
                _refuse_mapped(part.given)
    parts = [replace(part, given=part.given.gathered()) if isinstance(part.given, Left) else part for part in parts]
    if prepared.copy and prepared.copy != copy_at(stage.adapter.data_of(prepared.location)):
        raise Mismatch("the stored copy was replaced or changed while it was read")
    compare = COMPARISONS[stage.target.data_kind.name]
    losses = [compare(stage, operation, part) for part in parts]
    if last_reader:
        remove(prepared.location)
        if losses != [compare(stage, operation, part) for part in parts]:
            raise Mismatch("the result in memory changed when the stored files were removed")
    return Verified(tuple(dict.fromkeys(loss for each in losses for loss in each)))


def _refuse_mapped(result: Any) -> None:
    places = np.array(list(targets.buffers(result)), np.uint64).reshape(-1, 2)
    if not places.size:
        # Documents are Python objects. The list of mappings takes some ms.
        return
    starts, ends = places[:, 0], places.sum(axis=1, dtype=np.uint64)
    for start, end, path in linux.file_mappings():
        inside = (starts < np.uint64(end)) & (ends > np.uint64(start))
        if inside.any():
            size_bytes = int(places[inside, 1].sum())
            raise Mismatch(
                f"{size_bytes:,} bytes of the result are in a mapping of {Path(path).name}, not in private memory; "
                "only a variant with mapped=true may do that"
            )


def _compare_tables(stage: OperationContext, operation: Operation, answer: Pair) -> tuple[str, ...]:
    """Compare a table with the right table, one group of columns after the other. In this way the right table is never
    in memory as a whole. Return the losses that occurred."""
    names, given = list(answer.columns), answer.given
    found = list(given.columns if stage.target.kind == "pandas" else given.column_names)
    if found != names:
        raise Mismatch(columns_differ(names, found))
    losses: dict[str, None] = {}
    declared = cast(TabularFormat, stage.adapter).losses
    rows = answer.rows if (order := stored_order(stage)) is None else order
    for group in _column_groups(names, stage.dataset.stat().st_size):
        part = given[group] if stage.target.kind == "pandas" else given.select(group)
        expected = operation.expected(stage, group)
        comparison = verify.compare(expected, part, stage.target, declared, rows)
        if comparison.problems:
            raise Mismatch(f"round trip differs: {'; '.join(comparison.problems[:3])}")
        losses |= dict.fromkeys(comparison.losses)
    return tuple(losses)


def stored_order(stage: OperationContext) -> np.ndarray | None:
    """If the variant's setting `order` selects a column, return the row numbers in the order in which the variant
    stores the rows: sorted by this column. Missing values come last, and rows with equal values keep their order.
    Return None if the variant has no such setting."""
    number = stage.adapter.values.get("order")
    if number is None:
        return None
    column = stage.table(stage.rows, [stage.schema.names[int(number)]])
    return pc.sort_indices(column, [(column.schema.names[0], "ascending")]).to_numpy()


def _compare_images(stage: OperationContext, operation: Operation, answer: Pair) -> tuple[str, ...]:
    adapter = cast(ImageStorage, stage.adapter)
    owned = adapter.values.get("arrays", "owned") == "owned"
    least = adapter.least_psnr_db
    losses = image_verify.compare(
        stage.dataset, stage.rows, answer.given, owned=owned, least_psnr_db=least, numbers=answer.rows
    )
    if least is not None and not losses:
        raise Mismatch("a loss is declared, but every pixel came back unchanged")
    return tuple(losses)


def _column_groups(names: list[str], table_bytes: int) -> Iterator[list[str]]:
    size = max(1, int(len(names) * COMPARE_GROUP_BYTES / max(table_bytes, 1)))
    for start in range(0, len(names), size):
        yield names[start : start + size]


CompareAnswers = Callable[[OperationContext, Any, Pair], tuple[str, ...]]
"""Type of functions (stage, operation, pair) that compare the result in a pair with the right result. They return the
declared losses that occurred, and raise Mismatch for other differences."""

COMPARISONS: dict[str, CompareAnswers] = {
    data_kinds.TABLES.name: _compare_tables,
    data_kinds.IMAGES.name: _compare_images,
    data_kinds.DOCUMENTS.name: lambda stage, operation, answer: document_verify.compare(
        stage, operation, answer.asked, answer.given
    ),
}
"""Comparison functions by the name of the kind of data."""


def remove(location: Path) -> None:
    """Remove a stored copy, which is a file or a folder."""
    if location.is_dir() and not location.is_symlink():
        shutil.rmtree(location)
    else:
        location.unlink(missing_ok=True)
