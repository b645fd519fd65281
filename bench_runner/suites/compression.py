"""The suite `compression`, which compares codecs in time and size."""

from bench_runner.suites.rules import WithCodecs
from bench_runner.suites.suite import QUICK_TABLE_ROWS, Quick, Suite

SUITE = Suite(
    name="compression",
    question="What does a codec cost in time, and what does it save in size?",
    operations=("save", "read"),
    datasets=("eq", "core", "tpch-lineitem[scale=1]", "webface"),
    on_request=("int", "float", "bool", "str", "bi", "classic", "geo", "log", "ml", "table"),
    rows=1_000_000,
    variants=WithCodecs(
        codecs=("lz4", "zstd"),
        left_out={
            "avro, csv, json, pickle": "support only one of the two, for the whole file; add them with --codecs",
            "hdf5-fixed": "stores in the same way as hdf5-table, which is measured instead",
            "lance": "always chooses encodings itself, so a file without any cannot be compared",
        },
    ),
    quick=Quick(
        rows=QUICK_TABLE_ROWS,
        datasets=("eq", "core", "tpch-lineitem[scale=1]"),
        reason="20,000 rows; without webface, where one copy takes as long as the rest",
    ),
    reasons={
        "hdf5-table, parquet, feather, orc": "support both codecs according to the thesis; others that do are added",
        "f3": "uses encodings first, which leave less for a codec: how much?",
        "lz4, zstd": "the thesis's codecs, at level 1 if they have levels; others by --codecs and --levels",
        "eq": "uniform random values: the effect of a codec on data that hardly compress",
        "core, tpch-lineitem": "real distributions; decimals and dates",
        "webface": "the only table with which the thesis measured codecs",
    },
)
