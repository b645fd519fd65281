"""Handmade footers of Parquet files: a correct one, and every kind of incorrect one."""

from __future__ import annotations

import struct as packing
from collections.abc import Mapping, Sequence
from typing import Any

from libraries.near_storage.parquet.footer import PHYSICAL_TYPES
from libraries.near_storage.tests.parquet.thrift_writing import Wire, binary, boolean, i32, i64, list_of, struct

TYPE_ORDER, TOTAL_ORDER, INT96_ORDER, NEW_ORDER = (struct({number: struct({})}) for number in (1, 2, 3, 9))
REQUIRED, OPTIONAL, REPEATED = range(3)


def root(children: int) -> Wire:
    return struct({4: binary("schema"), 5: i32(children)})


def leaf(
    name: str, physical: str = "INT64", repetition: int = OPTIONAL, more: Mapping[int, Wire] | None = None
) -> Wire:
    fields = {1: i32(PHYSICAL_TYPES.index(physical)), 3: i32(repetition), 4: binary(name)}
    return struct(dict(sorted((fields | dict(more or {})).items())))


def group(name: str, children: int, repetition: int = OPTIONAL, more: Mapping[int, Wire] | None = None) -> Wire:
    fields = {3: i32(repetition), 4: binary(name), 5: i32(children)}
    return struct(dict(sorted((fields | dict(more or {})).items())))


def statistics(
    low: bytes | None = None,
    high: bytes | None = None,
    *,
    nulls: int | None = None,
    nans: int | None = None,
    exact: tuple[bool | None, bool | None] = (None, None),
    old: tuple[bytes | None, bytes | None] = (None, None),
) -> Wire:
    """Make Statistics; `old` are the deprecated min and max."""
    fields: dict[int, Wire | None] = {
        1: None if old[1] is None else binary(old[1]),
        2: None if old[0] is None else binary(old[0]),
        3: None if nulls is None else i64(nulls),
        5: None if high is None else binary(high),
        6: None if low is None else binary(low),
        7: None if exact[1] is None else boolean(exact[1]),
        8: None if exact[0] is None else boolean(exact[0]),
        9: None if nans is None else i64(nans),
    }
    return struct(fields)


def metadata_of_chunk(
    path: Sequence[str] = ("a",),
    physical: str = "INT64",
    *,
    start: int = 4,
    length: int = 10,
    values: int = 5,
    dictionary: int | None = None,
    stats: Wire | None = None,
    more: Mapping[int, Wire | None] | None = None,
) -> Wire:
    fields: dict[int, Wire | None] = {
        1: i32(PHYSICAL_TYPES.index(physical)),
        2: list_of([i32(0), i32(3)]),
        3: list_of([binary(name) for name in path]),
        4: i32(0),
        5: i64(values),
        6: i64(min(2 * length, 2**63 - 1)),
        7: i64(length),
        9: i64(start),
        11: None if dictionary is None else i64(dictionary),
        12: stats,
    }
    return struct(dict(sorted((fields | dict(more or {})).items())))


def chunk(*args: Any, around: Mapping[int, Wire | None] | None = None, **keywords: Any) -> Wire:
    """Make a ColumnChunk; arguments are those of `metadata_of_chunk`, `around` replaces fields of the ColumnChunk."""
    return struct(dict(sorted(({2: i64(0), 3: metadata_of_chunk(*args, **keywords)} | dict(around or {})).items())))


def row_group(chunks: Sequence[Wire], rows: int = 5) -> Wire:
    return struct({1: list_of(chunks), 2: i64(100), 3: i64(rows)})


def file_metadata(
    elements: Sequence[Wire],
    groups: Sequence[Wire],
    rows: int,
    orders: Sequence[Wire] | None = None,
    more: Mapping[int, Wire | None] | None = None,
) -> bytes:
    fields: dict[int, Wire | None] = {
        1: i32(2),
        2: list_of(elements),
        3: i64(rows),
        4: list_of(groups),
        5: list_of([struct({1: binary("key"), 2: binary("value" * 10)})]),
        6: binary("a test"),
        7: None if orders is None else list_of(orders),
    }
    return struct(dict(sorted((fields | dict(more or {})).items()))).data


def one_column(
    chunks: Sequence[Wire] | None = None, element: Wire | None = None, order: Wire | None = TYPE_ORDER
) -> bytes:
    """Make the footer of a file with one column `a` and 5 rows per row group."""
    chunks = [chunk()] if chunks is None else chunks
    groups = [row_group([each]) for each in chunks]
    orders = None if order is None else [order]
    return file_metadata([root(1), element or leaf("a")], groups, 5 * len(chunks), orders)


def as_file(metadata: bytes, data_bytes: int = 100) -> bytes:
    """Make a whole file: magic, data, metadata, length, magic."""
    return b"PAR1" + bytes(data_bytes - 4) + metadata + packing.pack("<I", len(metadata)) + b"PAR1"
