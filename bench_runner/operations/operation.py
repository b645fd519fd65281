"""What every operation is: its parameters, its input, what lies inside the clock, and the answer that it must give.

docs/operations.md says the same to the reader. Operations know targets and adapters, but neither processes nor probes:
the worker brings those around `run`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, TypeGuard

import numpy as np
import pyarrow as pa

from adapters.contract import ImageStorage, TabularFormat
from adapters.offers import Handle
from adapters.spelling import spell
from bench_runner.clock import Laps
from bench_runner.data_kinds import TABLES, DataKind
from bench_runner.operations import parameters, targets
from data_generator.cache import read_table

REPETITIONS = 30
"""Calls of a block (rule 19)."""
READ_ALL = "read-all"
"""What stands for a call that the engine does not have: everything is read, and selected from afterwards."""


@dataclass(frozen=True)
class Stage:
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


@dataclass(frozen=True)
class Operation(ABC):
    """One thing that a user does with a stored table. Its fields are its parameters."""

    name: ClassVar[str]
    writes: ClassVar[bool] = False
    """Whether it makes a stored copy; else it needs one."""
    changes: ClassVar[bool] = False
    """Whether it changes a stored copy: one of its own, which `prepare` makes, and of which it returns the place."""
    makes_anew: ClassVar[bool] = False
    """Whether nothing lies in that place before it: then what is written there must be what the variant says."""
    pauses: ClassVar[bool] = False
    """Whether the clock stands still within it: another clock than ours would count what is not the format's."""
    sees_all: ClassVar[bool] = False
    """Whether its answer is all of the data: then what passes verifies the save as well."""
    of_services: ClassVar[bool] = True
    """Whether it can be asked of services; else it is measured in one process alone."""
    kinds: ClassVar[tuple[DataKind, ...] | None] = (TABLES,)
    """The kinds of data that it can be done with; None for all."""
    arrow_only: ClassVar[bool] = False
    """Whether it gives Arrow tables alone: making a DataFrame of few rows takes longer than reading them."""
    meaning: ClassVar[str]
    """One sentence for readers of a report."""

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
    def needs(self) -> tuple[str, ...]:
        """Distributions that it needs besides those of the adapter."""
        return ()

    @property
    def leaves_traces(self) -> bool:
        """Whether what it leaves in the stored copy, such as an index, may answer the operations that come behind it
        in a chain: then it is one of the last."""
        return False

    def refusal(self, schema: pa.Schema, rows: int) -> str | None:
        """Why it cannot be done with such data, whatever the format; None when it can."""
        return None

    def concerns(self, dataset: str) -> bool:
        """Whether it has a meaning for the data set of this name; else nobody has to hear that it was left out."""
        return True

    def fallback(self, adapter: TabularFormat | ImageStorage) -> str:
        """What stands for the engine's own call where it has none, '' where it has, or none is needed."""
        return ""

    def fallback_in(self, stage: Stage) -> str:
        """The same, where that depends on the data as well."""
        return self.fallback(stage.adapter)

    def unfit(self, adapter: TabularFormat | ImageStorage) -> str | None:
        """Why it cannot be done with this variant, whatever the data; None when it can."""
        return None

    @abstractmethod
    def take_input(self, stage: Stage, rows: int) -> Any:
        """Before the clock: what the user holds, in private memory."""

    def works_at(self, location: Path) -> Path:
        """Where it works: on the stored copy, or where it makes one of its own."""
        return location

    def prepare(self, location: Path) -> None:
        """Before the clock, where it changes a stored copy: one of its own."""
        raise NotImplementedError(f"{self.name} changes nothing")

    def begin(self, stage: Stage, location: Path) -> None:
        """Before the clock: a server that users have running before they store documents, or read them."""
        stage.adapter.begin(self.works_at(location))

    def end(self, stage: Stage, location: Path) -> None:
        """Behind the clock: it ends, and its files are whole."""
        stage.adapter.end(self.works_at(location))

    @abstractmethod
    def run(self, stage: Stage, held: Any, location: Path, laps: Laps) -> Any:
        """Inside the clock. Returns what is to be verified, or None."""

    def answer(self, stage: Stage, result: Any, location: Path) -> Any:
        """After the clock: what is to be compared with the right answer, where `run` gives less than that to be held.

        Raises OtherAnswer where it is not what the clock has seen.
        """
        return result

    @abstractmethod
    def expected_columns(self, stage: Stage) -> list[str]:
        """The names and order of the columns of the right answer; empty when there is nothing to compare."""

    def columns_of(self, stage: Stage, held: Any) -> list[str]:
        """The same of one call, where calls differ in what they are asked for."""
        return self.expected_columns(stage)

    def expected(self, stage: Stage, columns: Sequence[str]) -> pa.Table:
        """After the clock: some columns of the right answer, computed in memory, or of what it is rows of."""
        return stage.table(stage.rows, columns)

    def expected_rows(self, stage: Stage, held: Any) -> np.ndarray | None:
        """The numbers of the rows of `expected` that are the right answer, in their order; None for all of them."""
        return None


class RepeatedOperation(Operation):
    """One that is short, and is called several times in one process, each time with another input (method rule 19)."""

    may_be_long: ClassVar[bool] = False
    """Whether a call may last for seconds: then a single one on a handle that is kept is a figure too (rule 19)."""
    adds_up: ClassVar[bool] = True
    """Whether the answers of all calls, one behind the other, are one answer: rows are, columns are not."""
    reads_before_it_is_asked: ClassVar[bool] = False
    """Whether `make_ready` reads stored values: then a cold call needs the copy opened anew."""

    @property
    def repeats(self) -> bool:
        """Whether it is, with these parameters; else it is done once."""
        return True

    @property
    def threads_at_once(self) -> int:
        """From how many threads it is called at the same time."""
        return 1

    def needs_values(self, held: Any) -> bool:
        """Whether what is asked for needs values that are stored: metadata alone, which an open copy may keep, cannot
        answer it."""
        return True

    def begin(self, stage: Stage, location: Path) -> None:
        """Nothing: opening does it, which is before the clock."""

    def end(self, stage: Stage, location: Path) -> None:
        """Nothing: closing does it."""

    def handles(self, adapter: TabularFormat | ImageStorage) -> int:
        """How many times the stored copy is opened before the clock, to stay open: 0 where each call opens it."""
        return int(self.keeps_handle(adapter))

    @property
    @abstractmethod
    def asks_for_open(self) -> bool:
        """Whether the stored copy is to stay open from call to call."""

    @abstractmethod
    def inputs(self, stage: Stage, rows: int, repetitions: int) -> list[Any]:
        """What each repetition asks for, among the first `rows` rows."""

    @abstractmethod
    def keeps_handle(self, adapter: TabularFormat | ImageStorage) -> bool:
        """Whether the stored copy is opened before the clock, once for all repetitions; else inside each clock."""

    @abstractmethod
    def open(self, stage: Stage, location: Path) -> Handle | None:
        """The stored copy open for reading in part; None where everything is read."""

    def make_ready(self, stage: Stage, handle: Handle, inputs: Sequence[Any]) -> None:
        """What an open copy needs before it is asked for these, and a user has done long before; in no clock."""
        return

    def confirm(self, stage: Stage, handle: Handle, inputs: Sequence[Any]) -> None:
        """After `make_ready`, and in no clock: raise RefusedData where these would be answered otherwise than the
        operation's name says. Not of the few rows that it is primed on."""
        return

    def open_again(self, stage: Stage, handle: Handle, location: Path) -> Handle:
        """A copy that was made ready closed, and open as it was then, but for what its library holds in memory of what
        it has read."""
        raise NotImplementedError(f"{self.name} reads nothing before it is asked")

    @abstractmethod
    def call(self, stage: Stage, handle: Handle | None, held: Any, location: Path, laps: Laps) -> Any:
        """One repetition on what is open, inside the clock."""


def is_repeated(operation: Operation) -> TypeGuard[RepeatedOperation]:
    """Whether an operation is called several times in one process."""
    return isinstance(operation, RepeatedOperation) and operation.repeats
