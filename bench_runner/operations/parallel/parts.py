"""Functions that run in a process of the pool and work on one partition. The process keeps the partition's data in
memory between two calls."""

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
    """One partition of a table: its rows have the numbers from `first` to `last` - 1."""

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
    """The data in this process's memory: the partition to save, or the partition that was read."""

    data: Any = None


_held = _Held()


@lru_cache(maxsize=1)
def adapter_of(variant: str) -> TabularFormat:
    """Return the adapter, whose libraries are loaded and use one thread."""
    adapter = cast(TabularFormat, registries.build(variant, threads=1))
    adapter.load_library()
    return adapter


def make_ready(part: Part) -> None:
    """Create the adapter and load its libraries, so that no timed call has to do so."""
    adapter_of(part.variant)
    targets.apply_strings(part.target)


def hold(part: Part) -> int:
    """Load the partition into this process's private memory, as a DataFrame or Arrow table (the target). Return the
    number of rows."""
    make_ready(part)
    table = pa.Table.from_batches(read_rows(part.dataset, part.first, part.last - part.first))
    _held.data = targets.make(table, part.target)
    return table.num_rows


def drop() -> None:
    """Free the data in this process's memory."""
    _held.data = None


def save(part: Part, folder: Path) -> None:
    """Store the partition, which is in this process's memory, at the partition's path in `folder`. Raises RefusedData
    if the library does not accept the data."""
    adapter, place = adapter_of(part.variant).part(folder, part.number)
    try:
        adapter.save(targets.to_native(_held.data, part.target, adapter.native), place)
    except REFUSING as error:
        raise refusal(error, adapter) from error


def read(part: Part, folder: Path) -> Any:
    """Return the stored partition as a DataFrame or Arrow table (the target), in private memory."""
    stage, place = _at(part, folder)
    return Read().run(stage, None, place, Laps())


def scan(part: Part, folder: Path, operation: Scan, asked: Predicate) -> Any:
    """Return the rows of the stored partition that meet the condition."""
    stage, place = _at(part, folder)
    return operation.run(stage, asked, place, Laps())


def keep(part: Part, work: Callable[..., Any], *given: Any) -> int:
    """Call `work(part, *given)`, keep its result in this process, and return the result's number of rows."""
    _held.data = work(part, *given)
    return len(_held.data)


def held(part: Part) -> Any:
    """Return the data in this process's memory."""
    return _held.data


def check(part: Part, refuse: Callable[[Any], None]) -> None:
    """Call `refuse` with the data in this process. `refuse` raises an error if the data are not in private memory."""
    refuse(_held.data)


def _at(part: Part, folder: Path) -> tuple[OperationContext, Path]:
    adapter, place = adapter_of(part.variant).part(folder, part.number)
    return OperationContext(adapter, part.target, part.dataset, part.digest, part.last - part.first, part.name), place
