"""The suite `parallel`, which measures saving and reading tables in partitions by several processes of
dask.distributed."""

from bench_runner.suites.rules import ACCESS, Spelled
from bench_runner.suites.suite import Quick, Suite

COUNTS = (1, 2, 4)
"""Numbers of partitions. The number of processes is the same. The thesis from which the operations come (Tarageľ, Brno
2024) uses these numbers."""
_SAVE = "save-parallel[partitions={}]"
_READ = "read-parallel[partitions={},result={}]"
_SCAN = "scan-parallel[partitions={},selectivity=0.01]"


class Parallel(Suite):
    """A suite with a smaller part for asv (a tool that keeps a history of benchmark results), because each sample
    starts processes."""

    asv_operations = (_SAVE.format(2), _READ.format(2, "gathered"))
    asv_formats = (r"^(csv|parquet)\[engine=(pandas|pyarrow)", "^lance")


SUITE = Parallel(
    name="parallel",
    question="Does it pay to save and read a table by several processes, and in which format?",
    operations=(
        "save",
        "read",
        *(_SAVE.format(count) for count in COUNTS),
        *(_READ.format(count, "gathered") for count in COUNTS),
        *(_READ.format(count, "left") for count in COUNTS),
        *(_SCAN.format(count) for count in COUNTS),
        "read-parallel[partitions=4,by=threads,result=gathered]",
    ),
    operations_on_request=(
        "save-parallel[partitions=4,pool=cold]",
        "read-parallel[partitions=4,pool=cold,result=gathered]",
        "read-parallel[partitions=8,result=gathered]",
        "save-parallel[partitions=8]",
    ),
    datasets=("eq", "core"),
    on_request=("int", "float", "bool", "str", "bi", "classic", "geo", "log", "ml", "tpch-lineitem", "traits", "table"),
    target="pandas",
    variants=Spelled(
        tracks=(ACCESS,),
        spelled=(
            "avro[engine=fastavro,codec=none]",
            "csv[engine=pandas]",
            "csv[engine=dask]",
            "f3[codec=none]",
            "feather[engine=pyarrow,codec=none]",
            "hdf5-table[engine=pandas]",
            "hdf5-table[engine=dask]",
            "json[engine=pandas]",
            "json[engine=dask]",
            "lance[engine=pylance]",
            "orc[engine=pyarrow,codec=none]",
            "orc[engine=dask,codec=none]",
            "parquet[engine=pyarrow,codec=none]",
            "parquet[engine=polars,codec=none]",
            "parquet[engine=duckdb,codec=none]",
            "parquet[engine=dask,codec=none]",
            "vortex[engine=vortex-data]",
        ),
        left_out={
            "duckdb-table, excel, hdf5-fixed, hdf5-pytables, pickle, sqlite-table, xml": "one copy has one writer"
        },
    ),
    quick=Quick(
        rows=50_000,
        datasets=("eq",),
        operations=(
            "save",
            "read",
            _SAVE.format(1),
            _SAVE.format(2),
            _READ.format(1, "gathered"),
            _READ.format(2, "gathered"),
        ),
        without=("parquet[engine=polars,codec=none]",),
        reason="50,000 rows of eq in one and in two partitions; without core, four partitions, results that stay in "
        "the processes, scans and threads, and without Parquet by polars",
    ),
    reasons={
        "1, 2 and 4 partitions": "the source's numbers (section 5.1); one partition shows what the processes cost",
        "save and read": "the same table in one file and by one process, whose library may use its own threads",
        "by=threads": "the library's own threads on four files, where its read takes a folder",
        "gathered and left": "one table in the caller's process, or partitions for further work where they are",
        "engine=dask": "dask.dataframe's own calls, for the five formats of the source that it can write",
        "target pandas": "what dask.dataframe holds",
    },
)
