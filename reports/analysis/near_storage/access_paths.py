"""What the ways of reading are called for people, and which belong beside each other.

The names are those of the thesis's two ways: V1 is the Parquet Reader (chapter 6), V2 Direct Byte-Range Access (7).
"""

from __future__ import annotations

from bench_runner.variants import Variant

ENGINE = "near-storage"
LOOPBACK = "loopback"
FETCH = "fetch all"
_READERS = {
    "ranges": "V2 (byte ranges)",
    "parquet": "V1 (rows)",
    "fetch": FETCH,
    "pyarrow": "pyarrow on the files",
    "duckdb": "DuckDB on them",
}
_TECHNIQUES = {"groups": "rows unfiltered", "none": "nothing left out"}
_PLACES = tuple(_READERS)


def is_way(variant: Variant) -> bool:
    """Whether a variant is one of near storage's."""
    return variant.engine == ENGINE


def is_fetching(variant: Variant) -> bool:
    """Whether it is what near storage is measured against: all files are fetched, all is done by the client."""
    return is_way(variant) and variant.settings.get("reader") == "fetch"


def is_near(variant: Variant) -> bool:
    """Whether it reads and filters near the storage, as one would let it: V1 or V2, with all that is left out."""
    settings = variant.settings
    return is_way(variant) and settings.get("reader") in ("ranges", "parquet") and "technique" not in settings


def is_foil(variant: Variant) -> bool:
    """Whether it does what nobody would: a node that parses all footers anew is there for the thesis's comparison."""
    return is_way(variant) and variant.settings.get("footers") == "parsed"


def way_label(variant: Variant) -> str:
    """What a way of reading is called: 'V2 (byte ranges)', 'V1 (rows), footers parsed', 'fetch all'."""
    settings = variant.settings
    told = [_READERS.get(settings.get("reader", ""), settings.get("reader", variant))]
    if settings.get("footers") == "parsed":
        told.append("footers parsed")
    if settings.get("technique") in _TECHNIQUES:
        told.append(_TECHNIQUES[settings["technique"]])
    if "row_group_rows" in settings:
        told.append(f"groups of {int(settings['row_group_rows']):,}")
    if "file_groups" in settings:
        told.append(f"{int(settings['file_groups']):,} a file")
    if settings.get("codec", "snappy") != "snappy":
        told.append(settings["codec"])
    return ", ".join(told)


def network_place(network: str) -> tuple[bool, bool, int, str]:
    """Orders networks: one process, loopback, then what holds back, the narrowest first."""
    mbit = line_mbit(network)
    return bool(network), bool(mbit), mbit, network


def line_mbit(network: str) -> int:
    """What a network holds back to, in megabits a second; 0 where it does not."""
    rate = network.removesuffix("mbit")
    return int(rate) if rate != network and rate.isdecimal() else 0


def place_of(variant: Variant) -> tuple[int, int, str]:
    """Orders variants: V2, V1, fetching, the others; each plain one first."""
    settings = variant.settings
    reader = settings.get("reader", "")
    return (_PLACES.index(reader) if reader in _PLACES else len(_PLACES)), len(settings), variant
