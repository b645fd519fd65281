"""Check each relation against values worked out by hand."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from adapters.relations import floats, integers, lists, nulls, texts, times, written


def column(values: list[Any], arrow_type: pa.DataType | None = None) -> pa.ChunkedArray:
    return pa.chunked_array([pa.array(values, arrow_type)])


DICTIONARY = pa.dictionary(pa.int32(), pa.string())
MOMENT = dt.datetime(2024, 2, 29, 12, 34, 56, 123456)

NAN = float("nan")

CHANGES = [
    (nulls.nulls_as_float64, column([None, None], pa.string()), column([None, None], pa.float64())),
    (nulls.nulls_as_float64, column([NAN, None], pa.float32()), column([None, None], pa.float64())),
    (nulls.nulls_as_float64, column([None], pa.float64()), None),
    (nulls.nulls_as_float64, column(["x", None]), None),
    (nulls.nulls_as_float64, column([], pa.string()), None),
    (nulls.nulls_as_text, column([None], pa.int64()), column([None], pa.string())),
    (nulls.nulls_as_text, column([None], pa.large_string()), None),
    (nulls.nulls_as_null, column([None], pa.date32()), column([None], pa.null())),
    (nulls.nulls_as_null, column([None, 1]), None),
    (nulls.objects_of_nulls_as_null, column([None], pa.list_(pa.int64())), column([None], pa.null())),
    (nulls.objects_of_nulls_as_null, column([None], pa.int64()), None),
    (nulls.objects_of_nulls_as_null, column([None, "x"]), None),
    (nulls.objects_of_nulls_as_text, column([None], pa.date32()), column([None], pa.string())),
    (nulls.objects_of_nulls_as_text, column([None], pa.float64()), None),
    (nulls.dictionary_of_nulls_as_null, column([None]).cast(DICTIONARY), column([None], pa.null())),
    (nulls.dictionary_of_nulls_as_null, column([None], pa.string()), None),
    (nulls.dictionary_of_nulls_with("null"), column(["x"]).cast(DICTIONARY), None),
    (nulls.dictionary_of_nulls_with("null"), column([None], pa.string()), None),
    (floats.any_floats, column([None], pa.float64()), None),
    (floats.floats_of_decimals(10), column([None], pa.float64()), None),
    (integers.integers_as_int64, column([1], pa.int8()), column([1])),
    (integers.integers_as_int64, column([1, 2]), None),
    (integers.integers_as_int64, column([1, None], pa.int8()), None),
    (integers.integers_as_int64, column([2**63], pa.uint64()), None),
    (integers.any_integers_as_int64, column([1, None], pa.int8()), column([1, None])),
    (integers.any_integers_as_int64, column([2**63, None], pa.uint64()), None),
    (integers.large_integers_as_float64, column([2**63, None], pa.uint64()), column([2.0**63, None])),
    (integers.large_integers_as_float64, column([1, None], pa.uint64()), None),
    (
        integers.large_integers_as_decimals,
        column([2**63, None], pa.uint64()),
        column([Decimal(2**63), None], pa.decimal128(38, 0)),
    ),
    (
        integers.integers_of_both_signs_as_decimals,
        column([-1, 0, None], pa.int8()),
        column([Decimal(-1), Decimal(0), None], pa.decimal128(38, 0)),
    ),
    (integers.integers_of_both_signs_as_decimals, column([0, 1, None]), None),
    (integers.integers_of_both_signs_as_decimals, column([-2, -1, None]), None),
    (integers.integers_of_both_signs_as_decimals, column([None, None], pa.int64()), None),
    (integers.any_integers_rounded_to_float64, column([2**53 + 1, None]), column([2**53, None])),
    (floats.any_whole_floats_as_int64, column([1.0, None, float("nan")]), column([1, None, None])),
    (floats.any_whole_floats_as_int64, column([1.5, None]), None),
    (floats.infinite_floats, column([float("inf"), 1.0]), column([float("inf"), 1.0])),
    (floats.infinite_floats, column([1.0]), None),
    (texts.any_numeric_text_as_numbers, column(["007", None]), column([7, None])),
    (texts.any_numeric_text_as_numbers, column(["0.5", None]), column([0.5, None])),
    (texts.any_numeric_text_as_numbers, column(["x", None]), None),
    (texts.unpadded_numeric_text_as_numbers, column(["7", "0", "-12", None]), column([7, 0, -12, None])),
    (texts.unpadded_numeric_text_as_numbers, column(["0.5", "2"]), column([0.5, 2.0])),
    (texts.unpadded_numeric_text_as_numbers, column(["007", "8"]), None),
    (texts.unpadded_numeric_text_as_numbers, column(["-08", "8"]), None),
    (times.durations_as_integers, column([3], pa.duration("us")), column([3])),
    (times.times_in_ns, column([3], pa.time64("us")), column([3000], pa.time64("ns"))),
    (times.times_in_ns, column([3], pa.time64("ns")), None),
    (times.timestamps_as_ms, column([1_999], pa.timestamp("us")), column([1], pa.timestamp("ms"))),
    (times.timestamps_as_ms, column([1], pa.timestamp("ms")), None),
    (times.timestamps_cut_to_us, column([1_999], pa.timestamp("ns")), column([1], pa.timestamp("us"))),
    (times.timestamps_cut_to_us, column([1], pa.timestamp("us")), None),
    (
        times.timestamps_cut_to_us,
        column([1], pa.timestamp("us", "Europe/Prague")),
        column([1], pa.timestamp("us", "UTC")),
    ),
    (times.zoned_timestamps_cut_to_us, column([1_999], pa.timestamp("ns")), None),
    (times.timestamps_in_s_or_ns, column([2_000], pa.timestamp("ms")), column([2], pa.timestamp("s"))),
    (times.timestamps_in_s_or_ns, column([2], pa.timestamp("us")), column([2_000], pa.timestamp("ns"))),
    (times.timestamps_in_s_or_ns, column([2], pa.timestamp("s")), None),
    (
        integers.integers_in_missing_structs_as_float64,
        column([{"a": 1, "b": "x"}, None]),
        column([{"a": 1.0, "b": "x"}, None]),
    ),
    (integers.integers_in_missing_structs_as_float64, column([{"a": 1}]), None),
    (integers.integers_as_int32_or_int64, column([1], pa.uint16()), column([1], pa.int32())),
    (integers.integers_as_int32_or_int64, column([1], pa.uint32()), column([1])),
    (integers.integers_with_nulls_as_float64, column([2**53 + 1, None]), column([2.0**53, None])),
    (integers.small_integers_with_nulls_as_float64, column([2**63, None], pa.uint64()), None),
    (integers.integers_rounded_to_float64, column([2**53 + 1]), column([2**53])),
    (integers.integers_rounded_to_float64, column([2**63 - 1]), None),
    (integers.booleans_with_nulls_as_float64, column([True, None]), column([1.0, None])),
    (floats.float16_as_float64, column([0.5], pa.float16()), column([0.5])),
    (floats.float16_as_float64, column([0.5], pa.float32()), None),
    (floats.float16_as_float32, column([0.5, None], pa.float16()), column([0.5, None], pa.float32())),
    (floats.float32_as_float64, column([0.5], pa.float32()), column([0.5])),
    (floats.whole_floats_as_int64, column([17.0, -2.0]), column([17, -2])),
    (floats.whole_floats_as_int64, column([17.0, 0.5]), None),
    (floats.whole_floats_as_int64, column([17.0, None]), None),
    (floats.infinite_as_null, column([1.0, float("inf")]), column([1.0, None])),
    (floats.nan_as_null, column([1.0, float("nan")]), column([1.0, None])),
    (floats.nan_as_null, column([1.0]), None),
    (floats.floats_of_decimals(3), column([0.12345, 1.23456e20]), column([0.12345, 1.23e20])),
    (floats.decimals_as_float64, column([Decimal("0.10")]), column([0.1])),
    (
        floats.decimals_of_needed_precision,
        column([Decimal("-12.50")], pa.decimal128(12, 2)),
        column([Decimal("-12.50")], pa.decimal128(4, 2)),
    ),
    (texts.words_as_null({"NA"}), column(["NA", "a"]), column([None, "a"])),
    (texts.words_as_null({"NA"}), column(["b", "a"]), None),
    (texts.formulas_as_null, column(["=1", "1="]), column([None, "1="])),
    (texts.numeric_text_as_numbers, column(["007", "8"]), column([7, 8])),
    (texts.numeric_text_as_numbers, column(["007", None]), column([7.0, None])),
    (texts.numeric_text_as_numbers, column(["0.5", "8"]), column([0.5, 8.0])),
    (texts.numeric_text_as_numbers, column(["007", "x"]), None),
    (texts.text_cut_at(2), column(["abc", "é"]), column(["ab", "é"])),
    (texts.null_as_empty_text, column(["a", None]), column(["a", ""])),
    (texts.dictionary_as_values, column(["a"]).dictionary_encode(), column(["a"])),
    (texts.dictionary_of_numbers_as_values, column([1, None]).dictionary_encode(), column([1, None])),
    (texts.dictionary_of_numbers_as_values, column(["a"]).dictionary_encode(), None),
    (texts.dictionary_of_integers_with_nulls_as_float64, column([1, None]).dictionary_encode(), column([1.0, None])),
    (texts.dictionary_of_integers_with_nulls_as_float64, column([1, None]), None),
    (times.timestamps_in(["s"], "ms"), column([1], pa.timestamp("s")), column([1000], pa.timestamp("ms"))),
    (times.timestamps_in(["s"], "ms"), column([1], pa.timestamp("us")), None),
    (
        times.timestamps_in(["s"], "ms", "UTC"),
        column([1], pa.timestamp("us", "Europe/Prague")),
        column([1], pa.timestamp("us", "UTC")),
    ),
    (
        times.timestamps_cut_to_ms,
        column([MOMENT], pa.timestamp("us")),
        column([MOMENT.replace(microsecond=123000)], pa.timestamp("us")),
    ),
    (times.dates_as_timestamps, column([dt.date(1970, 1, 2)]), column([86_400_000_000], pa.timestamp("us"))),
    (times.dates_as_timestamps_in_ms, column([dt.date(1970, 1, 2)]), column([86_400_000], pa.timestamp("ms"))),
    (times.times_as_ms_since_1970, column([dt.date(1970, 1, 2), None]), column([86_400_000.0, None])),
    (times.times_as_ms_since_1970, column([-1], pa.timestamp("us")), column([-1])),
    (times.durations_as_ms, column([-1, 2_500], pa.duration("us")), column([-1, 2])),
    (times.durations_as_days, column([43_200], pa.duration("s")), column([0.5])),
    (written.anything_with_nulls, column([1.0, float("nan")]), column([1.0, None])),
    (written.anything_with_nulls, column(["a", None]), None),
    (
        lists.vectors_as_lists,
        column([[1.0, 2.0], None], pa.list_(pa.float32(), 2)),
        column([[1.0, 2.0], None], pa.list_(pa.float32())),
    ),
    (lists.vectors_as_lists, column([[1.0]], pa.list_(pa.float32())), None),
    (
        lists.vectors_as_lists_of_float64,
        column([[1.0, 2.0], None], pa.list_(pa.float32(), 2)),
        column([[1.0, 2.0], None], pa.list_(pa.float64())),
    ),
    (lists.vectors_as_lists_of_float64, column([[1, 2]], pa.list_(pa.int8(), 2)), None),
    (floats.without_minus_zero, column([1.0, None, 0.0]), None),
    (times.zones_as_utc, column([1], pa.timestamp("s", "Europe/Prague")), column([1], pa.timestamp("s", "UTC"))),
    (times.zones_as_utc, column([1], pa.timestamp("s", "UTC")), None),
    (times.zones_as_utc, column([1], pa.timestamp("s")), None),
    (
        times.zoned_in_us_or_ns_of_utc,
        column([1], pa.timestamp("ms", "Europe/Prague")),
        column([1_000], pa.timestamp("us", "UTC")),
    ),
    (
        times.zoned_in_us_or_ns_of_utc,
        column([1], pa.timestamp("ns", "Europe/Prague")),
        column([1], pa.timestamp("ns", "UTC")),
    ),
    (times.zoned_in_us_or_ns_of_utc, column([1], pa.timestamp("ms")), None),
    (times.zoned_in_us_or_ns_of_utc, column([1], pa.timestamp("us", "UTC")), None),
]


@pytest.mark.parametrize(("expect", "stored", "wanted"), CHANGES)
@pytest.mark.rule(12)
def test_expected_columns(expect: Any, stored: pa.ChunkedArray, wanted: pa.ChunkedArray | None) -> None:
    found = expect(stored)
    assert found is None if wanted is None else found.equals(wanted)


@pytest.mark.parametrize(
    ("text", "value", "arrow_type"),
    [
        ("2024-02-29", dt.date(2024, 2, 29), pa.date32()),
        ("12:34:56.000001", dt.time(12, 34, 56, 1), pa.time64("us")),
        ("00:00:00", dt.time(), pa.time64("us")),
        ("2024-02-29 12:34:56.123000", MOMENT.replace(microsecond=123000), pa.timestamp("ms")),
        ("2024-02-29 13:34:56.123456+01:00", MOMENT.replace(tzinfo=dt.UTC), pa.timestamp("us", "Europe/Prague")),
        ("-1 days +23:59:59.999999", dt.timedelta(microseconds=-1), pa.duration("us")),
        ("b'\\x00a'", b"\0a", pa.binary()),
        ("[1 2]", [1, 2], pa.list_(pa.int64())),
        ("{'a': 1}", {"a": 1}, pa.struct({"a": pa.int64()})),
        ("[('a', 1)]", [("a", 1)], pa.map_(pa.string(), pa.int64())),
        ("True", True, pa.bool_()),
        ("0.10", Decimal("0.10"), pa.decimal128(12, 2)),
        ("", None, pa.int64()),
    ],
)
def test_parse_text_returns_the_values(text: str, value: Any, arrow_type: pa.DataType) -> None:
    assert written.parse_text(column([text]), arrow_type).equals(column([value], arrow_type))


def test_an_ordered_dictionary_loses_its_order_and_no_value() -> None:
    codes, categories = pa.array([1, 0, None], pa.int32()), pa.array(["low", "high"])
    ordered = pa.chunked_array([pa.DictionaryArray.from_arrays(codes, categories, ordered=True)])
    changed = texts.dictionary_without_order(ordered)
    assert changed is not None
    assert not changed.type.ordered
    assert changed.to_pylist() == ["high", "low", None]
    assert texts.dictionary_without_order(changed) is None


def test_parse_blob_returns_the_bytes() -> None:
    text = column(["abc", "\\x00\\xFFa\\x5C", None])
    assert written.parse_blob(text, pa.binary()).to_pylist() == [b"abc", b"\x00\xffa\\", None]


@pytest.mark.parametrize(
    ("text", "arrow_type"), [("soon", pa.date32()), ("2024-02-29 12:34:56.1234", pa.timestamp("ms"))]
)
def test_text_without_a_value_is_refused(text: str, arrow_type: pa.DataType) -> None:
    with pytest.raises((pa.ArrowInvalid, ValueError)):
        written.parse_text(column([text]), arrow_type)


def test_minus_zero_loses_its_sign_and_nothing_else() -> None:
    changed = floats.without_minus_zero(column([-0.0, None, -1.0, 0.0, float("nan")]))
    assert changed is not None
    assert str(changed.to_pylist()) == "[0.0, None, -1.0, 0.0, nan]"
