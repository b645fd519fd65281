"""The suite `encodings`, which measures how the size of values, and the layout of values in the file, affect reading.
It compares Lance's two structural encodings, Parquet's pages, Vortex and F3."""

from bench_runner.suites.rules import ACCESS, Spelled
from bench_runner.suites.suite import Quick, Suite

SUITE = Suite(
    name="encodings",
    question="What does reading a value at random cost, or reading all, by its size and its place in the file?",
    operations=("save", "read", "take[rows=10,handle=kept]", "take[rows=10,handle=kept,streams=16]"),
    operations_on_request=(
        "take[rows=1,handle=kept]",
        "take[rows=10,handle=reopened]",
        "take[rows=100,handle=kept]",
        "take[rows=1,handle=kept,streams=16]",
        "take[rows=10,pattern=clustered,handle=kept]",
        "take[rows=10,pattern=zipf,handle=kept]",
    ),
    datasets=(
        "values[bytes=4]",
        "values[bytes=64]",
        "values[bytes=1024]",
        "values[bytes=4096]",
        "values[bytes=16384]",
        "values[bytes=65536]",
        "values[bytes=4,kind=fixed]",
        "values[bytes=4096,kind=fixed]",
    ),
    on_request=("vectors", "texts", "blobs", "events", "table"),
    target="arrow",
    roofline=True,
    variants=Spelled(
        tracks=(ACCESS,),
        spelled=(
            "f3[codec=none]",
            "f3[codec=none,rows_per_unit=4096]",
            "lance[engine=pylance]",
            "lance[engine=pylance,library_cache=off]",
            "lance[engine=pylance,version=2.0]",
            "lance[engine=pylance,version=2.1]",
            "lance[engine=pylance,structural=miniblock]",
            "lance[engine=pylance,structural=fullzip]",
            "parquet[engine=pyarrow,codec=none]",
            "parquet[engine=pyarrow,codec=none,page_rows=512,page_index=true,dictionary=false,statistics=false]",
            "parquet[engine=pyarrow,codec=none,row_group_rows=1024,dictionary=false,statistics=false]",
            "vortex[engine=vortex-data]",
            "vortex[engine=vortex-data,library_cache=off]",
        ),
        left_out={
            "avro, csv, duckdb-table, excel, feather, hdf5-fixed, hdf5-pytables, hdf5-table, json, orc, pickle, "
            "sqlite-table, xml": "the question is about formats with a layout for random access, and Parquet; "
            "the suite access has the others"
        },
    ),
    quick=Quick(
        rows=10_000,
        datasets=("values[bytes=64]", "values[bytes=4096]"),
        reason="10,000 values, of one size for each of the two encodings; without sizes in between and the largest",
    ),
    reasons={
        "the question": "Lance's authors ask whether two structural encodings are needed (LanceDB, 2025), and "
        "answer with random access and full scans against a device's limits",
        "4 bytes to 64 KB": "mini-blocks are for small values, full-zip for large ones: the size at which that "
        "changes is in between; values are random, so that codecs decide nothing, and a copy has at most 256 MB",
        "kind=fixed": "values of a fixed length need no index of their places: a number, and a vector of 1,024",
        "versions 2.0, 2.1, 2.2": "2.0 has Arrow's layout; 2.1 has the two encodings, 2.2 is the default",
        "Parquet as they tuned it for single rows": "no page statistics, few row groups, no dictionary, small pages, "
        "the page index, and the footer kept with the handle: six of their eight points",
        "the other two": "selecting rows by the page index: pyarrow, polars, DuckDB and fastparquet have no call for "
        "it, so pyarrow reads whole row groups, and small ones are measured too; reading with one thread: the "
        "condition --threads 1",
        "streams=16": "one request at a time uses only a part of a device's limit, where all layouts look alike",
        "library_cache=off": "Lance caches indices and Vortex whole segments: later calls would measure the cache",
        "one row, and opening each time": "on request: with them five rounds take over an hour, and the suite access "
        "has both",
        "warm, or --cache cold": "cold calls are shares of the device's limit, warm ones of the memory's",
    },
)
