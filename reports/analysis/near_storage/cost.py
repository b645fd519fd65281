"""Compute the cost of storing data with a provider, and the cost of rented machines that store the data and compute
next to it.

The model is that of Weigand, TU Munich 2025, section 3.1. Prices and redundancy are inputs. The constants below are
examples with the date of their prices; no current prices are looked up.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

HOURS_OF_MONTH = 24 * 365 / 12
"""Number of hours for which a machine is paid per month."""


@dataclass(frozen=True)
class Tier:
    """One price step of a provider. The price applies to data above the limit of the previous tier and up to
    `up_to_gb`. None means no upper limit."""

    up_to_gb: float | None
    per_gb_month: float


@dataclass(frozen=True)
class Machine:
    """A rented machine: the capacity of its disks, and its price per hour."""

    capacity_gb: float
    per_hour: float

    @property
    def per_month(self) -> float:
        """Price for a month."""
        return self.per_hour * HOURS_OF_MONTH


@dataclass(frozen=True)
class Cluster:
    """Machines that together hold all data and the redundant copies or parts, and their cost per month."""

    machines: int
    per_month: float


def provider_per_month(stored_gb: float, tiers: Sequence[Tier]) -> float:
    """Return the provider's cost per month for `stored_gb`, summed over the tiers. Raises ValueError if the last tier
    ends below `stored_gb`."""
    cost, below = 0.0, 0.0
    for tier in tiers:
        top = math.inf if tier.up_to_gb is None else tier.up_to_gb
        cost += max(min(stored_gb, top) - below, 0.0) * tier.per_gb_month
        below = top
    if stored_gb > below:
        step = "Set up_to_gb=None in the last tier."
        raise ValueError(f"No price is known for {stored_gb:,.0f} GB: the last tier ends at {below:,.0f} GB. {step}")
    return cost


def cluster_per_month(stored_gb: float, machine: Machine, redundancy: float = 1.0) -> Cluster:
    """Return the number of machines that hold the data, and the cost of these machines per month.

    `redundancy` is the number of bytes on the disks divided by the bytes stored: 1 for one copy, 2 for two replicas,
    1.4 for erasure coding with 4 parity parts to 10 data parts. Staff, traffic and requests are not included. Raises
    ValueError if the redundancy is under 1.
    """
    if redundancy < 1:
        raise ValueError(f"redundancy must be at least 1, which means one copy (got {redundancy:g})")
    machines = math.ceil(stored_gb * redundancy / machine.capacity_gb)
    return Cluster(machines, machines * machine.per_month)


THESIS_STORED_GB = 172_500_000
"""Data stored by Snowflake in March 2018, in GB, as the thesis estimates. The thesis computes erasure coding for 175.5
PB."""
S3_STANDARD = (Tier(50_000, 0.023), Tier(500_000, 0.022), Tier(None, 0.021))
"""Prices in USD from the thesis, early 2025."""
D3EN_4XLARGE = Machine(111_840, 1.7460)
"""Price in USD from the thesis, for a reserved machine in Frankfurt in early 2025."""
REED_SOLOMON_10_4 = 1.4
"""Bytes on the disks divided by bytes stored, with 4 parity parts to 10 data parts."""
