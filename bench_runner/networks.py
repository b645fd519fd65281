"""Names of the networks between a client and the stored copy: none, loopback, or loopback with a limited rate."""

from __future__ import annotations

NONE = ""
"""One process reads the copy: a condition of its own, called ONE_PROCESS where it has to be named."""
ONE_PROCESS = "one-process"
LOOPBACK = "loopback"
"""Services on this machine, with nothing between."""
MBIT = "mbit"
"""Behind the number of megabits a second that a line lets through: '1000mbit'."""
MOST_MBIT = 2_500
"""The line is a proxy in Python: of a faster one nobody has shown that it keeps up."""
ALLOWED = f"'{ONE_PROCESS}', '{LOOPBACK}', or '1{MBIT}' to '{MOST_MBIT}{MBIT}'"
WARM, FRESH = "warm", "fresh"
"""A service that has answered before, or was started for this."""


def rate_mbit(network: str) -> int:
    """What a network lets through, in megabits a second; 0 where nothing holds back. Raises ValueError for a text that
    is none."""
    if network in (NONE, LOOPBACK):
        return 0
    rate = network.removesuffix(MBIT)
    if rate == network or not rate.isdecimal() or not 1 <= int(rate) <= MOST_MBIT:
        raise ValueError(f"a network must be {ALLOWED} (got {network!r}).")
    return int(rate)


def network_text(network: str) -> str:
    """For reports: 'loopback', 'loopback at 1,000 Mbit/s'."""
    rate = network.removesuffix(MBIT)
    return f"loopback at {int(rate):,} Mbit/s" if rate != network else network or "one process"


def named(text: str) -> str:
    """The network that a user names. Raises ValueError for a text that is none."""
    network = NONE if text == ONE_PROCESS else text
    if text == NONE:
        raise ValueError(f"a network must be {ALLOWED} (got {text!r}).")
    rate_mbit(network)
    return network
