"""Codecs beside each other."""

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
            "avro, csv, json, pickle": "have one of the two alone, around the whole file; --codecs asks them too",
            "hdf5-fixed": "stores as hdf5-table does, which takes its place",
            "lance": "chooses encodings by itself, so that no file without any is there to set against",
        },
    ),
    quick=Quick(
        rows=QUICK_TABLE_ROWS,
        datasets=("eq", "core", "tpch-lineitem[scale=1]"),
        reason="20,000 rows; without webface, of which one copy takes as long as the rest",
    ),
    reasons={
        "hdf5-table, parquet, feather, orc": "the thesis found them to take both codecs; others that do join them",
        "f3": "packs by encodings first, so that a codec finds less: what is left for it?",
        "lz4, zstd": "its two codecs, at level 1 where a level is taken; --codecs and --levels open the rest",
        "eq": "uniform random values: what a codec does where there is little to find",
        "core, tpch-lineitem": "real distributions; decimals and dates",
        "webface": "the only table on which the thesis measured codecs",
    },
)
