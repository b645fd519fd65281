"""The base classes of operations. These classes define parameters, input, the timed part and the right answer.

Operations that read in one call are subclasses of `Operation`, operations that read in several calls are subclasses of
`Calls`, and operations that store are subclasses of `Writes`. docs/operations.md describes each operation. The worker
process calls `run` and measures its time, memory and I/O.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import pyarrow as pa

from adapters.contract import ImageStorage, TabularFormat
from adapters.offers import Handle
from adapters.spelling import spell
from bench_runner.clock import Laps
from bench_runner.conditions import Conditions
from bench_runner.data_kinds import DataKind, kind_of_target
from bench_runner.operations import parameters, targets
from data_generator.cache import read_table

REPETITIONS = 30
"""Number of calls in a block, the series of short calls of which a sample consists (rule 19)."""
CALLS_AROUND = 3
"""Number of single calls before a block of concurrent calls, and again after the block. The bytes read during the
single calls show whether the library keeps data in memory. In a block without concurrent calls, the difference between
the first and the second half shows this (rule 19)."""
READ_ALL = "read-all"
"""Name of the fallback for an engine that cannot read only some rows or columns: read everything, then select."""


@dataclass(frozen=True)
class OperationContext:
    """What an operation may use in its worker process: the adapter, the target (the kind of object that the user
    wants), and the cached data set with its digest."""

    adapter: TabularFormat | ImageStorage
    target: targets.Target
    dataset: Path
    digest: str
    rows: int
    name: str = ""
    """Name of the data set as written on the command line."""

    @property
    def primer_rows(self) -> int:
        """Number of rows or images in the primer, the untimed first call."""
        return min(self.target.data_kind.primer_rows, self.rows)

    def table(self, rows: int, columns: Sequence[str] | None = None) -> pa.Table:
        """Return the first `rows` rows of the data set, in private memory. With `columns` None, return all columns."""
        return read_table(self.dataset, rows, columns)

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns of the data set. Cached before timing starts."""
        return self.table(0).schema

    def answer(self, call: Callable[[], Any], laps: Laps) -> Any:
        """Call the engine, convert its result to the target, read one byte in each page of the converted result, and
        return the converted result. Timed. `call` is a function, not a result, so that no caller keeps the engine's
        result alive. The result can then be freed as soon as it is converted."""
        native = call()
        laps.lap("engine_ns")
        result = targets.from_native(native, self.target, self.adapter.native_read)
        del native
        laps.lap("convert_ns")
        targets.touch(result)
        laps.lap("touch_ns")
        return result


class OtherAnswer(Exception):
    """Raised if a read is repeated for verification and returns other data than in the timed part."""


Sampling = Literal["once", "calls", "epochs", "write"]
"""How a sample is taken: one call that reads ("once"), a block of short calls ("calls"), passes through all rows
("epochs"), or one call that stores ("write")."""


@dataclass(frozen=True)
class Operation(ABC):
    """Something that a user does with stored data. The fields of a subclass are its parameters.

    A subclass defines a name, a meaning and `run`. The defaults of the other methods suit an operation that reads a
    stored table in one call and returns all of its columns and rows as an Arrow table.
    """

    name: ClassVar[str]
    meaning: ClassVar[str]
    """One phrase for readers of a report."""
    use: ClassVar[str] = ""
    """Pattern of the phrases that name this operation in the option `--use` of `recommend` (format_bench.uses describes
    the syntax). `recommend` cannot weight an operation with an empty pattern."""

    @property
    def spelled(self) -> str:
        """The full name, which includes the parameters, such as 'read' or 'project[columns=10]'. A parameter at its
        default is omitted, unless it was declared with `always_spelled`."""
        given = {item.name: (getattr(self, item.name), item.default, parameters.of(item)) for item in fields(self)}
        return spell(
            self.name,
            {name: value for name, (value, default, how) in given.items() if how.always_spelled or value != default},
        )

    @property
    def title(self) -> str:
        """The name shown to people, such as 'read' or 'project 10 columns'."""
        return self.name

    @property
    def use_title(self) -> str:
        """The name in a list of what the user does with the data, such as 'read all' or 'take 100 rows'."""
        return self.title

    # --- what the operation can be used with

    @property
    def target_kinds(self) -> tuple[str, ...] | None:
        """Names of the kinds of target that the operation takes or returns, or None for all kinds. The default is Arrow
        tables only, because making a DataFrame of a few rows takes longer than reading these rows."""
        return ("arrow",)

    @property
    def kinds(self) -> tuple[DataKind, ...] | None:
        """Kinds of data that the operation applies to, or None for all kinds."""
        kinds = self.target_kinds
        return None if kinds is None else tuple(dict.fromkeys(map(kind_of_target, kinds)))

    @property
    def needs(self) -> tuple[str, ...]:
        """Python distributions that the operation needs in addition to those of the adapter."""
        return ()

    @property
    def leaves_traces(self) -> bool:
        """Whether the operation leaves something in the stored copy, such as an index, that a later operation on the
        same copy could use. Operations that do so run last."""
        return False

    def concerns(self, dataset: str, network: str = "") -> bool:
        """Return whether the operation applies to this data set over this network. If it does not, plans omit it
        without a message."""
        return True

    def refusal(self, schema: pa.Schema, rows: int) -> str | None:
        """Return why the operation cannot be done with such data in any format, or None if it can."""
        return None

    def unfit(self, adapter: Any) -> str | None:
        """Return why the operation cannot be done with this variant on any data, or None if it can."""
        return None

    def refused_under(self, conditions: Conditions) -> str | None:
        """Return why the operation cannot be measured under these conditions, or None if it can."""
        if self.target_kinds is None or conditions.target in self.target_kinds:
            return None
        return f"{self.spelled} returns Arrow tables only: measure it with --target arrow"

    def refused_by_asv(self) -> str | None:
        """Return why asv cannot measure the operation, or None if it can. asv does its own timing and repeats calls."""
        return None

    def fallback(self, adapter: Any) -> str:
        """Return the name of the fallback, such as READ_ALL, if the engine lacks the call. Return '' if the engine has
        the call or needs none."""
        return ""

    def fallback_in(self, stage: OperationContext) -> str:
        """Return what `fallback` returns. Override this method if the fallback also depends on the data."""
        return self.fallback(stage.adapter)

    # --- before, during and after timing

    @property
    def sampling(self) -> Sampling:
        """How a sample is taken."""
        return "once"

    def take_input(self, stage: OperationContext, rows: int) -> Any:
        """Return the user's input, in private memory. The default is None: a read needs only the stored copy. Not
        timed."""
        return None

    def held(self, stage: OperationContext) -> Any:
        """Return the input that the worker process keeps in memory for one sample. Not timed."""
        return self.take_input(stage, stage.rows)

    def works_at(self, location: Path) -> Path:
        """Return the path that the operation works on. The default is the path of the stored copy. Override this method
        if the operation works on a separate copy."""
        return location

    def prepare(self, location: Path) -> None:
        """Create what the operation needs at this path. Not timed."""
        return

    def begin(self, stage: OperationContext, location: Path) -> None:
        """Start a server that users have running before they store or read documents. Not timed."""
        stage.adapter.begin(self.works_at(location))

    def end(self, stage: OperationContext, location: Path) -> None:
        """Stop the server, so that its files are complete. Not timed."""
        stage.adapter.end(self.works_at(location))

    @abstractmethod
    def run(self, stage: OperationContext, held: Any, location: Path, laps: Laps) -> Any:
        """Execute the operation. Timed. Return the data to verify or, for a write, the path of the stored data."""

    def answer(self, stage: OperationContext, result: Any, location: Path) -> Any:
        """Return the data to compare with the right answer, or None to compare nothing. Not timed.

        The default is the result of `run`. Override this method if `run` returns too little to compare. The override
        may read again, and raises OtherAnswer if it then gets other data than the timed part.
        """
        return result

    # --- the right answer

    def expected_columns(self, stage: OperationContext, held: Any = None) -> list[str]:
        """Return the names of the columns of the right answer, in order: all stored columns by default."""
        return list(stage.schema.names)

    def expected(self, stage: OperationContext, columns: Sequence[str]) -> pa.Table:
        """Return the named columns of the right answer. If `expected_rows` returns row numbers, only these rows of the
        returned table are the right answer. Not timed."""
        return stage.table(stage.rows, columns)

    def expected_rows(self, stage: OperationContext, held: Any) -> np.ndarray | None:
        """Return the numbers of the rows of `expected` that are the right answer, in order, or None for all rows."""
        return None


class Writes(Operation):
    """An operation that stores data. Its `run` returns the path of the stored data."""

    @property
    def sampling(self) -> Sampling:
        """Always "write": one call, timed until its result is on the storage device."""
        return "write"

    def adds_to(self, location: Path) -> Path | None:
        """Return the stored copy that the operation extends, or None if it stores new data."""
        return None

    def files_of(self, stage: OperationContext, place: Path) -> Sequence[tuple[Any, Path]]:
        """Return pairs (adapter, path), one for each stored file or folder whose codec can be checked."""
        return [(stage.adapter, place)]


class Calls(Operation):
    """A short operation, called several times in one process, each time with another input (method rule 19)."""

    @property
    def sampling(self) -> Sampling:
        """Always "calls": a block of calls."""
        return "calls"

    @property
    def threads_at_once(self) -> int:
        """Number of threads that make calls at the same time."""
        return 1

    @property
    def most_calls(self) -> int:
        """Largest number of inputs that a sample needs. Each thread needs inputs for its first call and for the calls
        of its block (see REPETITIONS). A block of several threads also needs inputs for the single calls before and
        after it."""
        around = 2 * CALLS_AROUND if self.threads_at_once > 1 else 0
        return self.threads_at_once * (1 + REPETITIONS) + around

    @property
    def keeps_open(self) -> bool:
        """Whether the stored copy stays open from call to call."""
        return True

    @property
    def shorter(self) -> str:
        """Advice for the user if calls on an open handle take so long that too few fit into a block. Return '' if no
        advice is needed, because the time of a single call is a valid figure too (rule 19)."""
        return ""

    def needs_values(self, held: Any) -> bool:
        """Return whether the operation must read stored values for this input. If not, metadata is enough, and an open
        copy may already have the metadata in memory."""
        return True

    def refused_by_asv(self) -> str | None:
        """Return a refusal reason if the copy stays open, because asv would time the opening too."""
        return "asv would time the opening of the copy too" if self.keeps_open else None

    def begin(self, stage: OperationContext, location: Path) -> None:
        """Do nothing, because opening the copy starts the server before timing."""

    def end(self, stage: OperationContext, location: Path) -> None:
        """Do nothing, because closing the copy stops the server."""

    def handles(self, adapter: Any) -> int:
        """Return how many handles are opened before timing and stay open. Return 0 if each call opens the copy, and
        also if the fallback reads everything, because opening would then read all data before timing starts."""
        return int(self.keeps_open and not self.fallback(adapter))

    @abstractmethod
    def inputs(self, stage: OperationContext, rows: int, repetitions: int) -> list[Any]:
        """Return a list with the input of each repetition, taken from the first `rows` rows of the data."""

    def take_input(self, stage: OperationContext, rows: int) -> Any:
        """Return the input of the first repetition."""
        return self.inputs(stage, rows, 1)[0]

    def held(self, stage: OperationContext) -> list[Any]:
        """Return a list with the input of each call of a sample."""
        return self.inputs(stage, stage.rows, self.most_calls)

    @abstractmethod
    def open(self, stage: OperationContext, location: Path) -> Handle | None:
        """Open the stored copy for partial reads. Return None if the fallback reads everything."""

    def make_ready(self, stage: OperationContext, handle: Handle, inputs: Sequence[Any]) -> None:
        """Prepare an open copy for these inputs, as a user would have done long before the calls. Not timed."""
        return

    def confirm(self, stage: OperationContext, handle: Handle, inputs: Sequence[Any]) -> None:
        """Raise RefusedData if the store would execute these inputs in another way than the operation's name states,
        for example without the index that the name requires. Called after `make_ready`, except for the untimed first
        call on a few rows. Not timed."""
        return

    def open_again(self, stage: OperationContext, handle: Handle, location: Path) -> Handle:
        """Return a new handle if `make_ready` has read stored values, which the library may keep in memory. Otherwise
        return `handle`. Called before a call that must find nothing in memory."""
        return handle

    @abstractmethod
    def call(self, stage: OperationContext, handle: Handle | None, held: Any, location: Path, laps: Laps) -> Any:
        """Make one call on the open copy and return its result. Timed."""

    def run(self, stage: OperationContext, held: Any, location: Path, laps: Laps) -> Any:
        """Open the copy, call once, close the copy, and return the result of the call."""
        handle = self.open(stage, location)
        result = self.call(stage, handle, held, location, laps)
        if handle is not None:
            handle.close()
            laps.lap("engine_ns")
        return result
