"""Networks by their names."""

from __future__ import annotations

import pytest

from bench_runner.networks import named, rate_mbit


@pytest.mark.parametrize(("network", "mbit"), [("", 0), ("loopback", 0), ("1mbit", 1), ("2500mbit", 2500)])
def test_what_they_let_through(network: str, mbit: int) -> None:
    assert rate_mbit(network) == mbit


@pytest.mark.parametrize("text", ["lan", "0mbit", "2501mbit", "mbit", "1.5mbit", "10gbit", "-1mbit", ""])
def test_what_is_none_says_what_there_is(text: str) -> None:
    with pytest.raises(ValueError, match=r"must be 'one-process', 'loopback', or '1mbit' to '2500mbit'"):
        named(text)


def test_one_process_is_no_network() -> None:
    assert [named(text) for text in ("one-process", "loopback", "40mbit")] == ["", "loopback", "40mbit"]
