"""A suite, as data: a question, what is measured to answer it, and the reason for each choice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from bench_runner.data_kinds import TABLES, DataKind
from bench_runner.suites.rules import Rule

QUICK_TABLE_ROWS, QUICK_IMAGES = 20_000, 5_000
"""Numbers of rows and images in quick rounds. Suites that share data sets use the same numbers, so that they can run
together."""


@dataclass(frozen=True, kw_only=True)
class Quick:
    """The part of a suite that one quick round measures, so that it ends within three minutes on two cores. An empty
    field means the same as in the suite. Data sets, rows, operations, networks, threads and formats that the user names
    are measured in any case."""

    rows: int | None = None
    datasets: tuple[str, ...] = ()
    operations: tuple[str, ...] = ()
    networks: tuple[str, ...] = ()
    threads: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    """Variants that are left out of the variants that the suite spells."""
    reason: str = ""
    """The reason for this selection, and what is missing from it."""


@dataclass(frozen=True, kw_only=True)
class Suite:
    """One question, and the measurements that answer it.

    `operations` and `datasets` are always measured. Data sets have `rows` rows if given. Those in `on_request` are
    measured only if the user names them. `variants` is the rule that chooses variants. `reasons` maps choices to their
    reasons, which `list suites` shows. Everything is measured under each condition of `threads`. A suite with a special
    case defines a subclass in its own module.
    """

    name: str
    question: str
    operations: tuple[str, ...]
    datasets: tuple[str, ...]
    on_request: tuple[str, ...]
    variants: Rule
    reasons: Mapping[str, str]
    operations_on_request: tuple[str, ...] = ()
    rows: int | None = None
    quick: Quick = field(default_factory=lambda: Quick())
    """The part of the suite that one quick round measures."""
    kind: DataKind = TABLES
    """The kind of data."""
    threads: tuple[str, ...] = ("default",)
    networks: tuple[str, ...] = ("",)
    """Networks between caller and copy, by the names of bench_runner.networks; '' is one process without a network.
    Variants with services are measured over each network."""
    target: str = "pandas"
    """Default target."""
    roofline: bool = False
    """Whether the device is probed before and after the counted rounds, so that figures can be shown as shares of its
    limit."""

    operations_over_data: ClassVar[tuple[str, ...]] = ()
    """Operations that replace `operations` while a property of the data is varied; empty for no replacement."""
    asv_operations: ClassVar[tuple[str, ...]] = ()
    """Operations that asv times; empty for all of the suite."""
    asv_formats: ClassVar[tuple[str, ...]] = ()
    """Patterns of the variants that asv times; empty for all of the suite."""
    fallbacks_once: ClassVar[bool] = True
    """Whether a variant that reads everything as a fallback measures only the first of several operations with one
    name, because reading everything costs the same for one row as for a hundred. Operations that the user names are
    measured anyway."""
    together: ClassVar[tuple[str, ...]] = ()
    """Names of suites that are measured together with this suite. They ask the same question about other data."""

    @property
    def tracks(self) -> tuple[str, ...]:
        """The tracks of the suite's variants."""
        return self.variants.tracks
