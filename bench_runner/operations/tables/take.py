"""Reading some rows by their numbers.

The rows depend on the digest of the data and the number of the repetition, so that all variants, rounds, runs and
machines take the same rows. The worker decides how repetitions are timed (method rule 19).
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
"""Number of neighbouring rows that are taken together in the pattern `clustered`."""
ZIPF_EXPONENT = 1.1
"""Exponent of the pattern `zipf`: the row of rank r is requested with a frequency proportional to
1 / r**ZIPF_EXPONENT."""

MOST_STREAMS = 256
"""Largest number of threads. Users would not start more threads, and a storage device could not queue more requests."""


@dataclass(frozen=True)
class Take(OnHandle):
    """Read rows of a stored copy by their numbers into private memory, in the order requested."""

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
        """The name shown to people, such as 'take 100 rows' or 'take 100 rows, sorted, reopened, 2 columns'."""
        words = [f"take {self.rows:,} row{'s' * (self.rows != 1)}"]
        words += [self.pattern] * (self.pattern != "uniform") + [self.order] * (self.order == "sorted")
        words += ["reopened"] * (self.handle == "reopened")
        words += [f"{self.columns} columns"] * (self.columns != ALL)
        words += [f"{self.streams} streams"] * (self.streams != 1)
        return ", ".join(words)

    def refusal(self, schema: pa.Schema, rows: int) -> str | None:
        """Return a refusal reason if the table has too few rows or columns, or if there are too many streams (calling
        threads)."""
        if self.rows > rows:
            return f"it takes {self.rows:,} rows, but the table has {rows:,}"
        if self.streams > MOST_STREAMS:
            return f"streams={self.streams} is more than the {MOST_STREAMS} allowed"
        if self.streams > 1 and not self.keeps_open:
            return "streams need a copy that stays open: use handle=kept"
        return too_few_columns(self.columns, schema)

    def refused_under(self, conditions: Conditions) -> str | None:
        """Return a refusal reason if only one thread is allowed, because streams are threads."""
        reason = super().refused_under(conditions)
        if reason is None and self.streams > 1 and conditions.threads == "1":
            reason = f"{self.streams} streams need as many threads: measure it with --threads default"
        return reason

    def unfit(self, adapter: Any) -> str | None:
        """Return why the operation cannot be done with this variant, or None. Streams need a library that several
        threads may call at once. The pattern `zipf` repeats rows and needs a library with a cache, because without such
        a cache the page cache of the system would be measured."""
        if self.pattern == "zipf" and adapter.values.get("library_cache") == "off":
            return "zipf takes the same rows repeatedly, and library_cache=off caches none: use pattern=uniform"
        if self.streams == 1:
            return None
        if self.fallback(adapter):
            return "streams need a copy that stays open, and it has no call to take rows from one"
        if adapter.offers.sharing is None:
            return "its adapter does not declare that several threads may call the library at once"
        return None

    @property
    def threads_at_once(self) -> int:
        """The number of streams, because each stream is a thread."""
        return self.streams

    @property
    def shorter(self) -> str:
        """Advice about long calls. Streams need a copy that stays open, so they cannot reopen the copy."""
        return super().shorter if self.streams == 1 else "take fewer rows, or use fewer streams"

    def handles(self, adapter: Any) -> int:
        """Return the number of handles: 1 if the library lets all streams share a handle, otherwise one per stream."""
        return super().handles(adapter) * (self.streams if adapter.offers.sharing is Sharing.EACH else 1)

    def fallback(self, adapter: Any) -> str:
        """Return '' if the engine has a call to take rows, else READ_ALL."""
        return "" if adapter.offers.take is not None else READ_ALL

    def inputs(self, stage: OperationContext, rows: int, repetitions: int) -> list[np.ndarray]:
        """Return an int64 array of row numbers below `rows` for each repetition. Except in the pattern `zipf`, rows are
        used a second time only when too few unused rows are left for a repetition."""
        wanted = min(self.rows, rows)
        chosen = {"uniform": _uniform, "clustered": _clustered, "zipf": _zipf}[self.pattern](
            generator(stage.digest, self.spelled), rows, wanted, repetitions
        )
        return [np.sort(numbers) for numbers in chosen] if self.order == "sorted" else chosen

    def open(self, stage: OperationContext, location: Path) -> Handle | None:
        """Open the stored copy for taking rows. Return None if the fallback reads everything."""
        adapter = cast(TabularFormat, stage.adapter)
        return None if self.fallback(adapter) else adapter.open_rows(location)

    def call(self, stage: OperationContext, handle: Handle | None, held: np.ndarray, location: Path, laps: Laps) -> Any:
        """Take the rows, convert them to the target, and touch one byte in each page of the result."""
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
        """Return the names of the columns requested."""
        return asked_columns(stage, self.columns)

    def expected_rows(self, stage: OperationContext, held: Any) -> np.ndarray:
        """Return the row numbers requested, which are the input of the call."""
        return cast(np.ndarray, held)


def generator(digest: str, spelled: str) -> np.random.Generator:
    """Return a random generator whose seed depends on the data set and the full name of the operation."""
    seed = int.from_bytes(hashlib.sha256(f"{digest}/{spelled}".encode()).digest()[:8], "little")
    return np.random.default_rng(seed)


def _uniform(random: np.random.Generator, rows: int, wanted: int, repetitions: int) -> list[np.ndarray]:
    """Return consecutive parts of the shuffled row numbers. When too few numbers are left, all rows are shuffled
    again."""
    return dealt(lambda: random.permutation(rows), wanted, repetitions)


def _clustered(random: np.random.Generator, rows: int, wanted: int, repetitions: int) -> list[np.ndarray]:
    """Return consecutive parts of the row numbers, shuffled in groups of RUN_ROWS neighbouring rows."""

    def shuffled() -> np.ndarray:
        starts = random.permutation(-(-rows // RUN_ROWS)) * RUN_ROWS
        numbers = (starts[:, None] + np.arange(RUN_ROWS)).reshape(-1)
        return numbers[numbers < rows]

    return dealt(shuffled, wanted, repetitions)


def _zipf(random: np.random.Generator, rows: int, wanted: int, repetitions: int) -> list[np.ndarray]:
    """Return arrays of row numbers in which a few rows occur often. These rows can be anywhere in the table."""
    weights = np.cumsum(np.arange(1, rows + 1, dtype=np.float64) ** -ZIPF_EXPONENT)
    of_rank = random.permutation(rows)
    return [
        of_rank[np.searchsorted(weights, random.random(wanted) * weights[-1])].astype(np.int64)
        for _ in range(repetitions)
    ]


def dealt(shuffled: Callable[[], np.ndarray], wanted: int, repetitions: int) -> list[np.ndarray]:
    """Return `repetitions` arrays of `wanted` row numbers, taken from the start of `shuffled()`. When too few numbers
    are left, `shuffled` is called again."""
    hands: list[np.ndarray] = []
    pile = shuffled()
    for _ in range(repetitions):
        if len(pile) < wanted:
            pile = shuffled()
        hands.append(np.ascontiguousarray(pile[:wanted], dtype=np.int64))
        pile = pile[wanted:]
    return hands
