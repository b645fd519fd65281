"""Compute how often a month all stored data could be read. The result depends on the selectivity of the queries.

Source: Weigand, TU Munich 2025. The distributions are from chapter 4, the rates from section 8.2 (table 8.2). A rate is
the number of times per month that a node's whole storage can be read: throughput * seconds per month / capacity.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

MONTH_S = 365 * 24 * 3600 / 12
"""Seconds per month, as in the thesis. The thesis's formula for R_disk lacks the division by 12, but the printed result
includes this division."""


@dataclass(frozen=True)
class Band:
    """The share of queries, in percent, whose selectivity is over `above` and up to `up_to` percent. If both limits are
    0, the selectivity is exactly 0."""

    above: float
    up_to: float
    queries_percent: float


@dataclass(frozen=True)
class Expected:
    """Throughput of a mix of queries in GB/s.

    `mean` is the figure of the thesis: the mean over queries of the throughput that each query would reach alone.
    `sustained` is the throughput of a node that answers all queries one after the other. It is all bytes divided by the
    total time, which is the harmonic mean. `sustained` is lower than `mean`, because slow queries take most of the
    time.
    """

    mean: float
    sustained: float


def buckets(bands: tuple[Band, ...]) -> Mapping[int, float]:
    """Return the percentage of queries at each whole percent of selectivity. Selectivities are rounded up, as in
    equation 4.9.

    The percentages add up to the sum of the bands. A band that covers several percents is spread evenly over them.
    """
    found: dict[int, float] = {}
    for band in bands:
        first, last = round(band.above) + (band.up_to > band.above), round(band.up_to)
        for percent in range(first, last + 1):
            found[percent] = found.get(percent, 0.0) + band.queries_percent / (last - first + 1)
    return found


def expected(throughput: Callable[[float], float], bands: tuple[Band, ...]) -> Expected:
    """Return the throughput of a query mix. `throughput` maps a selectivity in percent to GB/s.

    Raises ValueError if the bands do not add up to 100 % of the queries.
    """
    shares = buckets(bands)
    total = sum(shares.values())
    if abs(total - 100) > 0.1:
        raise ValueError(f"the bands must add up to 100 % of the queries (got {total:.2f} %)")
    rates = {percent: throughput(percent) for percent in shares}
    mean = sum(rates[percent] * share for percent, share in shares.items()) / total
    sustained = total / sum(share / rates[percent] for percent, share in shares.items())
    return Expected(mean, sustained)


def rate_per_month(gb_per_s: float, capacity_gb: float) -> float:
    """Return how many times a month a node that stores `capacity_gb` can be read completely at this throughput."""
    return gb_per_s * MONTH_S / capacity_gb
