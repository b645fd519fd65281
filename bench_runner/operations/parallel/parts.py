"""The work on one partition, which runs in a process of the pool. Its data stay in this process between two calls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

import pyarrow as pa

from adapters.contract import TabularFormat
from adapters.predicate import Predicate
from bench_runner import registries
from bench_runner.clock import Laps
from bench_runner.operations import targets
from bench_runner.operations.operation import OperationContext
from bench_runner.operations.tables.scan import Scan
from bench_runner.operations.whole import Read
from bench_runner.refusals import REFUSING, refusal
from data_generator.cache import read_rows


@dataclass(frozen=True)
class Part:
    """One partition of a table: the rows from `first` up to `last`, without `last`."""

    variant: str
    target: targets.Target
    dataset: Path
    digest: str
    name: str
    number: int
    first: int
    last: int


@dataclass
class _Held:
    """What this process holds: the partition to save, or the partition that was read."""

    data: Any = None


_held = _Held()


@lru_cache(maxsize=1)
def context(part: Part) -> OperationContext:
    """Return the context of this partition, with the libraries of its variant loaded for one thread."""
    adapter = registries.build(part.variant, threads=1)
    adapter.load_library()
    targets.apply_strings(part.target)
    rows = part.last - part.first
    return OperationContext(cast(TabularFormat, adapter), part.target, part.dataset, part.digest, rows, part.name)


def hold(part: Part) -> int:
    """Take the partition into this process's private memory, in the form of the target. Return its rows."""
    targets.apply_strings(part.target)
    table = pa.Table.from_batches(read_rows(part.dataset, part.first, part.last - part.first))
    _held.data = targets.make(table, part.target)
    return table.num_rows


def drop() -> None:
    """Free what this process holds."""
    _held.data = None


def save(part: Part, folder: Path) -> None:
    """Store the held partition at its place in `folder`. Raises RefusedData."""
    stage = context(part)
    adapter, place = cast(TabularFormat, stage.adapter).part(folder, part.number)
    try:
        adapter.save(targets.to_native(_held.data, stage.target, adapter.native), place)
    except REFUSING as error:
        raise refusal(error, stage.adapter) from error


def read(part: Part, folder: Path) -> Any:
    """Return the stored partition, in the form of the target and in private memory."""
    stage, place = _at(part, folder)
    return Read().run(stage, None, place, Laps())


def scan(part: Part, folder: Path, operation: Scan, asked: Predicate) -> Any:
    """Return the rows of the stored partition that meet the condition."""
    stage, place = _at(part, folder)
    return operation.run(stage, asked, place, Laps())


def keep(part: Part, work: Callable[..., Any], *given: Any) -> int:
    """Do `work`, keep its result in this process, and return the number of rows."""
    _held.data = work(part, *given)
    return len(_held.data)


def held(part: Part) -> Any:
    """Return what this process holds."""
    return _held.data


def check(part: Part, refuse: Callable[[Any], None]) -> None:
    """Call `refuse` with what this process holds. It raises an error for what is not in private memory."""
    refuse(_held.data)


def _at(part: Part, folder: Path) -> tuple[OperationContext, Path]:
    stage = context(part)
    adapter, place = cast(TabularFormat, stage.adapter).part(folder, part.number)
    return OperationContext(adapter, stage.target, stage.dataset, stage.digest, stage.rows, stage.name), place
