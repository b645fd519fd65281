"""The rules for footers, each tested by a handmade footer that breaks it."""

from __future__ import annotations

import io

import pytest

from libraries.near_storage.errors import FooterError
from libraries.near_storage.parquet.footer import Chunk, Statistics, parse_footer, read_footer
from libraries.near_storage.tests.parquet.footers import (
    INT96_ORDER,
    NEW_ORDER,
    TOTAL_ORDER,
    TYPE_ORDER,
    as_file,
    chunk,
    file_metadata,
    leaf,
    metadata_of_chunk,
    one_column,
    root,
    row_group,
    statistics,
)
from libraries.near_storage.tests.parquet.thrift_writing import Wire, binary, i32, i64, struct

GIB = 1 << 30


def parse(metadata: bytes, data_end: int = 1000):
    return parse_footer(metadata, data_end + len(metadata) + 8)


def only_chunk(one: Wire) -> Chunk:
    return parse(one_column([one])).row_groups[0].chunks[0]


def test_a_file():
    metadata = one_column([chunk(start=4, length=40), chunk(start=44, length=30)])
    footer = read_footer(io.BytesIO(as_file(metadata, 100)))
    assert (footer.rows, footer.start, footer.length, footer.file_bytes) == (
        10,
        100,
        len(metadata),
        108 + len(metadata),
    )
    assert [[(one.start, one.length, one.values) for one in group.chunks] for group in footer.row_groups] == [
        [(4, 40, 5)],
        [(44, 30, 5)],
    ]
    assert [group.rows for group in footer.row_groups] == [5, 5]


def test_a_file_without_rows_or_columns():
    footer = parse(file_metadata([root(0)], [], 0, []))
    assert (footer.rows, footer.columns, footer.row_groups) == (0, (), ())


@pytest.mark.parametrize(
    ("dictionary", "start"), [(None, 50), (0, 50), (20, 20), (49, 49), (50, 50), (60, 50), (-1, 50)]
)
def test_where_a_chunk_begins(dictionary, start):
    """A chunk starts at its dictionary page if that offset is set, above 0 and before the data."""
    assert only_chunk(chunk(start=50, dictionary=dictionary)).start == start


FILES = {
    "empty": (b"", "too few"),
    "cut off": (as_file(one_column())[:-1], "ends with"),
    "no magic in front": (b"XXXX" + as_file(one_column())[4:], "begins with b'XXXX'"),
    "encrypted": (as_file(one_column())[:-4] + b"PARE", "encrypted"),
    "encrypted in front": (b"PARE" + as_file(one_column())[4:], "encrypted"),
    "footer longer than the file": (as_file(one_column())[:-8] + b"\xff\xff\xff\x7fPAR1", "footer of 2147483647 bytes"),
    "footer up to the magic": (b"PAR1" + b"\x01\0\0\0PAR1", "footer of 1 bytes"),
    "only magic": (b"PAR1\0\0\0\0PAR1", "truncated at 0 bytes"),
}


@pytest.mark.parametrize("case", FILES)
def test_files_that_are_refused(case):
    data, message = FILES[case]
    with pytest.raises(FooterError, match=message):
        read_footer(io.BytesIO(data))


TWO = [root(2), leaf("a"), leaf("b")]


def two_columns(first: Wire, second: Wire) -> bytes:
    return file_metadata(TWO, [row_group([first, second])], 5, [TYPE_ORDER] * 2)


FOOTERS = {
    "an algorithm of encryption": (file_metadata([root(0)], [], 0, [], {8: struct({1: struct({})})}), "encrypted"),
    "a key of a signed footer": (file_metadata([root(0)], [], 0, [], {9: binary("k")}), "encrypted"),
    "a column's key": (one_column([chunk(around={8: struct({1: struct({})})})]), "encrypted"),
    "metadata encrypted": (one_column([chunk(around={9: binary("x")})]), "encrypted"),
    "no metadata": (one_column([chunk(around={3: None})]), "no metadata"),
    "another file": (one_column([chunk(around={1: binary("../other")})]), "separate file"),
    "another column's path": (one_column([chunk(["b"])]), "another path"),
    "a longer path": (one_column([chunk(["a", "a"])]), "another path"),
    "another type than the schema's": (one_column([chunk(physical="DOUBLE")]), "another path or type"),
    "a type that does not exist": (one_column([chunk(more={1: i32(8)})]), "another path or type"),
    "a chunk before the file": (one_column([chunk(start=-5)]), "negative"),
    "a negative length": (one_column([chunk(length=-1)]), "negative"),
    "a negative uncompressed size": (one_column([chunk(more={6: i64(-1)})]), r"\(-1 uncompressed\); no .* negative"),
    "no uncompressed size": (one_column([chunk(more={6: None})]), r"lacks its required fields \[6\]"),
    "negative values": (
        file_metadata([root(1), leaf("a", repetition=2)], [row_group([chunk(values=-1)])], 5, [TYPE_ORDER]),
        "negative",
    ),
    "over the magic": (one_column([chunk(start=3)]), "bytes 3 to 13"),
    "into the footer": (one_column([chunk(start=991)]), "bytes 991 to 1001"),
    "behind the footer": (one_column([chunk(start=10**6)]), "bytes 1000000 to"),
    "an end beyond 64 bits": (one_column([chunk(start=2**63 - 1, length=2**63 - 1)]), f"bytes {2**63 - 1} to"),
    "no bytes, behind the footer": (one_column([chunk(start=1001, length=0)]), "bytes 1001 to 1001"),
    "chunks that overlap": (two_columns(chunk(start=4), chunk(["b"], start=13)), "begins at byte 13, inside"),
    "the same chunk twice": (two_columns(chunk(start=4), chunk(["b"], start=4)), "begins at byte 4, inside"),
    "one chunk within another": (
        two_columns(chunk(start=4, length=100), chunk(["b"], start=50)),
        "begins at byte 50, inside",
    ),
    "row groups that overlap": (
        one_column([chunk(start=50), chunk(start=41)]),
        "row group 0, column 0 begins at byte 50",
    ),
    "more values than rows": (one_column([chunk(values=6)]), "has 6 values, but its row group has 5 rows"),
    "rows that do not add up": (file_metadata([root(1), leaf("a")], [row_group([chunk()])], 6, [TYPE_ORDER]), "5 rows"),
    "negative rows": (
        file_metadata([root(1), leaf("a")], [row_group([chunk(values=-5)], -5)], -5, [TYPE_ORDER]),
        "-5 rows",
    ),
    "too few chunks": (file_metadata(TWO, [row_group([chunk()])], 5, [TYPE_ORDER] * 2), "1 chunks for 2 columns"),
    "more nulls than values": (one_column([chunk(stats=statistics(nulls=6))]), "6 nulls"),
    "negative nulls": (one_column([chunk(stats=statistics(nulls=-1))]), "-1 nulls"),
    "negative NaNs": (one_column([chunk(stats=statistics(nans=-1))]), "-1 NaNs"),
    "more nulls and NaNs than values": (one_column([chunk(stats=statistics(nulls=3, nans=3))]), "3 nulls and 3 NaNs"),
    "too few orders": (file_metadata(TWO, [], 0, [TYPE_ORDER]), "1 column orders for 2 columns"),
    "an old parquet-mr": (
        file_metadata([root(0)], [], 0, [], {6: binary("parquet-mr version 1.2.8 (build 0)")}),
        "PARQUET-816|before 1.2.9",
    ),
    "a parquet-mr without a version": (file_metadata([root(0)], [], 0, [], {6: binary("parquet-mr")}), "before 1.2.9"),
}


@pytest.mark.parametrize("case", FOOTERS)
def test_footers_that_are_refused(case):
    metadata, message = FOOTERS[case]
    with pytest.raises(FooterError, match=message):
        parse(metadata)


def test_they_are_refused_for_that_alone():
    """The parts of the broken footers are correct before they are broken."""
    assert only_chunk(chunk()).values == 5
    assert parse(two_columns(chunk(start=4), chunk(["b"], start=14))).rows == 5
    assert parse(one_column([chunk(start=50), chunk(start=40)])).rows == 10
    assert parse(one_column([chunk(start=990)])).rows == 5
    assert only_chunk(chunk(stats=statistics(nulls=3, nans=2))).statistics is not None
    assert parse(file_metadata([root(0)], [], 0, [], {6: binary("parquet-mr version 1.2.9")})).rows == 0
    assert parse(file_metadata([root(0)], [], 0, [], {6: binary("parquet-mr version 1.13.1 (build af)")})).rows == 0
    assert parse(file_metadata([root(0)], [], 0, [], {6: None})).rows == 0


def test_an_empty_row_group_may_lie_anywhere():
    """pyarrow writes the first bytes of the file as the position of all its chunks."""
    groups = [row_group([chunk()]), *([row_group([chunk(start=0, dictionary=4, length=15, values=0)], 0)] * 2)]
    footer = parse(file_metadata([root(1), leaf("a")], groups, 5, [TYPE_ORDER]))
    assert [group.rows for group in footer.row_groups] == [5, 0, 0]


def far(second_start: int, length: int = 10) -> bytes:
    return two_columns(chunk(start=1000), chunk(["b"], start=second_start, length=length))


def test_offsets_fit_32_bits():
    for metadata in (far(1000 + 4 * GIB - 1), far(2000, length=4 * GIB - 1)):
        assert parse(metadata, 20 * GIB).rows == 5
    for metadata in (far(1000 + 4 * GIB), far(2000, length=4 * GIB)):
        with pytest.raises(FooterError, match="4 GiB or more"):
            parse(metadata, 20 * GIB)


def test_a_file_beyond_4_gib():
    metadata = one_column([chunk(start=10 * GIB), chunk(start=70 * GIB)])
    assert [group.chunks[0].start for group in parse(metadata, 100 * GIB).row_groups] == [10 * GIB, 70 * GIB]


# --- statistics ---

LOW, HIGH = (number.to_bytes(8, "little") for number in (1, 2))


def known(
    stats: Wire, element: Wire | None = None, order: Wire | None = TYPE_ORDER, physical: str = "INT64"
) -> Statistics:
    metadata = one_column([chunk(physical=physical, stats=stats)], element, order)
    found = parse(metadata).row_groups[0].chunks[0].statistics
    assert found is not None
    return found


def test_all_that_statistics_say():
    stats = statistics(LOW, HIGH, nulls=1, nans=2, exact=(True, False))
    assert known(stats) == Statistics(LOW, HIGH, True, False, 1, 2)


def test_a_missing_count_is_not_zero():
    assert known(statistics(LOW, HIGH)) == Statistics(LOW, HIGH, None, None, None, None)


def test_one_bound_alone():
    assert known(statistics(LOW)) == Statistics(LOW, None, None, None, None, None)


@pytest.mark.parametrize("order", [None, NEW_ORDER, INT96_ORDER, TOTAL_ORDER])
def test_without_an_order_for_the_type_bounds_mean_nothing(order):
    stats = known(statistics(LOW, HIGH, nulls=1, exact=(True, True)), order=order)
    assert stats == Statistics(None, None, None, None, 1, None)


@pytest.mark.parametrize(
    ("order", "kept"), [(TYPE_ORDER, LOW), (TOTAL_ORDER, LOW), (INT96_ORDER, None), (NEW_ORDER, None)]
)
def test_the_total_order_is_for_floats(order, kept):
    assert known(statistics(LOW, HIGH), leaf("a", "DOUBLE"), order, "DOUBLE").minimum == kept


@pytest.mark.parametrize(("order", "kept"), [(TYPE_ORDER, False), (INT96_ORDER, True)])
def test_int96_has_an_order_of_its_own(order, kept):
    stats = known(statistics(bytes(12), bytes(12)), leaf("a", "INT96"), order, "INT96")
    assert (stats.minimum is not None) == kept


def logical(number: int, fields: dict[int, Wire] | None = None) -> dict[int, Wire]:
    return {10: struct({number: struct(fields or {})})}


def converted(number: int) -> dict[int, Wire]:
    return {6: i32(number)}


SIGNED = {
    "int64": leaf("a"),
    "int32": leaf("a", "INT32"),
    "boolean": leaf("a", "BOOLEAN"),
    "float": leaf("a", "FLOAT"),
    "double": leaf("a", "DOUBLE"),
    "int8": leaf("a", "INT32", more=converted(15)),
    "date": leaf("a", "INT32", more=converted(6)),
    "timestamp": leaf("a", "INT64", more=converted(10)),
    "decimal": leaf("a", "INT64", more=converted(5)),
}
UNSIGNED = {
    "uint32": leaf("a", "INT32", more=converted(13)),
    "bytes": leaf("a", "BYTE_ARRAY"),
    "text": leaf("a", "BYTE_ARRAY", more=converted(0)),
    "decimal of bytes": leaf("a", "BYTE_ARRAY", more=converted(5)),
    "int96": leaf("a", "INT96"),
    "an unknown type": leaf("a", "INT64", more=logical(77)),
}
PHYSICAL = {
    **{"int64": "INT64", "int32": "INT32", "boolean": "BOOLEAN", "float": "FLOAT", "double": "DOUBLE", "int8": "INT32"},
    **{"date": "INT32", "timestamp": "INT64", "decimal": "INT64", "uint32": "INT32", "bytes": "BYTE_ARRAY"},
    **{"text": "BYTE_ARRAY", "decimal of bytes": "BYTE_ARRAY", "int96": "INT96", "an unknown type": "INT64"},
}


@pytest.mark.parametrize("case", [*SIGNED, *UNSIGNED])
@pytest.mark.parametrize("order", [TYPE_ORDER, None])
def test_the_deprecated_bounds_are_signed(case, order):
    element = {**SIGNED, **UNSIGNED}[case]
    stats = known(statistics(old=(LOW, HIGH), exact=(True, True)), element, order, PHYSICAL[case])
    assert (stats.minimum, stats.maximum) == ((LOW, HIGH) if case in SIGNED else (None, None))
    if case in SIGNED:
        assert stats.minimum_exact is None


def test_the_deprecated_bounds_are_not_mixed_with_the_new():
    assert known(statistics(LOW, old=(HIGH, HIGH))) == Statistics(LOW, None, None, None, None, None)


def test_metadata_of_a_chunk_may_stand_alone():
    """`metadata_of_chunk` is the content of `chunk`, so the helpers agree."""
    assert only_chunk(chunk(around={3: metadata_of_chunk(start=7)})).start == 7
