"""The suite `writing`, which compares the time and memory of saving and reading tables, by the size of the unit (such
as a row group) that a format writes at a time."""

from bench_runner.suites.rules import ACCESS, Spelled
from bench_runner.suites.suite import Quick, Suite

SUITE = Suite(
    name="writing",
    question="What does it cost to save and read a table that is larger than memory, by the size of its units?",
    operations=("save", "read", "stream-save[rows=8192]", "stream-read[rows=8192]"),
    operations_on_request=(
        "stream-save[rows=1024]",
        "stream-save[rows=65536]",
        "stream-read[rows=1024]",
        "stream-read[rows=65536]",
    ),
    datasets=("events", "vectors"),
    on_request=(*("texts", "blobs", "core", "eq"), *("bi", "classic", "geo", "log", "ml", "tpch-lineitem", "table")),
    target="arrow",
    variants=Spelled(
        tracks=(ACCESS,),
        spelled=(
            "parquet[engine=pyarrow,codec=none]",
            *(f"parquet[engine=pyarrow,codec=none,row_group_rows={rows}]" for rows in (131_072, 16_384, 2_048)),
            "parquet[engine=polars,codec=none]",
            "parquet[engine=duckdb,codec=none]",
            "f3[codec=none]",
            *(f"f3[codec=none,row_group_rows={rows}]" for rows in (131_072, 16_384, 2_048)),
            "f3[codec=none,rows_per_unit=16384]",
            "f3[codec=none,unit_bytes=1048576]",
            "lance[engine=pylance]",
            "vortex[engine=vortex-data]",
            "orc[engine=pyarrow,codec=none]",
            *(f"orc[engine=pyarrow,codec=none,stripe_bytes={size}]" for size in (8 << 20, 1 << 20, 128 << 10)),
            "feather[engine=pyarrow,codec=none]",
            *(f"feather[engine=pyarrow,codec=none,batch_rows={rows}]" for rows in (32_768, 8_192, 1_024)),
            "feather[engine=pandas,codec=none]",
            "avro[engine=fastavro,codec=none]",
            "csv[engine=pyarrow]",
            "json[engine=polars]",
        ),
        left_out={
            "excel, xml, hdf5-fixed, hdf5-table, pickle": "have no unit, or hold the whole table while writing it"
        },
    ),
    quick=Quick(
        rows=50_000,
        datasets=("events",),
        without=("parquet[engine=pyarrow,codec=none,row_group_rows=131072]", "f3[codec=none,row_group_rows=131072]"),
        reason="50,000 rows of events; without vectors, which have 4 KB a row, and without row groups of 131,072 rows, "
        "which would be one",
    ),
    reasons={
        "save and read": "the same table at once: the cost of holding it in memory, and the layout of a stream",
        "8,192 rows a batch": "less than any unit but the smallest, so that the writer decides what is held",
        "row groups, units, stripes, batches": "varied as in section 7.5 of the F3 paper, if the writer has them",
        "three values of each": "a line of time, size and peak memory over the size of a unit",
        "events, vectors": "core's columns, and values of 4 KB, where a row group of a million rows is 4 GB",
        "target arrow": "batches of a stream are Arrow batches",
        "feather by pandas": "the fallback without such a call: all batches are gathered first",
    },
)
