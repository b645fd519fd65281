"""Names of the networks between a client and the stored copy: none, loopback, or loopback with a limited rate."""

from __future__ import annotations

NONE = ""
"""Name for no network: one process reads the stored copy from the disk. Users write the text ONE_PROCESS instead."""
ONE_PROCESS = "one-process"
LOOPBACK = "loopback"
"""Name for services on this machine that are reached without a rate limit."""
MBIT = "mbit"
"""Suffix of a rate in megabits per second, as in '1000mbit'."""
MOST_MBIT = 2_500
"""Highest allowed rate. A proxy in Python limits the rate, and may be too slow for higher rates."""
ALLOWED = f"'{ONE_PROCESS}', '{LOOPBACK}', or '1{MBIT}' to '{MOST_MBIT}{MBIT}'"
WARM, FRESH = "warm", "fresh"
"""The state of a service: WARM means that it has served requests before, FRESH that it is started for each sample."""


def rate_mbit(network: str) -> int:
    """Return a network's rate in megabits per second, or 0 without a limit. Raises ValueError for an unknown
    network."""
    if network in (NONE, LOOPBACK):
        return 0
    rate = network.removesuffix(MBIT)
    if rate == network or not rate.isdecimal() or not 1 <= int(rate) <= MOST_MBIT:
        raise ValueError(f"a network must be {ALLOWED} (got {network!r}).")
    return int(rate)


def network_text(network: str) -> str:
    """Return the network's name in reports, such as 'loopback' or 'loopback at 1,000 Mbit/s'."""
    rate = network.removesuffix(MBIT)
    return f"loopback at {int(rate):,} Mbit/s" if rate != network else network or "one process"


def named(text: str) -> str:
    """Return the network that a user's text names. Raises ValueError for an unknown network."""
    network = NONE if text == ONE_PROCESS else text
    if text == NONE:
        raise ValueError(f"a network must be {ALLOWED} (got {text!r}).")
    rate_mbit(network)
    return network
