"""Save, read and scan a table in partitions (source: Tarageľ, Brno 2024, sections 3.1 and 5.1).

A partition is a range of consecutive rows. All partitions have the same number of rows, or differ by one row. If
dask.dataframe can store a format, dask's own calls are measured as `engine=dask`. For all other engines, each process
of the pool stores or reads one partition with the engine's usual calls.
"""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, cast

import numpy as np
import pandas as pd
import pyarrow as pa

from adapters.contract import TabularFormat
from adapters.offers import Parts
from adapters.predicate import Predicate
from bench_runner.clock import Laps
from bench_runner.conditions import Conditions
from bench_runner.operations import targets
from bench_runner.operations.operation import Operation, OperationContext, OtherAnswer
from bench_runner.operations.parallel import parts
from bench_runner.operations.parallel.pool import Pool
from bench_runner.operations.parameters import count, share, word
from bench_runner.operations.tables import selection
from bench_runner.operations.tables.scan import Scan
from bench_runner.operations.whole import Changes

MOST_PARTITIONS = 64
"""Largest number of partitions. Each partition needs a process, which uses about 100 MB."""
NEIGHBOUR = 1
"""Difference between the number of the process that reads a partition and the number of the process that wrote it. The
reading process therefore cannot have kept the partition in memory."""


@lru_cache(maxsize=1)
def pool_of(size: int, *, spare: bool) -> Pool:
    """Return the pool of worker processes, which is started at the first call."""
    return Pool(size, spare=spare)


def parts_of(stage: OperationContext, rows: int, partitions: int) -> list[parts.Part]:
    """Return the list of partitions of the first `rows` rows. The sizes of two partitions differ by at most one row."""
    ends = [rows * number // partitions for number in range(partitions + 1)]
    variant = stage.adapter.variant
    return [
        parts.Part(variant, stage.target, stage.dataset, stage.digest, stage.name, number, first, last)
        for number, (first, last) in enumerate(itertools.pairwise(ends))
    ]


def joined(found: Sequence[Any], target: targets.Target) -> Any:
    """Return one Arrow table or DataFrame with the rows of these partitions, in the order of `found`."""
    if target.kind == "arrow":
        return pa.concat_tables(found, promote_options="default")
    if any(isinstance(dtype, pd.CategoricalDtype) for dtype in found[0].dtypes):
        from dask.dataframe import methods

        # pandas.concat would turn a categorical column into text if its categories differ between partitions.
        return methods.concat(list(found)).reset_index(drop=True)
    return pd.concat(found, ignore_index=True)


def _gathered(found: Sequence[Any], target: targets.Target, laps: Laps) -> Any:
    laps.lap("engine_ns")
    result = joined(found, target)
    laps.lap("convert_ns")
    targets.touch(result)
    laps.lap("touch_ns")
    return result


@dataclass(frozen=True)
class LeftInPool:
    """The result of a read after which each partition stays in the process that read it."""

    pool: Pool
    target: targets.Target

    def check(self, refuse: Callable[[Any], None]) -> None:
        """Call `refuse` with each partition, in the process that holds it."""
        self.pool.each(parts.check, refuse, shift=NEIGHBOUR)

    def gathered(self) -> Any:
        """Return the whole table, collected in this process."""
        return joined(self.pool.each(parts.held, shift=NEIGHBOUR), self.target)


@dataclass(frozen=True)
class LeftByDask:
    """A dask DataFrame whose partitions are in the pool's processes."""

    frame: Any
    adapter: TabularFormat
    target: targets.Target

    def check(self, refuse: Callable[[Any], None]) -> None:
        """Call `refuse` with each partition, in the process that holds it."""
        self.adapter.parts_computed(self.frame.map_partitions(_checked, refuse, meta=(None, "bool")))

    def gathered(self) -> Any:
        """Return the whole table, collected in this process."""
        return targets.from_native(self.adapter.parts_computed(self.frame), self.target, self.adapter.native_read)


def _checked(frame: pd.DataFrame, refuse: Callable[[Any], None]) -> pd.Series:
    refuse(frame)
    return pd.Series([True])


Left = LeftInPool | LeftByDask
"""The result of a read after which each partition stays in the process that read it."""


@dataclass(frozen=True)
class _Parallel(Operation):
    target_kinds = ("pandas", "arrow")
    needs = ("dask", "distributed")
    partitions: int = count(2, spelled=True)
    pool: str = word("warm", "cold")

    @property
    def takes_input_anew(self) -> bool:
        """Whether new processes replace the pool's processes after the untimed first call on few rows (the primer). The
        new processes then load the input of the sample."""
        return self.pool == "cold"

    @property
    def _words(self) -> str:
        cold = ", cold pool" if self.pool == "cold" else ""
        return f"{self.partitions} partition{'s' * (self.partitions != 1)}{cold}"

    @property
    def title(self) -> str:
        """The name shown to people, such as 'save 4 partitions'."""
        return f"{self.name.partition('-')[0]} {self._words}"

    def refusal(self, schema: pa.Schema, rows: int) -> str | None:
        if self.partitions > rows:
            return f"{self.partitions:,} partitions need as many rows, and the table has {rows:,}"
        if self.partitions > MOST_PARTITIONS:
            return f"{self.partitions:,} partitions need as many processes: choose at most {MOST_PARTITIONS}"
        return None

    def unfit(self, adapter: Any) -> str | None:
        return adapter.parts if isinstance(adapter.parts, str) else None

    def refused_under(self, conditions: Conditions) -> str | None:
        if (reason := super().refused_under(conditions)) is not None:
            return reason
        if conditions.cache != "warm":
            return f"{self.name} works on partitions made just before, which are in the page cache: measure it warm"
        if conditions.threads == "1":
            return "its processes have one thread each, and together more: measure it with --threads default"
        return None

    def works_at(self, location: Path) -> Path:
        """Return the path of the partitions' folder, which is next to the folder of the stored copy."""
        return location.parent.with_name(f"{location.parent.name}-{self.name}") / "parts"

    def prepare(self, location: Path) -> None:
        place = self.works_at(location)
        shutil.rmtree(place.parent, ignore_errors=True)
        place.parent.mkdir()

    def take_input(self, stage: OperationContext, rows: int) -> Pool:
        """Return the pool after each of its processes has loaded its partition. For an engine that sends the partitions
        to the processes itself, load the whole table in this process instead."""
        pool = self._pool()
        if pool.has_worked and self.takes_input_anew:
            pool.restart()
        pool.parts = parts_of(stage, rows, self.partitions)
        if _by_dask(stage):
            pool.whole = targets.make(stage.table(rows), stage.target)
            pool.each(parts.make_ready)
        else:
            pool.each(parts.hold)
        return pool

    def _pool(self) -> Pool:
        return pool_of(self.partitions, spare=self.pool == "cold" or self.takes_input_anew)

    def end(self, stage: OperationContext, location: Path) -> None:
        """Do nothing. The pool must continue, because its processes keep results that are not verified yet."""


def _by_dask(stage: OperationContext) -> bool:
    return cast(TabularFormat, stage.adapter).parts is Parts.DASK


def _save(stage: OperationContext, pool: Pool, place: Path, laps: Laps) -> None:
    adapter = cast(TabularFormat, stage.adapter)
    place.mkdir(parents=True)
    if _by_dask(stage):
        native = targets.to_native(pool.whole, stage.target, adapter.native)
        laps.lap("convert_ns")
        with pool.complete():
            adapter.save_parts(native, place, len(pool.parts))
    else:
        pool.each(parts.save, place)
        adapter.commit_parts(place, len(pool.parts))
    laps.lap("engine_ns")


@dataclass(frozen=True)
class SaveParallel(_Parallel, Changes):
    """Store all partitions of a table at the same time. Timing ends when all processes have closed their files."""

    name: ClassVar[str] = "save-parallel"
    meaning: ClassVar[str] = "store all of the data in partitions, by as many processes"

    def begin(self, stage: OperationContext, location: Path) -> None:
        """Do nothing, because the pool is already running."""

    def refused_by_asv(self) -> None:
        """Return None, because each process stores into an empty folder."""

    def run(self, stage: OperationContext, held: Pool, location: Path, laps: Laps) -> Path:
        """Store all partitions. Return the path of the folder that contains the partitions."""
        place = self.works_at(location)
        _save(stage, held, place, laps)
        held.has_worked = True
        return place

    def files_of(self, stage: OperationContext, place: Path) -> Sequence[tuple[Any, Path]]:
        """Return pairs (adapter, path), one for each partition, or one pair for the whole folder if dask stores it.
        Raises OtherAnswer if the number of stored partitions is wrong."""
        adapter = cast(TabularFormat, stage.adapter)
        if (found := adapter.count_parts(place)) != self.partitions:
            raise OtherAnswer(f"{found} partitions are stored, expected {self.partitions}")
        if _by_dask(stage):
            return super().files_of(stage, place)
        return list(dict.fromkeys(adapter.part(place, number) for number in range(self.partitions)))

    def answer(self, stage: OperationContext, result: Path, location: Path) -> Any:
        """Close the pool, read all stored partitions in this process, and return them as one table."""
        adapter = cast(TabularFormat, stage.adapter)
        self._pool().close()
        if _by_dask(stage):
            return targets.from_native(
                adapter.parts_computed(adapter.parts_frame(result)), stage.target, adapter.native_read
            )
        return joined([parts.read(part, result) for part in parts_of(stage, stage.rows, self.partitions)], stage.target)


@dataclass(frozen=True)
class _Reads(_Parallel):
    """An operation that reads partitions. The pool stores these partitions just before the read. Storing is not
    timed."""

    by: str = word("processes", "threads")

    @property
    def takes_input_anew(self) -> bool:
        """True for `by=threads`. The method `begin` ends the pool's processes before the untimed first call, which
        threads make. So new processes must load the input of the sample and store the partitions that threads then
        read. False for `by=processes`, where `begin` replaces the processes of a cold pool after these have stored the
        partitions."""
        return self.by == "threads"

    @property
    def title(self) -> str:
        """The name shown to people, such as 'read 4 partitions' or 'read 4 partitions by threads'."""
        return super().title + (" by threads" if self.by == "threads" else "")

    def unfit(self, adapter: Any) -> str | None:
        if self.by == "threads" and not adapter.reads_folders:
            return "its read takes one file: measure it with by=processes"
        return super().unfit(adapter)

    def begin(self, stage: OperationContext, location: Path) -> None:
        """Store the partitions. Not timed."""
        pool = self._pool()
        _save(stage, pool, self.works_at(location), Laps())
        pool.whole = None
        if self.by == "threads":
            pool.end_processes()
        elif self.pool == "cold" and pool.has_worked:
            pool.restart()
            pool.each(parts.make_ready)
        else:
            pool.everywhere(parts.drop)
        pool.has_worked = True


@dataclass(frozen=True)
class ReadParallel(_Reads):
    """Read all partitions at the same time. With `result=gathered`, the result is one table in the caller's process, as
    from dask's compute(). With `result=left`, the partitions stay in the processes that read them, as after dask's
    persist()."""

    result: str = word("gathered", "left", spelled=True)

    name: ClassVar[str] = "read-parallel"
    meaning: ClassVar[str] = "read all of the data back from partitions, by as many processes"

    @property
    def title(self) -> str:
        """The name shown to people, such as 'read 4 partitions' or 'read 4 partitions, left'."""
        return super().title + (", left in processes" if self.result == "left" else "")

    def unfit(self, adapter: Any) -> str | None:
        """Return a refusal reason for `by=threads` with `result=left`, because threads use only one process."""
        if self.by == "threads" and self.result == "left":
            return "threads share one process: measure them with result=gathered"
        return super().unfit(adapter)

    def run(self, stage: OperationContext, held: Pool, location: Path, laps: Laps) -> Any:
        """Read all partitions. Return the table, or an object that refers to the partitions in the processes."""
        place = self.works_at(location)
        if self.by == "threads":
            return stage.answer(lambda: stage.adapter.read(place), laps)
        if _by_dask(stage):
            return _read_by_dask(stage, held, place, laps, left=self.result == "left")
        if self.result == "left":
            held.each(parts.keep, parts.read, place, shift=NEIGHBOUR)
            laps.lap("engine_ns")
            return LeftInPool(held, stage.target)
        found = held.each(parts.read, place, shift=NEIGHBOUR)
        return _gathered(found, stage.target, laps)


def _read_by_dask(stage: OperationContext, pool: Pool, place: Path, laps: Laps, *, left: bool) -> Any:
    adapter = cast(TabularFormat, stage.adapter)
    if not left:
        with pool.complete():
            return stage.answer(lambda: adapter.parts_computed(adapter.parts_frame(place)), laps)
    frame = pool.waited(adapter.parts_frame(place).persist())
    laps.lap("engine_ns")
    return LeftByDask(frame, adapter, stage.target)


@dataclass(frozen=True)
class ScanParallel(_Reads):
    """Read the rows that meet a condition from all partitions at the same time, into one table in the caller's
    process."""

    selectivity: float = share(0.01)

    name: ClassVar[str] = "scan-parallel"
    meaning: ClassVar[str] = "read the rows that meet a condition from partitions, by as many processes"

    @property
    def _scan(self) -> Scan:
        return Scan(selectivity=self.selectivity)

    @property
    def title(self) -> str:
        """The name shown to people, such as 'scan 1% of 4 partitions'."""
        return f"scan {self.selectivity * 100:g}% of {self._words}" + (" by threads" if self.by == "threads" else "")

    def take_input(self, stage: OperationContext, rows: int) -> Pool:
        """Return the pool, with the condition in its field `asked`. Raises RefusedData if the data allow no such
        condition, or if the variant changes values of the column that the condition tests."""
        pool = super().take_input(stage, rows)
        pool.asked = self._scan.take_input(stage, rows)
        return pool

    def fallback(self, adapter: Any) -> str:
        """Return READ_ALL if the engine cannot evaluate a range condition."""
        return self._scan.fallback(adapter)

    def run(self, stage: OperationContext, held: Pool, location: Path, laps: Laps) -> Any:
        """Read the rows that meet the condition from all partitions, and return them as one table."""
        place = self.works_at(location)
        if self.by == "threads":
            return self._scan.run(stage, held.asked, place, laps)
        if _by_dask(stage):
            with held.complete():
                return stage.answer(lambda: _scanned_by_dask(stage, place, held.asked), laps)
        found = held.each(parts.scan, place, self._scan, held.asked, shift=NEIGHBOUR)
        return _gathered(found, stage.target, laps)

    def expected_rows(self, stage: OperationContext, held: Pool) -> np.ndarray:
        """Return the numbers of the rows that meet the condition."""
        return self._scan.expected_rows(stage, held.asked)


def _scanned_by_dask(stage: OperationContext, place: Path, asked: Predicate) -> pd.DataFrame:
    adapter = cast(TabularFormat, stage.adapter)
    frame = adapter.parts_frame(place)
    matching = frame.map_partitions(
        selection.matching, adapter.native_read, asked, list(frame.columns), meta=frame._meta
    )
    return adapter.parts_computed(matching)
