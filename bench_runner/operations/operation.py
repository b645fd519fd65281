"""The base classes of operations: parameters, input, what is inside the clock, and the right answer.

Operations that read in one call are subclasses of `Operation`, those that read in several calls of `Calls`, and those
that store of `Writes`. docs/operations.md describes each operation. The worker adds processes and probes around `run`.
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
"""Calls in a block (rule 19)."""
CALLS_AROUND = 3
"""Single calls before a block of concurrent calls, and after it. Bytes read during these show whether the library keeps
data in memory: a block of overlapping calls has no first and second half to compare (rule 19)."""
READ_ALL = "read-all"
"""Fallback for a call that the engine does not have: read everything, then select."""


@dataclass(frozen=True)
class OperationContext:
    """What an operation may use in its worker: the adapter, the target, and the cached data set with its digest."""

    adapter: TabularFormat | ImageStorage
    target: targets.Target
    dataset: Path
    digest: str
    rows: int
    name: str = ""
    """The spelled name of the data set."""

    @property
    def primer_rows(self) -> int:
        """Rows or images in the first call."""
        return min(self.target.data_kind.primer_rows, self.rows)

    def table(self, rows: int, columns: Sequence[str] | None = None) -> pa.Table:
        """Return the first rows of the data set, in private memory."""
        return read_table(self.dataset, rows, columns)

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns of the data set. Read once, while the operation is primed and no clock runs."""
        return self.table(0).schema

    def answer(self, call: Callable[[], Any], laps: Laps) -> Any:
        """Call the engine, convert its result to the target and touch one byte in each page. Inside the clock. The call
        is passed as a function so that no other frame holds its result, which is freed once converted."""
        native = call()
        laps.lap("engine_ns")
        result = targets.from_native(native, self.target, self.adapter.native_read)
        del native
        laps.lap("convert_ns")
        targets.touch(result)
        laps.lap("touch_ns")
        return result


class OtherAnswer(Exception):
    """The data to compare differ from the data that were read inside the clock."""


Sampling = Literal["once", "calls", "epochs", "write"]
"""How a sample is taken: one call that reads, a block of calls, passes through all rows, or a call that stores."""


@dataclass(frozen=True)
class Operation(ABC):
    """One thing that a user does with stored data. Its fields are its parameters.

    A subclass defines a name, a meaning and `run`. The defaults of the other methods are for an operation that reads a
    stored table in one call and returns all of its columns and rows as an Arrow table.
    """

    name: ClassVar[str]
    meaning: ClassVar[str]
    """One phrase for readers of a report."""
    use: ClassVar[str] = ""
    """The words of `--use` for this operation (format_bench.uses describes the syntax). `recommend` can weight
    operations that have them."""

    @property
    def spelled(self) -> str:
        """'read', 'project[columns=10]': parameters that are always spelled, and those not at their default."""
        given = {item.name: (getattr(self, item.name), item.default, parameters.of(item)) for item in fields(self)}
        return spell(
            self.name,
            {name: value for name, (value, default, how) in given.items() if how.always_spelled or value != default},
        )

    @property
    def title(self) -> str:
        """The name shown to people: 'read', 'project 10 columns'."""
        return self.name

    @property
    def use_title(self) -> str:
        """The name in a list of uses: 'read all', 'take 100 rows'."""
        return self.title

    # --- what it can be done with

    @property
    def target_kinds(self) -> tuple[str, ...] | None:
        """Kinds of target that it takes or returns; None for all. Arrow tables only by default: making a DataFrame of
        few rows takes longer than reading them."""
        return ("arrow",)

    @property
    def kinds(self) -> tuple[DataKind, ...] | None:
        """Kinds of data that it applies to; None for all."""
        kinds = self.target_kinds
        return None if kinds is None else tuple(dict.fromkeys(map(kind_of_target, kinds)))

    @property
    def needs(self) -> tuple[str, ...]:
        """Distributions that it needs in addition to those of the adapter."""
        return ()

    @property
    def leaves_traces(self) -> bool:
        """Whether it leaves something in the stored copy, such as an index, that later operations of the chain could
        use. Such operations run last."""
        return False

    def concerns(self, dataset: str, network: str = "") -> bool:
        """Return whether it applies to the data set of this name over this network. If not, it is left out of plans
        silently."""
        return True

    def refusal(self, schema: pa.Schema, rows: int) -> str | None:
        """Return why it cannot be done with such data, whatever the format; None if it can."""
        return None

    def unfit(self, adapter: Any) -> str | None:
        """Return why it cannot be done with this variant, whatever the data; None if it can."""
        return None

    def refused_under(self, conditions: Conditions) -> str | None:
        """Return why it cannot be measured under these conditions; None if it can."""
        if self.target_kinds is None or conditions.target in self.target_kinds:
            return None
        return f"{self.spelled} returns Arrow tables only: measure it with --target arrow"

    def refused_by_asv(self) -> str | None:
        """Return why asv, which repeats calls under its own clock, cannot measure it; None if it can."""
        return None

    def fallback(self, adapter: Any) -> str:
        """Return the name of the fallback where the engine has no such call; '' if it has one, or none is needed."""
        return ""

    def fallback_in(self, stage: OperationContext) -> str:
        """Return the same, where it depends on the data as well."""
        return self.fallback(stage.adapter)

    # --- before, inside and after the clock

    @property
    def sampling(self) -> Sampling:
        """How a sample is taken."""
        return "once"

    def take_input(self, stage: OperationContext, rows: int) -> Any:
        """Return the user's input, in private memory; nothing but the stored copy by default. Before the clock."""
        return None

    def held(self, stage: OperationContext) -> Any:
        """Return the input of one sample. Before the clock."""
        return self.take_input(stage, stage.rows)

    def works_at(self, location: Path) -> Path:
        """Return where it works: the stored copy by default, or a copy made for it."""
        return location

    def prepare(self, location: Path) -> None:
        """Create the place where it works. Before the clock."""
        return

    def begin(self, stage: OperationContext, location: Path) -> None:
        """Start a server that users have running before they store or read documents. Before the clock."""
        stage.adapter.begin(self.works_at(location))

    def end(self, stage: OperationContext, location: Path) -> None:
        """Stop the server, so that its files are complete. After the clock."""
        stage.adapter.end(self.works_at(location))

    @abstractmethod
    def run(self, stage: OperationContext, held: Any, location: Path, laps: Laps) -> Any:
        """Execute the operation, inside the clock. Return the answer to verify, or the path of what it stored."""

    def answer(self, stage: OperationContext, result: Any, location: Path) -> Any:
        """Return what to compare with the right answer, if `run` returns less; None for nothing. After the clock.
        Raises OtherAnswer if it differs from what was read inside the clock."""
        return result

    # --- the right answer

    def expected_columns(self, stage: OperationContext, held: Any = None) -> list[str]:
        """Return the names of the columns of the right answer, in order: all stored columns by default."""
        return list(stage.schema.names)

    def expected(self, stage: OperationContext, columns: Sequence[str]) -> pa.Table:
        """Return columns of the right answer, or of the table whose rows it is. Computed in memory, after the clock."""
        return stage.table(stage.rows, columns)

    def expected_rows(self, stage: OperationContext, held: Any) -> np.ndarray | None:
        """Return the numbers of the rows of `expected` that are the right answer, in order; None for all of them."""
        return None


class Writes(Operation):
    """An operation that stores data: `run` returns where."""

    @property
    def sampling(self) -> Sampling:
        """One call, whose result is on the device."""
        return "write"

    def adds_to(self, location: Path) -> Path | None:
        """Return the stored copy that it extends; None if what it stores is new."""
        return None


class Calls(Operation):
    """A short operation, called several times in one process, each time with another input (method rule 19)."""

    @property
    def sampling(self) -> Sampling:
        """A block of calls."""
        return "calls"

    @property
    def threads_at_once(self) -> int:
        """Number of threads that call it at the same time."""
        return 1

    @property
    def most_calls(self) -> int:
        """Inputs that a sample needs at most: the first call and the block of each thread, and the single calls around
        a block of several threads."""
        around = 2 * CALLS_AROUND if self.threads_at_once > 1 else 0
        return self.threads_at_once * (1 + REPETITIONS) + around

    @property
    def keeps_open(self) -> bool:
        """Whether the stored copy stays open from call to call."""
        return True

    @property
    def shorter(self) -> str:
        """What a user can do if calls on a kept handle are so long that too few fit into a block; '' where a single
        call is a valid figure too (rule 19)."""
        return ""

    def needs_values(self, held: Any) -> bool:
        """Return whether the answer needs stored values. If not, metadata is enough, which an open copy may keep."""
        return True

    def refused_by_asv(self) -> str | None:
        """Return a reason if the copy stays open, because asv's clock includes opening."""
        return "asv's clock includes opening" if self.keeps_open else None

    def begin(self, stage: OperationContext, location: Path) -> None:
        """Do nothing: opening the copy, before the clock, starts the server."""

    def end(self, stage: OperationContext, location: Path) -> None:
        """Do nothing: closing the copy stops the server."""

    def handles(self, adapter: Any) -> int:
        """Return how many handles are opened before the clock and kept: 0 if each call opens the copy, or if
        everything is read, because opening would then read all of it outside the clock."""
        return int(self.keeps_open and not self.fallback(adapter))

    @abstractmethod
    def inputs(self, stage: OperationContext, rows: int, repetitions: int) -> list[Any]:
        """Return the input of each repetition, taken from the first `rows` rows."""

    def take_input(self, stage: OperationContext, rows: int) -> Any:
        """Return the input of the first repetition."""
        return self.inputs(stage, rows, 1)[0]

    def held(self, stage: OperationContext) -> list[Any]:
        """Return the input of each call of a sample."""
        return self.inputs(stage, stage.rows, self.most_calls)

    @abstractmethod
    def open(self, stage: OperationContext, location: Path) -> Handle | None:
        """Open the stored copy for partial reads; return None where everything is read."""

    def make_ready(self, stage: OperationContext, handle: Handle, inputs: Sequence[Any]) -> None:
        """Do what an open copy needs before these inputs, and a user has done long before. In no clock."""
        return

    def confirm(self, stage: OperationContext, handle: Handle, inputs: Sequence[Any]) -> None:
        """Raise RefusedData if these inputs would not be answered as the operation's name states. Called after
        `make_ready`, in no clock, and not for the few rows of the primer."""
        return

    def open_again(self, stage: OperationContext, handle: Handle, location: Path) -> Handle:
        """Return a fresh handle if `make_ready` has read stored values, which the library may keep; else this one.
        Called before a cold call."""
        return handle

    @abstractmethod
    def call(self, stage: OperationContext, handle: Handle | None, held: Any, location: Path, laps: Laps) -> Any:
        """Make one repetition on the open copy. Inside the clock."""

    def run(self, stage: OperationContext, held: Any, location: Path, laps: Laps) -> Any:
        """Open, call once, close."""
        handle = self.open(stage, location)
        result = self.call(stage, handle, held, location, laps)
        if handle is not None:
            handle.close()
            laps.lap("engine_ns")
        return result
