"""Names of the networks between a client and the stored copy: none, loopback, or loopback with a limited rate."""

from __future__ import annotations

NONE = ""
"""One process reads the copy; called ONE_PROCESS where a name is needed."""
ONE_PROCESS = "one-process"
LOOPBACK = "loopback"
"""Services on this machine, without a limit between."""
MBIT = "mbit"
"""Suffix of a rate in megabits a second: '1000mbit'."""
MOST_MBIT = 2_500
"""The line is a proxy in Python, which has not been shown to keep up with a faster one."""
ALLOWED = f"'{ONE_PROCESS}', '{LOOPBACK}', or '1{MBIT}' to '{MOST_MBIT}{MBIT}'"
WARM, FRESH = "warm", "fresh"
"""Whether a service has answered before, or is started for each sample."""


def rate_mbit(network: str) -> int:
    """Return a network's rate in megabits a second; 0 without a limit. Raises ValueError for an unknown network."""
    if network in (NONE, LOOPBACK):
        return 0
    rate = network.removesuffix(MBIT)
    if rate == network or not rate.isdecimal() or not 1 <= int(rate) <= MOST_MBIT:
        raise ValueError(f"a network must be {ALLOWED} (got {network!r}).")
    return int(rate)


def network_text(network: str) -> str:
    """Return its name in reports: 'loopback', 'loopback at 1,000 Mbit/s'."""
    rate = network.removesuffix(MBIT)
    return f"loopback at {int(rate):,} Mbit/s" if rate != network else network or "one process"


def named(text: str) -> str:
    """Return the network that a user names. Raises ValueError for an unknown network."""
    network = NONE if text == ONE_PROCESS else text
    if text == NONE:
        raise ValueError(f"a network must be {ALLOWED} (got {text!r}).")
    rate_mbit(network)
    return network
