"""The suite `wide`, which measures reading ten columns of a very wide table. The result shows the cost of the metadata
of all other columns."""

from bench_runner.suites.rules import ACCESS, Spelled
from bench_runner.suites.suite import Quick, Suite

SUITE = Suite(
    name="wide",
    question="What do ten columns of a table with thousands of columns cost: opening it, and reading them?",
    operations=("save", "read", "project[columns=10,handle=reopened]", "project[columns=10,handle=kept]"),
    operations_on_request=("project[columns=10]",),
    datasets=(
        "wide[columns=10,rows=8]",
        "wide[columns=100,rows=8]",
        "wide[columns=1000,rows=8]",
        "wide[columns=5000,rows=8]",
        "wide[columns=10000,rows=8]",
        "wide[columns=20000,rows=8]",
        "wide[columns=10,rows=65536]",
        "wide[columns=100,rows=65536]",
        "wide[columns=1000,rows=65536]",
    ),
    on_request=("table",),
    target="arrow",
    variants=Spelled(
        tracks=(ACCESS,),
        spelled=(
            "f3[codec=none]",
            "feather[engine=pyarrow,codec=none]",
            "lance[engine=pylance]",
            "orc[engine=pyarrow,codec=none]",
            "parquet[engine=pyarrow,codec=none]",
            "parquet[engine=polars,codec=none]",
            "parquet[engine=duckdb,codec=none]",
            "vortex[engine=vortex-data]",
        ),
        left_out={
            "avro, csv, excel, hdf5-fixed, hdf5-pytables, hdf5-table, json, pickle, sqlite-table, xml": "hold rows or "
            "one block, so reading a column reads everything, whose cost the other suites show"
        },
    ),
    quick=Quick(
        datasets=("wide[columns=10,rows=8]", "wide[columns=1000,rows=8]", "wide[columns=5000,rows=8]"),
        reason="three points of 8 rows; without 65,536 rows, where 1,000 columns are 524 MB",
    ),
    reasons={
        "10 to 20,000 columns of floats": "the experiment of F3's authors (SIGMOD 2025, section 7.2): features of "
        "which a training run reads some",
        "8 rows": "few values, so that the metadata are measured",
        "65,536 rows": "the cost of metadata next to that of values; from 5,000 columns on a copy is over 2 GB (2.6, "
        "5.2, 10.5 GB), so those points are left out: spell wide[columns=5000,rows=65536]",
        "reopened and kept": "opening inside each clock, as in a script, or before it: opening a kept handle shows "
        "the cost of metadata, its calls that of values, and its first call what opening has put off",
        "kept where the call has a handle": "the other calls open the file each time",
        "target arrow": "making a DataFrame of thousands of columns takes longer than reading it",
    },
)
