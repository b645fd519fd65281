"""Reading near the storage: what is saved where a filter leaves out groups of rows, and from when on that pays.

How it fits the words of the house, decided once:

- The data set is a table of which it is known which blocks of rows a filter meets (`snowset`).
- The format is Parquet, the engine `near-storage`; each way of reading is a variant of it, with `reader` and what else
  decides. pyarrow's data sets and DuckDB are readers too, because they are to read the same files.
- The operations ask for a share of the blocks: `query` gives their rows, `aggregate` one row, and `metadata` holds what
  readers know of many files. `scan` asks for a share of the rows, wherever they lie, and is not what pruning is about.
- What lies between is a condition, `network`, as the page cache is one: readers are ranked within a network. So is the
  state of a service: `warm`, which is measured where nobody asks for another; `fresh`; and, with `--cache cold`, warm
  with cold pages.
- Throughput is no figure of a sample: the bytes of the stored copy over the time of a query, computed by reports.
"""

from collections.abc import Collection
from dataclasses import dataclass

from bench_runner.suites.rules import ACCESS, Spelled
from bench_runner.suites.suite import Quick, Suite

_ENGINE = "parquet[engine=near-storage,codec=snappy,reader="
SHARES = ("1.0", "0.5", "0.25", "0.1", "0.01", "0.0")
"""Of the row groups, as in Weigand, TU Munich 2025, table 8.1."""


@dataclass(frozen=True, kw_only=True)
class Readers(Spelled):
    """Ways to read files near the storage."""

    def over_networks(self, settings: Collection[str]) -> bool:
        """Not with settings that show in one process what they are for."""
        return {"technique", "footers", "row_group_rows"}.isdisjoint(settings)


SUITE = Suite(
    name="near-storage",
    question="What does a query of Parquet files cost near the storage, by how many row groups it has to read?",
    operations=(
        "save",
        "read",
        *(f"query[groups={share}]" for share in SHARES),
        "query[groups=0.1,place=scattered]",
        "query[groups=0.01,place=scattered]",
        "query[groups=0.01,values=100]",
        "query[groups=0.01,values=100,columns=1]",
        "aggregate[groups=0.01,values=100]",
        "metadata[files=640]",
    ),
    operations_on_request=(
        *(f"query[groups={share},place=scattered]" for share in ("1.0", "0.5", "0.25", "0.0")),
        *(f"metadata[files={files}]" for files in (10, 40, 160)),
        "scan[selectivity=0.01,kind=range]",
    ),
    datasets=("snowset",),
    on_request=("snowset[block_rows=550]", "snowset[block_rows=100000]", "tpch-lineitem", "core", "table"),
    target="arrow",
    networks=("", "loopback", "1000mbit"),
    variants=Readers(
        tracks=(ACCESS,),
        spelled=(
            f"{_ENGINE}ranges]",
            f"{_ENGINE}ranges,technique=groups]",
            f"{_ENGINE}parquet]",
            f"{_ENGINE}parquet,footers=parsed]",
            f"{_ENGINE}parquet,technique=groups]",
            f"{_ENGINE}parquet,technique=none]",
            f"{_ENGINE}parquet,footers=parsed,row_group_rows=550]",
            f"{_ENGINE}ranges,row_group_rows=550]",
            f"{_ENGINE}fetch]",
            f"{_ENGINE}pyarrow]",
            f"{_ENGINE}duckdb]",
        ),
        left_out={
            "avro, csv, duckdb-table, excel, f3, feather, hdf5-fixed, hdf5-pytables, hdf5-table, json, lance, orc, "
            "pickle, sqlite-table, vortex, xml": "no service here prunes them where they lie; 'run access' filters "
            "them",
        },
    ),
    quick=Quick(
        rows=40_000,
        operations=(
            "save",
            "read",
            "query[groups=1.0]",
            "query[groups=0.25]",
            "query[groups=0.0]",
            "aggregate[groups=0.25,values=100]",
        ),
        networks=("", "loopback"),
        without=(
            f"{_ENGINE}ranges,technique=groups]",
            f"{_ENGINE}parquet,technique=groups]",
            f"{_ENGINE}parquet,footers=parsed,row_group_rows=550]",
            f"{_ENGINE}ranges,row_group_rows=550]",
        ),
        reason="4 blocks of 10,000 rows in one file; without scattered blocks, and 10 and 1 % of them, which are no "
        "whole one of so few; without row groups of 550 rows, technique=groups, the metadata of 640 files, and the "
        "network of 1,000 Mbit/s",
    ),
    reasons={
        "snowset": "the table of the thesis, by its columns; of each share of its blocks the answer is known",
        "100 to 0 % of the row groups": "the points of the thesis's table 8.1",
        "clustered and scattered": "neighbours are read in one go, and files without a match not at all",
        "loopback and 1,000 Mbit/s": "without the limit of a network, and with that of an ordinary one, by a proxy",
        "three readers over networks": "techniques, parsed footers and small groups show in one process what they cost",
        "fetch": "what is saved is measured against: all files fetched, everything done by the client",
        "techniques": "row groups left out, rows filtered, one column, aggregates: one after the other (section 8.1)",
        "100 values": "a range ends where blocks do, and leaves no row to filter; of a list few rows of a block are",
        "550 rows a group": "the thesis's smallest row groups, whose metadata cost more than they save",
        "snappy": "what pyarrow's bare call writes",
        "target arrow": "both ways give Arrow batches; a DataFrame would cost the same on top of each",
    },
)
