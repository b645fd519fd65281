"""What the authors of Lance publish of structural encodings: LanceDB's blog, and the results in lancedb/lance-research.

Their device was a Samsung 970 EVO Plus, their readers Rust with 128 requests at once. Ours are calls from Python.
"""

from __future__ import annotations

from reports.analysis.columns import READ_TIME
from reports.sources.claims import Claim, Source, alike, below, claimed, time_of

LANCE = "lance[engine=pylance]"
LANCE_2_1 = "lance[engine=pylance,version=2.1]"
MINI_BLOCK, FULL_ZIP = "lance[engine=pylance,structural=miniblock]", "lance[engine=pylance,structural=fullzip]"
PARQUET = "parquet[engine=pyarrow,codec=none]"
TUNED = "parquet[engine=pyarrow,codec=none,page_rows=512,page_index=true,dictionary=false,statistics=false]"
"""Six of the eight points that they list: it has the page index, by which pyarrow selects no rows."""
_TEN = time_of("take[rows=10,handle=kept]", "take 10 rows")
_ONE = time_of("take[rows=1,handle=kept]", "take 1 row")
_SMALL, _LARGE = ("values[bytes=4]", "values[bytes=64]"), ("values[bytes=1024]", "values[bytes=4096]")
_ALL = (*_SMALL, *_LARGE, "values[bytes=16384]", "values[bytes=65536]")
_ENCODINGS = "run encodings"
_ACCESS = (
    "run access --operations 'take[rows=1,handle=kept]' "
    "--datasets 'values[bytes=1024]' --datasets events --datasets texts"
)
_WHOLE_GROUPS = "their Parquet reads pages by the page index; here it is pyarrow, which reads row groups whole"

CLAIMS = (
    Claim(
        "tuned-parquet-keeps-up",
        "Results",
        "Parquet, tuned, takes rows at random about as fast as Lance (within 2 times)",
        untestable=_WHOLE_GROUPS,
    ),
    Claim(
        "dictionary-slows-parquet",
        "lance-research, parquet_encoding",
        "without dictionary and with small pages Parquet takes rows at random 10 times as fast, or more, as by default",
        untestable=_WHOLE_GROUPS,
    ),
    Claim(
        "small-pages-help",
        "lance-research, take_parquet",
        "Parquet takes rows at random the faster the smaller its pages",
        untestable=_WHOLE_GROUPS,
    ),
    claimed(
        "full-zip-for-large",
        "lance-research, sized; Full Zip",
        "large values (256 bytes there, 1 and 4 KB here) are taken faster from full-zip than from mini-blocks",
        below(_TEN, FULL_ZIP, [MINI_BLOCK]),
        _LARGE,
        command=_ENCODINGS,
    ),
    claimed(
        "alike-when-small",
        "lance-research, sized; Mini Block",
        "small values (16 bytes there, 4 and 64 here) are taken about as fast from both (within 1.5 times)",
        alike(_TEN, MINI_BLOCK, FULL_ZIP, 1.5),
        _SMALL,
        command=_ENCODINGS,
    ),
    claimed(
        "scan-keeps-up",
        "Results",
        "Lance reads all as fast as Parquet, tuned, or faster (10 % slower is as fast)",
        below(READ_TIME, LANCE_2_1, [TUNED], 1 / 1.1),
        _ALL,
        command=_ENCODINGS,
        differs="their data compress, ours are random values without codecs",
    ),
    claimed(
        "far-faster-than-plain-parquet",
        "blog of 2023",
        "Lance takes a row 100 times as fast as Parquet by default, or more",
        below(_ONE, LANCE, [PARQUET], 100.0),
        ("values[bytes=1024]", "events", "texts"),
        command=_ACCESS,
        differs="of 2023 are Lance 1, and a Parquet file that was read whole for each row",
    ),
    Claim(
        "below-the-device",
        "The Roofline Model; Results",
        "both formats stay below what the device gives",
        untestable="a share of the device's limit is no relation of two cells: run encodings --cache cold shows it",
    ),
    Claim(
        "nesting",
        "lance-research, nesting",
        "from version 2.1 on lists that lie 5 deep are taken 13 times as fast as in 2.0",
        untestable="no data set here has lists 5 deep",
    ),
    Claim(
        "asynchronous",
        "Appendix: Lessons Learned",
        "with asynchronous reads both formats give an eighth of the rows that synchronous ones do",
        untestable="which of them a library uses cannot be chosen from Python",
    ),
    Claim(
        "page-index-memory",
        "One (not so) Minute Detail",
        "a page for each value takes Parquet's reader about 20 bytes of memory a value, Lance none",
        untestable="no variant here has a page for each value",
    ),
    Claim(
        "mini-block-layout",
        "Mini Block",
        "a mini-block has 4 to 8 KiB, and its repetition index 2 bytes",
        untestable="it says how a file is laid out, and no figure of ours measures that",
    ),
    Claim(
        "cloud",
        "The Roofline Model",
        "cloud storage gives 10,000 to 20,000 random reads a second",
        untestable="nothing here reads from cloud storage",
    ),
)
SOURCE = Source("lance", "the authors of Lance", "lance.csv", CLAIMS)
