"""What it costs to store data with a provider, and on machines of one's own that can compute beside it.

The model is that of Weigand, TU Munich 2025, section 3.1; prices and redundancy are inputs. Its figures stand here as
an example, with the date that prices had: they are no offer, and this module asks nobody for today's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

HOURS_OF_MONTH = 24 * 365 / 12
"""Hours for which a machine is paid each month."""


@dataclass(frozen=True)
class Tier:
    """The price of what is stored between the tier before and `up_to_gb`; None: all that is more."""

    up_to_gb: float | None
    per_gb_month: float


@dataclass(frozen=True)
class Machine:
    """One that is rented: what its disks hold, and what an hour of it costs."""

    capacity_gb: float
    per_hour: float

    @property
    def per_month(self) -> float:
        """For a month of it."""
        return self.per_hour * HOURS_OF_MONTH


@dataclass(frozen=True)
class Cluster:
    """Machines that hold all data with their redundancy, and what they cost a month."""

    machines: int
    per_month: float


def provider_per_month(stored_gb: float, tiers: Sequence[Tier]) -> float:
    """What storing costs a month, tier by tier. Raises ValueError where the tiers end below what is stored."""
    cost, below = 0.0, 0.0
    for tier in tiers:
        top = math.inf if tier.up_to_gb is None else tier.up_to_gb
        cost += max(min(stored_gb, top) - below, 0.0) * tier.per_gb_month
        below = top
    if stored_gb > below:
        raise ValueError(f"{stored_gb:,.0f} GB: the tiers end at {below:,.0f} GB; the last one needs up_to_gb=None")
    return cost


def cluster_per_month(stored_gb: float, machine: Machine, redundancy: float = 1.0) -> Cluster:
    """Machines of one kind. `redundancy` is what lies on the disks over what is stored: 1 for one copy, 2 for two
    replicas, 1.4 for erasure coding with 4 parts of parity to 10 of data.

    It knows neither people who run them, nor traffic, nor requests. Raises ValueError for a redundancy under 1.
    """
    if redundancy < 1:
        raise ValueError(f"a redundancy of {redundancy:g} stores less than there is; 1 is one copy")
    machines = math.ceil(stored_gb * redundancy / machine.capacity_gb)
    return Cluster(machines, machines * machine.per_month)


THESIS_STORED_GB = 172_500_000
"""What Snowflake stored in March 2018, by the thesis's estimate. Its erasure coding is computed of 175.5 PB."""
S3_STANDARD = (Tier(50_000, 0.023), Tier(500_000, 0.022), Tier(None, 0.021))
"""USD, as the thesis has them, early in 2025."""
D3EN_4XLARGE = Machine(111_840, 1.7460)
"""USD, reserved, Frankfurt, as the thesis has them, early in 2025."""
REED_SOLOMON_10_4 = 1.4
"""On the disks over what is stored."""
