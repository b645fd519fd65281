"""The classes of a plan: Chain, Excluded (operations that cannot be run) and Plan."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from bench_runner.conditions import Conditions
from bench_runner.errors import Failure
from bench_runner.operations import SAVE, VERIFYING
from bench_runner.operations.targets import Target
from bench_runner.suites import Suite
from bench_runner.variants import is_raw_io
from data_generator.dataset import Dataset


@dataclass(frozen=True)
class Chain:
    """Operations that share one stored copy: one save, then each reading operation, then the removal.

    `spelled` is the full name of the variant, from which the adapter is built. `variant` is the name in records. These
    two names differ only if the runner converts the data (nulls=numpy). `operations` are full names, with the save
    first.
    """

    suite: str
    dataset: str
    variant: str
    spelled: str
    library: str
    suffix: str
    mapped: bool
    codec: str | None
    target: Target
    conditions: Conditions
    operations: tuple[str, ...]

    @property
    def is_raw_io(self) -> bool:
        """Whether this is raw I/O, which takes part in every round."""
        return is_raw_io(self.spelled)

    def needed_for(self, wanted: Iterable[str]) -> tuple[str, ...]:
        """Return the `wanted` operations and the operations that they require, in the order of execution. Every
        operation requires the save. If the save itself is in `wanted`, an operation that reads and verifies the saved
        copy is required too."""
        chosen = {SAVE, *wanted}
        in_order = [operation for operation in self.operations if operation in chosen]
        return tuple(dict.fromkeys((SAVE, *in_order, *([VERIFYING] if SAVE in wanted else ()))))

    def label(self, operation: str | None = None) -> str:
        """Return the chain's name in messages, such as 'tabular/save/eq/csv[engine=pandas]'."""
        middle = f"{operation}/" if operation else ""
        return f"{self.suite}/{middle}{self.dataset}/{self.variant}"


@dataclass(frozen=True)
class Excluded:
    """Operations that are not run, with the reason. `chain` contains only these operations."""

    chain: Chain
    failure: Failure


@dataclass(frozen=True)
class Plan:
    """Everything that one command will measure. `excluded` has the operations that cannot be run, with the reasons."""

    suites: tuple[Suite, ...]
    datasets: Mapping[str, Dataset]
    chains: tuple[Chain, ...]
    excluded: tuple[Excluded, ...] = ()

    @property
    def variants(self) -> tuple[str, ...]:
        """The full names of the variants that are run, without repetition, in the order of the plan."""
        return tuple(dict.fromkeys(chain.spelled for chain in self.chains))

    @property
    def planned(self) -> tuple[Chain, ...]:
        """All chains, including the excluded ones."""
        return (*self.chains, *(each.chain for each in self.excluded))
