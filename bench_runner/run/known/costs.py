"""Durations seen in earlier runs. They decide which variants come last, and predict how long a run will take.

The costs of a machine are in the user's cache folder, and every run adds its own costs. Costs are not figures: they are
scaled by rows, mix library versions, and only affect order and predictions.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import Any

import msgspec

import data_generator.cache as data_cache
from bench_runner.conditions import Conditions
from bench_runner.plan.chain import Chain
from bench_runner.results import reference
from bench_runner.results.information import MachineInfo
from bench_runner.results.records import Sample

MOST_SIZES = 4
"""Numbers of rows for which the costs of a cell are stored. The oldest is dropped."""
MOST_BYTES = 16 * 10**6
"""A larger file of costs is ignored."""
FAR = 10
"""If this machine has costs only for numbers of rows that differ by this factor, use another machine's costs for a
nearer number. A call on 1,000 rows takes more than a thousandth of a call on 1,000,000 rows."""
MACHINE = ("name", "cpu", "cores", "memory_bytes", "virtualisation")


class Cost(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Duration of one sample, in ns."""

    rows: int
    timed_ns: int
    """Duration of the call, plus the sync after a save."""
    verified_ns: int
    """Duration of the other steps that take longer with more rows."""
    fixed_ns: int
    """Duration of the harness's steps that do not depend on the rows."""

    def at(self, rows: int) -> Cost:
        """Return the cost scaled in proportion to the rows. The fixed part is not scaled."""
        scale = rows / max(self.rows, 1)
        return Cost(rows, int(self.timed_ns * scale), int(self.verified_ns * scale), self.fixed_ns)

    @property
    def total_ns(self) -> int:
        """Duration from the end of one sample to the end of the next."""
        return self.timed_ns + self.verified_ns + self.fixed_ns


class Costs(msgspec.Struct, forbid_unknown_fields=True, dict=True):
    """The costs of samples by operation, variant, conditions and data set. Each entry lists one cost for each number of
    rows, latest last."""

    cells: dict[str, list[Cost]] = {}

    def learn(self, samples: Iterable[Sample]) -> None:
        """Add the samples of a run."""
        found: dict[tuple[str, int], list[Cost]] = {}
        for sample in samples:
            if "wall_ns" in sample.figures:
                name = _name(sample.operation, sample.variant, sample.conditions, sample.dataset)
                found.setdefault((name, sample.rows), []).append(_cost(sample))
        for (name, rows), costs in found.items():
            others = [cost for cost in self.cells.get(name, []) if cost.rows != rows]
            self.cells[name] = [*others, _middle(costs)][-MOST_SIZES:]
        vars(self).pop("_by_all_but_the_dataset", None)

    def expected(self, operation: str, variant: str, how: Conditions, dataset: str, rows: int) -> Cost | None:
        """Return the expected cost of a sample, from the nearest known number of rows or, if there is none, from other
        data sets. Return None if there is no cost of the variant."""
        known = self._known(operation, variant, how, dataset)
        if _name(operation, variant, how, dataset) in self.cells:
            return _between(sorted(known[0], key=lambda cost: cost.rows), rows)
        return _middle([_nearest(costs, rows).at(rows) for costs in known]) if known else None

    def how_far(self, operation: str, variant: str, how: Conditions, dataset: str, rows: int) -> float:
        """Return the factor between `rows` and the nearest number of rows with a cost; infinite if there is no cost."""
        known = self._known(operation, variant, how, dataset)
        return min((_times(_nearest(costs, rows).rows, rows) for costs in known), default=float("inf"))

    def _known(self, operation: str, variant: str, how: Conditions, dataset: str) -> list[list[Cost]]:
        known = self.cells.get(_name(operation, variant, how, dataset))
        if known is not None:
            return [known]
        return self._by_all_but_the_dataset.get(_name(operation, variant, how, ""), [])

    @cached_property
    def _by_all_but_the_dataset(self) -> dict[str, list[list[Cost]]]:
        found: dict[str, list[list[Cost]]] = {}
        for name, costs in self.cells.items():
            # The name of a data set contains no blank.
            before, blank, _ = name.rpartition(" ")
            found.setdefault(before + blank, []).append(costs)
        return found


@dataclass(frozen=True)
class Expected:
    """The expected cost of a sample, and whether it was seen on this machine."""

    cost: Cost
    here: bool


@dataclass(frozen=True)
class KnownCosts:
    """Costs seen on this machine, and costs of other machines where this machine has none."""

    here: Costs = field(default_factory=Costs)
    elsewhere: Costs = field(default_factory=Costs)

    def expected(self, operation: str, chain: Chain, rows: int) -> Expected | None:
        """Return the expected cost, or None if there is no cost of the chain's variant."""
        asked = operation, chain.variant, chain.conditions, chain.dataset, rows
        far = self.here.how_far(*asked)
        cost = self.here.expected(*asked)
        if cost is not None and (far <= FAR or far <= self.elsewhere.how_far(*asked)):
            return Expected(cost, here=True)
        cost = self.elsewhere.expected(*asked)
        return None if cost is None else Expected(cost, here=False)


def known(machine: MachineInfo) -> KnownCosts:
    """Return the costs known on this machine."""
    return KnownCosts(of_machine(machine), _read(reference.COSTS))


def _name(operation: str, variant: str, how: Conditions, dataset: str) -> str:
    # In records the cache condition is 'cold (guest)' where a plan has 'cold'.
    cache = how.cache.partition(" ")[0]
    between = f" {how.network} {how.service}" if how.network else ""
    return f"{operation} {variant} {cache} {how.threads} {how.target}{between} {dataset}"


def _cost(sample: Sample) -> Cost:
    figures = sample.figures
    return Cost(
        rows=sample.rows,
        timed_ns=sample.clocked_ns,
        verified_ns=figures.get("verify_ns", 0),
        fixed_ns=sum(figures.get(name, 0) for name in ("prepare_ns", "settle_ns", "harness_ns")),
    )


def _middle(costs: Iterable[Cost]) -> Cost:
    each = list(costs)
    return Cost(
        each[0].rows,
        int(median(cost.timed_ns for cost in each)),
        int(median(cost.verified_ns for cost in each)),
        int(median(cost.fixed_ns for cost in each)),
    )


def _nearest(costs: Iterable[Cost], rows: int) -> Cost:
    return min(costs, key=lambda cost: _times(cost.rows, rows))


def _times(some: int, other: int) -> float:
    return max(some, other) / max(min(some, other), 1)


def _between(costs: list[Cost], rows: int) -> Cost:
    """Interpolate between the nearest smaller and larger numbers of rows, or scale the nearest cost in proportion."""
    below = [cost for cost in costs if cost.rows <= rows]
    above = [cost for cost in costs if cost.rows > rows]
    if not below or not above:
        return _nearest(costs, rows).at(rows)
    low, high = below[-1], above[0]
    share = (rows - low.rows) / (high.rows - low.rows)

    def part(name: str) -> int:
        first, last = getattr(low, name), getattr(high, name)
        return int(first + share * (last - first))

    return Cost(rows, part("timed_ns"), part("verified_ns"), part("fixed_ns"))


# --- the costs of a machine --------------------------------------------------------------------------------------


def of_machine(machine: MachineInfo) -> Costs:
    """Return the costs stored by runs on this machine. They are empty if there are none or if they cannot be read."""
    return _read(_path(machine))


def _read(path: Path) -> Costs:
    try:
        if path.stat().st_size > MOST_BYTES:
            return Costs()
        return msgspec.json.decode(path.read_bytes(), type=Costs, strict=True)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return Costs()


def add(machine: MachineInfo, samples: Iterable[Sample]) -> None:
    """Add the samples of a run. Raises OSError if the folder is not writable."""
    costs = of_machine(machine)
    costs.learn(samples)
    path = _path(machine)
    path.parent.mkdir(parents=True, exist_ok=True)
    data_cache.remove_abandoned(path.parent)
    with data_cache.moved_into_place(path) as file:
        file.write(msgspec.json.encode(costs))


def _path(machine: MachineInfo) -> Path:
    about: Mapping[str, Any] = msgspec.to_builtins(machine)
    key = json.dumps({name: about.get(name) for name in MACHINE}, sort_keys=True)
    return data_cache.default_folder() / "facts" / f"costs-{hashlib.sha256(key.encode()).hexdigest()[:16]}.json"
