"""Weights, needs and amounts: which values are accepted, and the messages for rejected values."""

import pytest

from reports.analysis.recommendation.preferences import (
    STAGES,
    PreferenceError,
    Preferences,
    parse_bandwidth,
    parse_bytes,
    parse_needs,
    parse_weights,
)


def test_weights_are_numbers_by_name() -> None:
    assert parse_weights("read=3, size=2,save", ()) == {"read": 3.0, "size": 2.0, "save": 1.0}
    assert parse_weights("read-memory=0.5,read=0", ()) == {"read_memory": 0.5, "read": 0.0}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("reed=3", "did you mean 'read'?"),
        ("read=3,read=2", "read is named twice"),
        ("read=-1", "at least 0"),
        ("read=nan", "at least 0"),
        ("read=much", "at least 0"),
        ("take[rows=10=2", "has no closing bracket"),
        ("read=0,size=0", "above 0"),
        ("", "above 0"),
    ],
)
def test_invalid_weights_are_refused(text: str, told: str) -> None:
    with pytest.raises(PreferenceError, match=told.replace("?", r"\?")):
        parse_weights(text, ())


def test_needs_are_words_of_the_contract() -> None:
    from adapters.contract import Can
    from reports.analysis.recommendation.needs import MEASURED
    from reports.analysis.recommendation.preferences import NEEDS

    assert set(NEEDS) == {can.value for can in Can} | {"random-access", "pushdown"}
    assert set(MEASURED) <= set(NEEDS)
    assert parse_needs("append,no_pickle,append") == ("append", "no-pickle")
    with pytest.raises(PreferenceError, match="did you mean 'nested'"):
        parse_needs("nestd")


def test_stages_are_words_of_the_contract_and_each_accepts_those_before_it() -> None:
    from adapters.contract import Stage

    assert tuple(stage.value for stage in Stage) == STAGES
    accepted = {last: [stage for stage in STAGES if Preferences(accept=last).accepts(stage)] for last in STAGES}
    assert accepted == {last: list(STAGES[:number]) for number, last in enumerate(STAGES, start=1)}
    # A later version of the records may contain this value.
    assert [Preferences(accept=last).accepts("retired") for last in STAGES] == [False, False, True]


def test_amounts_are_decimal() -> None:
    assert (parse_bytes("8G"), parse_bytes("1.5 MB"), parse_bytes("700")) == (8 * 10**9, 1_500_000, 700)
    assert parse_bandwidth("200MB/s") == 2e8
    for wrong in ("8X", "G", "0", "-1G"):
        with pytest.raises(PreferenceError):
            parse_bytes(wrong)
    with pytest.raises(PreferenceError, match="200MB/s"):
        parse_bandwidth("fast")


@pytest.mark.parametrize(
    ("text", "bytes_per_s"),
    [
        *(("100MB/s", 1e8), ("100 mB/s", 1e8), ("100M", 1e8), ("100M/s", 1e8), ("1.5GB/s", 1.5e9), ("200000000", 2e8)),
        *(("100Mbit/s", 12.5e6), ("1 Gbit/s", 125e6), ("8bit/s", 1.0)),
    ],
)
def test_a_bandwidth_is_in_bytes_or_in_bits(text: str, bytes_per_s: float) -> None:
    assert parse_bandwidth(text) == bytes_per_s


@pytest.mark.parametrize("text", ["100Mb/s", "100mb/s", "1Gb/s", "100Mbps", "0MB/s", "0bit/s", "MB/s", "100MBbit/s"])
def test_an_ambiguous_or_missing_unit_of_a_bandwidth_is_refused(text: str) -> None:
    """A small b is the sign of bits, but some people write it for bytes."""
    with pytest.raises(PreferenceError, match="Write bytes as in 200MB/s, or bits as in 1600Mbit/s"):
        parse_bandwidth(text)
