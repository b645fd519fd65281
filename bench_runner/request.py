"""The request of a user: what to measure. The command line and the API create a Request, plans use it, and `run.json`
stores it."""

from __future__ import annotations

from pathlib import Path

import msgspec

from bench_runner.data_kinds import KINDS
from bench_runner.networks import WARM
from data_generator.imported.read_options import AS_FOUND, ReadOptions

WITH_DATA = tuple(name for kind in KINDS.values() for name in kind.own_datasets)
"""The data sets that are read from the path of --data."""


class Over(msgspec.Struct, frozen=True, omit_defaults=True):
    """The property that is varied while everything else stays equal: a trait of bench_runner.suites.sweep, or a
    parameter of a data set."""

    trait: str = ""
    points: tuple[str, ...] = ()
    """The values of the property, as strings. If empty, the default values are used."""


def _of_suite() -> str | None:
    # A factory makes msgspec always write the field. Older versions omitted it when the target was pandas.
    return None


class Request(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A request. The defaults are those of the command line."""

    formats: tuple[str, ...] = ()
    formats_not: tuple[str, ...] = ()
    datasets: tuple[str, ...] = ()
    operations: tuple[str, ...] = ()
    webface: Path | None = None
    """The user's own file for the data set webface. If `generated_webface` is True and this is None, the data set is
    generated instead."""
    generated_webface: bool = False
    data: Path | None = None
    data_title: str | None = None
    """The name of data that were passed as an object in memory. Reports show it instead of a path."""
    options: ReadOptions = AS_FOUND
    """How the user's own table is read."""
    key: str | None = None
    """The key field of the user's own documents. With None, the key is the field `id`, or the line number if there is
    no such field."""
    rows: int | None = None
    tracks: tuple[str, ...] = ()
    codecs: tuple[str, ...] = ()
    levels: tuple[int, ...] = ()
    cache: str = "warm"
    threads: str | None = None
    """'default' or '1'. With None, the suite decides."""
    target: str | None = msgspec.field(default_factory=_of_suite)
    """The type of the data in memory, such as 'pandas'. With None, the suite decides."""
    strings: str = "str"
    work_dirs: tuple[str, ...] = ("default",)
    networks: tuple[str, ...] = ()
    """Names of networks as in bench_runner.networks. If empty, the suite decides."""
    service: str = WARM
    """WARM or FRESH: whether services have served requests before, or are started for each sample."""
    baseline: str | None = None
    """The full name of the variant in use now. This variant is always measured, whatever `formats` and `formats_not`
    are."""
    quick: bool = False
    """Whether to measure one round for a first look, with the number of rows that the suite has for quick rounds."""
    over: Over | None = None

    @property
    def data_path(self) -> str | None:
        """The value of the option --data that measures the same data again. It is 'FILE' for data that were passed in
        memory, and None if the request has no own data."""
        if self.data_title is not None:
            return "FILE"
        return None if self.data is None else str(self.data)
