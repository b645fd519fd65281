"""The suite `choice`, which compares every format and codec for one table."""

from bench_runner.suites.rules import CHOICE, Spelled
from bench_runner.suites.suite import QUICK_TABLE_ROWS, Quick, Suite

SUITE = Suite(
    name="choice",
    question="Which format, and which codec, for this table? ('recommend' answers it for your own data)",
    operations=("save", "read"),
    operations_on_request=("project[columns=4]",),
    datasets=("core",),
    on_request=("eq", "int", "float", "bool", "str", "bi", "classic", "geo", "log", "ml", "tpch-lineitem"),
    variants=Spelled(
        tracks=(CHOICE,),
        spelled=(
            "avro[engine=fastavro,codec=none]",
            "avro[engine=fastavro,codec=zstandard,level=1]",
            "avro[engine=polars,codec=none]",
            "csv[engine=pandas]",
            "csv[engine=pandas,codec=zstd,level=1]",
            "csv[engine=polars]",
            "excel[save=xlsxwriter,read=calamine]",
            "f3[codec=none]",
            "f3[codec=zstd]",
            "feather[engine=pyarrow,codec=lz4]",
            "feather[engine=pyarrow,codec=none]",
            "feather[engine=pyarrow,codec=zstd,level=1]",
            "feather[engine=polars,codec=none]",
            "hdf5-fixed[engine=pandas]",
            "hdf5-table[engine=pandas]",
            "hdf5-table[engine=pandas,codec=blosc:zstd,level=1]",
            "json[engine=pandas,double_precision=15]",
            "json[engine=pandas,double_precision=15,codec=zstd,level=1]",
            "json[engine=polars]",
            "lance[engine=pylance]",
            "orc[engine=pyarrow,codec=none]",
            "orc[engine=pyarrow,codec=zstd]",
            "parquet[engine=pyarrow,codec=none]",
            "parquet[engine=pyarrow,codec=snappy]",
            "parquet[engine=pyarrow,codec=zstd,level=1]",
            "parquet[engine=duckdb,codec=zstd]",
            "parquet[engine=fastparquet,codec=zstd]",
            "parquet[engine=polars,codec=none]",
            "parquet[engine=polars,codec=zstd,level=1]",
            "pickle[engine=pandas]",
            "pickle[engine=pandas,codec=zstd,level=1]",
            "vortex[engine=vortex-data]",
            "vortex[engine=vortex-data,codec=compact]",
            "xml[engine=pandas]",
        ),
    ),
    quick=Quick(rows=QUICK_TABLE_ROWS, reason="20,000 rows"),
    reasons={
        "one track": "a choice for one's own data includes the codec, so all variants compete",
        "the variants": "each format plain and with zstd at level 1, or the nearest equivalent; calls of other "
        "libraries if they differ by more than a little",
    },
)
