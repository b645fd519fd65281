"""What every operation is: its parameters, its input, what lies inside the clock, and the answer that it must give.

Operations that read in one call are subclasses of `Operation`, those that read in several calls of `Calls`, and those
that store of `Writes`. docs/operations.md says to the reader what each does. The worker brings processes and probes
around `run`.
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
"""Calls of a block (rule 19)."""
CALLS_AROUND = 3
"""Single calls before a block of concurrent ones, and as many after it. What they read shows whether the library keeps
data in memory: a block whose calls overlap has no first and second half to compare (rule 19)."""
READ_ALL = "read-all"
"""What stands for a call that the engine does not have: everything is read, and selected from afterwards."""


@dataclass(frozen=True)
class OperationContext:
    """What an operation may use in its worker: the adapter, the target, and the cached data set with its digest."""

    adapter: TabularFormat | ImageStorage
    target: targets.Target
    dataset: Path
    digest: str
    rows: int
    name: str = ""
    """The data set's, as it is spelled."""

    @property
    def primer_rows(self) -> int:
        """How many rows or images the first call is made with."""
        return min(self.target.data_kind.primer_rows, self.rows)

    def table(self, rows: int, columns: Sequence[str] | None = None) -> pa.Table:
        """The first rows of the data set, in private memory."""
        return read_table(self.dataset, rows, columns)

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns of the data set; read once, while the operation is primed and no clock runs."""
        return self.table(0).schema

    def answer(self, call: Callable[[], Any], laps: Laps) -> Any:
        """Inside the clock: what the engine's call gives, as the target has it, one byte in each page touched.

        The call is made here, and not by who asks for it: nobody else holds its result, so it can go once converted.
        """
        native = call()
        laps.lap("engine_ns")
        result = targets.from_native(native, self.target, self.adapter.native_read)
        del native
        laps.lap("convert_ns")
        targets.touch(result)
        laps.lap("touch_ns")
        return result


class OtherAnswer(Exception):
    """What is there to be compared is not what came inside the clock."""


Sampling = Literal["once", "calls", "epochs", "write"]
"""How a sample is taken: of one call that reads, of a block of calls, of passes through all rows, of a call that
stores."""


@dataclass(frozen=True)
class Operation(ABC):
    """One thing that a user does with stored data. Its fields are its parameters.

    A subclass has a name, a meaning and `run`. It overrides the rest where it differs from an operation that reads a
    stored table in one call, and gives all columns and rows of it as an Arrow table.
    """

    name: ClassVar[str]
    meaning: ClassVar[str]
    """One sentence for readers of a report."""
    use: ClassVar[str] = ""
    """The words of `--use` that mean it (format_bench.uses says how they are written). Operations that have some can be
    weighed by `recommend`."""

    @property
    def spelled(self) -> str:
        """'read', 'project[columns=10]': the parameters that are always spelled, and those that are not the default."""
        said = {item.name: (getattr(self, item.name), item.default, parameters.of(item)) for item in fields(self)}
        return spell(
            self.name,
            {name: value for name, (value, default, how) in said.items() if how.always_spelled or value != default},
        )

    @property
    def title(self) -> str:
        """For people: 'read', 'project 10 columns'."""
        return self.name

    @property
    def use_title(self) -> str:
        """What a user does who uses it: 'read all', 'take 100 rows'."""
        return self.title

    # --- what it can be done with

    @property
    def target_kinds(self) -> tuple[str, ...] | None:
        """The kinds of target that it gives or takes; None for all. Arrow tables alone unless a subclass says more:
        making a DataFrame of few rows takes longer than reading them."""
        return ("arrow",)

    @property
    def kinds(self) -> tuple[DataKind, ...] | None:
        """The kinds of data that it can be done with; None for all."""
        kinds = self.target_kinds
        return None if kinds is None else tuple(dict.fromkeys(map(kind_of_target, kinds)))

    @property
    def needs(self) -> tuple[str, ...]:
        """Distributions that it needs besides those of the adapter."""
        return ()

    @property
    def leaves_traces(self) -> bool:
        """Whether what it leaves in the stored copy, such as an index, may answer the operations that come after it
        in a chain: then it is one of the last."""
        return False

    def concerns(self, dataset: str, network: str = "") -> bool:
        """Whether it has a meaning for the data set of this name over this network. Else it is left out, and no plan
        says so."""
        return True

    def refusal(self, schema: pa.Schema, rows: int) -> str | None:
        """Why it cannot be done with such data, whatever the format; None when it can."""
        return None

    def unfit(self, adapter: Any) -> str | None:
        """Why it cannot be done with this variant, whatever the data; None when it can."""
        return None

    def refused_under(self, conditions: Conditions) -> str | None:
        """Why it cannot be measured under these conditions; None when it can."""
        if self.target_kinds is None or conditions.target in self.target_kinds:
            return None
        return f"{self.spelled} gives Arrow tables alone: measure it with --target arrow"

    def refused_by_asv(self) -> str | None:
        """Why asv, which repeats calls under its own clock, cannot measure it; None when it can."""
        return None

    def fallback(self, adapter: Any) -> str:
        """What stands for the engine's own call where it has none, '' where it has, or none is needed."""
        return ""

    def fallback_in(self, stage: OperationContext) -> str:
        """The same, where that depends on the data as well."""
        return self.fallback(stage.adapter)

    # --- before, inside and after the clock

    @property
    def sampling(self) -> Sampling:
        """How a sample of it is taken."""
        return "once"

    def take_input(self, stage: OperationContext, rows: int) -> Any:
        """Before the clock: what the user holds, in private memory; nothing but the stored copy by default."""
        return None

    def held(self, stage: OperationContext) -> Any:
        """Before the clock: what a sample needs of input."""
        return self.take_input(stage, stage.rows)

    def works_at(self, location: Path) -> Path:
        """Where it works: on the stored copy, or where it makes one of its own."""
        return location

    def prepare(self, location: Path) -> None:
        """Before the clock: make the place where it works."""
        return

    def begin(self, stage: OperationContext, location: Path) -> None:
        """Before the clock: start a server that users have running before they store documents, or read them."""
        stage.adapter.begin(self.works_at(location))

    def end(self, stage: OperationContext, location: Path) -> None:
        """After the clock: stop the server; its files are whole then."""
        stage.adapter.end(self.works_at(location))

    @abstractmethod
    def run(self, stage: OperationContext, held: Any, location: Path, laps: Laps) -> Any:
        """Inside the clock. Returns the answer to verify, or the place where it has stored something."""

    def answer(self, stage: OperationContext, result: Any, location: Path) -> Any:
        """After the clock: what to compare with the right answer, if `run` returns less than that; None for nothing.

        Raises OtherAnswer where it is not what the clock has seen.
        """
        return result

    # --- the right answer

    def expected_columns(self, stage: OperationContext, held: Any = None) -> list[str]:
        """The names and order of the columns of the right answer to an input: all, as they are stored, by default."""
        return list(stage.schema.names)

    def expected(self, stage: OperationContext, columns: Sequence[str]) -> pa.Table:
        """After the clock: some columns of the right answer, computed in memory, or of what it is rows of."""
        return stage.table(stage.rows, columns)

    def expected_rows(self, stage: OperationContext, held: Any) -> np.ndarray | None:
        """The numbers of the rows of `expected` that are the right answer, in their order; None for all of them."""
        return None


class Writes(Operation):
    """One that stores data: `run` returns where."""

    @property
    def sampling(self) -> Sampling:
        """In one call, whose result is on the device."""
        return "write"

    def adds_to(self, location: Path) -> Path | None:
        """The stored copy of which it makes a larger one; None where what it stores is new."""
        return None


class Calls(Operation):
    """One that is short, and is called several times in one process, each time with another input (method rule 19)."""

    @property
    def sampling(self) -> Sampling:
        """In a block of calls."""
        return "calls"

    @property
    def threads_at_once(self) -> int:
        """From how many threads it is called at the same time."""
        return 1

    @property
    def most_calls(self) -> int:
        """How many inputs a sample needs at most: the first call and the block of each thread, and calls of one thread
        around a block of several."""
        around = 2 * CALLS_AROUND if self.threads_at_once > 1 else 0
        return self.threads_at_once * (1 + REPETITIONS) + around

    @property
    def keeps_open(self) -> bool:
        """Whether the stored copy is to stay open from call to call."""
        return True

    @property
    def shorter(self) -> str:
        """What a user can do where calls on a kept handle are so long that too few fit into a block; '' where a single
        one is a figure too (rule 19)."""
        return ""

    def needs_values(self, held: Any) -> bool:
        """Whether what is asked for needs values that are stored: metadata alone, which an open copy may keep, cannot
        answer it."""
        return True

    def refused_by_asv(self) -> str | None:
        """Its clock holds opening."""
        return "asv clocks opening too" if self.keeps_open else None

    def begin(self, stage: OperationContext, location: Path) -> None:
        """Nothing: opening does it, which is before the clock."""

    def end(self, stage: OperationContext, location: Path) -> None:
        """Nothing: closing does it."""

    def handles(self, adapter: Any) -> int:
        """How many times the stored copy is opened before the clock, to stay open: 0 where each call opens it. Where
        everything is read it is 0: opening would read all of it, outside the clock."""
        return int(self.keeps_open and not self.fallback(adapter))

    @abstractmethod
    def inputs(self, stage: OperationContext, rows: int, repetitions: int) -> list[Any]:
        """What each repetition asks for, among the first `rows` rows."""

    def take_input(self, stage: OperationContext, rows: int) -> Any:
        """What the first repetition asks for."""
        return self.inputs(stage, rows, 1)[0]

    def held(self, stage: OperationContext) -> list[Any]:
        """What each call of a sample asks for."""
        return self.inputs(stage, stage.rows, self.most_calls)

    @abstractmethod
    def open(self, stage: OperationContext, location: Path) -> Handle | None:
        """The stored copy open for reading in part; None where everything is read."""

    def make_ready(self, stage: OperationContext, handle: Handle, inputs: Sequence[Any]) -> None:
        """What an open copy needs before it is asked for these, and a user has done long before; in no clock."""
        return

    def confirm(self, stage: OperationContext, handle: Handle, inputs: Sequence[Any]) -> None:
        """After `make_ready`, and in no clock: raise RefusedData where these would be answered otherwise than the
        operation's name says. Not of the few rows that it is primed on."""
        return

    def open_again(self, stage: OperationContext, handle: Handle, location: Path) -> Handle:
        """Before a cold call: a copy without what its library holds in memory since `make_ready` has read stored
        values; the same one where it has read none."""
        return handle

    @abstractmethod
    def call(self, stage: OperationContext, handle: Handle | None, held: Any, location: Path, laps: Laps) -> Any:
        """One repetition on what is open, inside the clock."""

    def run(self, stage: OperationContext, held: Any, location: Path, laps: Laps) -> Any:
        """Open, call once, close."""
        handle = self.open(stage, location)
        result = self.call(stage, handle, held, location, laps)
        if handle is not None:
            handle.close()
            laps.lap("engine_ns")
        return result
