"""What a user asks for, as values: the command line and programs make it, plans follow it, `run.json` keeps it."""

from __future__ import annotations

from pathlib import Path

import msgspec

from bench_runner.data_kinds import KINDS
from bench_runner.networks import WARM
from data_generator.imported.read_options import AS_FOUND, ReadOptions

WITH_DATA = tuple(name for kind in KINDS.values() for name in kind.own_datasets)
"""The data sets that are read from what --data names."""


class Over(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is varied while all else stays: a trait of bench_runner.suites.sweep, or a parameter of a data set."""

    trait: str = ""
    points: tuple[str, ...] = ()
    """Its values, as they are spelled; none: those that the trait usually has."""


def _of_suite() -> str | None:
    # A factory, so that it is always written: a stored run without a target is of a version that had pandas for it.
    return None


class Request(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
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
    tracks: tuple[str, ...] = ()
    codecs: tuple[str, ...] = ()
    levels: tuple[int, ...] = ()
    cache: str = "warm"
    threads: str | None = None
    """None: the suite's."""
    target: str | None = msgspec.field(default_factory=_of_suite)
    """None: the suite's."""
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

    @property
    def data_path(self) -> str | None:
        """What --data takes to measure the same data again: no option names data that were in memory."""
        if self.data_title is not None:
            return "FILE"
        return None if self.data is None else str(self.data)
