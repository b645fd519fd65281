"""How long things take, as earlier runs have seen it: for what comes last, and for saying how long a run will take.

The costs of a machine lie in the user's cache folder, and every run adds its own. A cost is no figure: it is scaled by
rows, over libraries of all versions, and decides nothing but order and words.
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
"""Of so many numbers of rows the costs of a cell are kept; the oldest goes."""
MOST_BYTES = 16 * 10**6
"""A larger file of costs is not read."""
FAR = 10
"""What a machine has shown of so many times fewer or more rows says less than another machine of nearer ones: a call of
1,000 rows is not a thousandth of one of 1,000,000."""
MACHINE = ("name", "cpu", "cores", "memory_bytes", "virtualisation")


class Cost(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What one sample took, in ns."""

    rows: int
    timed_ns: int
    """The call, and the sync behind a save."""
    verified_ns: int
    """What grows with the rows besides."""
    fixed_ns: int
    """What the harness takes around any sample."""

    def at(self, rows: int) -> Cost:
        """By a straight line through nothing."""
        scale = rows / max(self.rows, 1)
        return Cost(rows, int(self.timed_ns * scale), int(self.verified_ns * scale), self.fixed_ns)

    @property
    def total_ns(self) -> int:
        """From the end of one sample to the end of the next."""
        return self.timed_ns + self.verified_ns + self.fixed_ns


class Costs(msgspec.Struct, forbid_unknown_fields=True, dict=True):
    """By operation, variant, conditions and data set: what a sample of each number of rows took, the latest last."""

    cells: dict[str, list[Cost]] = {}

    def learn(self, samples: Iterable[Sample]) -> None:
        """Take in what a run has measured."""
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
        """What a sample will take, by the nearest number of rows that is known, or on other data sets; None where
        nothing is known of the variant."""
        known = self._known(operation, variant, how, dataset)
        if _name(operation, variant, how, dataset) in self.cells:
            return _between(sorted(known[0], key=lambda cost: cost.rows), rows)
        return _middle([_nearest(costs, rows).at(rows) for costs in known]) if known else None

    def how_far(self, operation: str, variant: str, how: Conditions, dataset: str, rows: int) -> float:
        """How many times more or fewer rows what it goes by had; infinite where it goes by nothing."""
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
            # The name of a data set has no blank.
            before, blank, _ = name.rpartition(" ")
            found.setdefault(before + blank, []).append(costs)
        return found


@dataclass(frozen=True)
class Expected:
    """What a sample will take, and whether this machine has shown it."""

    cost: Cost
    here: bool


@dataclass(frozen=True)
class KnownCosts:
    """What this machine has shown, and what others have where it has shown nothing."""

    here: Costs = field(default_factory=Costs)
    elsewhere: Costs = field(default_factory=Costs)

    def expected(self, operation: str, chain: Chain, rows: int) -> Expected | None:
        """None where nothing is known of the chain's variant."""
        asked = operation, chain.variant, chain.conditions, chain.dataset, rows
        far = self.here.how_far(*asked)
        cost = self.here.expected(*asked)
        if cost is not None and (far <= FAR or far <= self.elsewhere.how_far(*asked)):
            return Expected(cost, here=True)
        cost = self.elsewhere.expected(*asked)
        return None if cost is None else Expected(cost, here=False)


def known(machine: MachineInfo) -> KnownCosts:
    """What is known on a machine."""
    return KnownCosts(of_machine(machine), _read(reference.COSTS))


def _name(operation: str, variant: str, how: Conditions, dataset: str) -> str:
    # Records say 'cold (guest)' where a plan says 'cold'.
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
    """By the line through the two numbers of rows around it, or through the nearest and nothing."""
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
    """What runs on this machine have shown; empty where nothing is kept, or nothing whole."""
    return _read(_path(machine))


def _read(path: Path) -> Costs:
    try:
        if path.stat().st_size > MOST_BYTES:
            return Costs()
        return msgspec.json.decode(path.read_bytes(), type=Costs, strict=True)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return Costs()


def add(machine: MachineInfo, samples: Iterable[Sample]) -> None:
    """Add what a run has measured. Raises OSError when the folder cannot take it."""
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
