"""The suite `engines`, which compares the library calls with which the same format can be written and read."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from adapters.contract import Adapter
from adapters.registry import Registry
from adapters.spelling import parse
from bench_runner.suites.rules import Spelled
from bench_runner.suites.suite import QUICK_TABLE_ROWS, Quick, Suite
from bench_runner.variants import is_raw_io

FEWEST_ENGINES = 2
"""A format is compared only if it has at least this many engines."""


@dataclass(frozen=True, kw_only=True)
class EveryCall(Spelled):
    """Chooses all engines of each format that has several engines, in addition to the variants in `spelled`."""

    def names_left_out(self, registry: Registry[Any]) -> dict[str, str]:
        """Return the names of the formats that do not take part, with the reasons. This includes formats that have too
        few engines."""
        spelled = {parse(text)[0] for text in self.spelled}
        others = (name for name in registry if name not in spelled and not is_raw_io(name))
        few = (name for name in others if len(registry.engines(name)) < FEWEST_ENGINES)
        return {**dict.fromkeys(few, f"have fewer than {FEWEST_ENGINES} calls"), **super().names_left_out(registry)}

    def joining(self, engines: Sequence[type[Adapter]]) -> Sequence[type[Adapter]]:
        """Return the engines that take part for a format that is not in `spelled`. Here these are all of its
        engines."""
        return engines


SUITE = Suite(
    name="engines",
    question="How much of the waiting time is due to the format, and how much to the library call?",
    operations=("save", "read"),
    operations_on_request=("project[columns=4]",),
    datasets=("eq", "core"),
    on_request=("int", "float", "bool", "str", "bi", "classic", "geo", "log", "ml", "tpch-lineitem"),
    threads=("default", "1"),
    variants=EveryCall(
        tracks=("plain",),
        spelled=(
            "avro[engine=fastavro,codec=none]",
            "avro[engine=polars,codec=none]",
            "csv[engine=pandas]",
            "csv[engine=pandas,parser=pyarrow]",
            "csv[engine=pyarrow]",
            "csv[engine=polars]",
            "csv[engine=duckdb]",
            "excel[save=openpyxl,read=openpyxl]",
            "excel[save=xlsxwriter,read=calamine]",
            "excel[save=xlsxwriter,read=polars]",
            "feather[engine=pyarrow,codec=none]",
            "feather[engine=pandas,codec=none]",
            "feather[engine=polars,codec=none]",
            "json[engine=pandas]",
            "json[engine=pandas,parser=pyarrow]",
            "json[engine=polars]",
            "json[engine=duckdb]",
            "orc[engine=pyarrow,codec=none]",
            "orc[engine=pandas,codec=none]",
            "parquet[engine=pyarrow,codec=none]",
            "parquet[engine=pandas,codec=none]",
            "parquet[engine=polars,codec=none]",
            "parquet[engine=duckdb,codec=none]",
            "parquet[engine=datafusion,codec=none]",
            "parquet[engine=fastparquet,codec=none]",
            "xml[engine=pandas]",
            "xml[engine=pandas,parser=etree]",
        ),
        left_out={"hdf5-table": "has one call for a whole table; dask's is for partitions, see the suite parallel"},
    ),
    quick=Quick(
        rows=QUICK_TABLE_ROWS,
        threads=("default",),
        reason="20,000 rows; without the condition of one thread, which shows on larger tables what cores are for",
    ),
    reasons={
        "the calls": "what Python users write, for each format that has more than one call",
        "codec=none": "otherwise a codec would be measured instead of the call, and defaults differ",
        "excel": "each library that saves, and each that reads, once: all six pairs would take hours",
        "orc": "polars neither writes nor reads it",
        "no dask": "it stores partitions: see the suite parallel",
        "no near-storage": "it stores many files and serves them: see the suite near-storage",
        "json[parser=pyarrow]": "pyarrow reads JSON Lines but does not write them, so pandas saves",
        "threads default and 1": "a call that is faster because it uses all cores may not be on a busy machine",
        "eq": "uniform random values of four types",
        "core": "repeated, sorted and missing values, as in real columns",
    },
)
