"""What Weigand, TU Munich 2025, says of reading near the storage: findings as relations of our cells, and his slips.

His two ways of reading ran as one local program each, on 16 cores and 8 hard disks, over 40 copies of Snowset, 432 GB;
nothing was verified. Ours run locally and over a network, on a stand-in that has the same columns.
"""

from __future__ import annotations

from itertools import pairwise

from bench_runner.variants import operation_name_of
from reports.analysis.columns import Column, Role
from reports.sources.claims import Claim, Slip, Source, below, claimed, time_of
from reports.sources.findings import Pair, Subject

_ENGINE = "parquet[engine=near-storage,codec=snappy,reader="
V1, V1_KEPT = f"{_ENGINE}parquet,footers=parsed]", f"{_ENGINE}parquet]"
"""The Parquet Reader, as there with a footer that is parsed for each query, and with one that stays parsed."""
V2 = f"{_ENGINE}ranges]"
"""Direct Byte-Range Access."""
UNPRUNED, PRUNED = f"{_ENGINE}parquet,technique=none]", f"{_ENGINE}parquet,technique=groups]"
"""The first two techniques of section 8.1: everything is read, and row groups are left out."""
SMALL_GROUPS = f"{_ENGINE}parquet,footers=parsed,row_group_rows=550]"
DATASET = "snowset"
SHARES = (1.0, 0.5, 0.25, 0.1, 0.01, 0.0)
"""Of the row groups, as in table 8.1."""
VALUES = 100
"""Of which a query asks where rows are filtered: a range ends where row groups do."""
_RUN = "run near-storage"
_LIMITS = "python -m libraries.near_storage.benchmarks.transport"
"""Measures beside the runs, because nothing of it is a cell."""
_OTHERS_DISKS = "theirs read 8 hard disks at 2 GB/s, ours what lies in the page cache, unless the run is cold"
_CPU = Column(operation_name_of("query[groups=0.1]"), "cpu_ns", Role.TIME, "CPU time of querying 10 %")
_CPU_1, _CPU_1_COLUMN, _CPU_AGGREGATE = (
    Column(operation_name_of(operation), "cpu_ns", Role.TIME, f"CPU time of {title}")
    for operation, title in (
        (f"query[groups=0.01,values={VALUES}]", f"querying {VALUES} values of 1 %"),
        (f"query[groups=0.01,values={VALUES},columns=1]", f"querying one column of {VALUES} values of 1 %"),
        (f"aggregate[groups=0.01,values={VALUES}]", f"aggregating {VALUES} values of 1 %"),
    )
)
_PEAK = Column(
    operation_name_of("query[groups=0.1]"), "peak_private_bytes", Role.MEMORY, "peak memory of querying 10 %"
)
_METADATA = Column(
    operation_name_of("metadata[files=640]"), "peak_private_bytes", Role.MEMORY, "memory of 640 files' metadata"
)


def query(share: float) -> Column:
    """The time of a query that has to read this share of the row groups."""
    return time_of(f"query[groups={share}]", f"query {share * 100:g}% of the groups")


def _of_values(besides: str = "", title: str = "") -> Column:
    """The time of a query that few rows of a hundredth of the row groups meet."""
    spelled = f"query[groups=0.01,values={VALUES}{besides}]"
    return time_of(spelled, f"query 1% of the groups, {VALUES} values{title}")


def _faster(variant: str, less: float, more: float, factor: float) -> Pair:
    """A query of fewer groups takes so many times less."""
    return Pair(Subject(query(less), variant), Subject(query(more), variant), factor)


CLAIMS = (
    claimed(
        "selective-v1",
        "table 8.1",
        "the Parquet Reader answers from 1 % of the row groups 30 times as fast as from all",
        [_faster(V1, 0.01, 1.0, 30.0)],
        (DATASET,),
        command=_RUN,
        differs=_OTHERS_DISKS,
    ),
    claimed(
        "selective-v2",
        "table 8.1",
        "Direct Byte-Range Access answers from 1 % of the row groups 30 times as fast as from all",
        [_faster(V2, 0.01, 1.0, 30.0)],
        (DATASET,),
        command=_RUN,
        differs=_OTHERS_DISKS,
    ),
    claimed(
        "falls",
        "section 8.2",
        "the fewer row groups are read, from a quarter of them on, the faster both ways are",
        [_faster(way, less, more, 1.0) for way in (V1, V2) for more, less in pairwise(SHARES[2:])],
        (DATASET,),
        command=_RUN,
    ),
    claimed(
        "half-is-all",
        "table 8.1",
        "from a quarter of the row groups both ways are hardly faster than from all (at most 1.2 times)",
        [Pair(Subject(query(1.0), way), Subject(query(0.25), way), 1 / 1.2) for way in (V1, V2)],
        (DATASET,),
        command=_RUN,
        differs="nothing explains it: three quarters of the bytes are not read; it may be disks that read along",
    ),
    claimed(
        "v2-faster",
        "table 8.1",
        "Direct Byte-Range Access is the faster way at 100, 50, 25, 10 and 1 %",
        [pair for share in SHARES[:-1] for pair in below(query(share), V2, [V1])],
        (DATASET,),
        command=_RUN,
        differs="theirs gives bytes that nobody decodes, ours the same rows as the other way",
    ),
    claimed(
        "nothing-matches",
        "table 8.1",
        "where no row group matches, Direct Byte-Range Access is 10 times as fast, or more",
        below(query(0.0), V2, [V1], 10.0),
        (DATASET,),
        command=_RUN,
        differs="that is the parsing of footers alone: with footers that stay parsed the other way has none",
    ),
    claimed(
        "row-groups",
        "section 8.1",
        "leaving out 99 % of the row groups makes the Parquet Reader 30 times as fast",
        below(query(0.01), PRUNED, [UNPRUNED], 30.0),
        (DATASET,),
        command=_RUN,
    ),
    claimed(
        "row-filter",
        "section 8.1",
        "filtering rows besides costs next to no CPU time (10 % more at most)",
        below(_CPU_1, V1_KEPT, [PRUNED], 1 / 1.1),
        (DATASET,),
        command=_RUN,
        differs="theirs is the share of 16 cores while all is asked for, ours the time of one query",
    ),
    claimed(
        "aggregation",
        "section 8.1",
        "aggregating costs next to no CPU time (10 % more at most than reading the column)",
        [Pair(Subject(_CPU_AGGREGATE, V1_KEPT), Subject(_CPU_1_COLUMN, V1_KEPT), 1 / 1.1)],
        (DATASET,),
        command=_RUN,
        differs="theirs is the share of 16 cores while all columns are read, ours the time of one column, which need "
        "not be the one that is aggregated",
    ),
    claimed(
        "column-projection",
        "section 8.1",
        "one column of the 93 makes it 1.5 times as fast again",
        [
            Pair(
                Subject(_of_values(",columns=1", ", 1 column"), V1_KEPT),
                Subject(_of_values(), V1_KEPT),
                1.5,
            )
        ],
        (DATASET,),
        command=_RUN,
    ),
    claimed(
        "less-cpu",
        "section 8.3",
        "at 10 % Direct Byte-Range Access takes less CPU time",
        below(_CPU, V2, [V1]),
        (DATASET,),
        command=_RUN,
        differs="in one process ours decodes and filters too, which theirs leaves to a client that is not there",
    ),
    claimed(
        "less-memory",
        "section 8.3",
        "at 10 % Direct Byte-Range Access takes less memory",
        below(_PEAK, V2, [V1]),
        (DATASET,),
        command=_RUN,
        differs="both hold the answer, which theirs throws away",
    ),
    claimed(
        "metadata",
        "section 8.4",
        "compact metadata take a fifth of the raw footers' memory, and 2 % of that of parsed ones",
        [*below(_METADATA, V2, [V1], 5.0), *below(_METADATA, V2, [V1_KEPT], 50.0)],
        (DATASET,),
        command=_RUN,
        differs="pyarrow's parsed footers are smaller than those of parquet2, which the thesis uses",
    ),
    claimed(
        "small-groups",
        "section 8.5",
        "with row groups of 550 rows everything is read slower than with large ones",
        below(query(1.0), V1, [SMALL_GROUPS]),
        (DATASET,),
        command=_RUN,
    ),
    Claim(
        "network-full",
        "section 3.2.1",
        "TCP fills the network, and takes about a tenth of the CPU",
        untestable=f"nothing here has a network; {_LIMITS} tells what TCP takes on loopback, which is none",
    ),
    Claim(
        "disk-bound",
        "section 3.2.3",
        "receiving and writing at once is limited by the disks",
        untestable=f"no relation of two cells; {_LIMITS} sets both at once beside each by itself, on loopback",
    ),
    Claim(
        "http-cpu",
        "section 3.2.4",
        "HTTP takes more CPU than TCP, at the same throughput",
        untestable=f"no relation of two cells; {_LIMITS} tells what both take on loopback",
    ),
    Claim(
        "retrieval",
        "table 8.2",
        "both ways read all stored data more often than Snowset and Thesios ask for",
        untestable="no relation of two cells: it stands in the tables below, with what our curves give",
    ),
    Claim(
        "cheaper-than-s3",
        "section 3.1",
        "machines of one's own that hold the data cost less than S3",
        untestable="prices are no figure of a run: the table below has the thesis's, with other redundancy",
    ),
)
SLIPS = (
    Slip(
        "section 8.2, R_disk",
        "a year over the time to read a node is 50.46 a month",
        "the formula lacks / 12: it gives 605 a year, and 50.46 a month",
        "nothing: the result is right",
    ),
    Slip(
        "section 8.4, memory budget",
        "432.576 GB x 0.554 MB/GB is 0.240 MB",
        "it is 240 MB",
        "nothing: the percentages are of 240 MB",
    ),
    Slip(
        "section 3.1, erasure coding",
        "175,500,000 GB x 1.4, 2,197 machines, 77 % of S3",
        "172,500,000 GB x 1.4: 2,160 machines, 76 % of S3",
        "erasure coding is 47,160 USD a month cheaper than printed",
    ),
    Slip(
        "section 8.2, expected throughput",
        "the mean over queries of what each alone reaches: 54.7 and 88.0 GB/s for Snowset",
        "a node that answers them one after the other reaches the harmonic mean: 25.9 and 27.2 GB/s",
        "rates of retrieval are a half and a third of table 8.2 for Snowset, and still far over what is needed",
    ),
    Slip(
        "section 8.5, test setup",
        "16 files take 14,394.88 GB, of which 1,268.48 GB are metadata",
        "MB: the section has metadata of 16.5 GB exceed the size of the data",
        "nothing: the share of 8.81 % is right",
    ),
)
"""Found by computing again what is printed."""
SOURCE = Source("near-storage", "the thesis on near storage", "near_storage.csv", CLAIMS, SLIPS)
"""Its tables 8.1 to 8.3 stand behind the findings, in a module of their own."""
