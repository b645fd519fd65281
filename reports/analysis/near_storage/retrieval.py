"""How often a month all stored data could be read, given how selective the queries are.

Weigand, TU Munich 2025: the distributions are those of chapter 4, the rates those of section 8.2 (table 8.2). A rate is
how many times a month the whole storage of a node can be read: throughput times a month over its capacity.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

MONTH_S = 365 * 24 * 3600 / 12
"""Seconds of a month, as the thesis counts them. Its formula of R_disk lacks the 12, its result has it."""


@dataclass(frozen=True)
class Band:
    """So many percent of the queries have a selectivity over `above` and up to `up_to` percent; 0 to 0 is exactly 0."""

    above: float
    up_to: float
    queries_percent: float


@dataclass(frozen=True)
class Expected:
    """Throughput of a mix of queries in GB/s.

    `mean` is the thesis's: the mean over queries of what each alone would reach. `sustained` is what a node reaches
    that answers the mix: its bytes over its time, the harmonic mean. It is the lower one, because slow queries take
    most of the time.
    """

    mean: float
    sustained: float


def buckets(bands: tuple[Band, ...]) -> Mapping[int, float]:
    """Percent of the queries by selectivity in whole percents, rounded up as in equation 4.9; their sum is that of the
    bands. Of a band that spans several percents each has the same share."""
    found: dict[int, float] = {}
    for band in bands:
        first, last = round(band.above) + (band.up_to > band.above), round(band.up_to)
        for percent in range(first, last + 1):
            found[percent] = found.get(percent, 0.0) + band.queries_percent / (last - first + 1)
    return found


def expected(throughput: Callable[[float], float], bands: tuple[Band, ...]) -> Expected:
    """The throughput of queries that are so selective, by a function from percent to GB/s.

    Raises ValueError where the bands do not make up all queries.
    """
    shares = buckets(bands)
    total = sum(shares.values())
    if abs(total - 100) > 0.1:
        raise ValueError(f"the bands hold {total:.2f} % of the queries, not 100")
    rates = {percent: throughput(percent) for percent in shares}
    mean = sum(rates[percent] * share for percent, share in shares.items()) / total
    sustained = total / sum(share / rates[percent] for percent, share in shares.items())
    return Expected(mean, sustained)


def rate_per_month(gb_per_s: float, capacity_gb: float) -> float:
    """How many times a month a node of this capacity can be read at this throughput."""
    return gb_per_s * MONTH_S / capacity_gb
