"""Choosing codecs and levels: the settings that a request expands to."""

from __future__ import annotations

import pytest

from bench_runner.suites import codecs
from formats.registry import FORMATS


def chosen(name: str, names: tuple[str, ...], levels: tuple[int, ...] | None = None) -> list[dict[str, str]]:
    return [dict(settings) for settings in codecs.choices(FORMATS.engines(name)[0], names, levels)]


def test_each_codec_follows_the_same_format_without_one() -> None:
    assert chosen("parquet", ("zstd", "snappy")) == [
        {"codec": "none"},
        {"codec": "snappy"},
        {"codec": "zstd", "level": "1"},
    ]


def test_a_codec_goes_by_the_names_of_each_library() -> None:
    assert chosen("hdf5-table", ("lz4",)) == [{"codec": "none"}, {"codec": "blosc:lz4", "level": "1"}]
    assert chosen("avro", ("zstd",)) == [{"codec": "none"}, {"codec": "zstandard", "level": "1"}]
    assert chosen("hdf5-table", ("blosc2:lz4",))[1]["codec"] == "blosc2:lz4"


def test_a_format_without_the_codec_or_without_any_takes_no_part() -> None:
    assert chosen("orc", ("gzip",)) == []
    assert chosen("excel", ("all",)) == []


def test_levels_that_are_asked_for_reach_every_codec() -> None:
    """Unsupported levels are included too, so that the plan can show the refusal."""
    assert chosen("csv", ("gzip",), (1, 12)) == [
        {"codec": "none"},
        {"codec": "gzip", "level": "1"},
        {"codec": "gzip", "level": "12"},
    ]
    assert {"codec": "snappy", "level": "3"} in chosen("parquet", ("snappy",), (3,))


@pytest.mark.parametrize(("name", "base"), [("lance", "auto"), ("vortex", "auto"), ("feather", "none")])
def test_a_writers_own_choice_is_what_its_codecs_are_set_against(name: str, base: str) -> None:
    assert codecs.without_codec(FORMATS.engines(name)[0]) == {"codec": base}


def test_every_name_that_can_be_chosen_is_known() -> None:
    known = codecs.known(FORMATS)
    assert {"zstd", "lz4", "gzip", "deflate", "blosc2:zstd", "bz2", "compact"} <= set(known)
    assert "none" not in known
    assert "auto" not in known
