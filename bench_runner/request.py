"""A user's request, as values: made by the command line and the API, used by plans, stored in `run.json`."""

from __future__ import annotations

from pathlib import Path

import msgspec

from bench_runner.data_kinds import KINDS
from bench_runner.networks import WARM
from data_generator.imported.read_options import AS_FOUND, ReadOptions

WITH_DATA = tuple(name for kind in KINDS.values() for name in kind.own_datasets)
"""The data sets that are read from the path of --data."""


class Over(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is varied while everything else stays: a trait of bench_runner.suites.sweep, or a data set's parameter."""

    trait: str = ""
    points: tuple[str, ...] = ()
    """Its spelled values; empty for the trait's default values."""


def _of_suite() -> str | None:
    # A factory, so that it is always written: stored runs without a target are of a version that used pandas.
    return None


class Request(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A request. The defaults are those of the command line."""

    formats: tuple[str, ...] = ()
    formats_not: tuple[str, ...] = ()
    datasets: tuple[str, ...] = ()
    operations: tuple[str, ...] = ()
    webface: Path | None = None
    """The user's own file, which adds the data set webface; `generated_webface` adds the one that we make."""
    generated_webface: bool = False
    data: Path | None = None
    data_title: str | None = None
    """What reports call data that were in memory, instead of their path."""
    options: ReadOptions = AS_FOUND
    """How the user's own table is read."""
    key: str | None = None
    """The key field of the user's own documents; None for `id`, or their number."""
    rows: int | None = None
    tracks: tuple[str, ...] = ()
    codecs: tuple[str, ...] = ()
    levels: tuple[int, ...] = ()
    cache: str = "warm"
    threads: str | None = None
    """None for the suite's."""
    target: str | None = msgspec.field(default_factory=_of_suite)
    """None for the suite's."""
    strings: str = "str"
    work_dirs: tuple[str, ...] = ("default",)
    networks: tuple[str, ...] = ()
    """Names of bench_runner.networks; empty for the suite's."""
    service: str = WARM
    """Whether services have answered before, or are started for each sample."""
    baseline: str | None = None
    """A spelled variant that always takes part, whatever `formats` and `formats_not` are: what the user has now."""
    quick: bool = False
    """One round for a first look, on the suite's number of rows for that."""
    over: Over | None = None

    @property
    def data_path(self) -> str | None:
        """The value of --data that measures the same data again: no option names data that were in memory."""
        if self.data_title is not None:
            return "FILE"
        return None if self.data is None else str(self.data)
