"""What the authors of F3 publish: X. Zeng et al., F3: The Open-Source Data File Format for the Future, SIGMOD 2025.

Their F3 is in Rust and their files were read cold; ours is this project's own code for the same format.
"""

from __future__ import annotations

from bench_runner.variants import operation_name_of
from reports.analysis.columns import READ_TIME, SIZE, Column, Role
from reports.sources.claims import Claim, Source, below, claimed, time_of
from reports.sources.findings import ACROSS, Pair, Subject

F3, F3_WASM = "f3[codec=none]", "f3[codec=none,decoder=wasm]"
LANCE, VORTEX = "lance[engine=pylance]", "vortex[engine=vortex-data]"
VORTEX_READING = "vortex[engine=vortex-data,library_cache=off]"
"""Which reads what it is asked for: a handle that is kept finds whole segments in its library's memory otherwise."""
PARQUET, ORC = "parquet[engine=pyarrow,codec=none]", "orc[engine=pyarrow,codec=none]"
PARQUET_USUAL = "parquet[engine=pyarrow,codec=snappy]"
"""What pyarrow's bare call writes: the paper has every format in its default configuration."""
SMALL_GROUPS = "parquet[engine=pyarrow,codec=none,row_group_rows=16384]"
"""The smallest of the suite that hold a batch of the stream, which has 8,192 rows."""
_OURS = "our F3 is Python and C, theirs Rust"
_KEEPS = "our Vortex keeps nothing in its library's memory"
_COLD = "theirs were read cold, ours from the page cache unless the run is cold"
_WIDE = time_of("project[columns=10,handle=reopened]", "project 10 columns")
_ONE = time_of("take[rows=1,handle=kept]", "take 1 row")
_WRITING = Column(
    operation_name_of("stream-save[rows=8192]"), "peak_private_bytes", Role.MEMORY, "stream-save peak memory"
)
_THOUSANDS = ("wide[columns=5000,rows=8]", "wide[columns=10000,rows=8]", "wide[columns=20000,rows=8]")
_WORKLOADS = ("core", "bi", "classic", "geo", "log", "ml", "tpch-lineitem")
_RANDOM = ("events", *_WORKLOADS)
_TABULAR = "run tabular --datasets '^(core|bi|classic|geo|log|ml|tpch-lineitem)$'"
_ACCESS = (
    "run access --operations 'take[rows=1,handle=kept]' "
    "--datasets '^(events|core|bi|classic|geo|log|ml|tpch-lineitem)$'"
)
_STREAMED = "run writing --datasets '^(core|events|vectors)$'"


def _grows(name: str) -> Pair:
    few, many = Subject(_WIDE, name, "wide[columns=100,rows=8]"), Subject(_WIDE, name, _THOUSANDS[1])
    return Pair(few, many, 2.0)


CLAIMS = (
    claimed(
        "metadata-wide",
        "section 7.2, figure 9",
        "10 of thousands of columns take F3 a tenth of Parquet's time, or less",
        below(_WIDE, F3, [PARQUET], 10.0),
        _THOUSANDS,
        command="run wide",
        differs=f"theirs is the time of the metadata alone, ours reads 8 rows besides; {_OURS}; {_COLD}",
    ),
    claimed(
        "metadata-least",
        "section 7.2, figure 9",
        "F3 reads 10 of thousands of columns faster than Lance and Vortex",
        below(_WIDE, F3, [LANCE, VORTEX]),
        _THOUSANDS,
        command="run wide",
        differs=f"Nimble has no Python package; {_OURS}; {_COLD}",
    ),
    claimed(
        "metadata-grows",
        "section 7.2, figure 9",
        "10 columns take longer the more others there are, in every format (2 times from 100 to 10,000)",
        [_grows(name) for name in (F3, PARQUET, ORC, LANCE, VORTEX)],
        ACROSS,
        command="run wide",
        differs=_COLD,
    ),
    claimed(
        "reads-faster",
        "section 7.3, figure 10",
        "F3 reads all faster than Parquet and ORC",
        below(READ_TIME, F3, [PARQUET, ORC]),
        _WORKLOADS,
        command=_TABULAR,
        differs=f"Parquet and ORC are without codecs here; {_OURS}; {_COLD}",
    ),
    claimed(
        "larger-than-parquet",
        "section 7.3, figure 10",
        "F3's files, which no codec packs, are larger than Parquet's as it is called without options",
        below(SIZE, PARQUET_USUAL, [F3]),
        _WORKLOADS,
        command=_TABULAR,
        differs="Parquet's codec here is pyarrow's usual one, snappy; they do not name theirs, but say that it is why",
    ),
    claimed(
        "lance-first",
        "section 7.4, figure 10c",
        "Lance takes a row faster than F3, Vortex, Parquet and ORC",
        below(_ONE, LANCE, [F3, VORTEX_READING, PARQUET, ORC]),
        _RANDOM,
        command=_ACCESS,
        differs=f"{_KEEPS}; {_OURS}; {_COLD}",
    ),
    claimed(
        "f3-second",
        "section 7.4, figure 10c",
        "F3 takes a row faster than Vortex, Parquet and ORC",
        below(_ONE, F3, [VORTEX_READING, PARQUET, ORC]),
        _RANDOM,
        command=_ACCESS,
        differs=f"they note that Vortex has since changed what slowed it; {_KEEPS}; {_OURS}; {_COLD}",
    ),
    claimed(
        "parquet-last",
        "section 7.4, figure 10c",
        "Parquet takes a row slower than Lance, F3, Vortex and ORC",
        [pair for other in (LANCE, F3, VORTEX_READING, ORC) for pair in below(_ONE, other, [PARQUET])],
        _RANDOM,
        command=_ACCESS,
        differs=f"{_KEEPS}; {_COLD}",
    ),
    claimed(
        "writing-grows",
        "section 7.5, figure 11",
        "Parquet needs the more memory to write the larger its row groups are (2 times from 16,384 to the default)",
        below(_WRITING, SMALL_GROUPS, [PARQUET], 2.0),
        ("core", "vectors", "events"),
        command=_STREAMED,
    ),
    claimed(
        "writing-less",
        "section 7.5, figure 11",
        "F3 and Lance need less memory to write than Parquet with its own row groups",
        [pair for one in (F3, LANCE) for pair in below(_WRITING, one, [PARQUET])],
        ("core", "vectors", "events"),
        command=_STREAMED,
        differs=_OURS,
    ),
    Claim(
        "chunk-size",
        "table 2",
        "chunks of a column have about 8 MB in F3, whatever the column, and 81 KB to 75 MB elsewhere",
        untestable="Laion-5B is not here, and no figure of a run measures chunks",
    ),
    Claim(
        "dictionary-scope",
        "section 7.6, table 3",
        "a dictionary for the whole column, or the better of both, makes files 8 to 10 % smaller, at 1.4 to 2.5 times "
        "the time",
        untestable="the 2,080 columns of Public BI are not here, and no variant sets the scope of dictionaries",
    ),
    claimed(
        "wasm-scan",
        "section 7.7, figure 15",
        "reading all through Wasm takes at most 25 % longer",
        below(READ_TIME, F3_WASM, [F3], 1 / 1.25),
        ("core", "classic"),
        command="run tabular --datasets '^(core|classic)$' --formats '^f3'",
        differs=f"our decoders are ours, in C; {_COLD}",
    ),
    claimed(
        "wasm-numbers",
        "section 7.7, figure 13",
        "integers and floats take at most 35 % longer through Wasm",
        below(READ_TIME, F3_WASM, [F3], 1 / 1.35),
        ("int", "float"),
        command="run tabular --datasets '^(int|float)$' --formats '^f3'",
        differs="theirs is the time of decoding alone, ours that of reading all",
    ),
    claimed(
        "wasm-strings",
        "section 7.7, figure 13",
        "strings take at most 46 % longer through Wasm",
        below(READ_TIME, F3_WASM, [F3], 1 / 1.46),
        ("str",),
        command="run tabular --datasets '^str$' --formats '^f3'",
        differs="theirs is the time of decoding alone, ours that of reading all",
    ),
    Claim(
        "wasm-size",
        "section 7.7, figure 16",
        "two decoders of one's own add about 150 KB to a file",
        untestable="LeCo's and Bullion's encodings are not in our package",
    ),
    Claim(
        "checksums",
        "section 7.8, figure 17",
        "checksums of IOUnits cost next to nothing",
        untestable="no variant holds or checks them: they are an argument of our package, and no setting",
    ),
)
SOURCE = Source("f3", "the authors of F3", "f3.csv", CLAIMS)
