"""The class of suites. A suite declares a question, what is measured to answer it, and the reason for each choice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from bench_runner.data_kinds import TABLES, DataKind
from bench_runner.suites.rules import Rule

QUICK_TABLE_ROWS, QUICK_IMAGES = 20_000, 5_000
"""Numbers of rows and images in a quick round. Suites with the same data sets use the same numbers, so that one run can
measure several suites on one stored copy."""


@dataclass(frozen=True, kw_only=True)
class Quick:
    """The part of a suite that a quick run measures in one round, so that it ends within three minutes on two cores.

    If a field is empty, the quick run uses the value of the whole suite. Data sets, rows, operations, networks, threads
    and formats that the user names are measured even if they are not in this part.
    """

    rows: int | None = None
    datasets: tuple[str, ...] = ()
    operations: tuple[str, ...] = ()
    networks: tuple[str, ...] = ()
    threads: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    """Variants of the suite, by full name, that the quick run does not measure."""
    reason: str = ""
    """The reason for this selection, and what is missing from it."""


@dataclass(frozen=True, kw_only=True)
class Suite:
    """One question, and the measurements that answer it.

    `operations` and `datasets` are always measured. If `rows` is given, data sets have that number of rows. Data sets
    in `on_request` are measured only if the user names them. `variants` is the rule that chooses variants. `reasons`
    maps choices to the reasons for them, which the command `list suites` shows. All measurements are repeated for each
    value of `threads`. A suite with special behaviour defines a subclass in its own module.
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
    """The part of the suite that a quick run measures."""
    kind: DataKind = TABLES
    """The kind of data."""
    threads: tuple[str, ...] = ("default",)
    networks: tuple[str, ...] = ("",)
    """Names of networks between the caller and the stored copy, from bench_runner.networks. '' means one process
    without a network. Only variants that read through services are measured over networks."""
    target: str = "pandas"
    """Default target, which is the kind of object that the user saves and wants back."""
    roofline: bool = False
    """Whether the speed of the storage device is measured before and after the measurements, so that figures can be
    shown as shares of the device's limit."""

    operations_over_data: ClassVar[tuple[str, ...]] = ()
    """Operations that are measured instead of `operations` while a property of the data is varied. If empty,
    `operations` are measured then, too."""
    operations_over_settings: ClassVar[tuple[str, ...]] = ()
    """Operations that are measured instead of `operations` while a setting of variants is varied. If empty,
    `operations` are measured then, too."""
    asv_operations: ClassVar[tuple[str, ...]] = ()
    """Operations that asv times. If empty, asv times all operations of the suite."""
    asv_formats: ClassVar[tuple[str, ...]] = ()
    """Regular expressions for the variants that asv times. If empty, asv times all variants of the suite."""
    fallbacks_once: ClassVar[bool] = True
    """Whether only the first of several operations is measured if the operations differ only in their parameters, and
    the variant must read everything for each of them. Reading everything takes the same time for one row as for a
    hundred. Operations that the user names are measured in any case."""
    together: ClassVar[tuple[str, ...]] = ()
    """Names of suites that are measured together with this suite, because these suites ask the same question about
    other data."""

    @property
    def tracks(self) -> tuple[str, ...]:
        """The tracks of the suite's variants. Only variants of the same track are compared."""
        return self.variants.tracks
