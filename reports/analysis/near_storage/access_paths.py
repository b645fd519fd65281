"""Name the near-storage access paths for display, and sort them. An access path is a way to query the stored files,
with or without filtering next to the data.

V1 and V2 are the thesis's names: V1 is the Parquet Reader (chapter 6), V2 Direct Byte-Range Access (chapter 7).
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
    """Return whether a variant is a near-storage access path (a way to query stored files, with or without filtering
    next to the data)."""
    return variant.engine == ENGINE


def is_fetching(variant: Variant) -> bool:
    """Return whether a variant is the baseline of near storage, in which the client fetches all files and does all the
    work."""
    return is_way(variant) and variant.settings.get("reader") == "fetch"


def is_near(variant: Variant) -> bool:
    """Return whether a variant filters near the storage as intended: V1 (rows) or V2 (byte ranges) with all filters
    on."""
    settings = variant.settings
    return is_way(variant) and settings.get("reader") in ("ranges", "parquet") and "technique" not in settings


def is_foil(variant: Variant) -> bool:
    """Return whether a variant was measured only to compare it with the thesis. The storage node of such a variant
    parses all Parquet footers again for each query."""
    return is_way(variant) and variant.settings.get("footers") == "parsed"


def way_label(variant: Variant) -> str:
    """Return the label of an access path: 'V2 (byte ranges)', 'V1 (rows), footers parsed', 'fetch all'."""
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
    """Return a sort key for networks. First come services within one process, then the loopback interface, then limited
    networks, the slowest first."""
    mbit = line_mbit(network)
    return bool(network), bool(mbit), mbit, network


def line_mbit(network: str) -> int:
    """Return the limit of a network in Mbit/s, or 0 if the network has no limit."""
    rate = network.removesuffix("mbit")
    return int(rate) if rate != network and rate.isdecimal() else 0


def place_of(variant: Variant) -> tuple[int, int, str]:
    """Return a sort key for variants. V2 comes first, then V1, the fetching baseline, and other access paths. Within an
    access path, variants with few settings come first."""
    settings = variant.settings
    reader = settings.get("reader", "")
    return (_PLACES.index(reader) if reader in _PLACES else len(_PLACES)), len(settings), variant
