"""How errors of libraries are shown."""

from __future__ import annotations

import pytest

from bench_runner.errors import in_one_line


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("", ""),
        ("no room\n  left", "no room left"),
        ("no maps, /home/builder/lance/rust/file.rs:104:24", "no maps"),
        ("no maps (/build/parquet/reader.cc:12) here", "no maps here"),
        ("panicked at /root/.cargo/src/lib.rs:5:1: index out of bounds", "panicked: index out of bounds"),
        ("overflow occurred at ../pandas/src/np_datetime.c:511", "overflow occurred"),
        ("panicked at src/lib.rs:5:1: no rows", "panicked: no rows"),
        # Positions that a user can look up are kept in the text.
        ("not found: /data/core.parquet", "not found: /data/core.parquet"),
        ("3:4 is no ratio, see docs/results.md:12", "3:4 is no ratio, see docs/results.md:12"),
    ],
)
def test_an_error_is_one_line_without_a_place_in_the_library_s_source(said: str, told: str) -> None:
    assert in_one_line(ValueError(said)) == told
