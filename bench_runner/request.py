"""A user's request, as values. The command line and the API create it, plans use it, and `run.json` stores it."""

from __future__ import annotations

from pathlib import Path

import msgspec

from bench_runner.data_kinds import KINDS
from bench_runner.networks import WARM
from data_generator.imported.read_options import AS_FOUND, ReadOptions

WITH_DATA = tuple(name for kind in KINDS.values() for name in kind.own_datasets)
"""The data sets that are read from the path of --data."""


class Over(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is varied while everything else stays equal: a trait of bench_runner.suites.sweep, or a data set's
    parameter."""

    trait: str = ""
    points: tuple[str, ...] = ()
    """The spelled values; empty for the trait's default values."""


def _of_suite() -> str | None:
    # A factory makes msgspec always write the field. Stored runs without a target are of a version that used pandas.
    return None


class Request(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A request. The defaults are those of the command line."""

    formats: tuple[str, ...] = ()
    formats_not: tuple[str, ...] = ()
    datasets: tuple[str, ...] = ()
    operations: tuple[str, ...] = ()
    webface: Path | None = None
    """The user's own file for the data set webface. `generated_webface` adds the same data set with generated data."""
    generated_webface: bool = False
    data: Path | None = None
    data_title: str | None = None
    """The name that reports use, instead of a path, for data that were in memory."""
    options: ReadOptions = AS_FOUND
    """How the user's own table is read."""
    key: str | None = None
    """The key field of the user's own documents. With None it is `id` or, without that field, the line's number."""
    rows: int | None = None
    tracks: tuple[str, ...] = ()
    codecs: tuple[str, ...] = ()
    levels: tuple[int, ...] = ()
    cache: str = "warm"
    threads: str | None = None
    """The thread condition; None for that of the suite."""
    target: str | None = msgspec.field(default_factory=_of_suite)
    """The target; None for that of the suite."""
    strings: str = "str"
    work_dirs: tuple[str, ...] = ("default",)
    networks: tuple[str, ...] = ()
    """Names of bench_runner.networks; empty for those of the suite."""
    service: str = WARM
    """Whether services have answered before, or are started for each sample."""
    baseline: str | None = None
    """A spelled variant that always takes part, whatever `formats` and `formats_not` are. It is what the user uses
    now."""
    quick: bool = False
    """Whether to measure one round for a first look, with the number of rows that the suite has for quick rounds."""
    over: Over | None = None

    @property
    def data_path(self) -> str | None:
        """The value of --data that measures the same data again. None for data that were in memory, which no option
        names."""
        if self.data_title is not None:
            return "FILE"
        return None if self.data is None else str(self.data)
