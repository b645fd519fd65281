"""Reading some rows by their numbers.

Which rows is decided by the digest of the data and the number of the repetition, so that all variants, rounds, runs
and machines take the same ones. How repetitions are clocked is the worker's business (method rule 19).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, cast

import numpy as np
import pyarrow as pa

from adapters.contract import TabularFormat
from adapters.offers import Handle, Sharing
from bench_runner.clock import Laps
from bench_runner.conditions import Conditions
from bench_runner.operations import targets
from bench_runner.operations.operation import READ_ALL, OperationContext
from bench_runner.operations.parameters import ALL, count, word
from bench_runner.operations.tables import selection
from bench_runner.operations.tables.project import OnHandle, asked_columns, too_few_columns

RUN_ROWS = 10
"""In the pattern `clustered` so many neighbours are taken together."""
ZIPF_EXPONENT = 1.1
"""In the pattern `zipf` the row of rank r is asked for in proportion to 1 / r to this power."""

MOST_STREAMS = 256
"""More threads at once than a user would start, or a device has places for."""


@dataclass(frozen=True)
class Take(OnHandle):
    """From an open stored copy, or a closed one, to some rows in private memory, in the order asked."""

    rows: int = count(100, spelled=True)
    pattern: str = word("uniform", "clustered", "zipf")
    order: str = word("unsorted", "sorted")
    handle: str = word("kept", "reopened", spelled=True)
    columns: int | str = count(ALL, ALL)
    streams: int = count(1)

    name: ClassVar[str] = "take"
    meaning: ClassVar[str] = "read some rows by their numbers, chosen by the digest of the data"
    use: ClassVar[str] = "take {rows:N} rows [of {columns:K} columns] [{handle:reopened}]"

    @property
    def title(self) -> str:
        """'take 100 rows', 'take 100 rows, sorted, reopened, 2 columns'."""
        told = [f"take {self.rows:,} row{'s' * (self.rows != 1)}"]
        told += [self.pattern] * (self.pattern != "uniform") + [self.order] * (self.order == "sorted")
        told += ["reopened"] * (self.handle == "reopened")
        told += [f"{self.columns} columns"] * (self.columns != ALL)
        told += [f"{self.streams} streams"] * (self.streams != 1)
        return ", ".join(told)

    def refusal(self, schema: pa.Schema, rows: int) -> str | None:
        """There must be as many rows and columns."""
        if self.rows > rows:
            return f"{self.rows:,} rows are asked for, the table has {rows:,}"
        if self.streams > MOST_STREAMS:
            return f"{self.streams} streams are asked for, at most {MOST_STREAMS} are possible"
        if self.streams > 1 and not self.keeps_open:
            return "streams call on a copy that stays open: say handle=kept"
        return too_few_columns(self.columns, schema)

    def refused_under(self, conditions: Conditions) -> str | None:
        """Streams are threads."""
        reason = super().refused_under(conditions)
        if reason is None and self.streams > 1 and conditions.threads == "1":
            reason = f"{self.streams} streams are as many threads: measure it with --threads default"
        return reason

    def unfit(self, adapter: Any) -> str | None:
        """Streams need a library that answers several threads. Rows that are taken again and again ask for its cache:
        without one they measure the page cache."""
        if self.pattern == "zipf" and adapter.values.get("library_cache") == "off":
            return "zipf takes the same rows again, and library_cache=off keeps none of them: take uniform ones"
        if self.streams == 1:
            return None
        if self.fallback(adapter):
            return "streams call on a copy that stays open, and there is no call for some rows of it"
        if adapter.offers.sharing is None:
            return "nothing says that its library answers several threads at once"
        return None

    @property
    def threads_at_once(self) -> int:
        """One for each stream."""
        return self.streams

    @property
    def shorter(self) -> str:
        """Streams need a copy that stays open."""
        return super().shorter if self.streams == 1 else "take fewer rows, or by fewer streams"

    def handles(self, adapter: Any) -> int:
        """One for all streams where the library can share it, else one for each."""
        return super().handles(adapter) * (self.streams if adapter.offers.sharing is Sharing.EACH else 1)

    def fallback(self, adapter: Any) -> str:
        """What stands for the engine's own call where it has none."""
        return "" if adapter.offers.take is not None else READ_ALL

    def inputs(self, stage: OperationContext, rows: int, repetitions: int) -> list[np.ndarray]:
        """The numbers of each repetition: int64 among the first `rows` rows, disjoint while there are enough, but in
        the pattern `zipf`."""
        wanted = min(self.rows, rows)
        chosen = {"uniform": _uniform, "clustered": _clustered, "zipf": _zipf}[self.pattern](
            generator(stage.digest, self.spelled), rows, wanted, repetitions
        )
        return [np.sort(numbers) for numbers in chosen] if self.order == "sorted" else chosen

    def open(self, stage: OperationContext, location: Path) -> Handle | None:
        """The stored copy open for reading in part; None where everything is read."""
        adapter = cast(TabularFormat, stage.adapter)
        return None if self.fallback(adapter) else adapter.open_rows(location)

    def call(self, stage: OperationContext, handle: Handle | None, held: np.ndarray, location: Path, laps: Laps) -> Any:
        """Take, convert to the target, touch one byte in each page of the result."""
        return stage.answer(lambda: self._rows(stage, handle, held, location), laps)

    def _rows(self, stage: OperationContext, handle: Handle | None, numbers: np.ndarray, location: Path) -> Any:
        columns = self.expected_columns(stage)
        if handle is not None:
            assert handle.take is not None
            return handle.take(numbers, columns)
        adapter = cast(TabularFormat, stage.adapter)
        everything = targets.select(adapter.read(location), adapter.native_read, columns)
        return selection.rows_of(everything, adapter.native_read, numbers)

    def expected_columns(self, stage: OperationContext, held: Any = None) -> list[str]:
        """Those that were asked for."""
        return asked_columns(stage, self.columns)

    def expected_rows(self, stage: OperationContext, held: Any) -> np.ndarray:
        """Those of these numbers."""
        return cast(np.ndarray, held)


def generator(digest: str, spelled: str) -> np.random.Generator:
    """The random numbers of one operation on one data set."""
    seed = int.from_bytes(hashlib.sha256(f"{digest}/{spelled}".encode()).digest()[:8], "little")
    return np.random.default_rng(seed)


def _uniform(random: np.random.Generator, rows: int, wanted: int, repetitions: int) -> list[np.ndarray]:
    """From shuffled rows, one after the other; shuffled again when they are used up."""
    return dealt(lambda: random.permutation(rows), wanted, repetitions)


def _clustered(random: np.random.Generator, rows: int, wanted: int, repetitions: int) -> list[np.ndarray]:
    """From shuffled runs of neighbours."""

    def shuffled() -> np.ndarray:
        starts = random.permutation(-(-rows // RUN_ROWS)) * RUN_ROWS
        numbers = (starts[:, None] + np.arange(RUN_ROWS)).reshape(-1)
        return numbers[numbers < rows]

    return dealt(shuffled, wanted, repetitions)


def _zipf(random: np.random.Generator, rows: int, wanted: int, repetitions: int) -> list[np.ndarray]:
    """Few rows often, wherever they lie."""
    weights = np.cumsum(np.arange(1, rows + 1, dtype=np.float64) ** -ZIPF_EXPONENT)
    of_rank = random.permutation(rows)
    return [
        of_rank[np.searchsorted(weights, random.random(wanted) * weights[-1])].astype(np.int64)
        for _ in range(repetitions)
    ]


def dealt(shuffled: Callable[[], np.ndarray], wanted: int, repetitions: int) -> list[np.ndarray]:
    """Hands of `wanted` numbers, which are all different within one pass through the rows."""
    hands: list[np.ndarray] = []
    pile = shuffled()
    for _ in range(repetitions):
        if len(pile) < wanted:
            pile = shuffled()
        hands.append(np.ascontiguousarray(pile[:wanted], dtype=np.int64))
        pile = pile[wanted:]
    return hands
