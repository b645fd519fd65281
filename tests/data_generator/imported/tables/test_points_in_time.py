"""Dates and points in time in text: the type that holds every value, or none; and the warnings."""

from __future__ import annotations

from typing import Any

import pandas as pd
import polars
import pyarrow as pa
import pytest

from data_generator.imported.tables.text_types import column_notes
from data_generator.imported.tables.text_types.timestamps import notes, points_in_time

US, NS = pa.timestamp("us"), pa.timestamp("ns")
US_UTC, NS_UTC = pa.timestamp("us", "UTC"), pa.timestamp("ns", "UTC")


def made(*texts: str | None) -> pa.ChunkedArray | None:
    return points_in_time(pa.chunked_array([texts], pa.string()))


def remarks(*texts: str | None) -> list[str]:
    column = pa.chunked_array([texts], pa.string())
    found = notes("at", column, points_in_time(column))
    return column_notes.remarks(found, lambda places: {place: f"line {place + 1}" for place in places})


@pytest.mark.parametrize(
    ("texts", "kind", "as_integers"),
    [
        (("2024-01-02", None, "0001-01-01", "9999-12-31"), pa.date32(), (19724, None, -719162, 2932896)),
        (("2024-01-02 10:00:00", "2024-01-02T10:00"), US, (1704189600000000,) * 2),
        (("2024-01-02T10:00:00.5", "0001-01-01 00:00:00"), US, (1704189600500000, -62135596800000000)),
        (("9999-12-31T23:59:59.999999000", None), US, (253402300799999999, None)),
        (("2024-01-02T10:00:00.000000001",), NS, (1704189600000000001,)),
        (("2024-01-02 10:00:00Z", "2024-01-02T12:00:00+02:00"), US_UTC, (1704189600000000,) * 2),
        (("2024-01-02 12:30+0230", "2024-01-02 10:00:00+00", "2024-01-02T08:00-02"), US_UTC, (1704189600000000,) * 3),
        (("2024-01-02T10:00:00.000000001Z", "2024-01-02T10:00:00.100000000+00:00"), NS_UTC, None),
    ],
)
def test_each_value_is_the_point_in_time_that_is_written(
    texts: tuple[str | None, ...], kind: pa.DataType, as_integers: tuple[int | None, ...] | None
) -> None:
    values = made(*texts)
    assert values is not None
    assert values.type == kind
    if as_integers is not None:
        width = pa.int32() if pa.types.is_date32(kind) else pa.int64()
        assert values.cast(width).to_pylist() == list(as_integers)


MOMENTS = pd.Series(pd.to_datetime(["2024-01-02 10:00:00.123456", "1969-12-31 23:59:59.5"]))


@pytest.mark.parametrize(
    "texts",
    [
        [str(moment) for moment in MOMENTS],
        [moment.isoformat() for moment in MOMENTS],
        pa.array(MOMENTS).cast(pa.string()).to_pylist(),
        polars.Series(MOMENTS.to_list()).cast(polars.String).to_list(),
        MOMENTS.to_csv(index=False, header=False).splitlines(),
    ],
    ids=["pandas", "isoformat", "pyarrow", "polars", "to_csv"],
)
def test_what_libraries_write_comes_back(texts: list[str]) -> None:
    values = made(*texts)
    assert values is not None
    assert pd.to_datetime(pd.Series(values.to_pylist())).to_list() == MOMENTS.to_list()


@pytest.mark.parametrize("zone", ["UTC", "Asia/Kolkata", "America/New_York"])
def test_zones_become_utc(zone: str) -> None:
    moments = MOMENTS.dt.tz_localize("UTC").dt.tz_convert(zone)
    texts = [str(moment) for moment in moments]
    values = made(*texts)
    assert values is not None
    assert values.type == US_UTC
    assert values.to_pylist() == [moment.to_pydatetime() for moment in moments]
    assert len(remarks(*texts)) == (zone != "UTC")


@pytest.mark.parametrize(
    "texts",
    [
        (),
        (None, None),
        ("2024-01-02", "soon"),
        ("0000-01-01",),
        ("2024-02-30",),
        ("2024-01-02 24:00:00",),
        ("2024-01-02 10:00:60",),
        ("2024-01-02 10:00:00+25:00",),
        ("2024-01-02 10:00:00", "2024-01-02 10:00:00Z"),
        ("2024-01-02", "2024-01-02 10:00:00Z"),
        ("2024-01-02 10:00:00.000000001", "9999-12-31 00:00:00"),
        ("1677-09-21 00:12:43.145224192",),
        ("2262-04-11T23:47:16.800000001-02:00",),
        ("2024-01-02 10:00:00.0000000001",),
        ("0001-01-01T00:00:00+02:00",),
        ("9999-12-31T23:59:59-02:00",),
        (" 2024-01-02",),
        ("2024-01-02\n",),
        ("2024-1-2",),
        ("20240102",),
        ("10:00:00",),
        ("",),
        ("NA", "2024-01-02"),
        ("٢٠٢٤-01-02",),
    ],
)
def test_a_column_stays_text_where_one_value_does_not_fit(texts: tuple[str | None, ...]) -> None:
    assert made(*texts) is None


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (
            ("2024-01-02 10:00Z", "2024-01-02 10:00+02", "2024-01-02 10:00-02"),
            "2 of 3 points in time have other offsets than UTC",
        ),
        (("2024-01-02 10:00", "2024-01-03"), "1 of 2 values are dates without a time and become midnight"),
        (("2024-01-02 10:00Z", "2024-01-02 10:00"), "stays text: 1 of 2 points in time have no offset from UTC"),
        (("2024-01-02", "soon"), "stays text: 1 of 2 values are neither dates nor points in time"),
        (("2024-01-02", "2024-02-30"), "stays text: date32[day] does not hold all"),
        (("2024-01-02 10:00:00.000000001", "9999-12-31 00:00"), "stays text: timestamp[ns] does not hold all"),
    ],
)
def test_what_changed_or_stayed_text_is_said_with_the_first_such_value(texts: tuple[str, ...], said: str) -> None:
    (remark,) = remarks(*texts)
    assert said in remark
    assert f"(line 2: {texts[1]!r})\n" in remark


@pytest.mark.parametrize(
    "texts", [("x", "y", "2024-01-02"), ("2024-01-02", None), ("2024-01-02T10:00:00Z", "2024-01-02 10:00:00+00:00"), ()]
)
def test_nothing_is_said_of_what_is_exact_or_just_text(texts: tuple[Any, ...]) -> None:
    assert remarks(*texts) == []


def test_a_note_is_two_printable_lines() -> None:
    (remark,) = column_notes.remarks([column_notes.Note("a'b\n", 4, "x" * 99, "said", "step")], lambda _: {})
    assert remark == f"column \"a'b\": said (row 5 of the sample: '{'x' * 60}..')\nstep"
    assert column_notes.column_option("a b", "text") == "--column 'a b=text'"
