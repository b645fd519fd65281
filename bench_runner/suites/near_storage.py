"""The suite `near-storage`, which measures the benefit of filtering Parquet files near the storage, where a reader can
skip row groups.

- The data set is the table `snowset`. For each condition, it is known which blocks of its rows contain matching rows.
- The format is Parquet, and the engine is `near-storage`. Each way of reading is a variant with the setting `reader`
  and other settings. pyarrow's data sets and DuckDB are readers too, because they read the same files.
- The rows that meet the conditions of `query` and `aggregate` are in a share of the blocks. `query` returns the rows
  that meet the condition, and `aggregate` returns one row. `metadata` loads the metadata of many files into memory.
  `scan` selects a share of the rows anywhere in the table, so that no row group can be skipped.
- Readers are ranked separately for each network between the client and the files. Services are warm by default or newly
  started (`fresh`). With `--cache cold`, services are warm, but the files are not in the page cache.
- Reports compute throughput from the size of the stored copy and the time of the query.
"""

from collections.abc import Collection
from dataclasses import dataclass

from bench_runner.suites.rules import ACCESS, Spelled
from bench_runner.suites.suite import Quick, Suite

_ENGINE = "parquet[engine=near-storage,codec=snappy,reader="
SHARES = ("1.0", "0.5", "0.25", "0.1", "0.01", "0.0")
"""Shares of the row groups that must be read, as in Weigand, TU Munich 2025, table 8.1."""


@dataclass(frozen=True, kw_only=True)
class Readers(Spelled):
    """Chooses the ways of reading files near the storage."""

    def over_networks(self, settings: Collection[str]) -> bool:
        """Return False for settings whose effect is already visible without a network."""
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
            "pickle, sqlite-table, vortex, xml": "no service here prunes them at the storage; see 'run access' for "
            "filters"
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
        reason="4 blocks of 10,000 rows in one file; without scattered blocks, and without 10 and 1 % of the blocks, "
        "which are less than one; without row groups of 550 rows, technique=groups, the metadata of 640 files, and "
        "the network of 1,000 Mbit/s",
    ),
    reasons={
        "snowset": "the thesis's table, by its columns; the answer is known for each share of its blocks",
        "100 to 0 % of the row groups": "the points of the thesis's table 8.1",
        "clustered and scattered": "neighbours are read in one request, and files without a match not at all",
        "loopback and 1,000 Mbit/s": "without a network's limit, and with that of an ordinary one, by a proxy",
        "three readers over networks": "the cost of techniques, parsed footers and small groups shows in one process",
        "fetch": "the reference for savings: all files are fetched, and the client does everything",
        "techniques": "skipping row groups, filtering rows, one column, aggregates: one after the other (section 8.1)",
        "100 values": "a range ends where blocks do, so that no row is left to filter; of a list few rows match",
        "550 rows a group": "the thesis's smallest row groups, whose metadata cost more than they save",
        "snappy": "what pyarrow's plain call writes",
        "target arrow": "both ways return Arrow batches; a DataFrame would add the same cost to each",
    },
)
