"""Where a value lies in its file: Lance's two structural encodings, Parquet's pages, Vortex and F3, by its size."""

from bench_runner.suites.rules import ACCESS, Spelled
from bench_runner.suites.suite import Quick, Suite

SUITE = Suite(
    name="encodings",
    question="What does a value cost that is read at random, and all of them, by its size and where it lies?",
    operations=(
        "save",
        "read",
        "take[rows=10,handle=kept]",
        "take[rows=10,handle=kept,streams=16]",
    ),
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
            "sqlite-table, xml": "the question is of formats that lay values out for random access, and of Parquet; "
            "the suite access has the others",
        },
    ),
    quick=Quick(
        rows=10_000,
        datasets=("values[bytes=64]", "values[bytes=4096]"),
        reason="10,000 values of a size for each of the two encodings; without the sizes between and the largest",
    ),
    reasons={
        "the question": "Lance's authors ask whether two structural encodings are needed (LanceDB, 2025), and "
        "answer by random access and full scans against a device's limits",
        "4 bytes to 64 KB": "mini-blocks are for small values, full-zip for large ones: the size at which that "
        "changes lies between; random ones, so that codecs decide nothing, and at most 256 MB a copy",
        "kind=fixed": "values of one length need no index of where each lies: a number, and a vector of 1,024",
        "versions 2.0, 2.1, 2.2": "2.0 lays values out as Arrow does; 2.1 has the two encodings, 2.2 is the default",
        "Parquet as they tuned it for single rows": "no page statistics, few row groups, no dictionary, small pages, "
        "the page index, and the footer kept with the handle: six of their eight points",
        "the other two": "rows cannot be selected by the page index: pyarrow, polars, DuckDB and fastparquet have no "
        "call for it, so pyarrow reads row groups whole, hence small ones as well; reads by one thread are the "
        "condition --threads 1",
        "streams=16": "one request at a time leaves a device at a part of its limit, where all layouts look alike",
        "library_cache=off": "Lance keeps indices and Vortex whole segments: later calls would measure that",
        "one row, and opening each time": "on request: with them five rounds take over an hour, and the suite access "
        "has both",
        "warm, or --cache cold": "cold calls are shares of what the device gives, warm ones of what memory does",
    },
)
