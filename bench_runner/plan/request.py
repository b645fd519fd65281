"""What a user asks for, as values: the command line and programs make it, the plan is made from it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bench_runner.data_kinds import KINDS
from bench_runner.networks import WARM
from data_generator.imported.read_options import AS_FOUND, ReadOptions

WITH_DATA = tuple(name for kind in KINDS.values() for name in kind.own_datasets)
"""The data sets that are read from what --data names."""


@dataclass(frozen=True)
class Over:
    """What is varied while all else stays: a trait of bench_runner.suites.sweep, or a parameter of a data set."""

    trait: str
    points: tuple[str, ...] = ()
    """Its values, as they are spelled; none: those that the trait usually has."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """What the user asked for; the defaults are those of the command line."""

    formats: tuple[str, ...] = ()
    formats_not: tuple[str, ...] = ()
    datasets: tuple[str, ...] = ()
    operations: tuple[str, ...] = ()
    webface: Path | None = None
    """The user's own file, which adds the data set webface; `generated_webface` adds the one that we make."""
    generated_webface: bool = False
    data: Path | None = None
    data_title: str | None = None
    """What reports call data that were in memory, in place of their path."""
    options: ReadOptions = AS_FOUND
    """How the user's own table is read."""
    key: str | None = None
    """The field that is the key of the user's own documents; None: `id`, or their number."""
    rows: int | None = None
    cache: str = "warm"
    threads: str | None = None
    """None: the suite's."""
    target: str | None = None
    """None: the suite's."""
    tracks: tuple[str, ...] = ()
    codecs: tuple[str, ...] = ()
    levels: tuple[int, ...] = ()
    strings: str = "str"
    work_dirs: tuple[str, ...] = ("default",)
    networks: tuple[str, ...] = ()
    """By the names of bench_runner.networks; none: the suite's."""
    service: str = WARM
    """Whether services have answered before, or are started for each sample."""
    baseline: str | None = None
    """A spelled variant that takes part whatever `formats` and `formats_not` say: what the user has now."""
    quick: bool = False
    """One round for a first look, on as few rows as the suite has for that."""
    over: Over | None = None
