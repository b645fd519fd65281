"""Suites are data: a question, what is measured to answer it, and the reason for each choice.

A new suite is one entry here. `tracks` says which settings of every registered format take part, so a new format
joins by itself; formats are listed only where the question is about them. Nothing here runs anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

CODECS = "codecs"
"""The track on which codecs are set against each other: never mixed with plain, default or equal (rule 10)."""


CHOICE = "choice"
"""The track on which everything is set against everything: whoever chooses for their own data chooses the codec too."""


@dataclass(frozen=True, kw_only=True)
class Suite:
    """One question, and what answers it.

    `datasets` are measured always, with `rows` rows where it is given; `on_request` when the user names them (they take
    long). `tracks` says with which settings every format takes part; with `codecs`, the track is 'codecs', and
    `formats` take part with each of them and with none; with `variants`, those take part, spelled in full, and no
    other. `reasons` maps a choice to why it was made; `list suites` shows them. With `images` the formats are image
    storages, and only those listed take part unless others are asked for. All is measured under each condition of
    `threads`.
    """

    name: str
    question: str
    operations: tuple[str, ...]
    datasets: tuple[str, ...]
    on_request: tuple[str, ...]
    tracks: tuple[str, ...]
    reasons: Mapping[str, str]
    rows: int | None = None
    codecs: tuple[str, ...] = ()
    formats: tuple[str, ...] = ()
    variants: tuple[str, ...] = ()
    images: bool = False
    threads: tuple[str, ...] = ("default",)


SUITES: Mapping[str, Suite] = {
    suite.name: suite
    for suite in (
        Suite(
            name="tabular",
            question="Which format saves and reads a table fastest, smallest, and with the least memory?",
            operations=("save", "read"),
            datasets=("eq", "int", "float", "bool", "str", "core"),
            on_request=("webface", "tpch-lineitem", "bi", "classic", "geo", "log", "ml", "table"),
            tracks=("plain", "default"),
            reasons={
                "eq, int, float, bool, str": "the thesis's five presets (table 4.2): one kind of column dominates each",
                "core": "uniform random data flatters some formats and hurts others as real data does not",
                "webface": "10,000,000 rows take hours for the slow formats, so it is measured when asked for",
                "track plain": "no codec, as the thesis measured",
                "track default": "what a user gets who calls without options, where that differs from plain",
            },
        ),
        Suite(
            name="compression",
            question="What does a codec cost in time, and what does it save in size?",
            operations=("save", "read"),
            datasets=("eq", "core", "tpch-lineitem[scale=1]", "webface"),
            on_request=("int", "float", "bool", "str", "bi", "classic", "geo", "log", "ml", "table"),
            tracks=(CODECS,),
            rows=1_000_000,
            codecs=("lz4", "zstd"),
            formats=("hdf5-table", "parquet", "feather", "orc", "f3"),
            reasons={
                "hdf5-table, parquet, feather, orc": "the formats that the thesis found to take both codecs",
                "f3": "packs by encodings first, so that a codec finds less: what is left for it?",
                "lz4, zstd": "its two codecs, at level 1 where a level is taken; --codecs and --levels open the rest",
                "eq": "uniform random values: what a codec does where there is little to find",
                "core, tpch-lineitem": "real distributions; decimals and dates",
                "webface": "the only table on which the thesis measured codecs",
            },
        ),
        Suite(
            name="image",
            question="Which storage saves and reads images fastest and smallest?",
            operations=("save", "read"),
            datasets=("cifar-like",),
            on_request=("imagenet-like", "cifar10", "imagenet100", "images"),
            tracks=("plain",),
            formats=("png", "base64", "image-hdf5", "image-parquet", "sqlite", "lmdb"),
            images=True,
            reasons={
                "the six storages": "the thesis's; others by --formats",
                "cifar-like": "50,000 small images with the shape and the entropy of CIFAR-10, made anywhere",
                "imagenet-like": "larger images of differing shapes, some grey",
                "cifar10, imagenet100, images": "the thesis's data sets; your own by --data",
                "arrays=views": "slices of one block are another thing than arrays of their own: never ranked together",
            },
        ),
        Suite(
            name="engines",
            question="How much of my waiting is the format, and how much is the call?",
            operations=("save", "read"),
            datasets=("eq", "core"),
            on_request=("int", "float", "bool", "str", "bi", "classic", "geo", "log", "ml", "tpch-lineitem"),
            tracks=("plain",),
            threads=("default", "1"),
            variants=(
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
                "parquet[engine=fastparquet,codec=none]",
                "xml[engine=pandas]",
                "xml[engine=pandas,parser=etree]",
            ),
            reasons={
                "the calls": "what a Python user writes, for each format that has more than one call",
                "codec=none": "a codec would be measured instead of the call, and their defaults differ",
                "excel": "each library that saves, and each that reads, once: all six pairs would take hours",
                "orc": "polars neither writes nor reads it",
                "json[parser=pyarrow]": "pyarrow reads JSON Lines and writes none, so pandas saves",
                "threads default and 1": "a call that is faster by all cores may not be so on a busy machine",
                "eq": "uniform random values of four types",
                "core": "repeating, sorted and missing values, as real columns have them",
            },
        ),
        Suite(
            name="choice",
            question="Which format, and which codec, for this table? ('recommend' asks it, of your own data)",
            operations=("save", "read"),
            datasets=("core",),
            on_request=("eq", "int", "float", "bool", "str", "bi", "classic", "geo", "log", "ml", "tpch-lineitem"),
            tracks=(CHOICE,),
            variants=(
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
            reasons={
                "one track": "whoever chooses for their own data chooses the codec too: all stand against each other",
                "the variants": "each format plain and with zstd at level 1, or what stands for that there; calls of "
                "other libraries where they differ by more than a little",
            },
        ),
    )
}
